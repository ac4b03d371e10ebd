//! The contract between UPF-C (`pith-upf`) and UPF-U (`pith-datapath`).
//!
//! UPF-C compiles PFCP sessions to [`Session`]s and installs each as a whole in a [`Datapath`]. A datapath
//! forwards packets by them, counts, polices and buffers, and reports [`Event`]s to UPF-C. The contract is
//! independent of how packets are moved: the portable path and the XDP path implement the same trait with the
//! same behaviour.
//!
//! ```text
//!   SMF ── PFCP ── UPF-C ── install, remove, usage ──▶ Datapath ── GTP-U (N3, N9)
//!                    ◀────────── Event ──────────────            └─ plain IP (N6)
//! ```
//!
//! All rates are in bits per second, all volumes in bytes of the inner packet as it would be on N6.

mod event;
mod filter;
mod flow_description;
mod rules;
mod trace;
mod usage;

pub use event::{Counters, DropReason, Event, Traffic};
pub use filter::{AddressRange, Endpoint, PortRange, SdfFilter, TosFilter};
pub use flow_description::{FlowDescription, FlowDescriptionError};
pub use rules::{
    Action, Destination, Direction, Far, FarId, Gate, Gates, Pdr, PdrId, Qer, QerId, Qfi, Rates, Session,
    SessionId, Source, Teid, Tunnel, UeAddress, Urr, UrrId,
};
pub use trace::{Fate, TracedPacket};
pub use usage::{SessionUsage, UrrUsage, Volume, VolumeLimits};

use crate::qos::FlowUsage;
use std::sync::Arc;

/// A packet forwarder: the portable path, the XDP path, or a test's recorder of the calls.
///
/// Calls return at once or after at most the time of one batch of packets; none waits for a peer.
pub trait Datapath {
    /// Replaces the rules of the session's id atomically: each packet is handled by the old rules or by the
    /// new rules, never by a mixture, and packets received after the call by the new rules.
    ///
    /// Kept by id: counters of a URR, fill levels of a QER's meters while its rates are unchanged, and
    /// buffered packets. Buffered packets are sent in order by the new rules if their PDR's FAR now forwards,
    /// and dropped if it now drops.
    fn install(&mut self, session: Arc<Session>);

    /// Removes a session and its buffered packets, and returns the final usage: no packet is forwarded or
    /// counted for it afterwards. `None` if there was no such session.
    fn remove(&mut self, session: SessionId) -> Option<SessionUsage>;

    /// A session with these addresses is about to be installed for the first time; `is_restored`: it was another process's. Otherwise
    /// nothing of a former UE's connections may reach the UE.
    fn begin(&mut self, _ue: UeAddress, _is_restored: bool) {}

    /// Drops a session's buffered packets without a change of rules (PFCP flag DROBU).
    fn discard_buffered(&mut self, session: SessionId);

    /// Sends an End Marker into `tunnel`, after the last packet that was sent there by old rules; call it
    /// after the [`install`](Datapath::install) that moved the session to another tunnel.
    fn send_end_marker(&mut self, tunnel: &Tunnel);

    /// The session's usage so far, including every packet forwarded before the call.
    fn usage(&self, session: SessionId) -> Option<SessionUsage>;

    /// Adds usage that another datapath counted for a session of this one: the former process's, when a UPF is upgraded. Packets
    /// may be counted meanwhile; the times of packets are ages, as in [`usage`](Datapath::usage).
    fn add_usage(&mut self, session: SessionId, usage: &SessionUsage);

    /// The counters of each of a session's flows; empty if a datapath does not count them.
    fn flows(&self, _session: SessionId) -> Vec<FlowUsage> {
        Vec::new()
    }

    /// Starts or ends the trace of a session's packets. Meanwhile the session may take a slower path.
    fn trace(&mut self, _session: SessionId, _on: bool) {}

    /// Moves the traced packets since the last call into `packets`, oldest first; returns how many were lost
    /// for lack of room.
    fn poll_trace(&mut self, _packets: &mut Vec<TracedPacket>) -> u64 {
        0
    }

    /// Counts a packet that UPF-C dropped.
    fn count_dropped(&mut self, reason: DropReason);

    /// Moves the events since the last call into `events`, oldest first.
    fn poll_events(&mut self, events: &mut Vec<Event>);

    /// Traffic and drops of the whole UPF since its start.
    fn counters(&self) -> Counters;
}
