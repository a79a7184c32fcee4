//! Attempts to get two effects, a lost answer or a blocked key out of the server's half.

mod answers;
mod kit;
mod leases;
mod memory;
#[cfg(feature = "axum")]
mod routers;
mod saves;
mod tasks;
mod wire;
