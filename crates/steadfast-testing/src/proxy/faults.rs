//! Which exchanges are broken, and how.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

/// What happens to one exchange, a request and its response.
///
/// "Closed" is a clean end of the connection or a reset, as [`Faults::resets`] says, and ends the connections on both
/// sides of the proxy.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing: the exchange goes through.
    Pass,
    /// The request is taken from the client and the connection closed; the server never sees a byte of it.
    LoseRequest,
    /// The server gets the beginning of the request, at least one byte and never all, and the connection is closed.
    CutRequest,
    /// The server gets the request and gives its whole answer; the client gets not a byte of it, and the connection
    /// is closed.
    LoseResponse,
    /// As [`LoseResponse`](Self::LoseResponse), but the client gets the beginning of the answer, at least one byte
    /// and never all. The cut may be in the head or in the body.
    CutResponse,
    /// As [`CutResponse`](Self::CutResponse), but the client always gets the whole head, and less than the whole
    /// body. An answer without a body is cut in its head.
    CutBody,
    /// The request is held for a while before the server gets it, even if the client gives up meanwhile.
    DelayRequest,
    /// The answer is held for a while, from its first byte on, before the client gets it.
    DelayResponse,
    /// The exchange goes through, and the server gets the same bytes once more on a connection of their own, as soon
    /// as it has the first copy whole. The second answer is thrown away.
    ///
    /// A request of more than 1 MiB is not repeated. The next exchange of the connection waits for both answers.
    DuplicateRequest,
}

impl Fault {
    /// Every kind, in the order of the list above.
    pub const ALL: &'static [Self] = &[
        Self::Pass,
        Self::LoseRequest,
        Self::CutRequest,
        Self::LoseResponse,
        Self::CutResponse,
        Self::CutBody,
        Self::DelayRequest,
        Self::DelayResponse,
        Self::DuplicateRequest,
    ];

    pub(super) const COUNT: usize = Self::ALL.len();

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// Which exchanges a [`FaultProxy`](crate::FaultProxy) breaks.
///
/// The n-th exchange gets the n-th decision, and the decisions follow from the seed alone: a client that sends one
/// request after another meets the same faults in each run. Where requests race, which of them is the n-th is up to
/// the race, the sequence is not.
#[derive(Clone, Debug)]
#[must_use]
pub struct Faults {
    pub(super) source: Source,
    pub(super) seed: u64,
    pub(super) delay: RangeInclusive<Duration>,
    pub(super) resets: u8,
}

#[derive(Clone, Debug)]
pub(super) enum Source {
    Mix {
        percent: u8,
        weights: [u32; Fault::COUNT],
    },
    Script(Arc<[Fault]>),
}

impl Faults {
    /// Breaks nothing.
    pub const fn none() -> Self {
        Self::percent(0)
    }

    /// Breaks `percent` of the exchanges, more than 100 being 100.
    ///
    /// Each kind but [`Fault::DuplicateRequest`] is equally likely; see [`weight`](Self::weight).
    pub const fn percent(percent: u8) -> Self {
        let mut weights = [1; Fault::COUNT];
        weights[Fault::Pass.index()] = 0;
        weights[Fault::DuplicateRequest.index()] = 0;
        Self::with_source(Source::Mix { percent, weights })
    }

    /// Gives the n-th exchange the n-th of `faults`; the exchanges after the last pass.
    pub fn script(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self::with_source(Source::Script(faults.into_iter().collect()))
    }

    /// Sets how likely `fault` is beside the other kinds. The default is 1, for [`Fault::DuplicateRequest`] 0.
    ///
    /// [`Fault::Pass`] may have a weight too: then even an exchange that was picked may pass. If all weights are 0,
    /// nothing is broken. A script takes no weights.
    pub const fn weight(mut self, fault: Fault, weight: u32) -> Self {
        if let Source::Mix { weights, .. } = &mut self.source {
            weights[fault.index()] = weight;
        }
        self
    }

    /// Sets the seed of the decisions. The default is 0.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets how long [`Fault::DelayRequest`] and [`Fault::DelayResponse`] hold an exchange, by tokio's clock. The
    /// default is 1 ms to 100 ms.
    pub const fn delay(mut self, delay: RangeInclusive<Duration>) -> Self {
        self.delay = delay;
        self
    }

    /// Sets how many percent of the connections that a fault closes are reset instead of ended cleanly. The default
    /// is 50.
    ///
    /// A client that is still sending when the connection ends may see a reset in either case.
    pub const fn resets(mut self, percent: u8) -> Self {
        self.resets = percent;
        self
    }

    const fn with_source(source: Source) -> Self {
        Self {
            source,
            seed: 0,
            delay: Duration::from_millis(1)..=Duration::from_millis(100),
            resets: 50,
        }
    }
}

impl Default for Faults {
    /// Breaks nothing.
    fn default() -> Self {
        Self::none()
    }
}
