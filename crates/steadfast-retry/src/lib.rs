//! steadfast-retry.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod alarm;
mod attempt;
mod backoff;
mod budget;
mod call;
mod classify;
mod decision;
mod future;
mod give_up;
mod layer;
mod license;
mod origin;
mod outcome;
mod pause;
mod policy;
mod profile;
mod rejection;
mod service;

pub use self::{
    backoff::Backoff,
    budget::Budget,
    classify::{ClassifyError, ErrorClass, KnownErrors},
    future::ResponseFuture,
    give_up::GiveUp,
    layer::RateLimitAwareRetryLayer,
    outcome::{Repeat, Trigger},
    profile::Profile,
    rejection::Rejection,
    service::RateLimitAwareRetry,
};
