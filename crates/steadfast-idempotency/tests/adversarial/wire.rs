//! Raw bytes over TCP, to the layer under hyper.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use steadfast_core::Body;
use steadfast_idempotency::{IdempotencyLayer, MemoryStore, Scope};
use steadfast_testing::ChunkedBody;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tower::{Layer as _, service_fn};

type Answer = http_body_util::Either<Full<Bytes>, ChunkedBody<&'static str>>;

/// A server on loopback that counts its runs.
#[derive(Clone)]
struct Server {
    address: SocketAddr,
    runs: Arc<AtomicUsize>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let runs = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&runs);
        let handler = service_fn(move |request| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, Infallible>(handle(request).await) }
        });
        let layer = IdempotencyLayer::new(MemoryStore::new(100, 100_000), Scope::global());
        let service = layer.max_body(16).layer(handler);
        drop(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(service.clone());
                let connection = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .with_upgrades();
                drop(tokio::spawn(connection));
            }
        }));
        Self { address, runs }
    }

    /// Sends these bytes on a connection of its own, ends the sending half, and reads to the end.
    async fn say(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A server that refuses a body unread may reset the connection behind its answer.
        stream.read_to_end(&mut answer).await.unwrap_or_default();
        String::from_utf8(answer).unwrap()
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

async fn handle(request: Request<Body<Incoming>>) -> Response<Answer> {
    let path = request.uri().path().to_owned();
    if path == "/upgrade" {
        let upgrade = hyper::upgrade::on(request);
        drop(tokio::spawn(async move {
            let mut io = TokioIo::new(upgrade.await.unwrap());
            io.write_all(b"hello over there").await.unwrap();
            io.shutdown().await.unwrap();
        }));
        return Response::builder()
            .status(101)
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, "echo")
            .body(Answer::Left(Full::default()))
            .unwrap();
    }
    if path == "/trailers" {
        let trailer = (
            HeaderName::from_static("checksum"),
            HeaderValue::from_static("c0ffee"),
        );
        let body = ChunkedBody::new(["whole"]).trailers(HeaderMap::from_iter([trailer]));
        return Response::builder()
            .header(header::TRAILER, "checksum")
            .body(Answer::Right(body))
            .unwrap();
    }
    let read = request.into_body().collect().await.unwrap();
    let trailer = read
        .trailers()
        .is_some_and(|trailers| trailers.contains_key("sum"));
    let answer = format!("{} {trailer}", read.to_bytes().len());
    Response::new(Answer::Left(Full::from(answer)))
}

/// A request on a connection that ends with its answer.
fn post(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\nidempotency-key: k1\r\n{headers}\r\n{body}"
    )
}

#[tokio::test]
async fn row_25_an_upgrade_works_once_and_is_remembered_as_done() {
    let server = Server::start().await;
    let upgrade = "POST /upgrade HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\
                   idempotency-key: k1\r\ncontent-length: 0\r\n\r\n";
    let first = server.say(upgrade).await;
    assert!(first.starts_with("HTTP/1.1 101"), "{first}");
    assert!(first.ends_with("hello over there"), "{first}");
    let second = server
        .say(&upgrade.replace("connection: upgrade", "connection: upgrade, close"))
        .await;
    assert!(
        second.contains("idempotency_result_unavailable"),
        "{second}"
    );
    assert_eq!(server.runs(), 1);
}

#[tokio::test]
async fn the_trailers_of_an_answer_reach_an_http1_client() {
    let server = Server::start().await;
    let first = server
        .say(&post(
            "/trailers",
            "te: trailers\r\ncontent-length: 0\r\n",
            "",
        ))
        .await;
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    assert!(first.contains("whole"), "{first}");
    assert!(first.contains("checksum: c0ffee"), "{first}");
}

#[tokio::test]
async fn a_body_in_chunks_with_trailers_is_the_same_request_as_one_with_a_length() {
    let server = Server::start().await;
    let chunked = "transfer-encoding: chunked\r\ntrailer: sum\r\n";
    let first = server
        .say(&post(
            "/",
            chunked,
            "2\r\non\r\n1\r\ne\r\n0\r\nsum: 1\r\n\r\n",
        ))
        .await;
    assert!(first.ends_with("3 true"), "{first}");
    let second = server.say(&post("/", "content-length: 3\r\n", "one")).await;
    assert!(second.contains("idempotent-replayed: 1"), "{second}");
    assert!(second.ends_with("3 true"), "{second}");
    assert_eq!(server.runs(), 1);
}

#[tokio::test]
async fn row_06_bodies_that_break_their_framing_run_nothing_and_leave_the_key_free() {
    let server = Server::start().await;
    let chunked = "transfer-encoding: chunked\r\n";
    for broken in [
        post("/", chunked, "zz\r\none\r\n0\r\n\r\n"),
        post("/", chunked, "fffffffffffffffff\r\none"),
        post("/", "content-length: 3\r\ncontent-length: 4\r\n", "one"),
        post("/", "content-length: 17\r\n", ""),
        post("/", chunked, "11\r\n12345678901234567\r\n0\r\n\r\n"),
    ] {
        let answer = server.say(&broken).await;
        assert!(
            answer.starts_with("HTTP/1.1 4") || answer.is_empty(),
            "{answer}"
        );
        assert_eq!(server.runs(), 0, "{broken}");
    }
    let whole = server
        .say(&post("/", "content-length: 16\r\n", "1234567890123456"))
        .await;
    assert!(whole.ends_with("16 false"), "{whole}");
}

#[tokio::test]
async fn a_client_that_asks_before_it_sends_is_told_to_go_on_unless_it_is_refused() {
    let server = Server::start().await;
    let expect = "expect: 100-continue\r\n";
    let refused = server
        .say(&post("/", &format!("{expect}content-length: 17\r\n"), ""))
        .await;
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
    let twice = format!("{expect}idempotency-key: k1\r\ncontent-length: 3\r\n");
    let refused = server.say(&post("/", &twice, "")).await;
    assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
    assert_eq!(server.runs(), 0);
    let told = server
        .say(&post("/", &format!("{expect}content-length: 3\r\n"), "one"))
        .await;
    assert!(told.contains("HTTP/1.1 200"), "{told}");
    assert_eq!(server.runs(), 1);
}
