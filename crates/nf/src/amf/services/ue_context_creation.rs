//! Namf_Communication_CreateUEContext, ReleaseUEContext and N2InfoNotify (TS 29.518 5.2.2.2.3, 5.2.2.2.4, 5.2.2.3.6): a UE is handed over from one
//! AMF to another.
//!
//! What another AMF says of a UE is checked before a context is made of it: identity, sessions, keys and algorithms, the size of each part. The
//! context gives the UE nothing until it is at a gNB of this AMF.

use crate::amf::access_keys::NextHop;
use crate::amf::context::{DeferredAction, UeContext};
use crate::amf::mobility::arrival::{self, Creation};
use crate::amf::mobility::n2_handover::{self, HandoverError};
use crate::amf::mobility::{departure, n14};
use crate::amf::n2::MAX_RADIO_CAPABILITY;
use crate::amf::procedure::context_transfer;
use crate::amf::security::{algorithms_after_handover, is_acceptable};
use crate::amf::{Amf, consumer};
use crate::kit::{Caller, Instant, Outbox, PendingReply};
use pith_crypto::keys::Nh;
use pith_ngap::TargetId;
use pith_sbi::common::UeContextId;
use pith_sbi::namf_communication as namf;
use pith_sbi::{Problem, Reply, Response};
use pith_types::Supi;

/// The UEs that other AMFs are handing over take that part of the UE contexts at most.
const ARRIVING_PART: usize = 8;

/// Octets of a container or a transfer in a request. NGAP itself has no limit.
const MAX_N2_INFORMATION: usize = 64 << 10;

impl Amf {
    /// Namf_Communication_CreateUEContext: the answer waits for SMFs and target gNB.
    pub(super) fn create_ue_context(
        &mut self,
        now: Instant,
        reply: PendingReply,
        request: namf::CreateUeContext,
        out: &mut Outbox,
    ) {
        let (from, name) = (reply.caller(), request.ue_context_id.clone());
        let checked =
            supi_of(&request).and_then(|supi| Ok((self.check((&supi, &name), from, request.body)?, supi)));
        let (creation, supi) = match checked {
            Ok(checked) => checked,
            Err(problem) => return reply.refuse(*problem, out),
        };
        let since = self.shared.config.identity.date_time(now);
        let (ids, index, after) = (&mut self.shared.ids, &mut self.shared.index, &mut self.shared.after);
        let key = self.ues.insert_with(|key| {
            let mut ue = Box::new(UeContext::new((key, ids.allocate(key)), since));
            if let Some(old) = index.claim_arrival(&supi, key) {
                after.push(DeferredAction::Supersede { new: key, old });
            }
            index.name_arrival(name, key);
            ue.supi = Some(supi);
            ue
        });
        let Some(key) = key else {
            return reply.refuse(HandoverError::NotTakenOver.problem(), out);
        };
        self.with_ue(now, key, out, |ue, env| arrival::begin(ue, env, creation, reply));
    }

    /// What the request has, if the handover is possible.
    fn check(
        &self,
        (supi, name): (&Supi, &UeContextId),
        from: Caller,
        data: namf::UeContextCreateData,
    ) -> Result<Creation, Box<Problem>> {
        check_sizes(&data)?;
        let refused = |error: HandoverError| Box::new(error.problem());
        let target = n14::target_of(&data.target_id);
        let target = target.ok_or_else(|| Problem::mandatory_ie_incorrect("/targetId", "not a gNB"))?;
        let TargetId::RanNode { node, tai } = &target else {
            return Err(refused(HandoverError::OtherSystem));
        };
        let gnb = n2_handover::gnb_of(&self.shared.gnbs, node, tai);
        let gnb = gnb.ok_or_else(|| refused(HandoverError::UnknownTarget))?;
        if !self.shared.config.tais.contains(tai) {
            return Err(refused(HandoverError::UnknownTarget));
        }
        // A UE that is connected here is not at another AMF. A context in CM-IDLE may be outdated: it stays until the UE arrives.
        let view = |key| self.ues.view(key);
        let index = &self.shared.index;
        let is_connected = index.find_supi(supi).and_then(view).is_some_and(|ue| ue.connection.is_some());
        // Only the AMF that requested a handover replaces it.
        let arrivals = [index.find_arrival(supi), index.find_arrival_named(name)];
        let is_of_other = arrivals.into_iter().flatten().filter_map(view).any(|ue| !ue.arrives_from(from));
        let most = self.shared.config.max_ues as usize;
        let is_full = self.ues.len() > most || index.arriving() >= most / ARRIVING_PART;
        if is_connected || is_of_other || is_full || self.shared.refuses_new {
            return Err(refused(HandoverError::NotTakenOver));
        }
        let (security, next_hop) =
            self.security_of(&data.ue_context).ok_or_else(|| refused(HandoverError::Security))?;
        Ok(Creation { data, target: (gnb, target), security, next_hop })
    }

    /// The UE's keys, if this AMF can continue with them: its configuration permits algorithms that the UE supports, and K_AMF is the one in
    /// use, or derived from it with a COUNT that the UE gets. HANDOVER REQUEST changes the algorithms ([`arrival::select_algorithms`]).
    fn security_of(&self, context: &namf::UeContext) -> Option<(context_transfer::Received, NextHop)> {
        let (nh, chaining_count) = context.seaf_data.as_ref()?.next_hop()?;
        let received = context_transfer::received_or_derived(context)?;
        if received.is_derived && received.derived_with.is_none() {
            return None;
        }
        let (in_use, capability) = (received.security.nas.algorithms(), received.security.capability);
        let is_permitted = is_acceptable(&capability)
            && algorithms_after_handover(&self.shared.config, &capability, in_use).is_some();
        is_permitted.then_some((received, NextHop { nh: Nh::new(nh), chaining_count }))
    }

    /// Namf_Communication_ReleaseUEContext: only the source AMF may end a handover, and only while the UE is not here.
    pub(super) fn release_ue_context(
        &mut self,
        now: Instant,
        from: Caller,
        request: &namf::ReleaseUeContext,
        out: &mut Outbox,
    ) -> Reply {
        let key = self.find_arrival(&request.ue_context_id);
        let arrival = key.and_then(|key| Some((key, self.ues.view(key)?.arrives_from(from))));
        match arrival {
            Some((key, true)) => {
                self.with_ue(now, key, out, n2_handover::released_by_source);
                Ok(Response::NoContent)
            }
            Some((_, false)) => Err(Problem::of_status(403).detail("the handover is another AMF's").into()),
            None => Err(Problem::context_not_found().detail("no handover of this UE is prepared").into()),
        }
    }

    /// Namf_Communication_N2InfoNotify of the target AMF.
    pub(super) fn n2_info_notify(
        &mut self,
        now: Instant,
        notification: &namf::N2InfoNotify,
        out: &mut Outbox,
    ) -> Reply {
        let name = self.shared.references.name(notification.uri.id()).and_then(consumer::of_handover_name);
        let found = name.and_then(|(ue, number)| Some((self.shared.ids.find(ue)?, number)));
        let is_completion =
            notification.body.notify_reason == Some(namf::N2InfoNotifyReason::HandoverCompleted);
        let mut is_in_progress = false;
        if let Some((key, number)) = found.filter(|_| is_completion) {
            self.with_ue(now, key, out, |ue, env| {
                is_in_progress = departure::completed(ue, env, number, &notification.body);
            });
        }
        if is_in_progress { Ok(Response::NoContent) } else { Err(Problem::context_not_found().into()) }
    }
}

/// The subscriber: the path must not name another one than the body.
fn supi_of(request: &namf::CreateUeContext) -> Result<Supi, Box<Problem>> {
    let named = request.body.ue_context.supi.clone();
    let supi = named.ok_or_else(|| Problem::mandatory_ie_missing("/ueContext/supi"))?;
    match &request.ue_context_id {
        UeContextId::Supi(of_path) if *of_path != supi => {
            Err(Problem::mandatory_ie_incorrect("/ueContext/supi", "not that of the path").into())
        }
        UeContextId::Pei(of_path)
            if request.body.ue_context.pei.as_ref().is_some_and(|pei| pei != of_path) =>
        {
            Err(Problem::mandatory_ie_incorrect("/ueContext/pei", "not that of the path").into())
        }
        _ => Ok(supi),
    }
}

/// Each session once, with an identity that exists, and parts of a limited size.
fn check_sizes(data: &namf::UeContextCreateData) -> Result<(), Box<Problem>> {
    let incorrect = |param, why: &str| Err(Box::new(Problem::mandatory_ie_incorrect(param, why)));
    if !context_transfer::are_session_contexts(&data.ue_context.session_context_list) {
        return incorrect("/ueContext/sessionContextList", "not different PDU sessions of a UE");
    }
    if !context_transfer::are_sessions(data.pdu_session_list.iter().map(|it| it.pdu_session_id)) {
        return incorrect("/pduSessionList", "not different PDU sessions of a UE");
    }
    let contents = data.pdu_session_list.iter().filter_map(|session| session.n2_info_content.as_ref());
    let mut contents = contents.chain([&data.source_to_target_data]);
    if contents.any(|content| content.ngap_data.content.len() > MAX_N2_INFORMATION) {
        return incorrect("/sourceToTargetData", "too long");
    }
    let capability = data.ue_radio_capability.as_ref();
    if capability.is_some_and(|capability| capability.ngap_data.content.len() > MAX_RADIO_CAPABILITY) {
        return incorrect("/ueRadioCapability", "too long");
    }
    Ok(())
}
