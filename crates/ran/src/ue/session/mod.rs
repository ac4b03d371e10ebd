//! 5GSM in the UE (TS 24.501 clause 6): PDU sessions and the procedures on them.

mod check;
mod derived;
mod establishment;
mod modification;
mod qos;
mod release;

pub use derived::DerivedRules;
pub use qos::Qos;

use super::{Connection, Event, SessionFailure, State, Ue};
use crate::clock::Instant;
use crate::prefix::DelegatedPrefix;
use pith_nas::gsm::GsmStatus;
use pith_nas::ie::{GprsTimer2, PduSessionSet, PduSessionType, ServiceType, SscMode};
use pith_nas::{Fault, GmmCause, GsmBody, GsmCause, GsmMessage, Noted};
use pith_types::{Ambr, Dnn, Snssai};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// A session that the user requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRequest {
    /// PDU session identity, 1 to 15.
    pub id: u8,
    /// The data network; `None` leaves the choice to the network.
    pub dnn: Option<Dnn>,
    /// The slice; `None` leaves the choice to the network.
    pub snssai: Option<Snssai>,
    /// PDU session type.
    pub session_type: PduSessionType,
    /// Whether the UE supports reflective QoS in the session (TS 24.501 9.11.4.1).
    pub reflective_qos: bool,
    /// An emergency session; all are of a UE that is registered for emergency services only.
    pub is_emergency: bool,
}

/// An active PDU session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// PDU session identity.
    pub id: u8,
    /// PDU session type.
    pub session_type: PduSessionType,
    /// The UE's IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// The interface identifier of its link-local address, in a session with IPv6.
    pub interface_id: Option<[u8; 8]>,
    /// The UE's IPv6 address, once a Router Advertisement has its prefix.
    pub ipv6: Option<Ipv6Addr>,
    /// The prefix that the UPF has delegated to it.
    pub delegated: Option<DelegatedPrefix>,
    /// Session-AMBR.
    pub ambr: Ambr,
    /// The QoS flow of the default rule.
    pub default_qfi: u8,
    /// The other QoS rules and flows.
    pub qos: Qos,
    /// Whether the UE supports reflective QoS in the session.
    pub reflective_qos: bool,
    /// The last RQ timer of the network.
    pub rq_timer: Option<GprsTimer2>,
    /// The rules that the UE has derived.
    pub derived: DerivedRules,
    /// The data network in the accept.
    pub dnn: Option<Dnn>,
    /// Whether there are radio bearers for the session.
    pub user_plane: bool,
    /// Whether it is an emergency session.
    pub is_emergency: bool,
}

impl Session {
    /// The QoS flow of an uplink packet.
    pub fn flow_of(&self, packet: &[u8], now: Instant) -> Option<u8> {
        self.qos.flow_of(&self.derived, packet, now)
    }

    /// The address of a host behind the UE, if a prefix is delegated to it.
    pub fn host_behind(&self) -> Option<Ipv6Addr> {
        Some(self.delegated?.host(self.interface_id?))
    }

    /// The UE's link-local address, in a session with IPv6.
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        self.interface_id.map(crate::router::link_local)
    }
}

/// The procedure of a PTI.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Procedure {
    /// UE-requested PDU session establishment (6.4.1): T3580.
    Establishment(SessionRequest),
    /// UE-requested PDU session release (6.4.3): T3582.
    Release,
    /// UE-requested PDU session modification (6.4.2): T3581. The UE revokes its support of reflective QoS.
    Revocation,
}

/// A UE-requested procedure that waits for the network.
#[derive(Debug, Clone)]
struct Transaction {
    pti: u8,
    session: u8,
    procedure: Procedure,
    sent: u8,
    expires: Instant,
    /// Its timer expired in 5GMM-IDLE: it is sent again as soon as a service request has succeeded.
    is_due: bool,
}

/// T3580, T3581 and T3582 are all 16 s (TS 24.501 table 10.3.1).
const RETRANSMISSION: Duration = Duration::from_secs(16);
/// On the fifth expiry the procedure is aborted (6.4.1.6 a, 6.4.3.5 a).
const TRANSMISSIONS: u8 = 5;

/// All PDU sessions of a UE, and their procedures.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    active: Vec<Session>,
    transactions: Vec<Transaction>,
    /// Requested sessions, deferred until the UE is registered and connected.
    waiting: Vec<SessionRequest>,
    /// Identities with radio bearers.
    bearers: Vec<u8>,
    last_pti: u8,
    /// Session and PTI of the last release that the UE has requested, and that is over.
    last_release: Option<(u8, u8)>,
    /// As before, of the last modification.
    last_modification: Option<(u8, u8)>,
    /// The sessions whose user plane the service request in progress requests.
    pub reactivating: Option<PduSessionSet>,
    /// Uplink data are pending, which the service request in progress does not mention: the UE has been paged before.
    pub data_is_pending: bool,
}

impl Sessions {
    pub fn active(&self) -> impl Iterator<Item = &Session> {
        self.active.iter()
    }

    /// The PDU session status: the sessions that are not in PDU SESSION INACTIVE, thus also those that are being established, which are in
    /// PDU SESSION ACTIVE PENDING (TS 24.501 9.11.3.44, 6.1.3.2).
    pub fn status(&self) -> PduSessionSet {
        let is_pending = |t: &&Transaction| matches!(t.procedure, Procedure::Establishment(_));
        let pending = self.transactions.iter().filter(is_pending).map(|transaction| transaction.session);
        self.active.iter().map(|session| session.id).chain(pending).collect()
    }

    pub fn without_user_plane(&self) -> PduSessionSet {
        self.active.iter().filter(|session| !session.user_plane).map(|session| session.id).collect()
    }

    fn has_due(&self) -> bool {
        self.transactions.iter().any(|transaction| transaction.is_due)
    }

    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub fn has_waiting_emergency(&self) -> bool {
        self.waiting.iter().any(|request| request.is_emergency)
    }

    /// Whether the UE has an emergency session.
    pub fn has_emergency(&self) -> bool {
        self.active.iter().any(|session| session.is_emergency)
    }

    /// Whether the UE has requested an emergency session, which the AMF may have taken for established already.
    pub fn requests_emergency(&self) -> bool {
        self.transactions.iter().any(
            |transaction| matches!(&transaction.procedure, Procedure::Establishment(request) if request.is_emergency),
        )
    }

    pub fn next_timeout(&self) -> Option<Instant> {
        self.transactions.iter().map(|transaction| transaction.expires).min()
    }

    /// The running timers, by their names.
    pub fn running_timers(&self) -> impl Iterator<Item = &'static str> {
        self.transactions.iter().map(|transaction| match transaction.procedure {
            Procedure::Establishment(_) => "T3580",
            Procedure::Release => "T3582",
            Procedure::Revocation => "T3581",
        })
    }

    /// Radio bearers are set up with the message that accepts the session, before the message is handled.
    pub fn note_user_plane(&mut self, id: u8, up: bool) {
        self.bearers.retain(|bearer| *bearer != id);
        self.bearers.extend(up.then_some(id));
        if let Some(session) = self.find(id) {
            session.user_plane = up;
        }
    }

    /// All radio bearers are released.
    pub fn note_idle(&mut self) {
        // Runs have a million idle UEs.
        self.bearers = Vec::new();
        self.transactions.shrink_to_fit();
        self.waiting.shrink_to_fit();
        self.active.iter_mut().for_each(|session| session.user_plane = false);
    }

    /// Removes the active sessions that are not in a PDU session status.
    pub fn retain_only(&mut self, status: PduSessionSet) -> Vec<u8> {
        let gone: Vec<_> = self.active.extract_if(.., |session| !status.contains(session.id)).collect();
        gone.iter().for_each(|session| self.abort_modification(session.id));
        gone.iter().map(|session| session.id).collect()
    }

    /// Removes all; returns the sessions that were active, and those that were requested.
    pub fn clear(&mut self) -> (Vec<u8>, Vec<u8>) {
        let is_wanted = |t: &Transaction| matches!(t.procedure, Procedure::Establishment(_));
        let wanted = self.transactions.iter().filter(|t| is_wanted(t)).map(|t| t.session);
        let wanted = wanted.chain(self.waiting.iter().map(|request| request.id)).collect();
        let active = self.active.iter().map(|session| session.id).collect();
        *self = Self { last_pti: self.last_pti, ..Self::default() };
        (active, wanted)
    }

    fn find(&mut self, id: u8) -> Option<&mut Session> {
        self.active.iter_mut().find(|session| session.id == id)
    }

    /// Sets a session's IPv6 address, if it has none yet; returns the one that it has.
    pub fn set_ipv6(&mut self, id: u8, address: Ipv6Addr) -> Option<Ipv6Addr> {
        self.find(id).map(|session| *session.ipv6.get_or_insert(address))
    }

    /// A downlink packet of that flow with the RQI. Returns whether the UE supports reflective QoS in the session.
    pub fn reflect(&mut self, id: u8, qfi: u8, packet: &[u8], now: Instant) -> bool {
        let Some(session) = self.find(id).filter(|session| session.reflective_qos) else { return false };
        session.derived.derive(packet, qfi, session.rq_timer, now);
        true
    }

    pub fn set_delegated(&mut self, id: u8, prefix: DelegatedPrefix) -> Option<DelegatedPrefix> {
        self.find(id).map(|session| *session.delegated.get_or_insert(prefix))
    }

    fn remove(&mut self, id: u8) -> Option<Session> {
        let at = self.active.iter().position(|session| session.id == id)?;
        self.abort_modification(id);
        Some(self.active.remove(at))
    }

    /// The UE's modification of the session ends without an answer.
    fn abort_modification(&mut self, id: u8) {
        self.transactions.retain(|t| t.session != id || t.procedure != Procedure::Revocation);
    }

    /// Whether a UE-requested procedure is in progress on the session.
    fn is_changing(&self, id: u8) -> bool {
        self.transactions.iter().any(|transaction| transaction.session == id)
    }

    fn is_known(&self, id: u8) -> bool {
        self.active.iter().any(|session| session.id == id)
            || self.is_changing(id)
            || self.waiting.iter().any(|request| request.id == id)
    }

    /// The next PTI of 1 to 254 that no procedure uses (TS 24.007 11.2.3.1a.2).
    fn allocate_pti(&mut self) -> u8 {
        loop {
            self.last_pti = self.last_pti % 254 + 1;
            if !self.transactions.iter().any(|transaction| transaction.pti == self.last_pti) {
                return self.last_pti;
            }
        }
    }

    /// Removes and returns the procedure of that PTI on that session.
    fn take(&mut self, id: u8, pti: u8, is_it: impl Fn(&Procedure) -> bool) -> Option<Transaction> {
        let fits = |t: &Transaction| t.session == id && t.pti == pti && is_it(&t.procedure);
        let at = self.transactions.iter().position(fits)?;
        let transaction = self.transactions.remove(at);
        match transaction.procedure {
            Procedure::Release => self.last_release = Some((id, pti)),
            Procedure::Revocation => self.last_modification = Some((id, pti)),
            Procedure::Establishment(_) => {}
        }
        Some(transaction)
    }
}

impl Ue {
    /// Starts a procedure on a session, with a new PTI.
    fn begin_transaction(&mut self, session: u8, procedure: Procedure) {
        let pti = self.sessions.allocate_pti();
        let expires = self.now + RETRANSMISSION;
        let transaction = Transaction { pti, session, procedure, sent: 1, expires, is_due: false };
        self.transmit(&transaction);
        self.sessions.transactions.push(transaction);
    }

    fn transmit(&mut self, transaction: &Transaction) {
        match &transaction.procedure {
            Procedure::Establishment(request) => self.send_establishment_request(transaction.pti, request),
            Procedure::Release => self.send_release_request(transaction.session, transaction.pti),
            Procedure::Revocation => self.send_revocation(transaction.session, transaction.pti),
        }
    }

    /// T3580, T3581 or T3582 expired: retransmits, in 5GMM-IDLE after a service request (TS 24.501 5.6.1.1 c); on the fifth expiry
    /// aborts.
    pub(super) fn on_session_timeouts(&mut self) {
        let now = self.now;
        let expired: Vec<_> = self.sessions.transactions.extract_if(.., |t| t.expires <= now).collect();
        for mut transaction in expired {
            if transaction.sent >= TRANSMISSIONS {
                self.on_abort(&transaction);
                continue;
            }
            transaction.sent += 1;
            transaction.expires = now + RETRANSMISSION;
            transaction.is_due = self.connection == Connection::Idle;
            if !transaction.is_due {
                self.transmit(&transaction);
            }
            self.sessions.transactions.push(transaction);
        }
        if self.sessions.has_due() && self.state == State::Registered && self.connection == Connection::Idle {
            self.begin_service_request(ServiceType::Signalling);
        }
    }

    /// Sends the requests whose timers expired in 5GMM-IDLE.
    fn transmit_due(&mut self) {
        let mut transactions = std::mem::take(&mut self.sessions.transactions);
        for transaction in transactions.iter_mut().filter(|transaction| transaction.is_due) {
            transaction.is_due = false;
            self.transmit(transaction);
        }
        self.sessions.transactions.append(&mut transactions);
    }

    fn on_abort(&mut self, transaction: &Transaction) {
        match transaction.procedure {
            Procedure::Establishment(_) => {
                self.event(Event::SessionFailed(transaction.session, SessionFailure::NoAnswer));
            }
            // The UE locally releases the session (6.4.3.5 a).
            Procedure::Release => self.drop_session(transaction.session),
            // The UE aborts the procedure (6.4.2.6 a).
            Procedure::Revocation => {}
        }
    }

    fn drop_session(&mut self, id: u8) {
        if self.sessions.remove(id).is_some() {
            self.event(Event::SessionReleased(id));
        }
    }

    /// The AMF could not forward a 5GSM message and returned it (TS 24.501 5.4.5.3.3, 6.4.1.6 b).
    pub(super) fn on_not_forwarded(&mut self, id: u8, cause: GmmCause, payload: &[u8]) {
        let pti = GsmMessage::decode(payload).ok().map(|message| message.pti);
        let transaction = pti.and_then(|pti| self.sessions.take(id, pti, |_| true));
        match transaction {
            Some(Transaction { procedure: Procedure::Establishment(_), .. }) => {
                self.event(Event::SessionFailed(id, SessionFailure::NotForwarded(cause.code())));
            }
            Some(Transaction { procedure: Procedure::Release, .. }) => self.drop_session(id),
            Some(Transaction { procedure: Procedure::Revocation, .. }) => {}
            None if is_final_message(payload) => {}
            // The SMF, which was slow, has released the session before it got a repeated request.
            None if pti.is_some_and(|pti| self.sessions.last_release == Some((id, pti))) => {}
            // The session has ended while the UE requested its modification.
            None if is_modification_request(payload) => {}
            None => {
                let text = format!("a returned 5GSM message of session {id} that the UE did not send");
                self.violation("TS 24.501 5.4.5.3.1", text);
            }
        }
    }

    /// A 5GSM message from the SMF (TS 24.501 7.3, 7.4).
    pub(super) fn receive_gsm(&mut self, id: u8, octets: &[u8]) {
        let Some(message) = self.decode_gsm(octets) else { return };
        if message.pdu_session_id != id {
            let text = format!("PDU session {} inside, {id} outside", message.pdu_session_id);
            return self.violation("TS 24.501 5.4.5.3.2", text);
        }
        let pti = message.pti;
        match message.body {
            GsmBody::PduSessionEstablishmentAccept(accept) => {
                self.receive_establishment_accept(id, pti, *accept)
            }
            GsmBody::PduSessionEstablishmentReject(reject) => {
                self.receive_establishment_reject(id, pti, &reject)
            }
            GsmBody::PduSessionReleaseCommand(command) => self.receive_release_command(id, pti, &command),
            GsmBody::PduSessionReleaseReject(reject) => self.receive_release_reject(id, pti, &reject),
            GsmBody::PduSessionModificationCommand(command) => {
                self.receive_modification_command(id, pti, &command);
            }
            GsmBody::PduSessionModificationReject(reject) => {
                self.receive_modification_reject(id, pti, &reject);
            }
            GsmBody::GsmStatus(status) => {
                let text = format!("the SMF answered with 5GSM STATUS #{}", status.cause.code());
                self.violation("TS 24.501 6.5", text);
            }
            other => {
                self.violation("TS 24.501 7.4", format!("{} to a UE", other.name()));
                self.send_gsm_status(id, pti, GsmCause::MessageTypeNonExistentOrNotImplemented);
            }
        }
    }

    fn decode_gsm(&mut self, octets: &[u8]) -> Option<GsmMessage> {
        let mut notes = Vec::new();
        let message = GsmMessage::decode_with_notes(octets, &mut notes);
        for note in notes.iter().filter(|note| note.what != Noted::Unknown) {
            let text = format!("IE {:#04x} of a 5GSM message: {:?}", note.iei, note.what);
            self.violation("TS 24.501 7.6", text);
        }
        match message {
            Ok(message) => Some(message),
            Err(error) => {
                let ignored = matches!(error.fault, Fault::TooShort | Fault::ReservedPti);
                self.violation(if ignored { "TS 24.501 7.3" } else { "TS 24.501 7.5.1" }, error.to_string());
                if let (Some(cause), &[_, id, pti, ..]) = (error.gsm_cause(), octets) {
                    self.send_gsm_status(id, pti, cause);
                }
                None
            }
        }
    }

    fn send_gsm_status(&mut self, id: u8, pti: u8, cause: GsmCause) {
        self.send_gsm(&GsmMessage::new(id, pti, GsmStatus::new(cause)));
    }

    /// A message with a PTI that no procedure uses (TS 24.501 7.3.1).
    fn refuse_pti(&mut self, id: u8, pti: u8, name: &str) {
        self.violation(
            "TS 24.501 7.3.1",
            format!("{name} for session {id} with PTI {pti}, which is not in use"),
        );
        self.send_gsm_status(id, pti, GsmCause::PtiMismatch);
    }
}

/// Whether the message belongs to no UE-requested procedure, such as the last message of a release
/// or modification: the AMF may have deleted the session when it arrives, or its SMF does not answer.
fn is_final_message(payload: &[u8]) -> bool {
    let message = GsmMessage::decode(payload);
    message.is_ok_and(|message| {
        matches!(
            message.body,
            GsmBody::PduSessionReleaseComplete(_)
                | GsmBody::PduSessionModificationComplete(_)
                | GsmBody::GsmStatus(_)
        )
    })
}

/// The SSC mode that the simulator requests.
const SSC_MODE: SscMode = SscMode::Mode1;

fn is_modification_request(payload: &[u8]) -> bool {
    let message = GsmMessage::decode(payload);
    message.is_ok_and(|message| matches!(message.body, GsmBody::PduSessionModificationRequest(_)))
}
