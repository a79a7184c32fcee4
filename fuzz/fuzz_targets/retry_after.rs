//! Reads arbitrary field lines as the wait that a response names.
//!
//! The first line of the input is the local time in seconds, the others are field
//! lines; the first byte of each says which field it is on. No response and no
//! clock may panic, no delay may exceed the documented longest one, and what is
//! written from it has to be read back as at least the same wait, and less than a
//! second more.
#![no_main]

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AGE, DATE, RETRY_AFTER},
};
use libfuzzer_sys::fuzz_target;
use steadfast_headers::{RETRY_AFTER_MS, RetryAfter, RetryAfterError};

fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|&byte| byte == b'\n');
    let now = local_time(lines.next().unwrap_or_default());
    let headers = response(lines);

    let named = headers.contains_key(RETRY_AFTER) || headers.contains_key(RETRY_AFTER_MS);
    match RetryAfter::try_from_headers(&headers, now) {
        Ok(asked) => check(asked, now),
        Err(error) => assert_eq!(error == RetryAfterError::Missing, !named),
    }
});

fn local_time(line: &[u8]) -> SystemTime {
    let seconds = std::str::from_utf8(line)
        .ok()
        .and_then(|line| line.parse().ok());
    let since_epoch = Duration::from_secs(seconds.unwrap_or(1_768_478_400));
    SystemTime::UNIX_EPOCH
        .checked_add(since_epoch)
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

fn response<'a>(lines: impl Iterator<Item = &'a [u8]>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some((field, value)) = line.split_first() else {
            continue;
        };
        let name = match field {
            b'a' => AGE,
            b'c' => HeaderName::from_static("x-cache"),
            b'd' => DATE,
            b'm' => RETRY_AFTER_MS,
            _ => RETRY_AFTER,
        };
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(name, value);
        }
    }
    headers
}

fn check(asked: RetryAfter, now: SystemTime) {
    let delay = asked.delay();
    assert!(delay <= Duration::from_secs(u32::MAX.into()));

    let mut written = HeaderMap::new();
    written.insert(RETRY_AFTER, asked.to_header_value());
    let read = RetryAfter::from_headers(&written, now).expect("it was just written");
    assert!(read.delay() >= delay);
    assert!(read.delay() < delay + Duration::from_secs(1));
}
