//! steadfast-idempotency.
