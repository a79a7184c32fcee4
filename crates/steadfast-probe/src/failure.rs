use std::{io, net::SocketAddr, path::PathBuf, process::ExitCode};

use steadfast::idempotency::TimingError;

use crate::{call::SignerError, keys::KeysError};

/// Why the program ends with something else than 0.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("`{0}` is not there yet")]
    NotYet(&'static str),
    #[error("the spans make no sense together: {0}")]
    Timing(#[from] TimingError),
    #[error("{}: {error}", path.display())]
    Keys { path: PathBuf, error: KeysError },
    #[error("--sign: {0}")]
    Signer(#[from] SignerError),
    #[error("{0} of the lines could not be understood")]
    BadLines(u64),
    #[error("cannot listen on {address}: {error}")]
    Listen {
        address: SocketAddr,
        error: io::Error,
    },
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
    #[error("standard input or output failed: {0}")]
    Stdio(#[from] io::Error),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::NotYet(_)
            | Self::Timing(_)
            | Self::Keys { .. }
            | Self::Signer(_)
            | Self::BadLines(_) => 2,
            Self::Listen { .. } | Self::Runtime(_) | Self::Stdio(_) => 1,
        })
    }
}
