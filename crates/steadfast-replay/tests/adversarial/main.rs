//! What goes wrong between a sender, the guard, its store and the handler: nothing runs twice, and nothing is lost.

mod identities;
mod kit;
mod leases;
mod one_shot;
mod outcomes;
mod races;
#[cfg(feature = "axum")]
mod routers;
mod steps;
