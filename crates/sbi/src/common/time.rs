//! Date and time (TS 29.571 `DateTime`, RFC 3339), without a clock.

use crate::record::serde_as_text;
use std::fmt;
use std::str::FromStr;

/// A point in time with a resolution of a millisecond; in JSON an RFC 3339 text in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DateTime {
    unix_ms: i64,
}

serde_as_text!(DateTime);

/// A text is not a date and time of RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a date and time such as 2026-01-31T12:00:00Z")]
pub struct DateTimeError;

const DAY_MS: i64 = 86_400_000;

impl DateTime {
    /// The time in milliseconds since 1970-01-01T00:00:00Z.
    pub const fn from_unix_ms(unix_ms: i64) -> Self {
        Self { unix_ms }
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn unix_ms(self) -> i64 {
        self.unix_ms
    }

    /// Days from 1970-01-01 to a Gregorian date. The month is 1 to 12; days beyond its last one count on in the next month.
    pub const fn days(year: i64, month: i64, day: i64) -> i64 {
        // Years start in March.
        let year = if month <= 2 { year - 1 } else { year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
    }

    /// The date (year, month, day) of a number of days since 1970-01-01: the inverse of [`DateTime::days`].
    pub fn civil(days: i64) -> (i64, i64, i64) {
        let days = days + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = Self::civil(self.unix_ms.div_euclid(DAY_MS));
        let ms = self.unix_ms.rem_euclid(DAY_MS);
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        match ms % 1000 {
            0 => f.write_str("Z"),
            fraction => write!(f, ".{fraction:03}Z"),
        }
    }
}

impl FromStr for DateTime {
    type Err = DateTimeError;
    fn from_str(text: &str) -> Result<Self, DateTimeError> {
        parse(text).ok_or(DateTimeError)
    }
}

fn parse(text: &str) -> Option<DateTime> {
    let (date, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (time, rest) = rest.split_at_checked(8)?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_date = DateTime::civil(DateTime::days(year, month, day)) == (year, month, day);
    let valid = (1..=12).contains(&month) && is_date && hour < 24 && minute < 60;
    if !valid || second > 60 {
        return None;
    }
    let (fraction_ms, offset) = fraction(rest)?;
    let seconds = hour * 3600 + minute * 60 + second - offset_minutes(offset)? * 60;
    let unix_ms = DateTime::days(year, month, day) * DAY_MS + seconds * 1000 + fraction_ms;
    // An offset or a leap second can move a time out of the years 0000 to 9999, which cannot be written.
    let years = DateTime::days(0, 1, 1) * DAY_MS..DateTime::days(10_000, 1, 1) * DAY_MS;
    years.contains(&unix_ms).then_some(DateTime { unix_ms })
}

/// Milliseconds of `.123…`, and the remaining text.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(text) = text.strip_prefix('.') else {
        return Some((0, text));
    };
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, offset) = text.split_at(end);
    let scaled = digits.bytes().chain("000".bytes()).take(3);
    let ms = scaled.fold(0, |ms, digit| ms * 10 + i64::from(digit - b'0'));
    (!digits.is_empty()).then_some((ms, offset))
}

fn offset_minutes(text: &str) -> Option<i64> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(0),
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let [hours, minutes] = numbers(rest, ':', [2, 2])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// Numbers with these digits each, separated by `separator`, and nothing else.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(separator);
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|p| p.len() == digits && p.bytes().all(|b| b.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_rfc_3339_round_trips_in_utc() {
        for (text, unix_ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2024-02-29T23:59:59Z", 1_709_251_199_000),
            ("2026-01-31T12:00:00.250Z", 1_769_860_800_250),
            ("1969-12-31T23:59:59Z", -1000),
        ] {
            assert_eq!(text.parse(), Ok(DateTime { unix_ms }), "{text}");
            assert_eq!(DateTime { unix_ms }.to_string(), text);
        }
        let east: DateTime = "1985-04-12T23:20:50.52+01:30".parse().unwrap();
        assert_eq!(east.to_string(), "1985-04-12T21:50:50.520Z");
    }

    #[test]
    fn dates_and_days_are_inverse() {
        for (date, days) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2026, 3, 1), 20_513),
            ((-1, 12, 31), -719_529),
        ] {
            assert_eq!(DateTime::days(date.0, date.1, date.2), days, "{date:?}");
            assert_eq!(DateTime::civil(days), date, "{days}");
        }
        assert_eq!(DateTime::civil(DateTime::days(2026, 2, 29)), (2026, 3, 1));
    }

    #[test]
    fn invalid_dates_and_times_are_refused() {
        for bad in [
            "",
            "2026-01-31",
            "2026-13-01T00:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T12:00:00",
            "2026-01-31T12:00:00.Z",
            "2026-01-31T12:00:00+1",
            "2026-01-31T12:00:00-4370816125815110:00",
            "2026-1-031T12:00:00Z",
            "2026-02-29T12:00:00Z",
            "9999-12-31T23:59:60Z",
            "0000-01-01T00:00:00+00:01",
            "2026-01-+1T12:00:00Z",
            "2026-01-31T12:00:00é",
        ] {
            assert_eq!(bad.parse::<DateTime>(), Err(DateTimeError), "{bad}");
        }
    }
}
