//! The network's local time zone, as a POSIX TZ string such as `CET-1CEST,M3.5.0,M10.5.0/3` (IEEE Std 1003.1, 8.3): it has the rules of daylight
//! saving time, so that no database of time zones is needed.

use pith_nas::ie::{DaylightSavingTime, TimeZone, UniversalTime};
use pith_sbi::common::DateTime;
use std::str::FromStr;

/// Offsets of local time, and when they change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    /// Seconds of standard time east of UTC.
    standard: i64,
    daylight_saving: Option<DaylightSaving>,
}

/// Daylight saving time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DaylightSaving {
    /// Seconds east of UTC.
    offset: i64,
    begin: Change,
    end: Change,
}

/// A day of each year, and a time of that day: `Mm.w.d/time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    month: i64,
    /// Week of the month, 1 to 5: 5 is the last one with that day.
    week: i64,
    /// 0 is Sunday.
    weekday: i64,
    /// Seconds after midnight, local time before the change.
    time: i64,
}

const DAY: i64 = 86_400;

/// A text is no POSIX TZ string that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a POSIX TZ string such as UTC0, IST-5:30 or CET-1CEST,M3.5.0,M10.5.0/3")]
pub struct LocalTimeError;

/// The offset in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    /// Of local time, in quarters of an hour, daylight saving included.
    pub zone: TimeZone,
    pub daylight_saving: DaylightSavingTime,
}

impl LocalTime {
    /// The offset at that time.
    pub(crate) fn at(&self, now: DateTime) -> Offset {
        let now = now.unix_ms().div_euclid(1000);
        let daylight = self.daylight_saving.filter(|it| it.is_in_force(now, self.standard));
        let offset = daylight.map_or(self.standard, |it| it.offset);
        let zone = TimeZone { quarters: (offset / 900) as i8 };
        let daylight_saving = match offset - self.standard {
            ..=0 => DaylightSavingTime::None,
            1..=3_600 => DaylightSavingTime::OneHour,
            _ => DaylightSavingTime::TwoHours,
        };
        Offset { zone, daylight_saving }
    }
}

impl Offset {
    /// Universal time and local time zone (TS 24.008 10.5.3.9).
    pub fn universal_time(&self, now: DateTime) -> UniversalTime {
        let seconds = now.unix_ms().div_euclid(1000);
        let (year, month, day) = DateTime::civil(seconds.div_euclid(DAY));
        let of_day = seconds.rem_euclid(DAY);
        UniversalTime {
            year: year.rem_euclid(100) as u8,
            month: month as u8,
            day: day as u8,
            hour: (of_day / 3_600) as u8,
            minute: (of_day / 60 % 60) as u8,
            second: (of_day % 60) as u8,
            zone: self.zone,
        }
    }

    /// As other NFs get it (TS 29.571 `TimeZone`).
    pub fn text(&self) -> String {
        let quarters = i32::from(self.zone.quarters);
        let sign = if quarters < 0 { '-' } else { '+' };
        let minutes = quarters.abs() * 15;
        let daylight_saving = match self.daylight_saving {
            DaylightSavingTime::OneHour => "+1",
            DaylightSavingTime::TwoHours => "+2",
            DaylightSavingTime::None | DaylightSavingTime::Other(_) => "",
        };
        format!("{sign}{:02}:{:02}{daylight_saving}", minutes / 60, minutes % 60)
    }
}

impl DaylightSaving {
    fn is_in_force(&self, now: i64, standard: i64) -> bool {
        let (year, ..) = DateTime::civil((now + standard).div_euclid(DAY));
        let begin = self.begin.in_year(year) - standard;
        let end = self.end.in_year(year) - self.offset;
        if begin < end {
            (begin..end).contains(&now)
        } else {
            // The southern summer lasts over the turn of the year.
            !(end..begin).contains(&now)
        }
    }
}

impl Change {
    /// Seconds from 1970-01-01 to the change, both in local time.
    fn in_year(&self, year: i64) -> i64 {
        let first = DateTime::days(year, self.month, 1);
        // 1970-01-01 was a Thursday.
        let begin = first + (self.weekday - (first + 4)).rem_euclid(7);
        let day = begin + 7 * (self.week - 1);
        // A month with four such days has no fifth one.
        let is_in_month = DateTime::civil(day).1 == self.month;
        let day = if is_in_month { day } else { day - 7 };
        day * DAY + self.time
    }
}

impl FromStr for LocalTime {
    type Err = LocalTimeError;

    fn from_str(text: &str) -> Result<Self, LocalTimeError> {
        parse(text).ok_or(LocalTimeError)
    }
}

fn parse(text: &str) -> Option<LocalTime> {
    let (zone, changes) = text.split_once(',').map_or((text, None), |(zone, rest)| (zone, Some(rest)));
    let (standard, rest) = offset(name(zone)?)?;
    // An offset counts the hours west of UTC.
    let standard = -standard;
    let daylight_saving = match (rest, changes) {
        ("", None) => None,
        (rest, Some(changes)) if !rest.is_empty() => {
            let after_name = name(rest)?;
            let offset = match after_name {
                "" => standard + 3_600,
                text => -offset(text).filter(|(_, rest)| rest.is_empty())?.0,
            };
            let (begin, end) = changes.split_once(',')?;
            Some(DaylightSaving { offset, begin: change(begin)?, end: change(end)? })
        }
        _ => return None,
    };
    let (standard, daylight_saving) = summer_is_daylight_saving(standard, daylight_saving);
    let offsets = [Some(standard), daylight_saving.map(|it| it.offset)];
    // A quarter of an hour is the unit of network time, which has two digits of them.
    let is_right = |offset: i64| offset % 900 == 0 && offset.abs() <= 79 * 900;
    let is_later = daylight_saving.is_none_or(|it| (1..=7_200).contains(&(it.offset - standard)));
    let are_right = offsets.into_iter().flatten().all(is_right) && is_later;
    are_right.then_some(LocalTime { standard, daylight_saving })
}

/// Ireland's standard time is that of the summer, and its other time is earlier: daylight saving time as 3GPP has it is the later one.
const fn summer_is_daylight_saving(
    standard: i64,
    other: Option<DaylightSaving>,
) -> (i64, Option<DaylightSaving>) {
    match other {
        Some(other) if other.offset < standard => {
            let summer = DaylightSaving { offset: standard, begin: other.end, end: other.begin };
            (other.offset, Some(summer))
        }
        _ => (standard, other),
    }
}

/// What follows the name of a time zone: letters, or any text in `<>`.
fn name(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('<') {
        let (name, rest) = quoted.split_once('>')?;
        return (name.len() >= 3).then_some(rest);
    }
    let rest = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    (text.len() - rest.len() >= 3).then_some(rest)
}

/// `[+-]hh[:mm[:ss]]` in seconds, and what follows.
fn offset(text: &str) -> Option<(i64, &str)> {
    let (sign, text) = match text.split_at_checked(1)? {
        ("-", rest) => (-1, rest),
        ("+", rest) => (1, rest),
        _ => (1, text),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(text.len());
    let (time, rest) = text.split_at(end);
    let mut seconds = 0;
    let mut parts = time.split(':');
    for unit in [3_600, 60, 1] {
        let Some(part) = parts.next() else { break };
        let number: i64 = part.parse().ok()?;
        let most = if unit == 3_600 { 167 } else { 59 };
        seconds += unit * Some(number).filter(|number| *number <= most && part.len() <= 3)?;
    }
    parts.next().is_none().then_some((sign * seconds, rest))
}

/// `Mm.w.d[/time]`; the time is 02:00 by default.
fn change(text: &str) -> Option<Change> {
    let (day, time) = text.split_once('/').map_or((text, None), |(day, time)| (day, Some(time)));
    let time = match time {
        None => 2 * 3_600,
        Some(time) => offset(time).filter(|(_, rest)| rest.is_empty())?.0,
    };
    let mut numbers = day.strip_prefix('M')?.split('.').map(|number| number.parse::<i64>().ok());
    let (month, week, weekday) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_day = (1..=12).contains(&month) && (1..=5).contains(&week) && (0..=6).contains(&weekday);
    (is_day && numbers.next().is_none()).then_some(Change { month, week, weekday, time })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_nas::GmmMessage;
    use pith_nas::gmm::ConfigurationUpdateCommand;

    fn at(zone: &str, time: &str) -> String {
        let zone: LocalTime = zone.parse().unwrap();
        zone.at(time.parse().unwrap()).text()
    }

    #[test]
    fn daylight_saving_time_begins_and_ends_on_its_days() {
        let berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
        for (time, offset) in [
            ("2026-01-01T00:00:00Z", "+01:00"),
            ("2026-03-29T00:59:59Z", "+01:00"),
            ("2026-03-29T01:00:00Z", "+02:00+1"),
            ("2026-10-25T00:59:59Z", "+02:00+1"),
            ("2026-10-25T01:00:00Z", "+01:00"),
            ("2027-03-28T01:00:00Z", "+02:00+1"),
        ] {
            assert_eq!(at(berlin, time), offset, "{time}");
        }
        let dublin = "IST-1GMT0,M10.5.0,M3.5.0/1";
        for (time, offset) in [
            ("2026-01-01T00:00:00Z", "+00:00"),
            ("2026-03-29T00:59:59Z", "+00:00"),
            ("2026-03-29T01:00:00Z", "+01:00+1"),
            ("2026-10-25T00:59:59Z", "+01:00+1"),
            ("2026-10-25T01:00:00Z", "+00:00"),
        ] {
            assert_eq!(at(dublin, time), offset, "{time}");
        }
        // The first Sundays of October and April.
        let sydney = "AEST-10AEDT,M10.1.0,M4.1.0/3";
        for (time, offset) in [
            ("2026-01-01T00:00:00Z", "+11:00+1"),
            ("2026-04-04T15:59:59Z", "+11:00+1"),
            ("2026-04-04T16:00:00Z", "+10:00"),
            ("2026-10-03T15:59:59Z", "+10:00"),
            ("2026-10-03T16:00:00Z", "+11:00+1"),
            ("2026-12-31T23:00:00Z", "+11:00+1"),
        ] {
            assert_eq!(at(sydney, time), offset, "{time}");
        }
    }

    #[test]
    fn zones_without_daylight_saving_time_have_one_offset() {
        let time = "2026-07-01T00:00:00Z";
        assert_eq!(at("UTC0", time), "+00:00");
        assert_eq!(at("IST-5:30", time), "+05:30");
        assert_eq!(at("<-03>3", time), "-03:00");
        assert_eq!(at("<+0545>-5:45", time), "+05:45");
        assert_eq!(at("EST5EDT,M3.2.0,M11.1.0", time), "-04:00+1");
        // Lord Howe Island: half an hour.
        assert_eq!(at("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-01-01T00:00:00Z"), "+11:00+1");
    }

    #[test]
    fn other_texts_are_refused() {
        for bad in [
            "",
            "Europe/Berlin",
            "CET",
            "CE-1",
            "CET-1CEST",
            "CET-1,M3.5.0,M10.5.0",
            "CET-1CEST,M3.5.0",
            "CET-1CEST,M13.5.0,M10.5.0",
            "CET-1CEST,M3.6.0,M10.5.0",
            "CET-1CEST,M3.5.7,M10.5.0",
            "CET-1CEST,J60,J300",
            "CET-1CEST-1,M3.5.0,M10.5.0",
            "CET-1CEST,M3.5.0,M10.5.0/x",
            "XYZ-20",
            "XYZ-1:01",
            "XYZ-1:0:0:0",
            "<ab>1",
            "é-1",
        ] {
            assert!(bad.parse::<LocalTime>().is_err(), "{bad}");
        }
    }

    /// Octets as pycrate 0.8.1 reads them: 2026-07-01 12:34:56 UTC, zone +8 quarters, one hour of daylight saving time.
    #[test]
    fn the_octets_are_bcd_digits_with_swapped_halves() {
        let now: DateTime = "2026-07-01T12:34:56Z".parse().unwrap();
        let offset = "CET-1CEST,M3.5.0,M10.5.0/3".parse::<LocalTime>().unwrap().at(now);
        let mut command = ConfigurationUpdateCommand::new();
        command.local_time_zone = Some(offset.zone);
        command.universal_time = Some(offset.universal_time(now));
        command.daylight_saving_time = Some(offset.daylight_saving);
        let octets = GmmMessage::from(command).encode();
        let hex: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        assert_eq!(hex, "7e005446804762701021436580490101");
    }
}
