//! steadfast-core.
