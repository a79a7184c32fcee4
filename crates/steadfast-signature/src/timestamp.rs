use std::time::{Duration, SystemTime};

use crate::Reason;

/// What a timestamp counts.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TimeUnit {
    /// Microseconds since the Unix epoch.
    Micros,
    /// Milliseconds since the Unix epoch.
    Millis,
    /// `2026-01-15T12:00:00.000Z`, up to nine digits after the second, any offset (RFC 3339).
    Rfc3339,
    /// Seconds since the Unix epoch.
    Seconds,
}

const SECOND: Duration = Duration::from_secs(1);

impl TimeUnit {
    /// Reads a timestamp: digits and nothing else, no sign, no blank, no zero in front.
    ///
    /// The text itself is what is signed, never a number that was formatted again.
    pub(crate) fn read(self, text: &[u8]) -> Option<SystemTime> {
        if self == Self::Rfc3339 {
            return rfc3339(text);
        }
        if text.len() > 19 || (text.len() > 1 && text[0] == b'0') {
            return None;
        }
        let count = digits(text)?;
        let since_epoch = match self {
            Self::Micros => Duration::from_micros(count),
            Self::Millis => Duration::from_millis(count),
            Self::Rfc3339 | Self::Seconds => Duration::from_secs(count),
        };
        SystemTime::UNIX_EPOCH.checked_add(since_epoch)
    }

    /// Writes a timestamp, cut off to the unit. A time before the epoch becomes the epoch.
    pub(crate) fn write(self, at: SystemTime) -> String {
        let since_epoch = since_epoch(at);
        match self {
            Self::Micros => since_epoch.as_micros().to_string(),
            Self::Millis => since_epoch.as_millis().to_string(),
            Self::Rfc3339 => write_rfc3339(since_epoch),
            Self::Seconds => since_epoch.as_secs().to_string(),
        }
    }

    /// The next moment at which another text is written.
    pub(crate) fn next(self, at: SystemTime) -> SystemTime {
        let tick = match self {
            Self::Micros => Duration::from_micros(1),
            Self::Millis | Self::Rfc3339 => Duration::from_millis(1),
            Self::Seconds => SECOND,
        };
        let beyond = since_epoch(at).as_nanos() % tick.as_nanos();
        let beyond = u64::try_from(beyond).map_or(Duration::ZERO, Duration::from_nanos);
        at.checked_add(tick.saturating_sub(beyond)).unwrap_or(at)
    }
}

fn since_epoch(at: SystemTime) -> Duration {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    text.iter().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

/// `YYYY-MM-DDThh:mm:ss`, a fraction of one to nine digits or none, `Z` or an offset.
fn rfc3339(text: &[u8]) -> Option<SystemTime> {
    let (date_time, rest) = text.split_at_checked(19)?;
    let number = |range: std::ops::Range<usize>| digits(&date_time[range]);
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators.iter().any(|&(at, byte)| date_time[at] != byte) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u64::from(leap),
        _ => return None,
    };
    if year < 1970 || !(1..=days_in_month).contains(&day) || hour > 23 || minute > 59 || second > 59
    {
        return None;
    }
    let (nanos, offset) = fraction(rest)?;
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let seconds = seconds.checked_add_signed(offset_seconds(offset)?.checked_neg()?)?;
    let nanos = Duration::from_nanos(nanos);
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds).checked_add(nanos)?)
}

/// The fraction of a second in nanoseconds, and what follows it.
fn fraction(text: &[u8]) -> Option<(u64, &[u8])> {
    let Some(fraction) = text.strip_prefix(b".") else {
        return Some((0, text));
    };
    let len = fraction
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if len > 9 {
        return None;
    }
    let scale = u64::pow(10, u32::try_from(9 - len).ok()?);
    Some((digits(&fraction[..len])? * scale, &fraction[len..]))
}

fn offset_seconds(text: &[u8]) -> Option<i64> {
    if text == b"Z" {
        return Some(0);
    }
    let (sign, text) = match text.split_first()? {
        (b'+', text) => (1, text),
        (b'-', text) => (-1, text),
        _ => return None,
    };
    if text.len() != 5 || text[2] != b':' {
        return None;
    }
    let (hours, minutes) = (digits(&text[..2])?, digits(&text[3..])?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    Some(sign * i64::try_from(hours * 3600 + minutes * 60).ok()?)
}

/// Days from 1970-01-01 to a date that is not before it.
fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March here, so that the leap day is the last day of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let days = year * 365 + year / 4 - year / 100 + year / 400;
    days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

fn write_rfc3339(since_epoch: Duration) -> String {
    let days = since_epoch.as_secs() / 86_400 + 719_468;
    let of_day = since_epoch.as_secs() % 86_400;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let millis = since_epoch.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// When something was signed, and how far that may be from now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Window {
    signed_at: SystemTime,
    tolerance: Tolerance,
}

/// How far a timestamp may be from now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Tolerance {
    /// How old it may be.
    pub past: Duration,
    /// How far ahead the sender's clock may be.
    pub future: Duration,
}

impl Tolerance {
    /// `past` and `future`, each inclusive.
    #[must_use]
    pub const fn new(past: Duration, future: Duration) -> Self {
        Self { past, future }
    }

    /// The same in both directions.
    #[must_use]
    pub const fn both(tolerance: Duration) -> Self {
        Self::new(tolerance, tolerance)
    }
}

impl Window {
    /// Signed at `signed_at`.
    #[must_use]
    pub const fn new(signed_at: SystemTime, tolerance: Tolerance) -> Self {
        Self {
            signed_at,
            tolerance,
        }
    }

    /// The timestamp.
    #[must_use]
    pub const fn signed_at(&self) -> SystemTime {
        self.signed_at
    }

    /// The last moment at which it counts.
    ///
    /// A time that cannot be told is the last one that can: a sum never wraps into the past.
    #[must_use]
    pub fn until(&self) -> SystemTime {
        let until = self.signed_at.checked_add(self.tolerance.past);
        until.unwrap_or(self.signed_at)
    }

    /// Judges it.
    ///
    /// # Errors
    ///
    /// [`Reason::Stale`] or [`Reason::Early`].
    pub fn judge(&self, now: SystemTime) -> Result<(), Reason> {
        match now.duration_since(self.signed_at) {
            Ok(age) if age > self.tolerance.past => Err(Reason::Stale),
            Err(ahead) if ahead.duration() > self.tolerance.future => Err(Reason::Early),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UNITS: [TimeUnit; 4] = [
        TimeUnit::Micros,
        TimeUnit::Millis,
        TimeUnit::Rfc3339,
        TimeUnit::Seconds,
    ];

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn pitfalls_9_10_11_only_plain_digits_are_a_timestamp() {
        for bad in [
            "",
            " 1",
            "1 ",
            "+1",
            "-1",
            "01",
            "1.0",
            "1e3",
            "0x539",
            "1_7",
            "abc",
            "NaN",
            "١",
            "-9223372036854775808",
            "99999999999999999999",
            "123junk",
            "\u{ff11}",
        ] {
            for unit in [TimeUnit::Micros, TimeUnit::Millis, TimeUnit::Seconds] {
                assert_eq!(unit.read(bad.as_bytes()), None, "{bad}");
            }
        }
        assert_eq!(TimeUnit::Seconds.read(b"0"), Some(at(0)));
        assert_eq!(
            TimeUnit::Seconds.read(b"1700000000"),
            Some(at(1_700_000_000))
        );
        assert_eq!(
            TimeUnit::Millis.read(b"1700000000000"),
            Some(at(1_700_000_000))
        );
        assert_eq!(
            TimeUnit::Micros.read(b"1700000000000000"),
            Some(at(1_700_000_000))
        );
        // More than a clock can hold, or centuries ahead: never a panic.
        let _: Option<SystemTime> = TimeUnit::Seconds.read(b"9999999999999999999");
    }

    #[test]
    fn an_rfc_3339_time_has_its_offset_and_its_fraction() {
        let read = |text: &str| TimeUnit::Rfc3339.read(text.as_bytes());
        let leap = at(1_709_164_800);
        assert_eq!(read("2024-02-29T00:00:00Z"), Some(leap));
        assert_eq!(read("2024-02-29T02:30:00+02:30"), Some(leap));
        assert_eq!(read("2024-02-28T23:00:00-01:00"), Some(leap));
        assert_eq!(
            read("2024-02-29T00:00:00.25Z"),
            Some(leap + Duration::from_millis(250))
        );
        for bad in [
            "2024-02-29",
            "2023-02-29T00:00:00Z",
            "2024-02-29T00:00:00",
            "2024-02-29t00:00:00Z",
            "2024-02-29T00:00:00z",
            "2024-02-29T24:00:00Z",
            "2024-02-29T00:00:60Z",
            "2024-02-29T00:00:00.Z",
            "2024-02-29T00:00:00.1234567890Z",
            "2024-02-29 00:00:00Z",
            "2024-02-29T00:00:00+2:30",
            "2024-13-01T00:00:00Z",
            "2024-00-01T00:00:00Z",
            "1969-12-31T00:00:00Z",
            "+024-02-29T00:00:00Z",
            "1970-01-01T00:00:00+00:01",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn pitfall_13_the_edges_of_a_window_are_inside() {
        let window = Window::new(at(1000), Tolerance::new(SECOND * 300, SECOND * 5));
        assert_eq!(window.judge(at(1300)), Ok(()));
        assert_eq!(window.judge(at(1301)), Err(Reason::Stale));
        assert_eq!(
            window.judge(at(1300) + Duration::from_nanos(1)),
            Err(Reason::Stale)
        );
        assert_eq!(window.judge(at(995)), Ok(()));
        assert_eq!(window.judge(at(994)), Err(Reason::Early));
        assert_eq!(window.until(), at(1300));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(micros in 0_u64..=4_102_444_800_000_000) {
            let at = SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
            for unit in UNITS {
                let read = unit.read(unit.write(at).as_bytes()).unwrap();
                prop_assert!(read <= at && at < unit.next(read));
                prop_assert_ne!(unit.write(unit.next(at)), unit.write(at));
            }
        }

        #[test]
        fn no_text_panics(text: Vec<u8>) {
            for unit in UNITS {
                if let Some(at) = unit.read(&text) {
                    let window = Window::new(at, Tolerance::both(Duration::MAX));
                    let _: SystemTime = window.until();
                }
            }
        }

        #[test]
        fn no_text_like_a_time_panics(text in "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.]?[0-9]{0,10}(Z|[+-][0-9:]{5})?") {
            let _: Option<SystemTime> = TimeUnit::Rfc3339.read(text.as_bytes());
        }
    }
}
