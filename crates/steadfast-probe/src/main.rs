//! steadfast-probe.

fn main() {}
