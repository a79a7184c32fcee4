//! Dropping a future at each of its awaits.

use std::{
    future::{Future, poll_fn},
    mem,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

/// Polls `future` at most `polls` times, first at once and then whenever it was woken, and drops it.
///
/// Returns its output if it came to its end, `None` if it was dropped before. Between two polls the runtime goes on:
/// other tasks run, and a paused clock moves.
///
/// # Panics
///
/// Panics if the future stays pending for 30 days of the runtime's clock: it lost its waker. With a paused clock that
/// is at once; a test with a running clock waits for its runner's own limit.
///
/// # Cancellation
///
/// Dropped together with this one.
pub async fn poll_times<F>(future: F, polls: usize) -> Option<F::Output>
where
    F: Future,
{
    let mut future = pin!(future);
    let wake = Arc::new(WakeFlag::default());
    let waker = Waker::from(Arc::clone(&wake));
    let mut left = polls;
    let limited = poll_fn(|cx| {
        // This task is polled for reasons of its own too; only the future's count.
        if left > 0 && wake.take(cx.waker()) {
            left -= 1;
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(Some(output));
            }
        }
        if left == 0 {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    });
    let Ok(output) = tokio::time::timeout(NEVER, limited).await else {
        panic!("the future was pending for {NEVER:?}: it never woke its task");
    };
    output
}

const NEVER: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Whether a future was woken, and the task that then polls it.
struct WakeFlag {
    state: Mutex<WakeState>,
}

struct WakeState {
    woken: bool,
    task: Option<Waker>,
}

impl WakeFlag {
    /// Takes the flag; if it is down, `task` is woken once it is up.
    fn take(&self, task: &Waker) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.task = Some(task.clone());
        mem::take(&mut state.woken)
    }
}

impl Default for WakeFlag {
    /// A future's first poll needs no wake.
    fn default() -> Self {
        Self {
            state: Mutex::new(WakeState {
                woken: true,
                task: None,
            }),
        }
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        let task = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.woken = true;
            state.task.take()
        };
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// Runs a future again and again, dropping it one await later each time, and checks what it left behind.
///
/// For n = 0, 1, 2 … it makes a fresh future with `setup`, polls it n times ([`poll_times`]), drops it, and hands what
/// `setup` returned beside the future to `check`. It ends when the future comes to its end before it is dropped (that
/// run is not checked), and returns in how many places it was dropped: at least one, as n = 0 drops it unpolled.
///
/// Meant for a paused clock (`#[tokio::test(start_paused = true)]`).
///
/// # Panics
///
/// Panics if the future has no end within 10,000 polls, or lost its waker. What `check` panics with goes through; the
/// number of polls is in the panic's output before it.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use steadfast_testing::drop_at_every_await;
/// use tokio::sync::Semaphore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let places = drop_at_every_await(
///     async || {
///         let permits = Arc::new(Semaphore::new(1));
///         let future = {
///             let permits = Arc::clone(&permits);
///             async move {
///                 let _permit = permits.acquire().await;
///                 tokio::task::yield_now().await;
///             }
///         };
///         (future, permits)
///     },
///     async |permits| assert_eq!(permits.available_permits(), 1),
/// )
/// .await;
/// assert_eq!(places, 2); // unpolled, and at the yield
/// # }
/// ```
pub async fn drop_at_every_await<M, C, F, X>(mut setup: M, mut check: C) -> usize
where
    M: AsyncFnMut() -> (F, X),
    C: AsyncFnMut(X),
    F: Future,
{
    for polls in 0..MAX_POLLS {
        let (future, left_behind) = setup().await;
        if poll_times(future, polls).await.is_some() {
            return polls;
        }
        let place = Place(polls);
        check(left_behind).await;
        drop(place);
    }
    panic!("the future has no end within {MAX_POLLS} polls");
}

const MAX_POLLS: usize = 10_000;

/// Says where the future had been dropped when the check panics.
struct Place(usize);

impl Drop for Place {
    #[expect(clippy::print_stderr, reason = "it belongs to the panic's own output")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the check failed after the future was dropped at poll {}",
                self.0
            );
        }
    }
}
