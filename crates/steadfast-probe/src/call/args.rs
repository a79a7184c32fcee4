use std::{convert::Infallible, num::NonZeroUsize, time::Duration};

use clap::ValueEnum;
use steadfast::retry::Profile;

use super::signer::Signer;
use crate::failure::Failure;

/// The flags of `probe call`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is repeated, how often, and how long it is waited for
    #[arg(long, value_enum, default_value = "default")]
    pub(super) profile: Api,
    /// How many attempts may follow the first one [default: the profile's]
    #[arg(long, value_name = "N")]
    pub(super) retries: Option<u32>,
    /// The longest wait a server may ask for
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = humantime::parse_duration)]
    pub(super) cap: Duration,
    /// How long an attempt may take, to the end of its response
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = humantime::parse_duration)]
    pub(super) attempt_timeout: Duration,
    /// How long a call may take, its waits included [default: as long as it likes]
    #[arg(long, value_name = "SPAN", value_parser = humantime::parse_duration)]
    pub(super) deadline: Option<Duration>,
    /// Takes retries from the default budget, instead of from none
    #[arg(long)]
    pub(super) budget: bool,
    /// How many calls are made at once; answers come in the order in which the calls end
    #[arg(long, value_name = "N", default_value = "1")]
    pub(super) concurrency: NonZeroUsize,
    /// Sends through the bare client, without any layer
    #[arg(long)]
    pub(super) plain: bool,
    /// Signs each attempt afresh; the secret may hold colons
    #[arg(long, value_name = "SCHEME:KEYID:SECRET", value_parser = Signer::parse, conflicts_with = "plain")]
    pub(super) sign: Option<Signer>,
    #[command(flatten)]
    later: Later,
}

/// Flags of capabilities that are not there yet.
#[derive(Debug, clap::Args)]
struct Later {
    /// Slows down before the limit (not there yet)
    #[arg(long)]
    throttle: bool,
    /// Shares the throttle with other processes (not there yet)
    #[arg(long, value_name = "URL", value_parser = given)]
    redis: Option<Given>,
}

/// A value that is worth something: it is forgotten, and shows up in no message.
#[derive(Clone, Copy, Debug)]
struct Given;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Api {
    Default,
    Botix,
    Payments,
    Openemail,
}

impl Args {
    /// Refuses what would be a different client from the one that was asked for.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Later { throttle, redis } = self.later;
        for (is_given, flag) in [
            (throttle, "probe call --throttle"),
            (redis.is_some(), "probe call --redis"),
        ] {
            if is_given {
                return Err(Failure::NotYet(flag));
            }
        }
        Ok(())
    }
}

impl From<Api> for Profile {
    fn from(api: Api) -> Self {
        match api {
            Api::Default => Self::new(),
            Api::Botix => Self::botix(),
            Api::Payments => Self::payments(),
            Api::Openemail => Self::openemail(),
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is a parser that never fails")]
fn given(_: &str) -> Result<Given, Infallible> {
    Ok(Given)
}
