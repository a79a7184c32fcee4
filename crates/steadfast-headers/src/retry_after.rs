//! `Retry-After`, and `retry-after-ms` beside it.

use std::{
    cell::LazyCell,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue, header::RETRY_AFTER};

use crate::{date, reference::reference};

/// The name of the field with the same wait in milliseconds, `retry-after-ms`.
///
/// No standard knows it; Azure and OpenAI send it beside `Retry-After`.
pub const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// How long a server asks its client to stay away (RFC 9110, section 10.2.3).
///
/// # What is read
///
/// `Retry-After` is a number of seconds, counted from the receipt of the
/// response, or an HTTP-date in any of its three forms. A number has digits and
/// nothing else: no sign, fraction, exponent or unit. A date with a wrong weekday
/// or a 60th second is invalid, and a two-digit year is never more than 50 years
/// ahead (RFC 9110, section 5.6.7). A date before 1970 is invalid.
///
/// * A date counts from the response's `Date`, the clock that it was written on.
///   When there is not exactly one valid `Date`, or the response comes from a
///   cache (`Age` above zero, `X-Cache: HIT` and its like), it counts from the
///   local time. When both clocks are known and no more than 2 s apart, the longer
///   delay is taken. A date in the past is a delay of zero.
/// * Several values, on several lines or in a list, are one wait: the longest of
///   the valid ones.
/// * `retry-after-ms` has milliseconds in the same grammar. When it is within a
///   second of `Retry-After` it is the finer word for the same wait and is taken.
///   Otherwise the longer of the two is.
/// * A delay longer than `u32::MAX` seconds is cut to that. A Unix timestamp in
///   place of the seconds is not guessed at: it is a delay of half a century,
///   over any cap.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use http::{HeaderMap, HeaderValue, header::{DATE, RETRY_AFTER}};
/// use steadfast_headers::RetryAfter;
///
/// let mut headers = HeaderMap::new();
/// headers.insert(DATE, HeaderValue::from_static("Thu, 15 Jan 2026 12:00:00 GMT"));
/// headers.insert(RETRY_AFTER, HeaderValue::from_static("Thu, 15 Jan 2026 12:00:05 GMT"));
///
/// // The local clock is years behind, and does not matter.
/// let asked = RetryAfter::from_headers(&headers, SystemTime::UNIX_EPOCH);
/// assert_eq!(asked.map(RetryAfter::delay), Some(Duration::from_secs(5)));
///
/// // A server rounds up, so that nobody comes too early.
/// let field = RetryAfter::from_wait(Duration::from_millis(1_200)).to_header_value();
/// assert_eq!(field, "2");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RetryAfter {
    delay: Duration,
}

impl RetryAfter {
    /// Reads the wait from a response that was received at `now`, if it names one.
    ///
    /// An invalid field is treated as absent;
    /// [`try_from_headers`](Self::try_from_headers) tells the two apart.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Self> {
        Self::try_from_headers(headers, now).ok()
    }

    /// Reads the wait from a response that was received at `now`.
    ///
    /// # Errors
    ///
    /// [`RetryAfterError::Missing`] without any of the two fields,
    /// [`RetryAfterError::Invalid`] when none of their values can be read.
    pub fn try_from_headers(headers: &HeaderMap, now: SystemTime) -> Result<Self, RetryAfterError> {
        let reference = LazyCell::new(|| reference(headers, now));
        let until = |item: &str| {
            let date = date::parse(item, now)?;
            Some(date.duration_since(*reference).unwrap_or_default())
        };
        let seconds = |item: &str| digits(item).map(Duration::from_secs);
        let millis = |item: &str| digits(item).map(Duration::from_millis);

        let coarse = longest(headers, &RETRY_AFTER, |item| {
            seconds(item).or_else(|| until(item))
        });
        let fine = longest(headers, &RETRY_AFTER_MS, millis);
        let delay = match (coarse, fine) {
            (Ok(coarse), Ok(fine)) if coarse.abs_diff(fine) <= Duration::from_secs(1) => fine,
            (Ok(coarse), Ok(fine)) => coarse.max(fine),
            (Ok(delay), Err(_)) | (Err(_), Ok(delay)) => delay,
            (Err(coarse), Err(fine)) => return Err(coarse.max(fine)),
        };
        Ok(Self::from_wait(delay))
    }

    /// Takes the wait that a server is about to ask for.
    ///
    /// More than `u32::MAX` seconds are cut to that.
    #[must_use]
    pub fn from_wait(wait: Duration) -> Self {
        Self {
            delay: wait.min(LONGEST),
        }
    }

    /// The wait, counted from the receipt of the response.
    ///
    /// It has a fraction of a second where the server or the clock gave one.
    #[must_use]
    pub const fn delay(self) -> Duration {
        self.delay
    }

    /// The value of a `Retry-After` field: whole seconds, rounded up.
    ///
    /// It is `0` for no wait at all and at least `1` for any other.
    #[must_use]
    pub fn to_header_value(self) -> HeaderValue {
        let started = u64::from(self.delay.subsec_nanos() > 0);
        HeaderValue::from(self.delay.as_secs().saturating_add(started))
    }
}

/// The reason why a response names no wait.
// Ordered: with two fields, an invalid one outranks a missing one.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, thiserror::Error)]
#[non_exhaustive]
pub enum RetryAfterError {
    /// There is no such field.
    #[error("no retry-after field")]
    Missing,
    /// There is one, and nothing in it is a delay or a date.
    #[error("retry-after field is neither a delay nor a date")]
    Invalid,
}

/// The longest delay: what a `u32` of seconds holds, some 136 years.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);

/// The longest of the values in a field that can be read.
fn longest(
    headers: &HeaderMap,
    name: &HeaderName,
    read: impl Fn(&str) -> Option<Duration>,
) -> Result<Duration, RetryAfterError> {
    const MAX_LINE_BYTES: usize = 4096;
    const MAX_ITEMS: usize = 16;

    if !headers.contains_key(name) {
        return Err(RetryAfterError::Missing);
    }
    headers
        .get_all(name)
        .iter()
        .take(MAX_ITEMS)
        .filter(|line| line.len() <= MAX_LINE_BYTES)
        .filter_map(|line| line.to_str().ok())
        .flat_map(items)
        .take(MAX_ITEMS)
        .filter_map(read)
        .max()
        .ok_or(RetryAfterError::Invalid)
}

/// The members of a list, without the whitespace around them.
fn items(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let (item, tail) = split_item(rest?);
        rest = tail;
        Some(item)
    })
}

/// Splits at the first comma that is not the one in a date.
fn split_item(list: &str) -> (&str, Option<&str>) {
    let in_date = list
        .split(',')
        .next()
        .is_some_and(|head| date::is_day_name(trim(head)));
    match list.match_indices(',').nth(usize::from(in_date)) {
        Some((at, _)) => {
            let (item, tail) = list.split_at(at);
            (trim(item), tail.strip_prefix(','))
        }
        None => (trim(list), None),
    }
}

fn trim(item: &str) -> &str {
    item.trim_matches([' ', '\t'])
}

/// Reads `1*DIGIT`, as far as a `u64` goes and no further.
fn digits(item: &str) -> Option<u64> {
    let is_number = !item.is_empty() && item.bytes().all(|byte| byte.is_ascii_digit());
    // All digits: the only thing that can go wrong is their number.
    is_number.then(|| item.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
