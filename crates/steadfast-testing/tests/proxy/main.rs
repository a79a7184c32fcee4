//! The fault proxy between a client and a server that tell which bytes they saw.

mod peers;

use std::{io::ErrorKind, time::Duration};

use steadfast_testing::{Fault, FaultProxy, Faults};
use tokio::{net::TcpStream, task::JoinSet, time::Instant};

use self::peers::{Client, End, Seen, Server};

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const POST: &str = "POST /a HTTP/1.1\r\nhost: a\r\ncontent-length: 6\r\n\r\nabcdef";
const CHUNKED: &str = "POST /b HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n";
const HEAD: &str = "HTTP/1.1 201 Created\r\ncontent-length: 8\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 201 Created\r\ncontent-length: 8\r\n\r\n{\"a\":12}";
const CHUNKED_ANSWER: &str =
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nsum: 1\r\n\r\n";

async fn server() -> Server {
    Server::start(|_request| ANSWER.into()).await
}

/// One request over a connection of its own.
async fn once(proxy: &FaultProxy, request: &str) -> (String, End) {
    let mut client = Client::connect(proxy.addr()).await;
    client.exchange(request, ANSWER).await
}

#[tokio::test]
async fn exchanges_without_a_fault_share_one_connection_and_pass_unchanged() {
    let mut server = Server::start(|request| match request {
        CHUNKED => CHUNKED_ANSWER.into(),
        _ => ANSWER.into(),
    })
    .await;
    let proxy = FaultProxy::start(server.addr, Faults::none())
        .await
        .unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    for (request, answer) in [
        (GET, ANSWER),
        (CHUNKED, CHUNKED_ANSWER),
        (POST, ANSWER),
        (CHUNKED, CHUNKED_ANSWER),
    ] {
        let (bytes, end) = client.exchange(request, answer).await;
        assert_eq!((bytes.as_str(), end), (answer, End::Whole));
        let Seen::Request(seen, _, connection) = server.next().await else {
            panic!("not a whole request");
        };
        assert_eq!((seen.as_str(), connection), (request, 0));
        assert_eq!(server.next().await, Seen::Answered);
    }
    let stats = proxy.stats();
    assert_eq!((stats.exchanges(), stats.count(Fault::Pass)), (4, 4));
    assert_eq!((stats.injected(), stats.after_commit()), (0, 0));
    assert_eq!((stats.connections(), stats.upstream_failures()), (1, 0));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let mut server = server().await;
    let proxy = FaultProxy::start(server.addr, Faults::none())
        .await
        .unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    let both = format!("{ANSWER}{ANSWER}");
    let (bytes, _) = client.exchange(&format!("{POST}{GET}"), &both).await;
    assert_eq!(bytes, both);
    assert_eq!(server.request().await, POST);
    assert_eq!(server.next().await, Seen::Answered);
    assert_eq!(server.request().await, GET);
    assert_eq!(proxy.stats().exchanges(), 2);
}

#[tokio::test]
async fn answers_without_a_body_do_not_hold_up_the_next_exchange() {
    const NO_BODY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n";
    const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";
    let server = Server::start(|request| match &request[..4] {
        "HEAD" => NO_BODY.into(),
        _ => NO_CONTENT.into(),
    })
    .await;
    let proxy = FaultProxy::start(server.addr, Faults::none())
        .await
        .unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    for _ in 0..2 {
        let head = "HEAD / HTTP/1.1\r\nhost: a\r\n\r\n";
        assert_eq!(client.exchange(head, NO_BODY).await.1, End::Whole);
        assert_eq!(client.exchange(GET, NO_CONTENT).await.1, End::Whole);
    }
    assert_eq!(proxy.stats().exchanges(), 4);
}

#[tokio::test]
async fn an_answer_that_ends_with_the_connection_passes_and_ends_it() {
    const ANSWER: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nuntil the end";
    let server = Server::start(|_request| ANSWER.into()).await;
    let proxy = FaultProxy::start(server.addr, Faults::none())
        .await
        .unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    assert_eq!(client.exchange(GET, ANSWER).await.0, ANSWER);
    assert_eq!(client.receive("").await.1, End::Eof);
    assert_eq!(proxy.stats().upstream_failures(), 0);
}

#[tokio::test]
async fn a_lost_request_never_reaches_the_server() {
    let mut server = server().await;
    for (resets, end) in [(0, End::Eof), (100, End::Reset)] {
        for request in [GET, POST, CHUNKED] {
            let faults = Faults::script([Fault::LoseRequest]).resets(resets);
            let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
            assert_eq!(once(&proxy, request).await, (String::new(), end.clone()));
            assert_eq!(proxy.stats().count(Fault::LoseRequest), 1);
            assert_eq!(proxy.stats().after_commit(), 0);

            // What the server sees first is the next one.
            let next = request.replace("host: a", "host: b");
            assert_eq!(once(&proxy, &next).await.1, End::Whole);
            assert_eq!(server.request().await, next);
            assert_eq!(server.next().await, Seen::Answered);
            assert_eq!(server.next().await, Seen::Ended);
        }
    }
}

#[tokio::test]
async fn of_a_cut_request_the_server_gets_a_beginning() {
    let mut server = server().await;
    let mut in_head = 0;
    for seed in 0..40 {
        let faults = Faults::script([Fault::CutRequest]).seed(seed);
        let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
        let (bytes, end) = once(&proxy, CHUNKED).await;
        assert_eq!(bytes, "");
        assert_ne!(end, End::Whole);
        let Seen::Cut(beginning) = server.next().await else {
            panic!("cut, and not to nothing");
        };
        assert!(CHUNKED.starts_with(&beginning) && beginning.len() < CHUNKED.len());
        in_head += usize::from(!beginning.contains("\r\n\r\n"));
        assert_eq!(proxy.stats().after_commit(), 0);
    }
    assert!(
        (1..40).contains(&in_head),
        "cut both in heads and in bodies"
    );
}

#[tokio::test]
async fn a_client_that_still_sends_what_was_cut_sees_a_clean_end_too() {
    let mut server = server().await;
    let faults = Faults::script([Fault::CutRequest]).resets(0);
    let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    let more = "x".repeat(60_000);
    let request = format!("POST / HTTP/1.1\r\ncontent-length: 120000\r\n\r\n{more}");
    assert!(client.send(&request).await);
    let Seen::Cut(beginning) = server.next().await else {
        panic!("cut, and not to nothing");
    };
    assert!(beginning.len() < 32 * 1024, "what is kept is bounded");
    // The proxy is done with it, and has not read all that was sent.
    assert!(client.send(&more).await, "a reset would break the sending");
    assert_eq!(client.receive("").await.1, End::Eof);
}

#[tokio::test]
async fn i15_a_lost_response_is_lost_after_the_server_gave_it_whole() {
    // More than the sockets between them hold: the server is done only if the proxy took it all.
    let body = "x".repeat(16 * 1024 * 1024);
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut server = Server::start(move |_request| answer.clone().into()).await;
    for (resets, end) in [(0, End::Eof), (100, End::Reset)] {
        for request in [GET, POST, CHUNKED] {
            let faults = Faults::script([Fault::LoseResponse]).resets(resets);
            let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
            assert_eq!(once(&proxy, request).await, (String::new(), end.clone()));
            assert_eq!(server.request().await, request);
            assert_eq!(server.next().await, Seen::Answered);
            assert_eq!(server.next().await, Seen::Ended);
            assert_eq!(proxy.stats().after_commit(), 1);
        }
    }
}

#[tokio::test]
async fn i15_of_a_cut_response_the_client_gets_a_beginning() {
    let mut server = server().await;
    let mut in_head = 0;
    for seed in 0..40 {
        let resets = if seed % 2 == 0 { 0 } else { 100 };
        let faults = Faults::script([Fault::CutResponse])
            .seed(seed)
            .resets(resets);
        let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
        let (bytes, end) = once(&proxy, POST).await;
        assert!(ANSWER.starts_with(&bytes) && (1..ANSWER.len()).contains(&bytes.len()));
        assert_eq!(end, if resets == 0 { End::Eof } else { End::Reset });
        in_head += usize::from(bytes.len() < HEAD.len());
        assert_eq!(server.request().await, POST);
        assert_eq!(server.next().await, Seen::Answered);
        assert_eq!(server.next().await, Seen::Ended);
        assert_eq!(proxy.stats().after_commit(), 1);
    }
    assert!(
        (1..40).contains(&in_head),
        "cut both in heads and in bodies"
    );
}

#[tokio::test]
async fn of_a_cut_body_the_client_gets_the_head_and_never_all() {
    let mut server = server().await;
    for seed in 0..40 {
        let faults = Faults::script([Fault::CutBody]).seed(seed);
        let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
        let (bytes, end) = once(&proxy, POST).await;
        assert!(bytes.starts_with(HEAD) && ANSWER.starts_with(&bytes));
        assert!(bytes.len() < ANSWER.len());
        assert_ne!(end, End::Whole);
        assert_eq!(server.request().await, POST);
        assert_eq!(server.next().await, Seen::Answered);
        assert_eq!(server.next().await, Seen::Ended);
        assert_eq!(proxy.stats().after_commit(), 1);
    }
}

#[tokio::test]
async fn a_cut_body_that_is_empty_is_cut_in_the_head() {
    const ANSWER: &str = "HTTP/1.1 204 No Content\r\n\r\n";
    let server = Server::start(|_request| ANSWER.into()).await;
    let faults = Faults::script([Fault::CutBody]);
    let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    let (bytes, _) = client.exchange(GET, ANSWER).await;
    assert!(ANSWER.starts_with(&bytes) && (1..ANSWER.len()).contains(&bytes.len()));
}

#[tokio::test(start_paused = true)]
async fn delays_hold_what_they_name() {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let mut server = server().await;
    for (fault, seen_after) in [
        (Fault::DelayRequest, HOUR),
        (Fault::DelayResponse, Duration::ZERO),
    ] {
        let faults = Faults::script([fault]).delay(HOUR..=HOUR);
        let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
        let start = Instant::now();
        let (bytes, end) = once(&proxy, POST).await;
        assert_eq!((bytes.as_str(), end), (ANSWER, End::Whole));
        assert!(start.elapsed() >= HOUR);
        let Seen::Request(request, at, _) = server.next().await else {
            panic!("not a whole request");
        };
        assert_eq!(request, POST);
        let seen = at.duration_since(start);
        assert!(seen >= seen_after && seen < seen_after + HOUR, "{seen:?}");
        assert_eq!(server.next().await, Seen::Answered);
        assert_eq!(server.next().await, Seen::Ended);
        assert_eq!(proxy.stats().after_commit(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn i15_a_delayed_request_arrives_although_the_client_gave_up() {
    let mut server = server().await;
    let faults = Faults::script([Fault::DelayRequest]);
    let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    client.send(POST).await;
    drop(client);
    assert_eq!(server.request().await, POST);
}

#[tokio::test]
async fn a_duplicated_request_arrives_twice_and_is_answered_once() {
    let mut server = server().await;
    let faults = Faults::script([Fault::DuplicateRequest, Fault::Pass]);
    let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    assert_eq!(client.exchange(CHUNKED, ANSWER).await.0, ANSWER);
    // The next answer is the next request's.
    assert_eq!(client.exchange(GET, ANSWER).await.0, ANSWER);

    let mut requests = Vec::new();
    while requests.len() < 3 {
        if let Seen::Request(request, _, connection) = server.next().await {
            requests.push((request, connection));
        }
    }
    requests.sort();
    let [.., (get, 0), (first, 0), (second, 1)] = &requests[..] else {
        panic!("not on two connections: {requests:?}");
    };
    assert_eq!(
        (get.as_str(), first.as_str(), second.as_str()),
        (GET, CHUNKED, CHUNKED)
    );
    assert_eq!(proxy.stats().count(Fault::DuplicateRequest), 1);
}

#[tokio::test]
async fn the_same_seed_breaks_the_same_exchanges_in_the_same_way() {
    let server = server().await;
    let run = async |seed| {
        let faults = Faults::percent(60)
            .weight(Fault::DelayRequest, 0)
            .weight(Fault::DelayResponse, 0)
            .seed(seed);
        let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
        let mut outcomes = Vec::new();
        for _ in 0..60 {
            outcomes.push(once(&proxy, POST).await);
        }
        (outcomes, proxy.stats())
    };
    let first = run(7).await;
    assert_eq!(first, run(7).await);
    assert_ne!(first, run(8).await);
    assert_eq!(first.1.exchanges(), 60);
    assert!(first.0.iter().any(|(_, end)| *end == End::Whole));
    assert!(first.0.iter().any(|(_, end)| *end == End::Reset));
}

#[tokio::test]
async fn a_fault_strikes_the_exchange_it_is_due_on_a_kept_connection() {
    let mut server = server().await;
    let faults = Faults::script([Fault::Pass, Fault::Pass, Fault::LoseResponse]).resets(0);
    let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    for expected in [End::Whole, End::Whole, End::Eof] {
        assert_eq!(client.exchange(POST, ANSWER).await.1, expected);
        assert_eq!(server.request().await, POST);
        assert_eq!(server.next().await, Seen::Answered);
    }
    // The server's side is closed with it.
    assert_eq!(server.next().await, Seen::Ended);
}

#[tokio::test]
async fn faults_change_while_the_proxy_runs_and_counts_go_on() {
    let server = server().await;
    let proxy = FaultProxy::start(server.addr, Faults::none())
        .await
        .unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    assert_eq!(client.exchange(GET, ANSWER).await.1, End::Whole);
    proxy.set_faults(Faults::script([Fault::LoseRequest]));
    assert_ne!(client.exchange(GET, ANSWER).await.1, End::Whole);
    let stats = proxy.stats();
    assert_eq!((stats.exchanges(), stats.injected()), (2, 1));
}

#[tokio::test]
async fn a_client_that_expects_an_interim_answer_gets_it_whatever_the_fault() {
    const EXPECT: &str = "POST /c HTTP/1.1\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n";
    const INTERIM: &str = "HTTP/1.1 100 Continue\r\n\r\n";
    let mut server = server().await;
    for (fault, expected) in [(Fault::Pass, End::Whole), (Fault::LoseResponse, End::Eof)] {
        let faults = Faults::script([fault]).resets(0);
        let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
        let mut client = Client::connect(proxy.addr()).await;
        assert_eq!(client.exchange(EXPECT, INTERIM).await.0, INTERIM);
        assert_eq!(client.exchange("abc", ANSWER).await.1, expected);
        assert_eq!(server.request().await, format!("{EXPECT}abc"));
        assert_eq!(server.next().await, Seen::Answered);
        drop(client);
        assert_eq!(server.next().await, Seen::Ended);
    }
    for fault in [Fault::LoseRequest, Fault::CutRequest] {
        let faults = Faults::script([fault]).resets(0);
        let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
        let mut client = Client::connect(proxy.addr()).await;
        assert_eq!(client.exchange(EXPECT, INTERIM).await.1, End::Eof);
    }
}

#[tokio::test]
async fn an_early_answer_reaches_a_client_that_is_still_sending() {
    const REFUSED: &str =
        "HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, REFUSED.as_bytes())
            .await
            .unwrap();
    });
    let proxy = FaultProxy::start(addr, Faults::none()).await.unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    client
        .send("POST / HTTP/1.1\r\ncontent-length: 1000000\r\n\r\nx")
        .await;
    assert_eq!(client.receive(REFUSED).await.0, REFUSED);
}

#[tokio::test]
async fn a_connection_that_changes_its_protocol_is_relayed_as_it_is() {
    const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\n\r\n";
    let mut server = Server::start(|request| match request {
        POST => ANSWER.into(),
        _ => SWITCH.into(),
    })
    .await;
    let proxy = FaultProxy::start(server.addr, Faults::none())
        .await
        .unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    assert_eq!(client.exchange(GET, SWITCH).await.0, SWITCH);
    // To the proxy these are bytes like any other.
    proxy.set_faults(Faults::percent(100));
    assert_eq!(client.exchange(POST, ANSWER).await.0, ANSWER);
    assert_eq!(proxy.stats().exchanges(), 1);
    assert_eq!(server.request().await, GET);
}

#[tokio::test]
async fn a_server_that_breaks_off_or_is_gone_is_counted() {
    let server = Server::start(|_request| Vec::new()).await;
    let proxy = FaultProxy::start(server.addr, Faults::none())
        .await
        .unwrap();
    assert_eq!(once(&proxy, GET).await, (String::new(), End::Eof));
    assert_eq!(proxy.stats().upstream_failures(), 1);

    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = nowhere.local_addr().unwrap();
    drop(nowhere);
    let faults = Faults::script([Fault::Pass, Fault::LoseResponse, Fault::CutRequest]);
    let proxy = FaultProxy::start(addr, faults).await.unwrap();
    for _ in 0..3 {
        assert_eq!(once(&proxy, GET).await, (String::new(), End::Eof));
    }
    let stats = proxy.stats();
    assert_eq!((stats.upstream_failures(), stats.after_commit()), (3, 0));
}

#[tokio::test]
async fn what_is_not_http_is_closed_and_is_no_exchange() {
    let mut server = server().await;
    let proxy = FaultProxy::start(server.addr, Faults::none())
        .await
        .unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    let (bytes, end) = client
        .exchange("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ANSWER)
        .await;
    assert_eq!((bytes.as_str(), end), ("", End::Eof));
    assert_eq!(proxy.stats().exchanges(), 0);
    assert!(server.saw_nothing_more());
}

#[tokio::test]
async fn dropping_the_proxy_closes_its_connections_and_its_port() {
    let mut server = server().await;
    let proxy = FaultProxy::start(server.addr, Faults::none())
        .await
        .unwrap();
    let mut client = Client::connect(proxy.addr()).await;
    assert_eq!(client.exchange(GET, ANSWER).await.1, End::Whole);
    let addr = proxy.addr();
    drop(proxy);
    assert_ne!(client.receive("").await.1, End::Whole);
    assert_eq!(server.request().await, GET);
    assert_eq!(server.next().await, Seen::Answered);
    assert_eq!(server.next().await, Seen::Ended);
    let refused = TcpStream::connect(addr).await.expect_err("nobody listens");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn many_clients_at_once_are_each_counted() {
    let server = server().await;
    let faults = Faults::percent(50).delay(Duration::ZERO..=Duration::from_millis(2));
    let proxy = FaultProxy::start(server.addr, faults).await.unwrap();
    let addr = proxy.addr();
    let mut clients = JoinSet::new();
    for _ in 0..64 {
        clients.spawn(async move {
            let mut whole = 0_u64;
            for _ in 0..8 {
                let mut client = Client::connect(addr).await;
                whole += u64::from(client.exchange(POST, ANSWER).await.1 == End::Whole);
            }
            whole
        });
    }
    let whole = clients.join_all().await.into_iter().sum::<u64>();
    let stats = proxy.stats();
    assert_eq!((stats.exchanges(), stats.connections()), (512, 512));
    let delayed = stats.count(Fault::DelayRequest) + stats.count(Fault::DelayResponse);
    assert_eq!(whole, stats.count(Fault::Pass) + delayed);
    let withheld = [Fault::LoseResponse, Fault::CutResponse, Fault::CutBody];
    assert_eq!(
        stats.after_commit(),
        withheld
            .iter()
            .map(|fault| stats.count(*fault))
            .sum::<u64>()
    );
}
