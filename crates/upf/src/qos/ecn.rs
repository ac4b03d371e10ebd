//! Explicit Congestion Notification (RFC 3168), and its scalable use (L4S, RFC 9331).

/// The ECN field of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ecn {
    /// Not-ECT: its sender learns of congestion by loss.
    #[default]
    NotCapable,
    /// ECT(1): its sender is told early and often (RFC 9331 2).
    Scalable,
    /// ECT(0).
    Classic,
    /// CE: it has met congestion before.
    Experienced,
}

impl Ecn {
    /// The field in a type of service or traffic class (RFC 3168 5).
    pub const fn of_tos(tos: u8) -> Self {
        match tos & 3 {
            0 => Self::NotCapable,
            1 => Self::Scalable,
            2 => Self::Classic,
            _ => Self::Experienced,
        }
    }
}
