//! What every store has to do, whatever it keeps its records in.

pub mod idempotency;
pub mod replay;
