//! N2 handover: source gNB and target gNB (TS 38.413 8.4.1 to 8.4.7; TS 33.501 6.9.2.3.3).
//!
//! ```text
//!  source gNB                          AMF                          target gNB
//!   |    HANDOVER REQUIRED ->           |                                |
//!   |                                   |    HANDOVER REQUEST ->         |   NH, NCC, sessions
//!   |                                   | <- HANDOVER REQUEST ACKNOWLEDGE|   the target's tunnels
//!   | <- HANDOVER COMMAND               |                                |
//!   |    UPLINK RAN STATUS TRANSFER ->  |    DOWNLINK … ->               |   the UE moves
//!   |                                   | <- HANDOVER NOTIFY             |
//!   | <- UE CONTEXT RELEASE COMMAND     |                                |
//! ```

use super::containers::{MAX_NAS_CONTAINER, command_in, source_to_target, target_to_source, ue_of};
use super::handover::{AsKeys, Cell};
use super::{Gnb, Output, UeContext, UeKey};
use pith_crypto::kdf;
use pith_crypto::keys::Nh;
use pith_ngap::transfer::{
    HandoverCommandTransfer, HandoverPreparationUnsuccessfulTransfer, HandoverRequestAcknowledgeTransfer,
    HandoverRequiredTransfer, HandoverResourceAllocationUnsuccessfulTransfer, Tunnel,
};
use pith_ngap::{
    Cause, CauseProtocol, CauseRadioNetwork, DownlinkRanStatusTransfer, GlobalRanNodeId, HandoverCancel,
    HandoverCancelAcknowledge, HandoverCommand, HandoverFailure, HandoverNotify, HandoverPreparationFailure,
    HandoverRequest, HandoverRequestAcknowledge, HandoverRequired, HandoverType, RanStatus, SessionTransfer,
    SetupItem, TargetId, UeContextReleaseRequest, UplinkRanStatusTransfer,
};
use pith_types::{RanUeNgapId, Tai};
use std::time::Duration;

/// The part of a context in an N2 handover.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Part {
    /// None.
    #[default]
    None,
    /// HANDOVER REQUIRED was sent, with these sessions: bit N for PDU session identity N. A session that was set up later, because the
    /// AMF's request crossed it, is in none of the AMF's messages about the handover.
    Preparing { sessions: u16 },
    /// The UE has left this gNB.
    Left,
    /// The UE is expected at this gNB.
    Arriving,
}

/// Time that the source gNB waits for the release of a UE that has left (TNGRELOCoverall).
const OVERALL: Duration = Duration::from_secs(8);

/// The bit of a PDU session identity that a UE allocates (1 to 15, TS 24.007 11.2.3.1b).
const fn bit(session: u8) -> u16 {
    1 << (session & 15)
}

const fn gnb_id(node: &GlobalRanNodeId) -> Option<u32> {
    match node {
        GlobalRanNodeId::Gnb { id, .. } => Some(*id),
        _ => None,
    }
}

/// The PDCP counts of a UE's data radio bearer: those of the downlink name the UE, by its low 20 bits.
fn counts(UeKey(ue): UeKey) -> [u8; 12] {
    let [_, high, middle, low] = ue.to_be_bytes();
    // The sequence number has 12 bits in two octets. The hyper frame number has one, after an octet with its length.
    [0, 0, 0, 0, 0, 0, 0, 0, high & 0x0f, middle, 0, low]
}

impl Gnb {
    /// Its Global RAN Node ID.
    pub fn node(&self) -> GlobalRanNodeId {
        GlobalRanNodeId::Gnb { plmn: self.settings.plmn, id: self.settings.id, bits: 32 }
    }

    /// Requests the handover of a UE with bearers to another gNB (TS 38.413 8.4.1.2).
    pub(super) fn require_handover(&mut self, ue: UeKey, node: GlobalRanNodeId, tai: Tai) {
        let ids = self.ids_of(ue);
        let context = ids.and_then(|(ran_id, _)| self.contexts.get_mut(&ran_id));
        let context = context.filter(|context| {
            let is_busy = !(context.switching.is_empty() && context.moving.is_empty());
            !context.bearers.is_empty() && !is_busy && context.part == Part::None
        });
        let (Some((ran_ue_ngap_id, Some(amf_ue_ngap_id))), Some(context), Some(target)) =
            (ids, context, gnb_id(&node))
        else {
            return self.out.push(Output::HandoverFailed { ue, refused: false });
        };
        let sessions = context.bearers.iter().fold(0, |sessions, bearer| sessions | bit(bearer.session));
        context.part = Part::Preparing { sessions };
        let container = source_to_target(ue, self.settings.plmn, target, self.settings.id);
        let transfer = HandoverRequiredTransfer { direct_forwarding_path: false }.encode();
        let item = |session| SessionTransfer { pdu_session_id: session, transfer: transfer.clone() };
        let message = HandoverRequired {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            handover_type: HandoverType::intra5gs,
            cause: Some(Cause::RadioNetwork(CauseRadioNetwork::handover_desirable_for_radio_reason)),
            target: TargetId::RanNode { node, tai },
            direct_forwarding_path: None,
            sessions: context.bearers.iter().map(|bearer| item(bearer.session)).collect(),
            source_to_target: container,
        };
        self.send(self.stream_for(ran_ue_ngap_id), message.encode());
    }

    /// HANDOVER REQUEST (TS 38.413 8.4.2.2): the gNB prepares a context.
    pub(super) fn receive_handover_request(&mut self, stream: super::N2Stream, request: HandoverRequest) {
        let Some(ue) = ue_of(&request.source_to_target) else {
            self.violation(
                "TS 38.413 9.3.1.20",
                "the AMF changed the transparent container of the source gNB",
            );
            return self.refuse_handover(stream, &request);
        };
        if request.nas_container.as_ref().is_some_and(|container| container.len() > MAX_NAS_CONTAINER) {
            self.violation("TS 24.501 9.11.2.6", "a NAS container that is too long");
            return self.refuse_handover(stream, &request);
        }
        self.check_handover_request(stream, &request);
        let ran_ue_ngap_id = self.allocate_ran_id();
        let Cell { pci, arfcn } = self.cell();
        let next = &request.security_context;
        let key = kdf::k_ng_ran_star_vertical(&Nh::new(next.nh), pci, arfcn);
        let keys = AsKeys {
            key: *key.as_bytes(),
            chaining_count: next.chaining_count,
            fresh: None,
            capabilities: request.security_capabilities,
        };
        let context = UeContext {
            ue,
            amf_id: Some(request.amf_ue_ngap_id),
            association: stream.association,
            amf_stream: Some(stream.number),
            is_set_up: true,
            bearers: Vec::new(),
            keys: Some(keys),
            is_emergency: false,
            switching: Vec::new(),
            moving: Vec::new(),
            part: Part::Arriving,
            traces: Vec::new(),
        };
        self.contexts.insert(ran_ue_ngap_id, context);
        if let Some(activation) = &request.trace {
            self.activate_trace(ran_ue_ngap_id, activation);
        }
        let (admitted, failed) = self.admit(ran_ue_ngap_id, &request);
        if admitted.is_empty() {
            self.contexts.remove(&ran_ue_ngap_id);
            return self.refuse_handover(stream, &request);
        }
        let acknowledge = HandoverRequestAcknowledge {
            amf_ue_ngap_id: request.amf_ue_ngap_id,
            ran_ue_ngap_id,
            admitted: Some(admitted),
            failed: (!failed.is_empty()).then_some(failed),
            target_to_source: target_to_source(self.cell(), request.nas_container.as_deref()),
            diagnostics: None,
        };
        self.send(self.stream_for(ran_ue_ngap_id), acknowledge.encode());
    }

    fn check_handover_request(&mut self, stream: super::N2Stream, request: &HandoverRequest) {
        if !self.amf.guamis.contains(&request.guami) {
            self.violation(
                "TS 38.413 9.2.3.4",
                format!("GUAMI {:?} is not served by the AMF", request.guami),
            );
        }
        if request.allowed_nssai.is_empty() || request.allowed_nssai.len() > 8 {
            self.violation("TS 38.413 9.3.1.31", "Allowed NSSAI without slices, or with too many");
        }
        self.check_restrictions(request.mobility_restrictions.as_ref(), true);
        if stream.number == super::COMMON_STREAM.number && self.links.streams(stream.association) > 1 {
            self.violation(
                "TS 38.412 7",
                "HANDOVER REQUEST on the stream reserved for messages without a UE",
            );
        }
        if self.find_by_amf_id(request.amf_ue_ngap_id).is_some() {
            self.violation("TS 38.413 8.4.2.2", "HANDOVER REQUEST with an AMF UE NGAP ID in use");
        }
    }

    /// Sets each session up; its bearers are in use once the UE has arrived.
    fn admit(
        &mut self,
        ran_id: RanUeNgapId,
        request: &HandoverRequest,
    ) -> (Vec<SessionTransfer>, Vec<SessionTransfer>) {
        let (mut admitted, mut failed) = (Vec::new(), Vec::new());
        let earlier = self.out.len();
        for session in &request.sessions {
            let pdu_session_id = session.pdu_session_id;
            let instances =
                request.sessions.iter().filter(|other| other.pdu_session_id == pdu_session_id).count();
            let item = SetupItem {
                pdu_session_id,
                nas_pdu: None,
                snssai: session.snssai,
                transfer: session.transfer.clone(),
            };
            match self.set_up_session(ran_id, &item, instances) {
                Ok(set_up) => {
                    let transfer = HandoverRequestAcknowledgeTransfer {
                        downlink: set_up.downlink,
                        forwarding: self.forwarding_tunnel(ran_id, pdu_session_id),
                        flows: set_up.flows.into_iter().map(|qfi| (qfi, true)).collect(),
                        additional: Vec::new(),
                        failed: Vec::new(),
                    };
                    admitted.push(SessionTransfer { pdu_session_id, transfer: transfer.encode() });
                }
                Err(cause) => {
                    let transfer = HandoverResourceAllocationUnsuccessfulTransfer { cause }.encode();
                    failed.push(SessionTransfer { pdu_session_id, transfer });
                }
            }
        }
        let new = self.out.split_off(earlier);
        self.out.extend(new.into_iter().filter(|output| !matches!(output, Output::BearerUp { .. })));
        (admitted, failed)
    }

    /// A tunnel for packets of the source gNB.
    fn forwarding_tunnel(&mut self, ran_id: RanUeNgapId, session: u8) -> Option<Tunnel> {
        let context = self.contexts.get(&ran_id)?;
        let (ue, bearer) = (context.ue, *context.bearers.iter().find(|bearer| bearer.session == session)?);
        let teid = self.allocate_teid();
        self.out.push(Output::ForwardingTunnel { ue, teid, bearer });
        Some(Tunnel { address: self.settings.n3, teid })
    }

    fn refuse_handover(&mut self, stream: super::N2Stream, request: &HandoverRequest) {
        let cause = Cause::Protocol(CauseProtocol::semantic_error);
        let failure =
            HandoverFailure { amf_ue_ngap_id: request.amf_ue_ngap_id, cause: Some(cause), diagnostics: None };
        self.send(stream, failure.encode());
    }

    /// HANDOVER COMMAND: the UE leaves for the target cell (TS 38.413 8.4.1.2, 8.4.6.2).
    pub(super) fn receive_handover_command(&mut self, stream: super::N2Stream, command: HandoverCommand) {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (command.amf_ue_ngap_id, command.ran_ue_ngap_id);
        let Some(known) = self.check_ids("HandoverCommand", amf_ue_ngap_id, ran_ue_ngap_id, stream) else {
            return;
        };
        let Some(context) = self.contexts.get_mut(&known.0) else { return };
        let Part::Preparing { sessions } = context.part else {
            return self.violation("TS 38.413 8.4.1.1", "HANDOVER COMMAND without HANDOVER REQUIRED");
        };
        let ue = context.ue;
        self.check_command(&command, sessions);
        let Some((cell, nas_container)) = command_in(&command.target_to_source) else {
            return self.violation(
                "TS 38.413 9.3.1.21",
                "the AMF changed the transparent container of the target gNB",
            );
        };
        if let Some(context) = self.contexts.get_mut(&known.0) {
            context.part = Part::Left;
        }
        self.ran_ids.remove(&ue);
        self.departures.push_back((self.now + OVERALL, known.0));
        if let Ok(status) = RanStatus::decode(&counts(ue)) {
            let transfer = UplinkRanStatusTransfer { amf_ue_ngap_id, ran_ue_ngap_id, status };
            self.send(self.stream_for(ran_ue_ngap_id), transfer.encode());
        }
        self.out.push(Output::Leaving { ue, cell, nas_container });
    }

    /// The UE does not accept the handover command: it has established its connection here again (TS 38.331 5.3.5.8.2), and the gNB cancels the
    /// handover (TS 38.413 8.4.5.2).
    pub(super) fn take_back(&mut self, ue: UeKey) {
        let mut contexts = self.contexts.iter_mut();
        let found = contexts.find(|(_, context)| context.ue == ue && context.part == Part::Left);
        let Some((ran_id, context)) = found else { return };
        let ran_ue_ngap_id = *ran_id;
        context.part = Part::None;
        let Some(amf_ue_ngap_id) = context.amf_id else { return };
        self.ran_ids.insert(ue, ran_ue_ngap_id);
        self.departures.retain(|(_, id)| *id != ran_ue_ngap_id);
        let cause = Some(Cause::RadioNetwork(CauseRadioNetwork::handover_cancelled));
        let cancel = HandoverCancel { amf_ue_ngap_id, ran_ue_ngap_id, cause };
        self.send(self.stream_for(ran_ue_ngap_id), cancel.encode());
    }

    /// HANDOVER CANCEL ACKNOWLEDGE (TS 38.413 8.4.5.2).
    pub(super) fn receive_cancel_acknowledge(
        &mut self,
        stream: super::N2Stream,
        message: &HandoverCancelAcknowledge,
    ) {
        let ids = (message.amf_ue_ngap_id, message.ran_ue_ngap_id);
        // No state depends on it.
        let _ = self.check_ids("HandoverCancelAcknowledge", ids.0, ids.1, stream);
    }

    fn check_command(&mut self, command: &HandoverCommand, required: u16) {
        let sessions = command.sessions.as_deref().unwrap_or_default();
        let bearers = self.contexts.get(&command.ran_ue_ngap_id).map(|context| context.bearers.clone());
        let listed = |id: u8| {
            let all = sessions.iter().chain(command.to_release.iter().flatten());
            all.filter(|item| item.pdu_session_id == id).count()
        };
        for bearer in bearers.unwrap_or_default() {
            if required & bit(bearer.session) != 0 && listed(bearer.session) != 1 {
                let text = format!(
                    "PDU session {} is in HANDOVER COMMAND {} times",
                    bearer.session,
                    listed(bearer.session)
                );
                self.violation("TS 38.413 8.4.1.2", text);
            }
        }
        for item in sessions {
            match HandoverCommandTransfer::decode(&item.transfer) {
                Ok(transfer) => self.forward(command.ran_ue_ngap_id, item.pdu_session_id, &transfer),
                Err(error) => self.violation("TS 38.413 9.3.4.10", error.to_string()),
            }
        }
        for item in command.to_release.iter().flatten() {
            if let Err(error) = HandoverPreparationUnsuccessfulTransfer::decode(&item.transfer) {
                self.violation("TS 38.413 9.3.4.18", error.to_string());
            }
        }
    }

    /// The gNBs have no path of their own: the tunnel is one of the UPF, for the flows that the target gNB takes.
    fn forward(&mut self, ran_id: RanUeNgapId, session: u8, transfer: &HandoverCommandTransfer) {
        let Some(context) = self.contexts.get(&ran_id) else { return };
        let bearer = context.bearers.iter().find(|bearer| bearer.session == session).copied();
        if let (Some(bearer), Some(to)) = (bearer, transfer.forwarding) {
            let ue = context.ue;
            if transfer.flows.is_empty() {
                self.violation("TS 38.413 9.3.4.10", "a tunnel for forwarded packets, but no QoS flows");
            }
            self.out.push(Output::Forward { ue, bearer, to });
        }
    }

    /// HANDOVER PREPARATION FAILURE: the UE stays (TS 38.413 8.4.1.3).
    pub(super) fn receive_preparation_failure(
        &mut self,
        stream: super::N2Stream,
        failure: &HandoverPreparationFailure,
    ) {
        let ids = (failure.amf_ue_ngap_id, failure.ran_ue_ngap_id);
        let Some(known) = self.check_ids("HandoverPreparationFailure", ids.0, ids.1, stream) else { return };
        let Some(context) = self.contexts.get_mut(&known.0) else { return };
        if matches!(context.part, Part::Preparing { .. }) {
            context.part = Part::None;
            let ue = context.ue;
            self.out.push(Output::HandoverFailed { ue, refused: true });
        }
    }

    /// The UE is in the target cell: HANDOVER NOTIFY (TS 38.413 8.4.3.2). If the gNB does not expect it, it loses its connection.
    pub(super) fn arrive(&mut self, ue: UeKey) {
        let mut contexts = self.contexts.iter_mut();
        let found = contexts.find(|(_, context)| context.ue == ue && context.part == Part::Arriving);
        let Some((ran_id, context)) = found else { return self.out.push(Output::Released { ue }) };
        let ran_ue_ngap_id = *ran_id;
        context.part = Part::None;
        let (Some(amf_ue_ngap_id), Some(keys)) = (context.amf_id, context.keys.clone()) else { return };
        let bearers = context.bearers.clone();
        self.ran_ids.insert(ue, ran_ue_ngap_id);
        let (key, chaining_count) = (keys.key, keys.chaining_count);
        self.out.push(Output::HandedOver { ue, key, chaining_count, cell: self.cell() });
        for bearer in bearers {
            self.out.push(Output::BearerUp { ue, bearer });
        }
        let notify = HandoverNotify { amf_ue_ngap_id, ran_ue_ngap_id, location: Some(self.location()) };
        self.send(self.stream_for(ran_ue_ngap_id), notify.encode());
        self.out.push(Output::PathSwitched { ue });
    }

    /// DOWNLINK RAN STATUS TRANSFER: the counts of the source gNB (TS 38.413 8.4.7.2).
    pub(super) fn receive_status_transfer(
        &mut self,
        stream: super::N2Stream,
        message: &DownlinkRanStatusTransfer,
    ) {
        let ids = (message.amf_ue_ngap_id, message.ran_ue_ngap_id);
        let Some(known) = self.check_ids("DownlinkRanStatusTransfer", ids.0, ids.1, stream) else { return };
        let expected = self.contexts.get(&known.0).map(|context| counts(context.ue));
        if expected.is_some_and(|expected| message.status.encode() != expected) {
            self.violation("TS 38.413 8.4.7.2", "the AMF changed the PDCP counts of the source gNB");
        }
    }

    /// The AMF did not release UEs that have left: the source gNB requests it (TS 38.413 8.3.2.2).
    pub(super) fn request_overdue_releases(&mut self) {
        while let Some((_, ran_ue_ngap_id)) = self.departures.pop_front_if(|(due, _)| *due <= self.now) {
            let context = self.contexts.get(&ran_ue_ngap_id).filter(|context| context.part == Part::Left);
            let Some(amf_ue_ngap_id) = context.and_then(|context| context.amf_id) else { continue };
            let cause = Some(Cause::RadioNetwork(CauseRadioNetwork::tngrelocoverall_expiry));
            let request = UeContextReleaseRequest { amf_ue_ngap_id, ran_ue_ngap_id, sessions: None, cause };
            self.send(self.stream_for(ran_ue_ngap_id), request.encode());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_one_bearer_and_differ_by_ue() {
        for ue in [0, 1, 255, 256, 999, 0x0f_ffff] {
            let octets = counts(UeKey(ue));
            let status = RanStatus::decode(&octets).unwrap();
            assert_eq!(status.encode(), octets, "{ue}");
        }
        assert_ne!(counts(UeKey(1)), counts(UeKey(257)));
    }
}
