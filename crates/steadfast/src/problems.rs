//! The problems that the layers answer with, by their `type`.
//!
//! Each is an `application/problem+json` object (RFC 9457) with `type`, `title`, `status`, `detail`, `code` and
//! `retryable`. Clients key on `code`: a status may be configured, a title may be reworded.
//!
//! # idempotency-key-missing
//!
//! Status 400. The endpoint requires an `Idempotency-Key`. Nothing was done.
//!
//! # idempotency-key-invalid
//!
//! Status 400. The key breaks the API's rules, is empty, or stands there more than once. Nothing was done. A client-side layer
//! answers the same for a key that it would not send.
//!
//! # idempotency-key-reuse
//!
//! Status 422, or 400 where it is configured. The key was used with a different request. A new call needs a new key.
//!
//! # idempotency-in-progress
//!
//! Status 409 with `Retry-After`. The call is running. Repeat the same request with the same key after that time.
//!
//! # idempotency-result-unavailable
//!
//! Status 409. The operation was done, and its answer was not kept: `reason` says why (`too_large`, `streamed`, `body_error`,
//! `not_saved`), `original_status` what was answered. A repeat does not run it again.
//!
//! # idempotency-outcome-unknown
//!
//! Status 409. An earlier run failed without saying whether it had its effect. Look for the effect before making a new call.
//!
//! # idempotency-body-too-large
//!
//! Status 413. The request is longer than what the server reads for the comparison of repeats. Nothing was done.
//!
//! # idempotency-request-invalid
//!
//! Status 400. The request's body ended early or broke its framing. Nothing was done.
//!
//! # idempotency-store-unavailable
//!
//! Status 503 with `Retry-After`. The server cannot tell whether the call is a repeat, and so did nothing.
//!
//! # idempotency-store-full
//!
//! Status 503 with `Retry-After`. There is no room for a new key. Known keys are still answered.
//!
//! # idempotency-record-unreadable
//!
//! Status 503. The stored answer was written by another version of the server. Nothing was done.
//!
//! # signature-invalid
//!
//! Status 401 with `WWW-Authenticate`. The signature is missing, malformed, wrong, stale or early, or the key is not known:
//! which of them is not said. Nothing was done.
//!
//! # signature-body-too-large
//!
//! Status 413. The request is longer than what the server reads for the verification. Nothing was done.
//!
//! # signature-body-unreadable
//!
//! Status 400. The request's body ended early or broke its framing. Nothing was done.
//!
//! # signature-body-timeout
//!
//! Status 408. The request's body did not arrive in time. Nothing was done.
//!
//! # signature-keys-unavailable
//!
//! Status 503 with `Retry-After`. The key cannot be looked up. Nothing was done.
//!
//! # signature-missing
//!
//! Status 401 with `WWW-Authenticate`. The request was not verified before it came to the replay guard. Nothing was done.
//!
//! # signature-replayed
//!
//! Status 401 with `WWW-Authenticate`. This signature was used before. Sign each attempt afresh.
//!
//! # signature-expired
//!
//! Status 401 with `WWW-Authenticate`. The signature is too old for the server to tell whether it was used. Sign the request
//! again. Nothing was done.
//!
//! # signature-undated
//!
//! Status 401 with `WWW-Authenticate`. The scheme signs no timestamp, without which a signature is not good once. Nothing was
//! done.
//!
//! # event-in-progress
//!
//! Status 409 with `Retry-After`. The event is being processed. Deliver it again after that time.
//!
//! # replay-quota-exceeded
//!
//! Status 429 with `Retry-After`. The key has as many requests within the lifetime of their signatures as it may. Nothing was
//! done.
//!
//! # replay-store-full
//!
//! Status 503 with `Retry-After`. There is no room for a new request or event. Nothing was done.
//!
//! # replay-store-unavailable
//!
//! Status 503 with `Retry-After`. The server cannot tell whether the request is a repeat, and so did nothing.
//!
//! # signing-body-too-large
//!
//! Status 413, made on the client's side: the request is longer than what is signed. Nothing was sent.
//!
//! # signing-body-unreadable
//!
//! Status 400, made on the client's side: the request's own body failed. Nothing was sent.
//!
//! # signing-impossible
//!
//! Status 400, made on the client's side: the request lacks what its scheme signs, or has it in a form that cannot be signed.
//! Nothing was sent.
//!
//! # signing-key-unavailable
//!
//! Status 503 with `Retry-After`, made on the client's side: there is no key to sign with. Nothing was sent.
//!
//! # attempt-timeout
//!
//! Status 504, made on the client's side: the last attempt of a call was not answered in time. The server may have acted.
//!
//! # deadline-passed
//!
//! Status 504, made on the client's side: the deadline of the whole call ended its last attempt. The server may have acted.
