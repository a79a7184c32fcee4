//! What the layers cost, beside the bare call and their peers.
//!
//! A [`Scenario`] is a stack of services and a kind of call. The same list is timed one by one by `cargo bench`, which
//! compares each with its last time; run under callgrind by the program `scenario`; and timed in turns, so that the
//! ratios are true, and put into one table by the program `report`:
//!
//! ```text
//! cargo bench -p steadfast-bench
//! cargo run --release -p steadfast-bench --bin report
//! ```
//!
//! All stacks are called in the same way: requests are made beforehand, the service is readied and called, its future
//! is polled once, since nothing here has to wait, and the body of the response is read to its end.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod case;
mod client;
mod memory;
mod message;
mod replay;
mod report;
mod runtime;
mod scenario;
mod server;
mod signature;

pub use self::{
    case::{BATCH, Case, Seen},
    memory::memory_of_entries,
    report::{MOST_CALLS, print},
    runtime::in_runtime,
    scenario::{Scenario, Target, find, scenarios},
};
