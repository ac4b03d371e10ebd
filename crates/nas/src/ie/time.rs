//! Network time (NITZ): time zone, universal time, daylight saving time (TS 24.008 10.5.3.8,
//! 10.5.3.9, 10.5.3.12).

use crate::error::Malformed;
use crate::wire::{Cursor, Ie, coded};
use serde::{Deserialize, Serialize};

/// Offset of local time from universal time, in quarters of an hour, daylight saving included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimeZone {
    /// -79 to 79.
    pub quarters: i8,
}

/// Two BCD digits, the tens in the low half (TS 23.040 9.2.3.11).
fn swapped(number: u8) -> u8 {
    ((number % 10) << 4) | (number / 10)
}

fn unswapped(octet: u8) -> Result<u8, Malformed> {
    let (tens, ones) = (octet & 0xf, octet >> 4);
    if tens < 10 && ones < 10 { Ok(tens * 10 + ones) } else { Err(Malformed("a BCD digit above 9")) }
}

impl Ie for TimeZone {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let octet = Cursor(value).u8()?;
        let quarters = unswapped(octet & !8)? as i8;
        Ok(Self { quarters: if octet & 8 != 0 { -quarters } else { quarters } })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        let sign = u8::from(self.quarters < 0) << 3;
        out.push(swapped(self.quarters.unsigned_abs().min(79)) | sign);
    }
}

/// Universal time and local time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UniversalTime {
    /// Last two digits of the year.
    pub year: u8,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// The UE's local time zone.
    pub zone: TimeZone,
}

impl Ie for UniversalTime {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let [year, month, day, hour, minute, second, zone] = <[u8; 7] as Ie>::decode(value)?;
        Ok(Self {
            year: unswapped(year)?,
            month: unswapped(month)?,
            day: unswapped(day)?,
            hour: unswapped(hour)?,
            minute: unswapped(minute)?,
            second: unswapped(second)?,
            zone: TimeZone::decode(&[zone])?,
        })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        let fields = [self.year, self.month, self.day, self.hour, self.minute, self.second];
        out.extend(fields.map(|number| swapped(number % 100)));
        self.zone.encode(out);
    }
}

coded! {
    /// Network daylight saving time (TS 24.008 Table 10.5.97a), added to the time zone already.
    DaylightSavingTime {
        /// None.
        None = 0,
        /// An hour.
        OneHour = 1,
        /// Two hours.
        TwoHours = 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zones_keep_their_sign() {
        for (quarters, octet) in [(8, 0x80), (-20, 0x0a), (0, 0), (-79, 0x9f), (79, 0x97)] {
            let mut out = Vec::new();
            TimeZone { quarters }.encode(&mut out);
            assert_eq!(out, [octet]);
            assert_eq!(TimeZone::decode(&[octet]), Ok(TimeZone { quarters }));
        }
    }
}
