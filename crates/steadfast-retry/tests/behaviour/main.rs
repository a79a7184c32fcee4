//! What a call does, seen from both of its ends: the caller's and the server's. The clock is paused, so instants are exact.

mod bodies;
mod budget;
mod cancel;
mod deadlines;
mod events;
mod first_cases;
mod logs;
mod profiles;
mod repeatable;
mod report;
mod responses;
mod support;
mod unauthorized;
mod waits;
