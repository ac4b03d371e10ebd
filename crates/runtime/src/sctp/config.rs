//! Parameters of associations, with defaults for an N2 network with a delay of some milliseconds.

use std::time::Duration;

/// Parameters of every association of a transport. Times are rounded to milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SctpConfig {
    /// Streams that this side requests for sending, 1 to 65535; the peer may permit fewer.
    pub outbound_streams: u16,
    /// Streams that a peer may send on, 1 to 65535. Limits the memory that an INIT can make this side
    /// allocate.
    pub max_inbound_streams: u16,
    /// Idle time after which a path is probed (HEARTBEAT).
    pub heartbeat: Duration,
    /// Retransmission timeout before the first measurement (RTO.Initial).
    pub rto_initial: Duration,
    /// Shortest retransmission timeout (RTO.Min). It exceeds 200 ms, the longest SACK delay of Linux.
    pub rto_min: Duration,
    /// Longest retransmission timeout (RTO.Max).
    pub rto_max: Duration,
    /// Unanswered retransmissions or heartbeats in a row before a peer counts as unreachable.
    pub max_retransmissions: u16,
    /// INITs sent before `connect` fails.
    pub max_init_attempts: u16,
    /// Longest delay of a SACK that waits for data to be sent with.
    pub sack_delay: Duration,
    /// Receive window of an association in bytes: the data that a peer can make this side hold while paused.
    pub receive_buffer: usize,
    /// Bytes that an association may have unsent or unacknowledged before `send` reports backpressure.
    pub send_buffer: usize,
    /// Longest message in either direction, in bytes; a peer that sends a longer one is aborted.
    pub max_message: usize,
    /// Largest number of associations; further ones are refused.
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

/// A duration in milliseconds, for SCTP options.
pub(super) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
