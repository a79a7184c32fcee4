//! steadfast.
