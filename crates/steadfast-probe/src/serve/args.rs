use std::{
    convert::Infallible,
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use clap::ValueEnum;
use http::Uri;
use steadfast::{
    headers::KeyRules,
    idempotency::{OnFailure, ReuseStatus, Timing, TimingError},
};

/// The flags of `probe serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(super) listen: SocketAddr,
    /// Where claims and answers are kept: `memory` is all there is yet
    #[arg(long, value_name = "URL", default_value = "memory", value_parser = store)]
    pub(super) store: Store,
    /// How many records each memory store takes
    #[arg(long, value_name = "N", default_value = "100000")]
    pub(super) store_capacity: NonZeroUsize,
    /// How long a claim is good without a renewal
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = humantime::parse_duration)]
    pub(super) lease: Duration,
    /// How long an answer is kept
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = humantime::parse_duration)]
    pub(super) ttl: Duration,
    /// How long a duplicate waits for the answer of the running call
    #[arg(long, value_name = "SPAN", default_value = "0s", value_parser = humantime::parse_duration)]
    pub(super) wait_for: Duration,
    /// What becomes of the key when the handler fails
    #[arg(long, value_enum, default_value = "release")]
    pub(super) on_failure: Failing,
    /// The longest body that is stored, in bytes
    #[arg(long, value_name = "BYTES", default_value = "1048576")]
    pub(super) max_stored: usize,
    /// The longest body of a request with a key or a signature, in bytes
    #[arg(long, value_name = "BYTES", default_value = "1048576")]
    pub(super) max_body: usize,
    /// The answer to a key that was used with another request
    #[arg(long, value_enum, default_value = "422")]
    pub(super) mismatch_status: Mismatch,
    /// What a key may look like
    #[arg(long, value_enum, default_value = "default")]
    pub(super) key_rule: KeyRule,
    /// Refuses requests of the covered methods that have no key
    #[arg(long)]
    pub(super) require_key: bool,
    /// Freezes the wall clock at this time; `POST /clock` moves it
    #[arg(long, value_name = "UNIX_SECONDS", value_parser = unix_seconds)]
    pub(super) now: Option<SystemTime>,
    /// Also speaks HTTP/2 without TLS, to clients that begin with it
    #[arg(long)]
    pub(super) http2: bool,
    /// The secrets of the signature schemes, in TOML: `[scheme]`, then `id = ["secret", …]`
    #[arg(long, value_name = "FILE")]
    pub(super) keys: Option<PathBuf>,
    /// The URL under which the probe is registered with Square, exactly
    #[arg(long, value_name = "URL", value_parser = public_url)]
    pub(super) public_url: Option<String>,
    #[command(flatten)]
    _later: Later,
}

/// Flags of capabilities that are not there yet: their values are checked, and nothing more.
#[derive(Debug, clap::Args)]
struct Later {
    /// Requests in a window (no effect yet)
    #[arg(long, value_name = "N", default_value = "120")]
    limit: NonZeroU32,
    /// The length of a window (no effect yet)
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = span)]
    window: Duration,
    /// Segments of a window (no effect yet)
    #[arg(long, value_name = "N", default_value = "4")]
    segments: NonZeroU32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Store {
    Memory,
    Other,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Failing {
    /// The key is free
    Release,
    /// The key is blocked for the ttl
    Hold,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Mismatch {
    #[value(name = "422")]
    UnprocessableContent,
    #[value(name = "400")]
    BadRequest,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum KeyRule {
    /// 1 to 64 of A-Z, a-z, 0-9, _ and -
    Default,
    /// 1 to 255 of visible ASCII except ", \ and the comma
    Loose,
}

impl Args {
    pub(super) fn timing(&self) -> Result<Timing, TimingError> {
        Timing::new(self.lease, self.ttl)?.wait_for(self.wait_for)
    }
}

impl From<Failing> for OnFailure {
    fn from(failing: Failing) -> Self {
        match failing {
            Failing::Release => Self::Release,
            Failing::Hold => Self::Hold,
        }
    }
}

impl From<Mismatch> for ReuseStatus {
    fn from(mismatch: Mismatch) -> Self {
        match mismatch {
            Mismatch::UnprocessableContent => Self::UnprocessableContent,
            Mismatch::BadRequest => Self::BadRequest,
        }
    }
}

impl From<KeyRule> for KeyRules {
    fn from(rule: KeyRule) -> Self {
        match rule {
            KeyRule::Default => Self::DEFAULT,
            KeyRule::Loose => Self::LOOSE,
        }
    }
}

/// A URL may hold a password: it is forgotten, and shows up in no message.
#[expect(clippy::unnecessary_wraps, reason = "it is a parser that never fails")]
fn store(url: &str) -> Result<Store, Infallible> {
    Ok(match url {
        "memory" => Store::Memory,
        _ => Store::Other,
    })
}

fn unix_seconds(seconds: &str) -> Result<SystemTime, &'static str> {
    let seconds = seconds.parse().map_err(|_| "not a number of seconds")?;
    super::clock::at(seconds).ok_or("past the end of time")
}

fn span(span: &str) -> Result<Duration, String> {
    match humantime::parse_duration(span) {
        Ok(Duration::ZERO) => Err("no time at all".to_owned()),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

fn public_url(text: &str) -> Result<String, &'static str> {
    let url: Uri = text.parse().map_err(|_| "not a URL")?;
    match (url.scheme_str(), url.host()) {
        (Some("http" | "https"), Some(_)) => Ok(text.to_owned()),
        _ => Err("not an absolute http or https URL"),
    }
}
