//! steadfast-testing.
