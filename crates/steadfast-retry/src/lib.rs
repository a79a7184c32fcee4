//! steadfast-retry.
