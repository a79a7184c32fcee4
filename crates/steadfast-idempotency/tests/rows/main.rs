//! The server's half against its table of states and answers, row by row, and the cases around the rows.
//!
//! `table` holds one test for each of the 31 rows. The other modules each take one noun of the contract further.

mod bodies;
mod capacity;
mod disconnect;
mod drain;
mod failure;
mod fidelity;
mod keys;
mod kit;
mod lease;
mod outage;
mod saving;
mod scope;
mod settings;
mod streams;
mod table;
mod telemetry;
mod ttl;
mod waiting;
