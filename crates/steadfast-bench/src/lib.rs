//! steadfast-bench.
