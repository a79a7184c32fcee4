//! The built `probe`, driven as a black box: over real sockets, standard input and signals.
//!
//! These tests cross processes, so the time in them is real. They wait for what happens and never for how long it takes;
//! the only spans that are asserted are lower bounds.

mod call;
mod cli;
mod headers;
mod kit;
mod serve;
mod sign;
mod verify;
