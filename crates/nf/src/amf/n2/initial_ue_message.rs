//! INITIAL UE MESSAGE (TS 38.413 8.6.1): which UE context does it belong to?
//!
//! ```text
//!  5G-GUTI or 5G-S-TMSI of this AMF, and the message passes the UE's integrity check
//!      -> the UE's context; a previous connection is released
//!  SERVICE REQUEST, and an outdated security context recognises it
//!      -> the UE's context, in which the UE is authenticated
//!  the same for a UE that is no longer registered, but whose security context is retained
//!      -> a new context, in which the UE is known
//!  anything else
//!      -> a new context, in which the UE is not authenticated
//! ```
//!
//! A message changes a UE's context only if it passes the integrity check of its security context:
//! a forged 5G-GUTI changes nothing (TS 24.501 4.4.4.3).

use super::{Handling, N2Origin, error_indication, release_connection};
use crate::amf::config::{EMERGENCY_UES, HALF_OPEN_CONTEXT};
use crate::amf::connection::RanContext;
use crate::amf::context::{DeferredAction, Env, UeContext, host_of};
use crate::amf::mobility::{departure, n2_handover};
use crate::amf::n1::{self, Refusal, Uplink};
use crate::amf::procedure::{self, service_request, ue_context_release};
use crate::amf::reallocation::Reallocation;
use crate::amf::retained::KnownUe;
use crate::amf::{Amf, ladn, n2};
use crate::kit::document::pack_struct;
use crate::kit::{Instant, Key, Level, Outbox, Timer};
use pith_nas::ie::MobileIdentity;
use pith_nas::{GmmMessage, Kind};
use pith_ngap::{Cause, CauseMisc, CauseRadioNetwork, InitialUeMessage};
use pith_types::{ContextId, FiveGGuti, FiveGSTmsi, FiveGTmsi, RanUeNgapId};
use std::net::IpAddr;

/// Parameters of the INITIAL UE MESSAGE that opened a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Initial {
    /// The gNB requests a UE context.
    pub wants_context: bool,
    /// The NAS message as received, for another AMF that can verify it.
    pub nas_pdu: Vec<u8>,
}

pack_struct!(Initial { wants_context, nas_pdu });

/// The UE context that an initial message belongs to.
enum Owner {
    /// A known UE, whose security context verified the message.
    Known(Key, Result<Uplink, Refusal>),
    /// A deregistered UE, whose retained security context, which has that document, verified the message.
    Former(Box<KnownUe>, Option<ContextId>, Result<Uplink, Refusal>),
    /// A registered UE with an outdated security context, which recognises its SERVICE REQUEST.
    Outdated(Key),
    /// None yet.
    Unknown(Result<Uplink, Refusal>),
}

impl Amf {
    /// Opens a connection, finds the UE context and dispatches the NAS message.
    pub(super) fn initial_ue_message(
        &mut self,
        now: Instant,
        from: N2Origin,
        (message, pdu): (InitialUeMessage, &[u8]),
        out: &mut Outbox,
    ) -> Handling {
        self.drop_stale(now, from, message.ran_ue_ngap_id, out);
        if !self.shared.connections.has_room() {
            out.log(Level::Error, || "the limit of NG connections is reached".into());
            return overloaded(from, &message, out);
        }
        let reallocation = Reallocation::of_initial(&message, pdu);
        let kept = reallocation.as_ref().map_or(0, |it| it.initial.len());
        let (key, uplink) = match self.owner(now, &message) {
            Owner::Known(key, uplink) => (Some(key), Some(uplink)),
            Owner::Former(known, id, uplink) => (self.restore(now, *known, id), Some(uplink)),
            Owner::Outdated(key) => (Some(key), None),
            Owner::Unknown(uplink) => {
                (self.half_open(now, from, kept + octets_kept(message.nas_pdu.len())), Some(uplink))
            }
        };
        let Some(key) = key else {
            out.log(Level::Error, || "the limit of UE contexts is reached".into());
            return overloaded(from, &message, out);
        };
        let mut former = None;
        self.with_ue(now, key, out, |ue, env| {
            former = ue.connection;
            let address = (from.gnb, from.binding);
            let connection = env.connections.open(ue.id.block, address, message.ran_ue_ngap_id);
            attach(ue, env, connection.expect("there is room for one"), &message);
            ue.reallocation = reallocation;
            ue.initial =
                Initial { wants_context: message.ue_context_request.is_some(), nas_pdu: message.nas_pdu };
            begin(ue, env, uplink);
            // The message has been sent to the AMF that can verify it, or is not needed.
            ue.initial.nas_pdu = Vec::new();
        });
        if let Some(former) = former
            && let Some(gnb) = self.shared.connections.get(former).map(|connection| connection.gnb)
        {
            self.note_leaving(key, (former, gnb));
        }
        self.give_up_excess(now, from, out);
        Handling::Processed
    }

    /// Creates a context for an unauthenticated UE.
    pub(in crate::amf) fn half_open(&mut self, now: Instant, from: N2Origin, octets: usize) -> Option<Key> {
        let since = self.shared.config.identity.date_time(now);
        let ids = &mut self.shared.ids;
        let key = self.ues.insert_with(|key| Box::new(UeContext::new((key, ids.allocate(key)), since)))?;
        let octets = HALF_OPEN_CONTEXT + octets;
        let host = host_of(&self.shared.gnbs, Some(from.gnb));
        let place = self.shared.half_open.insert(host, key, octets);
        if let Some(ue) = self.ues.get_mut(key) {
            ue.half_open = Some(place);
        }
        Some(key)
    }

    /// Creates a context for a deregistered UE from its retained data.
    fn restore(&mut self, now: Instant, known: KnownUe, document: Option<ContextId>) -> Option<Key> {
        let KnownUe { supi, pei, guti, security } = known;
        let since = self.shared.config.identity.date_time(now);
        let (ids, index) = (&mut self.shared.ids, &mut self.shared.index);
        let (after, tracker) = (&mut self.shared.after, &mut self.tracker);
        self.ues.insert_with(|key| {
            // In the block of its 5G-TMSI, so that both have one owner.
            let id = ids.allocate_in(guti.tmsi.block(), key);
            document.iter().for_each(|document| tracker.inherit(id, *document));
            let mut ue = Box::new(UeContext::new((key, id), since));
            index.claim_tmsi(guti.tmsi, key);
            if let Some(old) = index.claim_supi(&supi, key) {
                after.push(DeferredAction::Supersede { new: key, old });
            }
            ue.capability = Some(security.capability);
            (ue.supi, ue.pei, ue.guti, ue.security) = (Some(supi), pei, Some(guti), Some(security));
            ue
        })
    }

    /// Aborts registrations beyond the limits of unauthenticated UEs.
    pub(in crate::amf) fn give_up_excess(&mut self, now: Instant, from: N2Origin, out: &mut Outbox) {
        let host = host_of(&self.shared.gnbs, Some(from.gnb));
        while let Some(key) = self.excess(host) {
            self.with_ue(now, key, out, |ue, env| {
                ue.log_outcome(
                    env,
                    Level::Debug,
                    "Registration",
                    "aborted: too many unauthenticated registrations",
                );
                procedure::abort(ue, env);
                n2::release(ue, env, Cause::Misc(CauseMisc::control_processing_overload));
            });
        }
    }

    /// The registration to abort next, after a message from a gNB of that host. Registrations for emergency services hold only a part of the
    /// contexts beyond `max_ues`: UEs that do not answer would take all of them until T3560 has expired five times.
    fn excess(&mut self, host: IpAddr) -> Option<Key> {
        let half_open = &mut self.shared.half_open;
        let most = self.shared.config.max_ues.saturating_add(EMERGENCY_UES);
        if self.ues.len() > most as usize {
            return half_open.evict_of_largest();
        }
        half_open.evict(host)
    }

    /// A gNB reuses a RAN-UE-NGAP-ID only when the id is no longer in use (TS 38.413 8.6.1.2):
    /// the connection that had the id is closed.
    pub(in crate::amf) fn drop_stale(
        &mut self,
        now: Instant,
        from: N2Origin,
        ran_id: RanUeNgapId,
        out: &mut Outbox,
    ) {
        if let Some(stale) = self.shared.connections.find_by_ran(from.gnb, ran_id) {
            self.connection_lost(now, stale, out);
        }
    }

    /// Finds the UE by the temporary identity in the message, if the UE's security context verifies
    /// the message.
    fn owner(&mut self, now: Instant, message: &InitialUeMessage) -> Owner {
        let pdu = &message.nas_pdu;
        let uplink = open_unverified(pdu);
        let claimed = match &uplink {
            Ok(uplink) => self.claimed_tmsi(&uplink.message),
            Err(_) => message.s_tmsi.and_then(|s_tmsi| self.own_tmsi(s_tmsi)),
        };
        // The end of its document can't be stored: the next process would use the same COUNTs.
        let retained = claimed.filter(|_| !self.shared.refuses_new);
        if let Some((known, id, checked)) =
            retained.and_then(|tmsi| self.shared.index.retained.take(tmsi, pdu, now))
        {
            let uplink = match uplink {
                Ok(uplink) => Ok(Uplink { verified: Some(checked.count), ..uplink }),
                Err(_) => n1::of_plain(&checked),
            };
            return Owner::Former(Box::new(known), id, uplink);
        }
        let candidate = claimed.and_then(|tmsi| self.shared.index.find_tmsi(tmsi));
        let ue = candidate.and_then(|key| self.ues.get_mut(key));
        let Some((key, ue)) = candidate.zip(ue) else { return Owner::Unknown(uplink) };
        match (ue.verify_initial(pdu), uplink) {
            (Some(checked), Ok(uplink)) => {
                Owner::Known(key, Ok(Uplink { verified: Some(checked.count), ..uplink }))
            }
            (Some(checked), Err(_)) => Owner::Known(key, n1::of_plain(&checked)),
            (None, uplink) if recognise(ue, &uplink, pdu) => Owner::Outdated(key),
            (None, uplink) => Owner::Unknown(uplink),
        }
    }

    /// The 5G-TMSI in a message, if this AMF allocated it.
    fn claimed_tmsi(&self, message: &GmmMessage) -> Option<FiveGTmsi> {
        let own = |guti: &FiveGGuti| self.shared.config.serves(&guti.guami);
        let identity = match message {
            GmmMessage::RegistrationRequest(request) => {
                return request.gutis().find(own).map(|guti| guti.tmsi);
            }
            GmmMessage::ServiceRequest(request) => &request.s_tmsi,
            GmmMessage::DeregistrationRequestUeOriginating(request) => &request.mobile_identity,
            _ => return None,
        };
        match identity {
            MobileIdentity::FiveGGuti(guti) => own(guti).then_some(guti.tmsi),
            MobileIdentity::FiveGSTmsi(s_tmsi) => self.own_tmsi(*s_tmsi),
            _ => None,
        }
    }

    pub(in crate::amf) fn own_tmsi(&self, s_tmsi: FiveGSTmsi) -> Option<FiveGTmsi> {
        self.shared.config.serves_s_tmsi(s_tmsi).then_some(s_tmsi.tmsi)
    }
}

/// Octets that a NAS message of an unauthenticated UE occupies at most: the message is kept decoded, with a copy of what is
/// encoded inside.
pub(in crate::amf) const fn octets_kept(nas_octets: usize) -> usize {
    2 * nas_octets
}

/// The limit of UE contexts is reached: answers the gNB.
fn overloaded(from: N2Origin, message: &InitialUeMessage, out: &mut Outbox) -> Handling {
    let cause = Cause::Misc(CauseMisc::control_processing_overload);
    error_indication(from, None, Some(message.ran_ue_ngap_id), cause, None, out);
    Handling::Discarded
}

/// Decodes a message without an integrity check, if its type permits that.
fn open_unverified(pdu: &[u8]) -> Result<Uplink, Refusal> {
    match pith_nas::peek(pdu) {
        Some(Kind::PlainGmm(_)) => n1::open_plain(false, pdu),
        _ => n1::open_unverified(pdu),
    }
}

/// Assigns the connection to the UE. A previous connection is stale: otherwise the UE would not
/// have started another one.
fn attach(ue: &mut UeContext, env: &mut Env<'_>, key: Key, message: &InitialUeMessage) {
    let was_transferred = ue.transferred_to.take().is_some();
    if was_transferred {
        env.index.note_moving(ue.key, false);
    }
    if was_transferred || departure::may_be_complete(ue) {
        // The other AMF, or the target of a handover, may have announced itself to the SMFs.
        ue.sessions.iter_mut().for_each(|session| session.note_active(true));
    }
    if let Some(old) = ue.connection.take() {
        ue_context_release::on_connection_lost(ue, env);
        let cause = Cause::RadioNetwork(CauseRadioNetwork::release_due_to_cn_detected_mobility);
        release_connection(env, old, cause);
        if let Some(old) = env.connections.get_mut(old) {
            old.detach(ue);
        }
    } else if n2_handover::outlives_source(ue) {
        ue_context_release::on_connection_lost(ue, env);
    }
    if let Some(connection) = env.connections.get_mut(key) {
        debug_assert_eq!(connection.context, RanContext::Absent);
        connection.ue = Some(ue.key);
    }
    ue.connection = Some(key);
    ue.stop(env, Timer::TransferredContext);
    ladn::relocate(ue, env, Some(message.location));
    ue.stop(env, Timer::MobileReachable);
    ue.stop(env, Timer::ImplicitDeregistration);
}

/// Whether the message is a SERVICE REQUEST of a registered UE with an outdated security context. Its REGISTRATION REQUEST begins in a
/// context of its own, which takes the sessions over when the UE is authenticated.
fn recognise(ue: &mut UeContext, uplink: &Result<Uplink, Refusal>, pdu: &[u8]) -> bool {
    matches!(uplink, Ok(Uplink { message: GmmMessage::ServiceRequest(_), .. }))
        && ue.is_registered()
        && ue.recognise_outdated(pdu)
}

/// Dispatches the message, or answers that it is invalid; `None` is a SERVICE REQUEST that an outdated security context recognises.
fn begin(ue: &mut UeContext, env: &mut Env<'_>, uplink: Option<Result<Uplink, Refusal>>) {
    let Some(uplink) = uplink else {
        let outcome = service_request::authenticate(ue, env);
        return n1::log_outcome(ue, env, "ServiceRequest", outcome);
    };
    let (name, outcome) = match uplink {
        Ok(uplink) => {
            if let Some(count) = uplink.verified {
                ue.k_gnb_count = count;
            }
            (uplink.message.name(), n1::dispatch(ue, env, uplink))
        }
        Err(refusal) => ("?", n1::refuse(ue, env, &refusal)),
    };
    n1::log_outcome(ue, env, name, outcome);
}
