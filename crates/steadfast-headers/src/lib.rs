//! steadfast-headers.
