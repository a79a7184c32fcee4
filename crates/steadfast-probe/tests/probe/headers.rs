use serde_json::{Value, json};

use crate::kit::Lines;

/// Thu, 15 Jan 2026 12:00:00 GMT.
const NOW_MS: u64 = 1_768_478_400_000;

fn line(headers: &[(&str, &str)], now_ms: u64) -> String {
    json!({"headers": headers, "now_ms": now_ms, "dialect": "auto"}).to_string()
}

fn retry_after(value: &str) -> String {
    let date = ("Date", "Thu, 15 Jan 2026 12:00:00 GMT");
    line(&[date, ("Retry-After", value)], NOW_MS)
}

/// What is read from each value of `Retry-After`.
fn read(values: &[&str]) -> Vec<Value> {
    let input: Vec<_> = values.iter().map(|value| retry_after(value)).collect();
    let lines = Lines::of(&["headers"], &input).good();
    assert_eq!(lines.len(), values.len());
    lines
        .into_iter()
        .map(|mut line| {
            assert_eq!(line["policies"], json!([]));
            assert_eq!(line.as_object().expect("an object").len(), 2);
            line["retry_after_ms"].take()
        })
        .collect()
}

#[test]
fn r04_seconds_and_the_three_forms_of_a_date_are_read() {
    let values = [
        "30",
        "00005",
        "0",
        "60",
        "Thu, 15 Jan 2026 12:00:30 GMT",
        "Thursday, 15-Jan-26 12:00:30 GMT",
        "Thu Jan 15 12:00:30 2026",
        "Thu, 15 Jan 2026 11:59:55 GMT",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "Thu, 15 Jan 2026 12:01:01 GMT",
    ];
    let expected = [
        30_000, 5_000, 0, 60_000, 30_000, 30_000, 30_000, 0, 0, 61_000,
    ];
    assert_eq!(read(&values), expected.map(Value::from));
}

#[test]
fn r04_hostile_values_count_as_absent() {
    let values = [
        "-3",
        "1.5",
        "+5",
        "5s",
        "0x10",
        "NaN",
        "Infinity",
        "1e3",
        "",
        "abc",
        "caf\u{e9}",
        "\u{ff11}",
        "Thu, 99 Foo 2026 12:00:00 GMT",
        "Fri, 15 Jan 2026 12:00:30 GMT",
        "Thu, 15 Jan 2026 12:00:60 GMT",
        "2026-01-15T12:00:30Z",
        "30\u{0}",
        "30\r\nX: y",
        "\u{7f}30",
    ];
    assert_eq!(read(&values), vec![Value::Null; values.len()]);
}

#[test]
fn r06_what_is_too_long_stays_too_long() {
    const LONGEST_MS: u64 = 4_294_967_295_000;
    let nines = "9".repeat(23);
    let values = ["9999999999", "9223372037", &nines, "1768478430"];
    let expected = [LONGEST_MS, LONGEST_MS, LONGEST_MS, 1_768_478_430_000];
    assert_eq!(read(&values), expected.map(Value::from));
}

#[test]
fn r04_several_values_are_the_longest_valid_one() {
    let two = |a, b| line(&[("Retry-After", a), ("retry-after", b)], NOW_MS);
    let lines = Lines::of(
        &["headers"],
        &[
            two("5", "5"),
            two("5", "10"),
            two("5", "soon"),
            line(&[("Retry-After", "5, 10")], NOW_MS),
            line(
                &[("Retry-After", "5, Thu, 15 Jan 2026 12:00:30 GMT")],
                NOW_MS,
            ),
        ],
    );
    let read: Vec<_> = lines.good().iter().map(ms).collect();
    assert_eq!(
        read,
        [5_000, 10_000, 5_000, 10_000, 30_000].map(Value::from)
    );
}

#[test]
fn r04_milliseconds_are_the_finer_word_or_the_longer() {
    let both = |s, ms| line(&[("Retry-After", s), ("retry-after-ms", ms)], NOW_MS);
    let lines = Lines::of(
        &["headers"],
        &[
            both("2", "1500"),
            both("2", "20000"),
            both("30", "1500"),
            line(&[("retry-after-ms", "250")], NOW_MS),
        ],
    );
    let read: Vec<_> = lines.good().iter().map(ms).collect();
    assert_eq!(read, [1_500, 20_000, 30_000, 250].map(Value::from));
}

#[test]
fn r04_a_date_counts_on_the_clock_of_the_server() {
    let until = ("Retry-After", "Thu, 15 Jan 2026 12:10:05 GMT");
    let date = ("Date", "Thu, 15 Jan 2026 12:10:00 GMT");
    let lines = Lines::of(
        &["headers"],
        &[
            line(&[until, date], NOW_MS),
            // Without a clock of the server's, and with half a millisecond less than a whole number of seconds.
            line(&[until], NOW_MS + 1),
        ],
    );
    let read: Vec<_> = lines.good().iter().map(ms).collect();
    assert_eq!(read, [5_000, 604_999].map(Value::from));
}

#[test]
fn headers_that_no_message_can_carry_count_as_absent() {
    let lines = Lines::of(
        &["headers"],
        &[
            line(
                &[("Retry After", "5"), ("", "5"), ("Retry-After", "7")],
                NOW_MS,
            ),
            line(&[], 0),
            line(&[("Retry-After", "7")], u64::MAX),
        ],
    );
    let read: Vec<_> = lines.good().iter().map(ms).collect();
    assert_eq!(read, [json!(7_000), Value::Null, json!(7_000)]);
}

#[test]
fn more_headers_than_any_message_has_do_no_harm() {
    let many: Vec<_> = (0..70_000).map(|n| (format!("x-{n}"), "1")).collect();
    let line = json!({"headers": many, "now_ms": NOW_MS, "dialect": "auto"}).to_string();
    let lines = Lines::of(&["headers"], &[line, retry_after("3")]).good();
    assert_eq!(ms(&lines[0]), Value::Null);
    assert_eq!(ms(&lines[1]), 3_000);
}

#[test]
fn a_bad_line_is_answered_with_an_error_and_the_next_one_is_read() {
    let input = [
        "{".to_owned(),
        json!({"headers": [], "now_ms": 0, "dialect": "auto", "more": 1}).to_string(),
        json!({"headers": [["a"]], "now_ms": 0}).to_string(),
        json!({"headers": [], "now_ms": -1}).to_string(),
        retry_after("1"),
    ];
    let Lines { lines, code } = Lines::of(&["headers"], &input);
    assert_eq!(code, Some(2));
    assert_eq!(lines.len(), 5);
    assert!(lines[..4].iter().all(|line| line["error"].is_string()));
    assert_eq!(ms(&lines[4]), 1_000);
}

fn ms(line: &Value) -> Value {
    line["retry_after_ms"].clone()
}
