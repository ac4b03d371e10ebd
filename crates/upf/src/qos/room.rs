//! Limits of queued and held packets, for all threads of a UPF together.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Limits of queued and held packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferLimits {
    /// Packets held for one idle session, unless its BAR contains a limit.
    pub session_packets: usize,
    /// Packets of all sessions, held or queued.
    pub packets: usize,
    /// Bytes of all sessions.
    pub bytes: usize,
}

impl Default for BufferLimits {
    /// 128 packets a session, 65,536 in all, 64 MiB in all.
    fn default() -> Self {
        Self { session_packets: 128, packets: 65_536, bytes: 64 << 20 }
    }
}

/// The queued and held packets of all sessions.
#[derive(Debug)]
pub struct Room {
    limits: BufferLimits,
    packets: AtomicUsize,
    bytes: AtomicUsize,
}

impl Room {
    /// Without packets.
    pub fn new(limits: BufferLimits) -> Self {
        Self { limits, packets: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }

    /// The limits.
    pub fn limits(&self) -> &BufferLimits {
        &self.limits
    }

    /// Number of queued and held packets.
    pub fn packets(&self) -> usize {
        self.packets.load(Relaxed)
    }

    /// Reserves room for a packet; `false` if there is none.
    pub fn reserve(&self, bytes: usize) -> bool {
        let packets = self.packets.fetch_add(1, Relaxed);
        let before = self.bytes.fetch_add(bytes, Relaxed);
        let fits = packets < self.limits.packets && before + bytes <= self.limits.bytes;
        if !fits {
            self.free(bytes);
        }
        fits
    }

    /// Frees the room of a packet.
    pub fn free(&self, bytes: usize) {
        self.packets.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_limits_apply_and_room_is_freed() {
        for limits in [
            BufferLimits { packets: 2, bytes: 1000, session_packets: 9 },
            BufferLimits { packets: 9, bytes: 200, session_packets: 9 },
        ] {
            let room = Room::new(limits);
            assert_eq!([0; 3].map(|_| room.reserve(100)), [true, true, false]);
            assert_eq!(room.packets(), 2);
            room.free(100);
            assert!(room.reserve(100));
        }
    }
}
