use std::{fmt, sync::Arc, time::SystemTime};

/// The source of wall-clock time: for timestamps and HTTP dates, never for spans.
///
/// Spans and deadlines are measured with [`tokio::time::Instant`], which tests can pause and which no clock correction
/// moves.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use steadfast_core::Clock;
///
/// let frozen = SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_478_400);
/// assert_eq!(Clock::from_fn(move || frozen).now(), frozen);
/// ```
#[derive(Clone, Default)]
pub struct Clock {
    source: Source,
}

#[derive(Clone, Default)]
enum Source {
    #[default]
    System,
    Custom(Arc<dyn Fn() -> SystemTime + Send + Sync>),
}

impl Clock {
    /// The operating system's clock. The default.
    #[must_use]
    pub const fn system() -> Self {
        Self {
            source: Source::System,
        }
    }

    /// A clock that asks `now`.
    pub fn from_fn(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            source: Source::Custom(Arc::new(now)),
        }
    }

    /// The time.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everything else asks"
    )]
    pub fn now(&self) -> SystemTime {
        match &self.source {
            Source::System => SystemTime::now(),
            Source::Custom(now) => now(),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.source {
            Source::System => "Clock::System",
            Source::Custom(_) => "Clock::Custom",
        })
    }
}
