//! Usage of a session.

use super::{Direction, UrrId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Packets and bytes of both directions since the URR was first installed. The counters never decrease: a
/// report covers the difference from the previous report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Volume {
    /// Uplink bytes.
    pub uplink: u64,
    /// Downlink bytes.
    pub downlink: u64,
    /// Uplink packets.
    pub uplink_packets: u64,
    /// Downlink packets.
    pub downlink_packets: u64,
}

impl Volume {
    /// Bytes both ways.
    pub const fn total(&self) -> u64 {
        self.uplink.saturating_add(self.downlink)
    }

    /// The difference from `earlier`.
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            uplink: self.uplink.saturating_sub(earlier.uplink),
            downlink: self.downlink.saturating_sub(earlier.downlink),
            uplink_packets: self.uplink_packets.saturating_sub(earlier.uplink_packets),
            downlink_packets: self.downlink_packets.saturating_sub(earlier.downlink_packets),
        }
    }

    /// Adds packets of one direction.
    pub const fn add(&mut self, direction: Direction, packets: u64, bytes: u64) {
        match direction {
            Direction::Uplink => {
                self.uplink = self.uplink.wrapping_add(bytes);
                self.uplink_packets = self.uplink_packets.wrapping_add(packets);
            }
            Direction::Downlink => {
                self.downlink = self.downlink.wrapping_add(bytes);
                self.downlink_packets = self.downlink_packets.wrapping_add(packets);
            }
        }
    }
}

/// Limits on a [`Volume`], in bytes, relative to the same counters. PFCP counts a threshold from the last
/// report, so UPF-C adds the volume reported by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct VolumeLimits {
    /// On the sum of both directions.
    pub total: Option<u64>,
    /// On uplink bytes.
    pub uplink: Option<u64>,
    /// On downlink bytes.
    pub downlink: Option<u64>,
}

impl VolumeLimits {
    /// Whether there is no limit.
    pub const fn is_none(&self) -> bool {
        self.total.is_none() && self.uplink.is_none() && self.downlink.is_none()
    }

    /// Whether `volume` has reached a limit.
    pub fn reached_by(&self, volume: &Volume) -> bool {
        let reached = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
        reached(self.total, volume.total())
            || reached(self.uplink, volume.uplink)
            || reached(self.downlink, volume.downlink)
    }
}

/// The usage of a session so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionUsage {
    /// Each URR's counters.
    pub urrs: Vec<UrrUsage>,
    /// Time since the last packet of the session, whether it was forwarded, buffered or dropped by its rules;
    /// exact to a batch. Used for the user plane inactivity timer of UPF-C.
    pub last_packet: Option<Duration>,
}

impl SessionUsage {
    /// The counters of a URR.
    pub fn urr(&self, id: UrrId) -> Option<&UrrUsage> {
        self.urrs.iter().find(|urr| urr.id == id)
    }
}

/// A URR's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UrrUsage {
    /// The URR.
    pub id: UrrId,
    /// Its counters.
    pub volume: Volume,
    /// Time since the first counted packet; exact to a batch, like the next.
    pub first_packet: Option<Duration>,
    /// Time since the last counted packet.
    pub last_packet: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_reached_at_their_value_and_by_the_direction_they_name() {
        let mut volume = Volume::default();
        volume.add(Direction::Uplink, 1, 60);
        volume.add(Direction::Downlink, 1, 40);
        let limits = |total, uplink, downlink| VolumeLimits { total, uplink, downlink };
        assert!(limits(Some(100), None, None).reached_by(&volume));
        assert!(!limits(Some(101), Some(61), Some(41)).reached_by(&volume));
        assert!(limits(None, Some(60), None).reached_by(&volume));
        assert!(limits(None, None, Some(40)).reached_by(&volume));
        assert!(!VolumeLimits::default().reached_by(&volume));
    }
}
