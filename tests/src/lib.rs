//! Whole stacks over real sockets; the tests are in `tests/`.

/// The README's examples compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub mod readme {}
