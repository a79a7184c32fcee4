use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span};

/// A flow that outlives its caller.
///
/// It is polled in place, as any future. When it is dropped unfinished after [`Arm::arm`] was called, the rest of it is
/// handed to the runtime it was made on, with the span it was made in. So a claim, the handler's run and the saving of
/// the answer go on when the client's connection is gone (I15), and nobody pays for a task while it is not.
///
/// # Cancellation
///
/// Before it is armed, and after it is disarmed, dropping it drops the flow. A flow that panics is gone. So is one that
/// was made outside a runtime, or whose runtime shuts down.
///
/// Whoever holds it without polling it holds up everything in the flow, timers and renewals included.
#[must_use = "futures do nothing unless polled"]
pub struct Detach<T: Send + 'static> {
    flow: Option<Flow<T>>,
    armed: Arc<AtomicBool>,
    runtime: Option<Handle>,
    span: Span,
}

type Flow<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Decides, from inside a flow, whether it outlives its caller.
#[derive(Clone, Debug)]
pub struct Arm {
    armed: Arc<AtomicBool>,
}

impl Arm {
    /// From here on the flow outlives its caller.
    pub fn arm(&self) {
        self.armed.store(true, Ordering::Relaxed);
    }

    /// From here on the flow ends with its caller, as at the start.
    pub fn disarm(&self) {
        self.armed.store(false, Ordering::Relaxed);
    }
}

impl<T: Send + 'static> Detach<T> {
    /// Makes the flow. `tracker` counts it until it has ended, wherever it runs.
    pub fn new<F>(tracker: &TaskTracker, flow: impl FnOnce(Arm) -> F) -> Self
    where
        F: Future<Output = T> + Send + 'static,
    {
        let armed = Arc::new(AtomicBool::new(false));
        let arm = Arm {
            armed: Arc::clone(&armed),
        };
        Self {
            flow: Some(Box::pin(tracker.track_future(flow(arm)))),
            armed,
            runtime: Handle::try_current().ok(),
            span: Span::current(),
        }
    }
}

impl<T: Send + 'static> Future for Detach<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Taken out while it is polled: a flow that panics must not be polled again by the runtime.
        let mut flow = self.flow.take().expect("polled after completion");
        let poll = flow.as_mut().poll(cx);
        if poll.is_pending() {
            self.flow = Some(flow);
        }
        poll
    }
}

impl<T: Send + 'static> Drop for Detach<T> {
    fn drop(&mut self) {
        let Some(flow) = self.flow.take() else { return };
        if !self.armed.load(Ordering::Relaxed) {
            return;
        }
        if let Some(runtime) = &self.runtime {
            let span = std::mem::replace(&mut self.span, Span::none());
            runtime.spawn(async move { drop(flow.await) }.instrument(span));
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Detach<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detach")
            .field("armed", &self.armed)
            .field("ended", &self.flow.is_none())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use tokio::sync::oneshot;
    use tokio_test::task;

    use super::*;

    /// A flow that waits for `go`, then reports through the returned receiver.
    fn flow(
        tracker: &TaskTracker,
        go: oneshot::Receiver<()>,
        armed: bool,
    ) -> (Detach<()>, oneshot::Receiver<()>) {
        let (report, reported) = oneshot::channel();
        let detach = Detach::new(tracker, |arm| async move {
            if armed {
                arm.arm();
            }
            go.await.ok();
            report.send(()).ok();
        });
        (detach, reported)
    }

    #[tokio::test]
    async fn i15_an_armed_flow_goes_on_when_it_is_dropped() {
        let tracker = TaskTracker::new();
        let (go, gone) = oneshot::channel();
        let (detach, reported) = flow(&tracker, gone, true);
        let mut detach = task::spawn(detach);
        assert!(detach.poll().is_pending());
        drop(detach);
        assert_eq!(tracker.len(), 1);
        go.send(()).unwrap();
        reported.await.unwrap();
        tracker.close();
        tracker.wait().await;
    }

    #[tokio::test]
    async fn an_unarmed_flow_ends_with_its_caller() {
        let tracker = TaskTracker::new();
        let (_go, gone) = oneshot::channel();
        let (detach, reported) = flow(&tracker, gone, false);
        let mut detach = task::spawn(detach);
        assert!(detach.poll().is_pending());
        drop(detach);
        assert!(tracker.is_empty());
        assert!(reported.await.is_err());
    }

    #[tokio::test]
    async fn a_disarmed_flow_ends_with_its_caller() {
        let tracker = TaskTracker::new();
        let mut detach = task::spawn(Detach::new(&tracker, |arm| async move {
            arm.arm();
            arm.disarm();
            std::future::pending::<()>().await;
        }));
        assert!(detach.poll().is_pending());
        drop(detach);
        assert!(tracker.is_empty());
    }

    #[tokio::test]
    async fn a_flow_that_ended_is_not_spawned() {
        let tracker = TaskTracker::new();
        let (go, gone) = oneshot::channel();
        let (detach, _reported) = flow(&tracker, gone, true);
        go.send(()).unwrap();
        detach.await;
        assert!(tracker.is_empty());
    }

    #[tokio::test]
    async fn a_flow_that_panics_unwinds_once_and_is_gone() {
        let tracker = TaskTracker::new();
        let mut detach = task::spawn(Detach::<()>::new(&tracker, |arm| async move {
            arm.arm();
            panic!("the handler panicked");
        }));
        catch_unwind(AssertUnwindSafe(|| detach.poll())).unwrap_err();
        drop(detach);
        assert!(tracker.is_empty());
    }

    #[test]
    fn outside_a_runtime_it_is_dropped_without_a_panic() {
        let tracker = TaskTracker::new();
        let (_go, gone) = oneshot::channel();
        let (detach, _reported) = flow(&tracker, gone, true);
        let mut detach = task::spawn(detach);
        assert!(detach.poll().is_pending());
        drop(detach);
        assert!(tracker.is_empty());
    }

    #[test]
    fn a_runtime_that_shuts_down_drops_the_flow() {
        let tracker = TaskTracker::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let (_go, gone) = oneshot::channel();
        let (detach, reported) = runtime.block_on(async {
            let (detach, reported) = flow(&tracker, gone, true);
            let mut detach = task::spawn(detach);
            assert!(detach.poll().is_pending());
            (detach, reported)
        });
        drop(runtime);
        drop(detach);
        assert!(tracker.is_empty());
        assert!(reported.blocking_recv().is_err());
    }
}
