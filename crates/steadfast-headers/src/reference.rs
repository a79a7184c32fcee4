//! Which clock a date in a response is measured on.

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap,
    header::{AGE, DATE},
};

use crate::date;

/// Up to this difference the two clocks are said to agree: `Date` has whole
/// seconds, and the response took a moment to arrive.
const AGREEMENT: Duration = Duration::from_secs(2);

/// The instant that a date in this response counts from.
///
/// While the clocks agree it is the earlier of the two, which makes the longer
/// delay. Beyond that the server's own `Date` wins: the date was written on its
/// clock.
pub(crate) fn reference(headers: &HeaderMap, now: SystemTime) -> SystemTime {
    match date_of_origin(headers, now) {
        Some(date) if apart(date, now) > AGREEMENT => date,
        Some(date) => date.min(now),
        None => now,
    }
}

/// The response's `Date`, if there is one and it says when the response was made.
fn date_of_origin(headers: &HeaderMap, now: SystemTime) -> Option<SystemTime> {
    let mut lines = headers.get_all(DATE).iter();
    let (Some(date), None) = (lines.next(), lines.next()) else {
        return None;
    };
    if is_from_a_cache(headers) {
        return None;
    }
    date::parse(date.to_str().ok()?.trim_matches([' ', '\t']), now)
}

/// Says whether the response, and with it the `Date`, is an old one.
///
/// An unreadable `Age` counts as age: only caches write the field.
fn is_from_a_cache(headers: &HeaderMap) -> bool {
    const MARKERS: [&str; 6] = [
        "cache-status", // RFC 9211
        "cf-cache-status",
        "x-cache",
        "x-cache-status",
        "x-proxy-cache",
        "x-vercel-cache",
    ];

    let aged = headers
        .get_all(AGE)
        .iter()
        .any(|age| !is_zero(age.as_bytes().trim_ascii()));
    let mut marks = MARKERS.iter().flat_map(|name| headers.get_all(*name));
    aged || marks.any(|mark| says_hit(mark.as_bytes()))
}

fn is_zero(age: &[u8]) -> bool {
    !age.is_empty() && age.iter().all(|&byte| byte == b'0')
}

/// Looks for whole words: `TCP_HIT` and `Hit from edge`, but not `white`.
fn says_hit(mark: &[u8]) -> bool {
    mark.split(|byte| !byte.is_ascii_alphanumeric())
        .any(|word| word.eq_ignore_ascii_case(b"hit") || word.eq_ignore_ascii_case(b"stale"))
}

fn apart(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other)
        .unwrap_or_else(|error| error.duration())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    /// Thu, 15 Jan 2026 12:00:00 GMT.
    const NOON: u64 = 1_768_478_400_000;

    fn at(millis: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
    }

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |&(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields.iter().map(pair) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn r04_the_servers_clock_wins_when_the_clocks_disagree() {
        let dated = headers(&[("date", "Thu, 15 Jan 2026 12:00:00 GMT")]);
        for now in [NOON - 600_000, NOON - 2_001, NOON + 2_001, NOON + 600_000] {
            assert_eq!(reference(&dated, at(now)), at(NOON), "{now}");
        }
    }

    #[test]
    fn r04_the_earlier_clock_counts_when_the_clocks_agree() {
        let dated = headers(&[("date", "Thu, 15 Jan 2026 12:00:00 GMT")]);
        for (now, from) in [
            (NOON - 2_000, NOON - 2_000),
            (NOON - 1, NOON - 1),
            (NOON, NOON),
            (NOON + 1, NOON),
            (NOON + 2_000, NOON),
        ] {
            assert_eq!(reference(&dated, at(now)), at(from), "{now}");
        }
    }

    #[test]
    fn r04_a_date_that_proves_nothing_leaves_the_local_clock() {
        let date = ("date", "Thu, 15 Jan 2026 12:00:00 GMT");
        for fields in [
            vec![],
            vec![("date", "yesterday")],
            vec![("date", "Fri, 15 Jan 2026 12:00:00 GMT")],
            vec![date, date],
            vec![date, ("age", "1")],
            vec![date, ("age", "")],
            vec![date, ("age", "soon")],
            vec![date, ("age", "0"), ("age", "30")],
            vec![date, ("x-cache", "HIT")],
            vec![date, ("x-cache", "Hit from cloudfront")],
            vec![date, ("x-cache", "MISS, TCP_MEM_HIT")],
            vec![date, ("cf-cache-status", "STALE")],
            vec![date, ("cache-status", "edge; hit; ttl=30")],
        ] {
            let now = at(NOON + 600_000);
            assert_eq!(reference(&headers(&fields), now), now, "{fields:?}");
        }
    }

    #[test]
    fn r04_a_fresh_response_through_a_cache_keeps_its_date() {
        let date = ("date", "\tThu, 15 Jan 2026 12:00:00 GMT ");
        for fields in [
            vec![date],
            vec![date, ("age", "0")],
            vec![date, ("x-cache", "MISS from white.example")],
            vec![date, ("cf-cache-status", "DYNAMIC")],
        ] {
            let read = reference(&headers(&fields), at(NOON + 600_000));
            assert_eq!(read, at(NOON), "{fields:?}");
        }
    }
}
