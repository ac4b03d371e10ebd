//! Points in time and durations.

use crate::ie::macros::number_ie;

/// Seconds from 1900 (NTP) to 1970 (Unix).
const NTP_TO_UNIX: u64 = 2_208_988_800;

number_ie! {
    /// A point in time: the seconds of an NTP timestamp (RFC 5905 6), which wrap in 2036. Recovery Time Stamp, Start
    /// Time, End Time, Time of First Packet, Time of Last Packet, Monitoring Time, Activation Time, Time Stamp …
    pub struct NtpSeconds(u32);
    /// A duration in seconds: Time Threshold, Time Quota, Measurement Period, Quota Holding Time, Quota Validity Time,
    /// Inactivity Detection Time, User Plane Inactivity Timer, Duration Measurement …
    pub struct Seconds(u32);
    /// A duration in milliseconds: Averaging Window, packet delays.
    pub struct Milliseconds(u32);
    /// Validity Timer, in seconds (TS 29.244 8.2.184).
    pub struct ValidityTimer(u16);
    /// Downlink Data Notification Delay, in units of 50 ms; 0 clears it (TS 29.244 8.2.28).
    pub struct DownlinkDataNotificationDelay(u8);
    /// Timer, DL Buffering Duration or Graceful Release Period: a unit in the upper three bits, a count in
    /// the lower ones (TS 29.244 8.2.35, 8.2.29, 8.2.78).
    pub struct CodedDuration(u8);
}

impl NtpSeconds {
    /// The point in time `seconds` after 1970-01-01 00:00 UTC.
    pub fn from_unix(seconds: u64) -> Self {
        NtpSeconds((seconds + NTP_TO_UNIX) as u32)
    }

    /// Seconds since 1970-01-01 00:00 UTC; values below that of 1968 are in the era that starts in 2036.
    pub fn to_unix(self) -> u64 {
        let era = if self.0 >> 31 == 0 { 1 << 32 } else { 0 };
        (era + u64::from(self.0)).saturating_sub(NTP_TO_UNIX)
    }
}

/// Units of a [`CodedDuration`] in seconds, by the value of bits 6 to 8.
const UNITS: [u64; 5] = [2, 60, 600, 3600, 36000];

impl CodedDuration {
    /// Infinite.
    pub const INFINITE: CodedDuration = CodedDuration(0b1110_0000);

    /// The shortest duration in this coding of at least `seconds`.
    pub fn at_least(seconds: u64) -> Self {
        let fits = |(unit, length): (usize, &u64)| {
            let count = seconds.div_ceil(*length);
            (count < 32).then_some(CodedDuration((unit as u8) << 5 | count as u8))
        };
        UNITS.iter().enumerate().find_map(fits).unwrap_or(CodedDuration::INFINITE)
    }

    /// Seconds; `None` if infinite. Units that Release 17 does not define are treated as minutes.
    pub fn seconds(self) -> Option<u64> {
        let unit = usize::from(self.0 >> 5);
        let length = UNITS.get(unit).copied().unwrap_or(60);
        (unit != 7).then(|| length * u64::from(self.0 & 0x1f))
    }
}
