//! A service, and the checks made with it, that notice breaches of Tower's contract.

pub(crate) mod contract;
pub(crate) mod drops;
pub(crate) mod future;
pub(crate) mod handle;
pub(crate) mod service;
