//! Statistics of datagram streams.

use super::Latencies;
use crate::clock::Instant;

/// Datagrams sent and returned.
#[derive(Debug, Clone, Default)]
pub struct TrafficStatistics {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams returned, each once.
    pub received: u64,
    /// From sending to return.
    pub round_trip: Latencies,
    /// Times of the first and last datagram sent.
    sending: Option<(Instant, Instant)>,
    /// Times of the first and last datagram returned.
    receiving: Option<(Instant, Instant)>,
}

impl TrafficStatistics {
    /// Counts a sent datagram.
    pub fn note_sent(&mut self, now: Instant) {
        self.sent += 1;
        stretch(&mut self.sending, now);
    }

    /// Counts a returned datagram.
    pub fn note_received(&mut self, now: Instant, sent: Instant) {
        self.received += 1;
        self.round_trip.add(now - sent);
        stretch(&mut self.receiving, now);
    }

    /// Mbit/s of all UEs together, sent and returned, with packets of `size` octets.
    pub fn megabits_per_second(&self, size: usize) -> (f64, f64) {
        (rate(self.sending, self.sent, size), rate(self.receiving, self.received, size))
    }
}

fn stretch(span: &mut Option<(Instant, Instant)>, now: Instant) {
    *span = Some((span.map_or(now, |(first, _)| first), now));
}

/// The first packet only starts the time span, so it is not counted.
fn rate(span: Option<(Instant, Instant)>, packets: u64, size: usize) -> f64 {
    let seconds = span.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    if seconds == 0.0 {
        return 0.0;
    }
    packets.saturating_sub(1) as f64 * size as f64 * 8.0 / seconds / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_first_packet_is_not_counted_in_a_rate() {
        let mut traffic = TrafficStatistics::default();
        assert_eq!(traffic.megabits_per_second(1250), (0.0, 0.0));
        for millis in 0..=100 {
            traffic.note_sent(Instant::START + Duration::from_millis(millis));
        }
        assert_eq!(traffic.megabits_per_second(1250), (10.0, 0.0));
    }
}
