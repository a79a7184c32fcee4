//! Whole stacks over real sockets; the tests are in `tests/`.
