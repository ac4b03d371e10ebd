//! Explicit Congestion Notification (RFC 3168), and its scalable use (L4S, RFC 9331).

/// The ECN field of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ecn {
    /// Not-ECT: the sender detects congestion by loss.
    #[default]
    NotCapable,
    /// ECT(1): the sender expects early and frequent marks (RFC 9331 2).
    Scalable,
    /// ECT(0).
    Classic,
    /// CE: marked before.
    Experienced,
}

impl Ecn {
    /// The ECN field of a type of service or traffic class (RFC 3168 5).
    pub const fn of_tos(tos: u8) -> Self {
        match tos & 3 {
            0 => Self::NotCapable,
            1 => Self::Scalable,
            2 => Self::Classic,
            _ => Self::Experienced,
        }
    }
}
