//! Idempotency.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod server;
mod store;

pub use self::{server::*, store::*};
