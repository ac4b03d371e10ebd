//! What can be tuned about associations, with defaults for an N2 network of a few milliseconds.

use std::time::Duration;

/// Parameters of every association of a transport. Times are rounded to milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SctpConfig {
    /// Streams this side asks to send on, 1 to 65535; the peer may allow fewer.
    pub outbound_streams: u16,
    /// Streams a peer may send on, 1 to 65535. Bounds what an INIT can make this side allocate.
    pub max_inbound_streams: u16,
    /// Idle time after which a path is probed (HEARTBEAT).
    pub heartbeat: Duration,
    /// Retransmission timeout before the first measurement (RTO.Initial).
    pub rto_initial: Duration,
    /// Shortest retransmission timeout (RTO.Min). Above 200 ms, which is how long Linux may delay a SACK.
    pub rto_min: Duration,
    /// Longest retransmission timeout (RTO.Max).
    pub rto_max: Duration,
    /// Unanswered retransmissions or heartbeats in a row before a peer counts as gone.
    pub max_retransmissions: u16,
    /// INITs sent before `connect` fails.
    pub max_init_attempts: u16,
    /// How long a SACK may wait for data to travel with.
    pub sack_delay: Duration,
    /// Receive window of an association, in bytes: what a peer can make this side hold while paused.
    pub receive_buffer: usize,
    /// Bytes an association may have unsent or unacknowledged before `send` says backpressure.
    pub send_buffer: usize,
    /// Longest message either way, in bytes; a peer that sends a longer one is aborted.
    pub max_message: usize,
    /// Associations at one time; further ones are refused.
    pub max_associations: usize,
}

impl Default for SctpConfig {
    fn default() -> Self {
        Self {
            outbound_streams: 32,
            max_inbound_streams: 64,
            heartbeat: Duration::from_secs(5),
            rto_initial: Duration::from_millis(500),
            rto_min: Duration::from_millis(250),
            rto_max: Duration::from_secs(3),
            max_retransmissions: 5,
            max_init_attempts: 6,
            sack_delay: Duration::from_millis(20),
            receive_buffer: 256 << 10,
            send_buffer: 1 << 20,
            max_message: 256 << 10,
            max_associations: 16_384,
        }
    }
}

/// A duration as SCTP options want it.
pub(super) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
