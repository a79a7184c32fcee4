//! What is logged: one line for each failure that is repeated, one for a call that is given up, and no secret.

use std::{
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
    time::Duration,
};

use steadfast_retry::RateLimitAwareRetryLayer;
use steadfast_testing::ChunkedBody;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::support::{Answer, Server, answer, get, keyed, lost};

/// Writes every event of this crate down.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<(Level, String)>>>,
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("steadfast")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.lines
            .lock()
            .unwrap()
            .push((*event.metadata().level(), line.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The lines that calls with these answers leave.
async fn logged(answers: Vec<Vec<Answer>>) -> Vec<(Level, String)> {
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let layer = RateLimitAwareRetryLayer::new();
    for answers in answers {
        let server = Server::script(answers);
        let mut request = keyed();
        request
            .headers_mut()
            .insert("authorization", "Bearer s3cret".parse().unwrap());
        server.call(layer.clone(), request).await;
    }
    drop(guard);
    let lines = log.lines.lock().unwrap().clone();
    for (_, line) in &lines {
        assert!(!line.contains("s3cret") && !line.contains("user"), "{line}");
        assert!(!line.contains("emails") && !line.contains("8443"), "{line}");
    }
    lines
}

#[tokio::test(start_paused = true)]
async fn r09_every_429_leaves_a_line_and_giving_up_a_warning() {
    let throttled = || answer(429).retry_after(2);
    let lines = logged(vec![vec![throttled(), throttled(), throttled()]]).await;
    let levels: Vec<_> = lines.iter().map(|(level, _)| *level).collect();
    assert_eq!(levels, [Level::INFO, Level::INFO, Level::WARN]);
    let (_, repeated) = &lines[0];
    for part in [
        "method=POST",
        "host=\"api.example\"",
        "status=429",
        "attempts=1",
        "wait_ms=2000",
    ] {
        assert!(repeated.contains(part), "{part} in {repeated}");
    }
    let (_, given_up) = &lines[2];
    for part in [
        "status=429",
        "attempts=3",
        "reason=\"attempts\"",
        "retry_after_ms=2000",
        "calls=1",
    ] {
        assert!(given_up.contains(part), "{part} in {given_up}");
    }
}

#[tokio::test(start_paused = true)]
async fn d1_r09_a_429_over_the_cap_leaves_one_line() {
    let lines = logged(vec![vec![answer(429).retry_after("9999999999")]]).await;
    assert_eq!(lines.len(), 1);
    assert!(lines[0].1.contains("reason=\"over_cap\""));
}

#[tokio::test(start_paused = true)]
async fn r09_a_call_whose_event_is_coalesced_is_logged_all_the_same() {
    let over_cap = || vec![answer(429).retry_after(61)];
    let lines = logged(vec![over_cap(), over_cap()]).await;
    let levels: Vec<_> = lines.iter().map(|(level, _)| *level).collect();
    assert_eq!(levels, [Level::WARN, Level::INFO]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_attempt_says_what_was_lost() {
    let lines = logged(vec![vec![lost(), answer(200)]]).await;
    assert_eq!(lines.len(), 1);
    assert!(lines[0].1.contains("cause=\"network\""), "{}", lines[0].1);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_incident_is_silent() {
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let server = Server::script([answer(404)]);
    server.call(RateLimitAwareRetryLayer::new(), get()).await;
    drop(guard);
    assert_eq!(*log.lines.lock().unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn r09_a_429_whose_body_hangs_is_logged_as_one() {
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let hung = answer(429)
        .retry_after(7)
        .body(ChunkedBody::new(["a"]).stall());
    let server = Server::script([hung, answer(200)]);
    let layer = RateLimitAwareRetryLayer::new()
        .buffer_response(1024)
        .attempt_timeout(Duration::from_secs(5));
    server.call(layer, get()).await;
    drop(guard);
    let lines = log.lines.lock().unwrap();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].1.contains(" status=429"), "{}", lines[0].1);
}

#[test]
fn the_settings_show_no_secret() {
    let shown = format!("{:?}", RateLimitAwareRetryLayer::new());
    assert!(shown.contains("retries: 2"), "{shown}");
}
