use std::time::Duration;

use crate::{
    Backoff,
    backoff::NamedWaits,
    outcome::{Repeat, Trigger},
};

const MEBIBYTE: usize = 1024 * 1024;

/// What a client repeats, how often, and how long it waits: one API's retry contract as a value.
///
/// | | network, timeout | 408 | 409 named, keyed | 429 named | 429 | 500 | 502, 504 | 503 named | 503 | 401 |
/// |---|---|---|---|---|---|---|---|---|---|---|
/// | [`new`](Self::new) | yes | yes | yes | yes | yes | yes | yes | yes | yes | no |
/// | [`openemail`](Self::openemail) | yes | yes | no | yes | no | yes | yes | yes | yes | no |
/// | [`payments`](Self::payments) | yes | yes | no | yes | yes | once | yes | yes | yes | once, signed afresh |
/// | [`botix`](Self::botix) | yes | no | no | yes | yes | no | no | yes | no | no |
///
/// *Named* means that the response carries a valid `Retry-After`. Whatever the table says, only a call that may be
/// repeated is.
///
/// | | retries | cap | own waits | buffers responses |
/// |---|---|---|---|---|
/// | `new` | 2 | 60 s | 0.5 s doubling to 8 s, upper half | no |
/// | `openemail` | 2 | 60 s | 0.5 s doubling to 8 s, upper half | to 1 MiB |
/// | `payments` | 5 | 60 s | 1 s exactly, then 2 s doubling to 30 s, upper half | to 1 MiB |
/// | `botix` | 4 | 60 s | 1 s doubling to 60 s, and up to 30 % more | to 1 MiB |
///
/// # Examples
///
/// ```
/// use steadfast_retry::{Profile, RateLimitAwareRetryLayer, Repeat, Trigger};
///
/// // Like the default, but this API's 500s are bugs, not weather.
/// let profile = Profile::new().on(Trigger::InternalServerError, Repeat::Never);
/// let layer = RateLimitAwareRetryLayer::with_profile(profile);
/// # let _ = layer;
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Profile {
    pub(crate) rules: Rules,
    pub(crate) retries: u32,
    pub(crate) cap: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) named: NamedWaits,
    pub(crate) buffer: Option<usize>,
}

impl Profile {
    /// What is right for an API that documents nothing: everything that a repeat may cure is repeated.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rules: Rules {
                network: Repeat::Always,
                request_timeout: Repeat::Always,
                conflict: Repeat::Named,
                too_many_requests: Repeat::Always,
                internal_server_error: Repeat::Always,
                bad_gateway: Repeat::Always,
                service_unavailable: Repeat::Always,
                unauthorized: Repeat::Never,
            },
            retries: 2,
            cap: Duration::from_secs(60),
            backoff: Backoff::exponential(Duration::from_millis(500), Duration::from_secs(8)),
            named: NamedWaits::EXACT,
            buffer: None,
        }
    }

    /// The contract of OpenEmail: a 429 is repeated only when it names a time.
    #[must_use]
    pub const fn openemail() -> Self {
        let mut profile = Self::new();
        profile.rules.conflict = Repeat::Never;
        profile.rules.too_many_requests = Repeat::Named;
        profile.buffer = Some(MEBIBYTE);
        profile
    }

    /// The contract of the partner payments API: six attempts in all, one repeat of a 500, and one of a 401 once it can
    /// be signed afresh.
    #[must_use]
    pub const fn payments() -> Self {
        let mut profile = Self::new();
        profile.rules.conflict = Repeat::Never;
        profile.rules.internal_server_error = Repeat::Once;
        profile.rules.unauthorized = Repeat::Once;
        profile.retries = 5;
        profile.backoff =
            Backoff::exponential(Duration::from_secs(1), Duration::from_secs(30)).first_exact();
        profile.buffer = Some(MEBIBYTE);
        profile
    }

    /// The contract of BOTIX: five attempts in all, and of the statuses only 429, and 503 when it names a time. A wait
    /// that the server names is doubled on each further 429 of the call, up to 60 s or what the server asks.
    #[must_use]
    pub const fn botix() -> Self {
        let minute = Duration::from_secs(60);
        let mut profile = Self::new();
        profile.rules.request_timeout = Repeat::Never;
        profile.rules.conflict = Repeat::Never;
        profile.rules.internal_server_error = Repeat::Never;
        profile.rules.bad_gateway = Repeat::Never;
        profile.rules.service_unavailable = Repeat::Named;
        profile.retries = 4;
        profile.backoff = Backoff::exponential(Duration::from_secs(1), minute).jitter_above(30);
        profile.named.doubling_to = Some(minute);
        profile.buffer = Some(MEBIBYTE);
        profile
    }

    /// Sets what happens on one kind of outcome. Default: the tables above.
    #[must_use]
    pub const fn on(mut self, trigger: Trigger, repeat: Repeat) -> Self {
        *self.rules.of_mut(trigger) = repeat;
        self
    }

    /// What happens on one kind of outcome.
    #[must_use]
    pub const fn repeat(&self, trigger: Trigger) -> Repeat {
        self.rules.of(trigger)
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Rules {
    network: Repeat,
    request_timeout: Repeat,
    conflict: Repeat,
    too_many_requests: Repeat,
    internal_server_error: Repeat,
    bad_gateway: Repeat,
    service_unavailable: Repeat,
    unauthorized: Repeat,
}

impl Rules {
    const fn of(self, trigger: Trigger) -> Repeat {
        match trigger {
            Trigger::Network => self.network,
            Trigger::RequestTimeout => self.request_timeout,
            Trigger::Conflict => self.conflict,
            Trigger::TooManyRequests => self.too_many_requests,
            Trigger::InternalServerError => self.internal_server_error,
            Trigger::BadGateway => self.bad_gateway,
            Trigger::ServiceUnavailable => self.service_unavailable,
            Trigger::Unauthorized => self.unauthorized,
        }
    }

    const fn of_mut(&mut self, trigger: Trigger) -> &mut Repeat {
        match trigger {
            Trigger::Network => &mut self.network,
            Trigger::RequestTimeout => &mut self.request_timeout,
            Trigger::Conflict => &mut self.conflict,
            Trigger::TooManyRequests => &mut self.too_many_requests,
            Trigger::InternalServerError => &mut self.internal_server_error,
            Trigger::BadGateway => &mut self.bad_gateway,
            Trigger::ServiceUnavailable => &mut self.service_unavailable,
            Trigger::Unauthorized => &mut self.unauthorized,
        }
    }
}
