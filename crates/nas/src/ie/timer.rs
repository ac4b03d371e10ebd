//! GPRS timers (TS 24.008 10.5.7.3, 10.5.7.4, 10.5.7.4a): a duration in five bits and a unit.

use crate::error::Malformed;
use crate::wire::{Cursor, Ie};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Units by their code, in seconds.
type Units = &'static [(u8, u64)];

const UNITS_2: Units = &[(0, 2), (1, 60), (2, 360)];
const UNITS_3: Units = &[(3, 2), (4, 30), (5, 60), (0, 600), (1, 3_600), (2, 36_000), (6, 1_152_000)];
const DEACTIVATED: u8 = 0xe0;

/// GPRS timer and GPRS timer 2: up to 31 units of 2 s, 1 min or 6 min.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GprsTimer2(pub u8);

/// GPRS timer 3: up to 31 units of 2 s to 320 h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GprsTimer3(pub u8);

/// The smallest value that is at least as long; the maximum if none is.
fn octet_of(duration: Duration, units: Units) -> u8 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    let fits =
        units.iter().map(|&(code, unit)| (code, seconds.div_ceil(unit))).find(|&(_, count)| count <= 31);
    match (fits, units.last()) {
        (Some((code, count)), _) => code << 5 | count as u8,
        (None, Some(&(code, _))) => code << 5 | 31,
        (None, None) => DEACTIVATED,
    }
}

/// The duration of an octet; an undefined unit counts as `fallback` seconds.
fn duration_of(octet: u8, units: Units, fallback: u64) -> Option<Duration> {
    if octet & 0xe0 == DEACTIVATED {
        return None;
    }
    let unit = units.iter().find(|(code, _)| *code == octet >> 5).map_or(fallback, |(_, unit)| *unit);
    Some(Duration::from_secs(u64::from(octet & 0x1f) * unit))
}

macro_rules! timer {
    ($name:ident, $units:ident, $fallback:literal) => {
        impl $name {
            /// The timer is deactivated.
            pub const DEACTIVATED: Self = Self(DEACTIVATED);

            /// The shortest encodable value that is at least `duration`, limited to the maximum.
            pub fn at_least(duration: Duration) -> Self {
                Self(octet_of(duration, $units))
            }

            /// The duration; `None` if the timer is deactivated.
            pub fn duration(self) -> Option<Duration> {
                duration_of(self.0, $units, $fallback)
            }
        }

        impl Ie for $name {
            fn decode(value: &[u8]) -> Result<Self, Malformed> {
                Cursor(value).u8().map(Self)
            }
            fn encode(&self, out: &mut Vec<u8>) {
                out.push(self.0);
            }
        }
    };
}
timer!(GprsTimer2, UNITS_2, 60);
timer!(GprsTimer3, UNITS_3, 3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_timers_equal_those_of_other_stacks() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(GprsTimer3::at_least(minutes(54)), GprsTimer3(0x06));
        assert_eq!(GprsTimer3::at_least(minutes(9)), GprsTimer3(0x92));
        assert_eq!(GprsTimer2::at_least(minutes(12)), GprsTimer2(0x2c));
        assert_eq!(GprsTimer3(0x06).duration(), Some(minutes(60)));
        assert_eq!(GprsTimer3(0xe0).duration(), None);
        assert_eq!(GprsTimer2(0x5f).duration(), Some(minutes(186)));
    }

    #[test]
    fn a_duration_is_rounded_up_and_never_down_below_the_longest() {
        for seconds in 0..100_000 {
            let asked = Duration::from_secs(seconds);
            assert!(GprsTimer3::at_least(asked).duration().unwrap() >= asked);
        }
        assert_eq!(GprsTimer2::at_least(Duration::from_secs(1 << 40)), GprsTimer2(0x5f));
        assert_eq!(GprsTimer3::at_least(Duration::from_secs(1 << 40)), GprsTimer3(0xdf));
    }
}
