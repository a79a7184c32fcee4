//! Attempts to break the layer: bodies that are still being sent, clocks, bodies without an end, calls at once.

#[expect(dead_code, reason = "the behaviour tests use all of it")]
#[path = "behaviour/support.rs"]
mod support;

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, channel::Channel};
use steadfast_core::{
    Clock, Operations, ReplayBody, RoutePattern,
    facts::{CallReport, OperationClass, Outcome, RetryReport, Stopped, Throttled},
};
use steadfast_retry::{Budget, Profile, RateLimitAwareRetryLayer, Repeat, Trigger};
use steadfast_testing::{ChunkedBody, ServiceProbe};
use tokio::{sync::oneshot, time::Instant};
use tower::{Layer as _, ServiceExt as _};

use crate::support::{Answer, Events, Server, answer, get, keyed, listening, lost, ms, post, secs};

/// What a server does with the first request's body before it answers with 503.
#[derive(Clone, Copy)]
enum Early {
    /// Goes on reading it while the client waits.
    ReadsOn,
    /// Begins to read it when the second request is being read.
    ReadsLate,
}

type Streaming = Channel<Bytes, Infallible>;

/// Answers 503 before the first request has been read, then collects the second one. The sender tells of the outcome of
/// the first body.
fn early_503(
    early: Early,
    told: oneshot::Sender<String>,
) -> ServiceProbe<ReplayBody<Streaming>, Full<Bytes>, String> {
    let told = Mutex::new(Some(told));
    let first = Mutex::new(None);
    ServiceProbe::new(move |request: Request<ReplayBody<Streaming>>| {
        let told = told.lock().unwrap().take();
        let late = first.lock().unwrap().take();
        let mut body = request.into_body();
        let mut kept = None;
        let answer = match (told, early) {
            (Some(told), Early::ReadsOn) => {
                tokio::spawn(async move { told.send(outcome(body).await).unwrap() });
                None
            }
            (Some(told), Early::ReadsLate) => {
                kept = Some((body, told));
                None
            }
            (None, _) => Some(async move {
                let mut read = Vec::new();
                let first = body
                    .frame()
                    .await
                    .unwrap()
                    .map_err(|error| error.to_string())?;
                read.extend(first.into_data().unwrap());
                if let Some((body, told)) = late {
                    let told: oneshot::Sender<String> = told;
                    told.send(outcome(body).await).unwrap();
                }
                let rest = body.collect().await.map_err(|error| error.to_string())?;
                read.extend(rest.to_bytes());
                Ok(Response::new(Full::from(read)))
            }),
        };
        *first.lock().unwrap() = kept;
        async move {
            let Some(answer) = answer else {
                tokio::task::yield_now().await;
                return Ok(status(503));
            };
            answer.await
        }
    })
}

async fn outcome(body: ReplayBody<Streaming>) -> String {
    match body.collect().await {
        Ok(read) => format!("read {} bytes", read.to_bytes().len()),
        Err(error) => error.to_string(),
    }
}

fn status(status: u16) -> Response<Full<Bytes>> {
    Response::builder()
        .status(status)
        .body(Full::default())
        .unwrap()
}

fn repeatable(body: Streaming) -> Request<Streaming> {
    Request::post("https://api.example/")
        .extension(OperationClass::NaturallyIdempotent)
        .body(body)
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn c4_r15_a_body_that_still_streams_cannot_outgrow_the_cap_between_decision_and_retry() {
    let (mut sender, body) = Channel::new(8);
    let (told, first) = oneshot::channel();
    let layer = RateLimitAwareRetryLayer::new().replay_cap(6);
    let service = layer.layer(early_503(Early::ReadsOn, told));
    sender.send_data("abc".into()).await.unwrap();
    let call = tokio::spawn(service.oneshot(repeatable(body)));
    // The pause has begun; it lasts a quarter of a second at least.
    tokio::time::sleep(ms(100)).await;
    sender.send_data("defghi".into()).await.unwrap();
    drop(sender);

    let response = call.await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    let read = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(read, "abcdefghi");
    assert_eq!(
        first.await.unwrap(),
        "a newer attempt sends this request body"
    );
}

#[tokio::test(start_paused = true)]
async fn c4_a_request_that_is_read_late_does_not_break_off_its_retry() {
    let (mut sender, body) = Channel::new(8);
    let (told, first) = oneshot::channel();
    let service = RateLimitAwareRetryLayer::new().layer(early_503(Early::ReadsLate, told));
    sender.send_data("abc".into()).await.unwrap();
    let call = tokio::spawn(service.oneshot(repeatable(body)));
    tokio::time::sleep(secs(1)).await;
    sender.send_data("def".into()).await.unwrap();
    drop(sender);

    let response = call.await.unwrap().unwrap();
    let report = response.extensions().get::<RetryReport>().unwrap();
    assert_eq!((response.status().as_u16(), report.attempts), (200, 2));
    let read = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(read, "abcdef");
    assert_eq!(
        first.await.unwrap(),
        "a newer attempt sends this request body"
    );
}

#[tokio::test(start_paused = true)]
async fn r01_c3_a_table_that_forbids_a_repeat_beats_the_class_a_key_layer_gives() {
    let charge = RoutePattern::parse("/v1/emails").unwrap();
    let table = Operations::new().route(Method::POST, charge, OperationClass::NotRepeatable);
    let server = Server::script([answer(503)]);
    let mut request = keyed();
    // As a layer that mints keys does with each call of which nothing is said.
    request
        .extensions_mut()
        .insert(OperationClass::RepeatableWithKey);
    let layer = RateLimitAwareRetryLayer::new().operations(table);
    let call = server.call(layer, request).await;
    assert_eq!(call.summary(), (503, 1, Some(Stopped::NotRepeatable)));
}

#[tokio::test(start_paused = true)]
async fn r04_a_date_on_the_own_clock_is_not_met_early_when_the_body_takes_long() {
    let noon = SystemTime::UNIX_EPOCH + secs(1_768_478_400);
    let started = Instant::now();
    let clock = Clock::from_fn(move || noon + started.elapsed());
    let slow = answer(503)
        .retry_after("Thu, 15 Jan 2026 12:00:30 GMT")
        .body(ChunkedBody::new(["a"]).stall());
    let server = Server::script([slow, answer(200)]);
    let layer = RateLimitAwareRetryLayer::new()
        .clock(clock)
        .buffer_response(1024)
        .attempt_timeout(secs(20));
    let call = server.call(layer, get()).await;
    assert_eq!(call.times(), [secs(0), secs(30)]);
}

#[tokio::test(start_paused = true)]
async fn r02_a_response_that_is_not_whole_is_repeated_unless_its_status_alone_counts() {
    let cut = |status| answer(status).body(ChunkedBody::new(["a"]).error(support::Lost::Cut));
    let hung = |status| answer(status).body(ChunkedBody::new(["a"]).stall());
    let throttling = Profile::openemail().on(Trigger::TooManyRequests, Repeat::Never);
    let made: [fn(u16) -> Answer; 2] = [cut, hung];
    for broken in made {
        for (profile, status, attempts) in [
            (Profile::botix(), 503, 2),
            (Profile::botix(), 500, 2),
            (Profile::new(), 409, 2),
            (Profile::payments(), 401, 2),
            (Profile::new(), 404, 2),
            // The status of a 429 has said it all.
            (Profile::openemail(), 429, 1),
            (throttling, 429, 1),
        ] {
            let server = Server::script([broken(status), answer(200)]);
            let layer = RateLimitAwareRetryLayer::with_profile(profile).attempt_timeout(secs(5));
            let layer = layer.buffer_response(1024);
            let call = server.call(layer, get()).await;
            assert_eq!(call.seen.len(), attempts, "{status} {profile:?}");
            let stopped = (attempts == 1).then_some(Stopped::NotRepeatable);
            assert_eq!(call.stopped(), stopped, "{status} {profile:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r09_the_longest_span_tells_of_an_outage_once() {
    let events = Events::default();
    let layer = listening(&events).coalesce(Duration::MAX).retries(0);
    let server = Server::script([lost(), lost(), lost()]);
    for _ in 0..3 {
        server.call(layer.clone(), get()).await.result.unwrap_err();
    }
    assert_eq!(events.all().len(), 1);
}

/// A body of empty frames that is always ready and never ends.
struct Nothing {
    frames: Arc<AtomicU32>,
}

impl http_body::Body for Nothing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frames = self.frames.fetch_add(1, Ordering::Relaxed);
        assert!(frames < 1_000_000, "read for ever");
        Poll::Ready(Some(Ok(Frame::data(Bytes::new()))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_discarded_response_of_empty_frames_is_not_read_for_ever() {
    let frames = Arc::new(AtomicU32::new(0));
    let statuses = [503, 200].map(|status| {
        let frames = Arc::clone(&frames);
        Response::builder()
            .status(status)
            .body(Nothing { frames })
            .unwrap()
    });
    let inner =
        ServiceProbe::<ReplayBody<Full<Bytes>>, Nothing, Infallible>::script(statuses.map(Ok));
    let response = RateLimitAwareRetryLayer::new()
        .layer(inner)
        .oneshot(get())
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert!(frames.load(Ordering::Relaxed) <= 64 * 1024 + 1);
}

/// Uses up the cooperative budget of its task in each poll, and never answers.
async fn busy() -> Result<Response<Full<Bytes>>, Infallible> {
    poll_fn(|cx| {
        loop {
            ready!(tokio::task::coop::poll_proceed(cx)).made_progress();
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn r10_a_client_that_is_always_busy_is_ended_at_its_deadline() {
    for layer in [
        RateLimitAwareRetryLayer::new().deadline(secs(1)),
        RateLimitAwareRetryLayer::new()
            .attempt_timeout(secs(1))
            .retries(0),
    ] {
        let inner = ServiceProbe::new(|_: Request<ReplayBody<Full<Bytes>>>| busy());
        let call = tokio::spawn(layer.layer(inner).oneshot(get()));
        tokio::task::yield_now().await;
        tokio::time::advance(secs(2)).await;
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let ended = call.is_finished();
        call.abort();
        assert!(ended);
    }
}

#[tokio::test(start_paused = true)]
async fn r09_a_deadline_that_passes_before_the_retry_is_ready_is_told_of_once() {
    let events = Events::default();
    let server = Server::script([answer(503).retry_after(1)]);
    let probe = server.probe();
    let block = tokio::spawn(async move {
        tokio::time::sleep(ms(500)).await;
        probe.block();
    });
    let call = server
        .call(listening(&events).deadline(secs(9)), get())
        .await;
    block.await.unwrap();
    assert_eq!(call.summary(), (504, 1, Some(Stopped::Deadline)));
    assert_eq!(call.took, secs(9));
    assert!(matches!(call.report.outcome, Outcome::Answered(status) if status == 503));
    assert_eq!(events.all().len(), 1);
    assert_eq!(events.all()[0].attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn r13_calls_at_once_never_spend_more_than_the_budget() {
    let sent = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&sent);
    let inner =
        ServiceProbe::<_, _, Infallible>::new(move |_: Request<ReplayBody<Full<Bytes>>>| {
            count.fetch_add(1, Ordering::Relaxed);
            async {
                tokio::task::yield_now().await;
                Ok(status(503))
            }
        });
    let handle = inner.handle();
    let layer = RateLimitAwareRetryLayer::new().budget(Budget::new().tokens(14 * 10 + 13));
    let service = layer.layer(inner);
    let calls: Vec<_> = (0..100)
        .map(|_| tokio::spawn(service.clone().oneshot(get())))
        .collect();
    let mut attempts = 0;
    for call in calls {
        let response = call.await.unwrap().unwrap();
        let report = response.extensions().get::<RetryReport>().unwrap();
        assert!(matches!(
            report.stopped,
            Some(Stopped::Budget | Stopped::Attempts)
        ));
        attempts += report.attempts;
    }
    assert_eq!(attempts, 110);
    assert_eq!(sent.load(Ordering::Relaxed), 110);
    handle.assert_quiescent();
}

#[tokio::test(start_paused = true)]
async fn r11_r13_calls_dropped_in_their_pauses_leave_the_budget_whole() {
    let budget = Budget::new().tokens(14);
    let layer = RateLimitAwareRetryLayer::new().budget(budget);
    for _ in 0..20 {
        let server = Server::script([answer(503).retry_after(30)]);
        let call = server.service(&layer).oneshot(get());
        tokio::time::timeout(secs(1), call).await.unwrap_err();
        server.probe().assert_quiescent();
    }
    let server = Server::script([answer(503), answer(200)]);
    assert_eq!(server.call(layer, get()).await.summary(), (200, 2, None));
}

#[tokio::test(start_paused = true)]
async fn r13_a_retry_that_a_layer_on_this_side_refuses_costs_nothing() {
    let layer = RateLimitAwareRetryLayer::new().budget(Budget::new().tokens(14));
    for _ in 0..20 {
        let refused = answer(429).extension(Throttled::new(secs(90)));
        let server = Server::script([answer(503), refused]);
        let call = server.call(layer.clone(), get()).await;
        assert_eq!(call.stopped(), Some(Stopped::LocalBlock));
        assert_eq!(call.report.attempts, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn r04_hostile_lines_of_retry_after_neither_panic_nor_shorten_a_wait() {
    let mut hostile = answer(429).retry_after(7);
    for line in [
        &b"\xff\xfe"[..],
        b"-1",
        b"1e9",
        b"Thu, 99 Foo 2026 12:00:00 GMT",
        b"0",
        b", , ,",
        &[b'9'; 10_000],
    ] {
        hostile = hostile.header("retry-after", line);
    }
    for _ in 0..1_000 {
        hostile = hostile.header("retry-after", "1");
    }
    let server = Server::script([hostile, answer(200)]);
    let call = server.call(RateLimitAwareRetryLayer::new(), get()).await;
    assert_eq!(call.times(), [secs(0), secs(7)]);
}

#[tokio::test(start_paused = true)]
async fn r10_the_longest_settings_neither_panic_nor_end_a_call() {
    let longest = Duration::MAX;
    let layer = RateLimitAwareRetryLayer::new()
        .attempt_timeout(longest)
        .deadline(longest)
        .cap(longest)
        .max_key_age(longest)
        .coalesce(longest)
        .jitter_named_waits(u32::MAX)
        .backoff(steadfast_retry::Backoff::exponential(longest, longest))
        .replay_cap(usize::MAX)
        .buffer_response(usize::MAX);
    let server = Server::script([answer(429).retry_after(0), answer(200)]);
    let call = server.call(layer.clone(), keyed()).await;
    assert_eq!(call.summary(), (200, 2, None));
    // Half an eternity from now there is no instant.
    let server = Server::script([lost()]);
    let call = server.call(layer, keyed()).await;
    assert_eq!(call.stopped(), Some(Stopped::OverCap));
    call.result.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn r15_a_call_that_was_never_polled_has_a_report_and_holds_nothing() {
    let server = Server::script([answer(200)]);
    let report = CallReport::new();
    let mut request = post();
    request.extensions_mut().insert(report.clone());
    let mut service = server.service(&RateLimitAwareRetryLayer::new());
    let service = service.ready().await.unwrap();
    drop(tower_service::Service::call(service, request));
    server.probe().assert_quiescent();
    let report = report.snapshot();
    assert_eq!(
        (report.attempts, report.stopped),
        (1, Some(Stopped::Cancelled))
    );
    assert_eq!(report.outcome, Outcome::Unknown);
}

/// Answers every connection with `answer` once a request has arrived, and counts them.
#[cfg(feature = "reqwest")]
async fn serve(answer: &'static [u8]) -> (std::net::SocketAddr, Arc<AtomicU32>) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let requests = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut read = Vec::new();
            while !read.windows(4).any(|end| end == b"\r\n\r\n") {
                if stream.read_buf(&mut read).await.unwrap() == 0 {
                    break;
                }
            }
            count.fetch_add(1, Ordering::Relaxed);
            stream.write_all(answer).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    (addr, requests)
}

#[cfg(feature = "reqwest")]
const REDIRECT: &[u8] =
    b"HTTP/1.1 307 Round\r\nlocation: /\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

#[cfg(feature = "reqwest")]
#[tokio::test]
async fn c4_reqwest_never_follows_a_307_with_an_empty_body() {
    let (addr, requests) = serve(REDIRECT).await;
    let builder = reqwest::Client::builder().no_proxy();
    let client = steadfast_core::reqwest::ReqwestService::new(builder).unwrap();
    let mut request = keyed();
    *request.uri_mut() = format!("http://{addr}/").parse().unwrap();
    let client = RateLimitAwareRetryLayer::new().layer(client);
    let response = client.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 307);
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

#[cfg(feature = "reqwest")]
#[tokio::test]
async fn r02_redirects_in_a_circle_are_not_walked_again() {
    let (addr, requests) = serve(REDIRECT).await;
    let policy = reqwest::redirect::Policy::limited(3);
    let builder = reqwest::Client::builder().no_proxy().redirect(policy);
    let client = steadfast_core::reqwest::ReqwestService::new(builder).unwrap();
    let mut request = get();
    *request.uri_mut() = format!("http://{addr}/").parse().unwrap();
    let client = RateLimitAwareRetryLayer::new().layer(client);
    let error = client.oneshot(request).await.unwrap_err();
    assert!(error.is_redirect());
    assert_eq!(requests.load(Ordering::Relaxed), 4);
}
