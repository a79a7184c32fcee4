use http::header::DATE;
use proptest::prelude::*;

use super::*;

/// Thu, 15 Jan 2026 12:00:00 GMT.
fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_768_478_400)
}

fn response<const N: usize>(fields: [(HeaderName, &str); N]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

fn read(headers: &HeaderMap) -> Result<Duration, RetryAfterError> {
    RetryAfter::try_from_headers(headers, noon()).map(RetryAfter::delay)
}

fn read_value(value: &str) -> Result<Duration, RetryAfterError> {
    read(&response([
        (DATE, "Thu, 15 Jan 2026 12:00:00 GMT"),
        (RETRY_AFTER, value),
    ]))
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn r04_every_form_of_a_wait_is_read() {
    for (value, delay) in [
        ("30", 30),
        (" \t30 ", 30),
        ("0", 0),
        ("00005", 5),
        ("Thu, 15 Jan 2026 12:00:30 GMT", 30),
        ("Thursday, 15-Jan-26 12:00:30 GMT", 30),
        ("Thu Jan 15 12:00:30 2026", 30),
        ("Thu, 15 Jan 2026 12:01:01 GMT", 61),
        ("Thu, 15 Jan 2026 11:59:55 GMT", 0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
    ] {
        assert_eq!(read_value(value), Ok(seconds(delay)), "{value}");
    }
}

#[test]
fn r04_what_is_neither_a_delay_nor_a_date_is_invalid() {
    for value in [
        "-3",
        "1.5",
        "+5",
        "5s",
        "0x10",
        "NaN",
        "Infinity",
        "1e3",
        "",
        " ",
        ",",
        "abc",
        "5 10",
        "\u{e9}",
        "\u{661}",
        "\u{ff11}",
        "6m0s",
        "2.0",
        "2026-01-15T12:00:30Z",
        "Thu, 99 Foo 2026 12:00:00 GMT",
        "Fri, 15 Jan 2026 12:00:30 GMT",
        "Thu, 15 Jan 2026 12:00:60 GMT",
        "Thu, 30",
    ] {
        assert_eq!(read_value(value), Err(RetryAfterError::Invalid), "{value}");
        let headers = response([(RETRY_AFTER, value)]);
        assert_eq!(RetryAfter::from_headers(&headers, noon()), None, "{value}");
    }
}

#[test]
fn r04_a_missing_field_is_told_from_an_invalid_one() {
    let invalid = Err(RetryAfterError::Invalid);

    assert_eq!(read(&response([])), Err(RetryAfterError::Missing));
    assert_eq!(read(&response([(RETRY_AFTER, "soon")])), invalid);
    assert_eq!(read(&response([(RETRY_AFTER_MS, "soon")])), invalid);
    assert_eq!(RetryAfterError::Missing.to_string(), "no retry-after field");
}

#[test]
fn r06_a_huge_delay_is_cut_and_still_over_every_cap() {
    let longest = seconds(4_294_967_295);
    for value in [
        "4294967295",
        "4294967296",
        "9223372037",
        "9999999999",
        "99999999999999999999999",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ] {
        assert_eq!(read_value(value), Ok(longest), "{value}");
    }
    let fine = response([(RETRY_AFTER_MS, "99999999999999999999999")]);
    assert_eq!(read(&fine), Ok(longest));
}

#[test]
fn r06_a_timestamp_is_a_delay_of_half_a_century() {
    assert_eq!(read_value("1768478430"), Ok(seconds(1_768_478_430)));
}

#[test]
fn r04_several_values_are_the_longest_valid_one() {
    for (value, delay) in [
        ("5, 10", 10),
        ("10,5", 10),
        ("5,5", 5),
        (",5, ,", 5),
        ("abc, 5", 5),
        ("5, -10", 5),
        ("5, Thu, 15 Jan 2026 12:00:30 GMT", 30),
        ("Thu, 15 Jan 2026 12:00:30 GMT, 5", 30),
        (
            "Thursday, 15-Jan-26 12:00:30 GMT , Thu, 15 Jan 2026 12:00:40 GMT",
            40,
        ),
        ("Thu Jan 15 12:00:30 2026,5", 30),
        ("Fri, 15 Jan 2026 12:00:30 GMT, 5", 5),
    ] {
        assert_eq!(read_value(value), Ok(seconds(delay)), "{value}");
    }
    for (first, second, delay) in [
        ("7", "7", 7),
        ("7", "9", 9),
        ("9", "7", 9),
        ("soon", "7", 7),
        ("7", "Thu, 15 Jan 2026 12:00:30 GMT", 30),
        ("\u{e9}", "7", 7),
    ] {
        let headers = response([(RETRY_AFTER, first), (RETRY_AFTER, second)]);
        assert_eq!(read(&headers), Ok(seconds(delay)), "{first} {second}");
    }
}

#[test]
fn r04_a_flood_of_values_is_bounded() {
    let sixteen = "1,".repeat(15) + "2";
    let seventeen = "1,".repeat(16) + "2";
    assert_eq!(read_value(&sixteen), Ok(seconds(2)));
    assert_eq!(read_value(&seventeen), Ok(seconds(1)));

    let fits = "0".repeat(4095) + "7";
    let too_long = "0".repeat(4096) + "7";
    assert_eq!(read_value(&fits), Ok(seconds(7)));
    assert_eq!(read_value(&too_long), Err(RetryAfterError::Invalid));

    let mut lines = HeaderMap::new();
    for line in 0..1000u64 {
        lines.append(RETRY_AFTER, HeaderValue::from(line));
    }
    assert_eq!(read(&lines), Ok(seconds(15)));

    let mut unreadable = HeaderMap::new();
    for _ in 0..16 {
        unreadable.append(RETRY_AFTER, HeaderValue::from_bytes(b"\xff").unwrap());
    }
    unreadable.append(RETRY_AFTER, HeaderValue::from_static("5"));
    assert_eq!(read(&unreadable), Err(RetryAfterError::Invalid));
}

#[test]
fn r04_milliseconds_are_the_finer_word_for_the_same_wait() {
    for (coarse, fine, millis) in [
        ("2", "1234", 1_234),
        ("30", "30500", 30_500),
        ("30", "31000", 31_000),
        ("30", "29000", 29_000),
        ("30", "31001", 31_001),
        ("30", "28999", 30_000),
        ("30", "500", 30_000),
        ("1", "60000", 60_000),
        ("30", "1.5", 30_000),
        ("soon", "250", 250),
        ("Thu, 15 Jan 2026 12:00:30 GMT", "29500", 29_500),
        ("30", "100, 30200", 30_200),
    ] {
        let headers = response([(RETRY_AFTER, coarse), (RETRY_AFTER_MS, fine)]);
        let expected = Ok(Duration::from_millis(millis));
        assert_eq!(read(&headers), expected, "{coarse} {fine}");
    }
    let alone = response([(RETRY_AFTER_MS, "250")]);
    assert_eq!(read(&alone), Ok(Duration::from_millis(250)));
}

#[test]
fn r04_a_date_counts_from_the_servers_clock_ten_minutes_ahead() {
    let headers = response([
        (DATE, "Thu, 15 Jan 2026 12:10:00 GMT"),
        (RETRY_AFTER, "Thu, 15 Jan 2026 12:10:05 GMT"),
    ]);
    assert_eq!(read(&headers), Ok(seconds(5)));
}

#[test]
fn r04_a_date_from_a_cache_counts_from_the_local_clock() {
    let headers = response([
        (DATE, "Thu, 15 Jan 2026 11:50:00 GMT"),
        (http::header::AGE, "600"),
        (RETRY_AFTER, "Thu, 15 Jan 2026 12:00:05 GMT"),
    ]);
    assert_eq!(read(&headers), Ok(seconds(5)));
}

#[test]
fn r04_the_local_clock_keeps_its_fraction() {
    let headers = response([(RETRY_AFTER, "Thu, 15 Jan 2026 12:00:30 GMT")]);
    let now = noon() + Duration::from_millis(400);
    let asked = RetryAfter::from_headers(&headers, now).unwrap();

    assert_eq!(asked.delay(), Duration::from_millis(29_600));
    assert_eq!(asked.to_header_value(), "30");
}

#[test]
fn r04_a_wait_is_written_in_whole_seconds_and_never_as_zero() {
    for (wait, value) in [
        (Duration::ZERO, "0"),
        (Duration::from_nanos(1), "1"),
        (Duration::from_millis(999), "1"),
        (seconds(1), "1"),
        (Duration::from_millis(1_001), "2"),
        (Duration::MAX, "4294967295"),
    ] {
        let written = RetryAfter::from_wait(wait).to_header_value();
        assert_eq!(written, value, "{wait:?}");
    }
}

fn hostile_value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[0-9, .+-]{0,24}".prop_map(String::into_bytes),
        "(Thu|Thursday)[, ]{0,2}[0-9]{2}[ -]Jan[ -](20)?26 [0-9:]{8}( GMT)?,?[0-9]{0,3}"
            .prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn r04_no_field_and_no_clock_panics(
        lines in prop::collection::vec((0..5usize, hostile_value()), 0..6),
        now in any::<u64>(),
    ) {
        let names = [RETRY_AFTER, RETRY_AFTER_MS, DATE, http::header::AGE, HeaderName::from_static("x-cache")];
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(&names[name], value);
            }
        }
        let now = SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_millis(now))
            .unwrap_or(SystemTime::UNIX_EPOCH);
        if let Some(asked) = RetryAfter::from_headers(&headers, now) {
            prop_assert!(asked.delay() <= seconds(u32::MAX.into()));
        }
    }

    #[test]
    fn r04_what_is_written_is_read_back_within_a_second_and_never_shorter(
        secs in 0..u64::from(u32::MAX),
        nanos in 0..1_000_000_000u32,
    ) {
        let wait = Duration::new(secs, nanos);
        let value = RetryAfter::from_wait(wait).to_header_value();
        let read = read(&response([(RETRY_AFTER, value.to_str().unwrap())])).unwrap();

        prop_assert!(read >= wait);
        prop_assert!(read < wait + seconds(1));
    }

    #[test]
    fn r04_a_date_near_the_local_clock_is_never_too_early(
        offset in -2_000..=2_000i64,
        ask in 0..100_000u64,
    ) {
        let server = noon();
        let text = |time| httpdate::fmt_http_date(time);
        let headers = response([
            (DATE, &text(server)),
            (RETRY_AFTER, &text(server + seconds(ask))),
        ]);
        let millis = Duration::from_millis(offset.unsigned_abs());
        let now = if offset < 0 { server - millis } else { server + millis };
        let delay = RetryAfter::from_headers(&headers, now).unwrap().delay();

        // On neither clock does the client come back before the date.
        prop_assert!(server + delay >= server + seconds(ask));
        prop_assert!(now + delay >= server + seconds(ask));
    }
}
