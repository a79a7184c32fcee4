//! What is logged of a call, and what never is.

use std::{
    fmt::{self, Write as _},
    sync::{Arc, Mutex},
};

use steadfast_idempotency::OnFailure;
use tokio_test::{assert_pending, task};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::DefaultGuard,
};

use crate::kit::{Api, Fault, Op, failing, order, pass, post, seconds, slow_order};

/// All that is logged in this test's thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Log {
    fn capture() -> (Self, DefaultGuard) {
        let log = Self::default();
        let guard = tracing::subscriber::set_default(log.clone());
        (log, guard)
    }

    /// The lines from `warn` up, and nothing of them twice.
    fn warnings(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let warnings = lines.iter().filter(|(level, _)| *level <= Level::WARN);
        warnings.map(|(_, line)| line.clone()).collect()
    }

    fn all(&self) -> String {
        let lines = self.0.lock().unwrap();
        lines.iter().map(|(_, line)| line.as_str()).collect()
    }
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        writeln!(self.0, "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("steadfast")
    }

    fn new_span(&self, _span: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, _values: &span::Record<'_>) {}

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut Line(&mut line));
        let level = *event.metadata().level();
        self.0.lock().unwrap().push((level, line));
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_call_that_goes_well_warns_of_nothing() {
    let (log, _guard) = Log::capture();
    let api = Api::new(order);
    api.post("k1", "one").await.assert_first(201, "order 1");
    api.post("k1", "one").await.assert_replay(201, "order 1");
    api.post("k1", "two").await.assert_reuse();
    assert_eq!(log.warnings(), Vec::<String>::new());
    assert!(log.all().contains("idempotency_key_reuse"));
}

#[tokio::test(start_paused = true)]
async fn row_27_a_failed_save_is_an_event() {
    let (log, _guard) = Log::capture();
    let api = Api::new(order);
    api.store.always(Op::Complete, Fault::Error);
    api.post("k1", "one").await.assert_first(201, "order 1");
    api.settled().await;
    let warnings = log.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("event=\"save_failed\""),
        "{warnings:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn row_28_a_lost_lease_is_an_event() {
    let (log, _guard) = Log::capture();
    let api = Api::new(slow_order);
    let mut late = task::spawn(api.call(post("k1", "one")));
    assert_pending!(late.poll());
    pass(seconds(30)).await;
    api.post("k1", "one").await.assert_first(201, "order 2");
    drop(late.await);
    let warnings = log.warnings();
    assert!(!warnings.is_empty());
    for warning in warnings {
        assert!(warning.contains("event=\"lease_lost\""), "{warning}");
    }
}

#[tokio::test(start_paused = true)]
async fn row_07_a_store_that_is_down_is_an_event_with_its_reason() {
    let (log, _guard) = Log::capture();
    let api = Api::new(order);
    api.store.once(Op::Claim, Fault::Error);
    api.post("k1", "one").await.assert_unavailable();
    let warnings = log.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("event=\"store_unavailable\""));
    assert!(warnings[0].contains("the store is down"), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn i07_no_key_is_ever_logged() {
    const KEY: &str = "sk_live_4192";
    let (log, _guard) = Log::capture();
    let api = Api::new(order);
    for op in [Op::Claim, Op::Complete, Op::Complete] {
        api.store.once(op, Fault::Error);
    }
    api.post(KEY, "one").await.assert_unavailable();
    api.post(KEY, "one").await.assert_first(201, "order 1");
    api.post(KEY, "one").await.assert_in_progress();
    api.settled().await;
    api.post(KEY, "one").await.assert_replay(201, "order 1");
    api.post(KEY, "two").await.assert_reuse();
    let bad = "sk_live_4192 bad";
    assert_eq!(api.post(bad, "one").await.status, 400);
    let held = Api::with(|layer| layer.on_failure(OnFailure::Hold), failing);
    drop(held.post(KEY, "one").await);
    held.post(KEY, "one").await.assert_unknown();

    let all = log.all();
    assert!(all.contains("key="), "the hash of a key is logged: {all}");
    assert!(!all.contains("4192"), "{all}");
}
