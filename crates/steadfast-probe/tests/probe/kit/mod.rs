//! Processes, raw HTTP/1.1, and a peer that answers from a script.

mod http1;
mod lines;
mod peer;
mod server;
mod signed;

pub(crate) use self::{
    http1::{Message, exchange, receive, request, send},
    lines::{Lines, probe},
    peer::{Peer, Reply},
    server::{Server, keyed},
    signed::{Headers, KeyFile, SCHEMES, SECRET, Sample, refs, sign},
};
