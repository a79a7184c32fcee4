//! HTTP-dates (RFC 9110, section 5.6.7) in all three grammars.
//!
//! `httpdate` reads them, and refuses a wrong weekday and a 60th second. Only
//! the two-digit year is ours: `httpdate` takes 70 to 99 for the 1900s whatever
//! the time is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads a date; `now` decides the century of a two-digit year.
///
/// Years before 1970 are refused.
pub(crate) fn parse(text: &str, now: SystemTime) -> Option<SystemTime> {
    if let Some((day_name, rest)) = text.split_once(", ")
        && let Some(day_name) = short_day_name(day_name)
    {
        return httpdate::parse_http_date(&with_century(day_name, rest, now)?).ok();
    }
    httpdate::parse_http_date(text).ok()
}

/// Says whether a comma behind `text` belongs to a date and separates nothing.
pub(crate) fn is_day_name(text: &str) -> bool {
    DAYS.iter()
        .any(|day| *day == text || day.get(..3) == Some(text))
}

const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

fn short_day_name(long: &str) -> Option<&str> {
    DAYS.contains(&long).then(|| long.get(..3)).flatten()
}

/// Rewrites `15-Jan-26 12:00:30 GMT` as an IMF-fixdate.
fn with_century(day_name: &str, rest: &str, now: SystemTime) -> Option<String> {
    let (date, time) = rest.split_once(' ')?;
    let time = time.strip_suffix(" GMT")?;
    let mut parts = date.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 2 || !year.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let year = full_year(year.parse().ok()?, month, day, time, now)?;
    Some(format!("{day_name}, {day} {month} {year:04} {time} GMT"))
}

/// The latest year with these two digits that is not more than 50 years ahead.
fn full_year(two_digits: u16, month: &str, day: &str, time: &str, now: SystemTime) -> Option<u16> {
    let now = imf_fixdate(now);
    let this_year: u16 = now.get(12..16)?.parse().ok()?;
    let month_of = |name| MONTHS.iter().position(|month| *month == name);
    // Compared field by field: fifty years are not a fixed number of days.
    let limit = (
        this_year.saturating_add(50),
        month_of(now.get(8..11)?)?,
        now.get(5..7)?,
        now.get(17..25)?,
    );

    let month = month_of(month)?;
    let century = this_year.saturating_sub(this_year.checked_rem(100)?);
    let next_century = century.checked_add(100)?.checked_add(two_digits)?;
    (0..=2u16)
        .filter_map(|back| next_century.checked_sub(back.saturating_mul(100)))
        .find(|year| (*year, month, day, time) <= limit)
}

/// `httpdate` panics outside 1970 to 9999, so the time is clamped to that.
fn imf_fixdate(time: SystemTime) -> String {
    const LAST_SECOND: Duration = Duration::from_secs(253_402_300_799);

    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let clamped = UNIX_EPOCH.checked_add(since_epoch.min(LAST_SECOND));
    httpdate::fmt_http_date(clamped.unwrap_or(UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Thu, 15 Jan 2026 12:00:00 GMT.
    fn now() -> SystemTime {
        at(1_768_478_400)
    }

    #[test]
    fn r04_all_three_grammars_are_read() {
        for text in [
            "Thu, 15 Jan 2026 12:00:30 GMT",
            "Thursday, 15-Jan-26 12:00:30 GMT",
            "Thu Jan 15 12:00:30 2026",
        ] {
            assert_eq!(parse(text, now()), Some(at(1_768_478_430)), "{text}");
        }
        assert_eq!(
            parse("Mon Jan  5 12:00:30 2026", now()),
            Some(at(1_767_614_430))
        );
    }

    #[test]
    fn r04_what_is_not_a_date_is_refused() {
        for text in [
            "",
            "Fri, 15 Jan 2026 12:00:30 GMT",
            "Friday, 15-Jan-26 12:00:30 GMT",
            "Fri Jan 15 12:00:30 2026",
            "Thu, 15 Jan 2026 12:00:60 GMT",
            "Thursday, 15-Jan-26 12:00:60 GMT",
            "Thu, 15 Jan 2026 24:00:00 GMT",
            "Thu, 15 Jan 2026 12:00:30 UTC",
            "Thu, 15 Jan 2026 12:00:30",
            "Thu, 15 Jan 2026 12:00:30 +0000",
            "thu, 15 jan 2026 12:00:30 gmt",
            "Thu, 5 Jan 2026 12:00:30 GMT",
            "Thu, 99 Foo 2026 12:00:00 GMT",
            "Mon, 30 Feb 2026 12:00:00 GMT",
            "Sun, 29 Feb 2026 12:00:00 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Thursday, 15-Jan-2026 12:00:30 GMT",
            "Thursday, 15-Jan-026 12:00:30 GMT",
            "Sunday, 15-Jan-6 12:00:30 GMT",
            "Sunday, 15-Jan-+6 12:00:30 GMT",
            "Thursday, 15-Jan-26-26 12:00:30 GMT",
            "Thursday, 15-Foo-26 12:00:30 GMT",
            "Thursday, 5-Jan-26 12:00:30 GMT",
            "Thursday, 15-Jan-26 12:00:30",
            "Thursday, 15-Jan-26",
            "Thursday, ",
            "Thu, 15-Jan-26 12:00:30 GMT",
            "2026-01-15T12:00:30Z",
        ] {
            assert_eq!(parse(text, now()), None, "{text}");
        }
    }

    #[test]
    fn r04_a_two_digit_year_is_never_more_than_fifty_years_ahead() {
        // Both weekdays are given, only the one of the right century is a date.
        for (text, year) in [
            ("Wednesday, 15-Jan-75 12:00:00 GMT", None), // 1975
            ("Tuesday, 15-Jan-75 12:00:00 GMT", Some(2075)),
            ("Wednesday, 15-Jan-76 12:00:00 GMT", Some(2076)),
            ("Thursday, 15-Jan-76 12:00:01 GMT", Some(1976)),
            ("Friday, 16-Jan-76 12:00:00 GMT", Some(1976)),
            ("Wednesday, 05-Feb-76 12:00:00 GMT", None), // 2076
            ("Thursday, 05-Feb-76 12:00:00 GMT", Some(1976)),
            ("Saturday, 15-Jan-77 12:00:00 GMT", Some(1977)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(1994)),
        ] {
            let read = parse(text, now()).map(|date| imf_fixdate(date)[12..16].parse().unwrap());
            assert_eq!(read, year, "{text}");
        }
    }

    #[test]
    fn r04_a_two_digit_year_follows_the_clock_through_the_centuries() {
        let year_1999 = at(946_684_799);
        let read = |text, now| parse(text, now).map(imf_fixdate);

        let soon = read("Saturday, 01-Jan-00 00:00:00 GMT", year_1999);
        assert_eq!(soon.as_deref(), Some("Sat, 01 Jan 2000 00:00:00 GMT"));

        let year_2099 = at(4_102_444_799);
        let soon = read("Friday, 01-Jan-00 00:00:00 GMT", year_2099);
        assert_eq!(soon.as_deref(), Some("Fri, 01 Jan 2100 00:00:00 GMT"));
    }

    #[test]
    fn r04_no_clock_makes_a_date_panic() {
        let before = UNIX_EPOCH - Duration::from_secs(1);
        let after = at(300_000_000_000);
        for now in [before, after] {
            let _ = parse("Thursday, 15-Jan-26 12:00:30 GMT", now);
        }
        assert_eq!(imf_fixdate(before), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(imf_fixdate(after), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn only_whole_day_names_announce_a_date() {
        for name in ["Mon", "Sun", "Monday", "Wednesday"] {
            assert!(is_day_name(name), "{name}");
        }
        for other in ["", "M", "Mond", "mon", "Foo", "5", "Mon "] {
            assert!(!is_day_name(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn r04_each_grammar_reads_what_it_wrote(
            seconds in 0..253_402_300_800u64,
            ahead in -1_500_000_000..1_500_000_000i64,
        ) {
            let date = at(seconds);
            let text = imf_fixdate(date);
            prop_assert_eq!(parse(&text, now()), Some(date));

            let field = |range: std::ops::Range<usize>| &text[range];
            let (day, month, year, time) = (field(5..7), field(8..11), field(12..16), field(17..25));
            let day_name = DAYS.iter().find(|name| name.starts_with(field(0..3))).unwrap();
            let asctime = format!("{} {month} {day} {time} {year}", field(0..3));
            prop_assert_eq!(parse(&asctime, now()), Some(date));

            // Less than 50 years on either side of now, any century reads back.
            let rfc850 = format!("{day_name}, {day}-{month}-{} {time} GMT", &year[2..]);
            if let Some(near) = seconds.checked_add_signed(ahead) {
                prop_assert_eq!(parse(&rfc850, at(near)), Some(date));
            }
        }

        #[test]
        fn r04_no_text_panics(text in "(Thursday, |Thu, |.{0,8})[0-9A-Za-z: -]{0,30}", now in any::<u32>()) {
            let _ = parse(&text, at(now.into()));
        }
    }
}
