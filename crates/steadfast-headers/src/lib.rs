//! Reads and writes the header fields in which HTTP peers agree on repetition:
//! which request is a repeat, and when it may be sent again.
//!
//! Everything here is a pure function of bytes and of the time it is told. No
//! Tower, no runtime, no I/O, no panic on any input, and a limit on every field.
//! Use it where a layer or a handler has to speak these fields itself. The
//! layers of the `steadfast` crates already do.
//!
//! * `Idempotency-Key`, bare or as an RFC 9651 String: [`IdempotencyKey`], read
//!   under [`KeyRules`].
//! * `Retry-After` (RFC 9110, section 10.2.3) as seconds or as any of the three
//!   forms of an HTTP-date, and `retry-after-ms`: [`RetryAfter`].
//! * `Idempotent-Replayed`, the mark of a repeated answer: [`is_replayed`].
//!
//! The rate-limit fields are not read here yet.
//!
//! # Examples
//!
//! A server reads the key of a request, a client the wait of a response:
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use http::{HeaderMap, HeaderValue, header::RETRY_AFTER};
//! use steadfast_headers::{IDEMPOTENCY_KEY, KeyRules, RetryAfter};
//!
//! let mut request = HeaderMap::new();
//! request.insert(IDEMPOTENCY_KEY, HeaderValue::from_static("order-4192"));
//! let key = KeyRules::DEFAULT.from_headers(&request, &IDEMPOTENCY_KEY)?;
//! assert_eq!(key.expect("the field was sent").as_str(), "order-4192");
//!
//! let mut response = HeaderMap::new();
//! response.insert(RETRY_AFTER, HeaderValue::from_static("30"));
//! let now = SystemTime::UNIX_EPOCH;
//! let wait = RetryAfter::from_headers(&response, now).map(RetryAfter::delay);
//! assert_eq!(wait, Some(Duration::from_secs(30)));
//! # Ok::<(), steadfast_headers::KeyError>(())
//! ```
//!
//! Other rules for the key, here an API whose keys hold a colon and have to be
//! quoted:
//!
//! ```
//! use std::num::NonZeroU8;
//!
//! use steadfast_headers::{IdempotencyKey, KeyForm, KeyRules};
//!
//! let longest = NonZeroU8::new(128).expect("not zero");
//! let rules = KeyRules::DEFAULT
//!     .max_len(longest)
//!     .also_allow(b":")?
//!     .form(KeyForm::Quoted);
//!
//! let key = rules.parse(br#""invoice:inv_4192""#)?;
//! assert_eq!(key, IdempotencyKey::new("invoice:inv_4192", &rules)?);
//! assert_eq!(key.to_quoted_header_value(), r#""invoice:inv_4192""#);
//! assert!(rules.parse(b"invoice:inv_4192").is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Defaults
//!
//! | what | default |
//! |---|---|
//! | bytes of a key ([`KeyRules::DEFAULT`]) | 1 to 64 of `A-Z a-z 0-9 _ -` |
//! | bytes of a key ([`KeyRules::LOOSE`]) | 1 to 255 of visible ASCII except `"`, `\` and `,` |
//! | spelling of a key | raw or quoted ([`KeyForm::Both`]) |
//! | key field lines in a request | one; two are refused even when they are equal |
//! | bytes in a `Retry-After` line | 4096; a longer line counts as invalid |
//! | values in a `Retry-After` field | 16; the rest is not looked at |
//! | longest delay | 4 294 967 295 s (`u32::MAX`); longer ones are cut to it |
//! | clocks said to agree | when no more than 2 s apart |
//!
//! # Failure modes
//!
//! * A field that breaks its grammar is reported whole and is never half used:
//!   [`KeyError`], [`RetryAfterError`].
//! * The server's clock and the local one disagree: a date in `Retry-After` is
//!   measured on the server's own clock where its `Date` can be believed, see
//!   [`RetryAfter`].
//! * A server asks for an absurd delay, or puts a Unix timestamp where seconds
//!   belong: that is what it asked for. The number is kept (cut to the longest
//!   delay), so that it exceeds the caller's cap and stops the call.
//!
//! # Telemetry
//!
//! None. Errors and `Debug` never show a key, and a key's header value is
//! marked sensitive.
//!
//! # Features
//!
//! None. The minimum supported Rust version is 1.89.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

mod date;
mod key;
mod reference;
mod replayed;
mod retry_after;
mod rules;

pub use self::{
    key::{IDEMPOTENCY_KEY, IdempotencyKey},
    replayed::{IDEMPOTENT_REPLAYED, is_replayed},
    retry_after::{RETRY_AFTER_MS, RetryAfter, RetryAfterError},
    rules::{KeyError, KeyForm, KeyRules, KeyRulesError},
};
