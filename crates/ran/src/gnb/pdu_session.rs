//! PDU session resources (TS 38.413 8.2).
//!
//! ```text
//!  gNB                                            AMF
//!   | <- PDU SESSION RESOURCE SETUP REQUEST        |   UPF's tunnel, QoS flows, NAS
//!   |    PDU SESSION RESOURCE SETUP RESPONSE ->    |   the gNB's tunnel
//!   | <- PDU SESSION RESOURCE RELEASE COMMAND      |
//!   |    PDU SESSION RESOURCE RELEASE RESPONSE ->  |
//! ```

use super::n2_handover::Part;
use super::{Bearer, Gnb, Output, UeContext};
use pith_ngap::transfer::{
    ModifyRequestTransfer, ModifyResponseTransfer, ModifyUnsuccessfulTransfer, QosFlow,
    ReleaseCommandTransfer, ReleaseResponseTransfer, SetupRequestTransfer, SetupResponseTransfer,
    SetupUnsuccessfulTransfer, Tunnel, TunnelChange,
};
use pith_ngap::{
    Cause, CauseProtocol, CauseRadioNetwork, ModifyItem, PduSessionResourceModifyRequest,
    PduSessionResourceModifyResponse, PduSessionResourceReleaseCommand, PduSessionResourceReleaseResponse,
    PduSessionResourceSetupRequest, PduSessionResourceSetupResponse, SessionTransfer, SetupItem,
};
use pith_types::{RanUeNgapId, Teid};

/// The result of setting up a list of sessions.
pub(super) struct SetupResult {
    /// For the response; `None` if empty.
    pub setup: Option<Vec<SessionTransfer>>,
    /// For the response; `None` if empty.
    pub failed: Option<Vec<SessionTransfer>>,
    /// NAS messages of the sessions that were set up.
    pub nas: Vec<Vec<u8>>,
}

impl Gnb {
    /// PDU SESSION RESOURCE SETUP REQUEST (TS 38.413 8.2.1.2).
    pub(super) fn receive_setup_request(
        &mut self,
        stream: super::N2Stream,
        request: PduSessionResourceSetupRequest,
    ) {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (request.amf_ue_ngap_id, request.ran_ue_ngap_id);
        let known = self.check_ids("PduSessionResourceSetupRequest", amf_ue_ngap_id, ran_ue_ngap_id, stream);
        let Some(known) = known else { return };
        let stream = self.stream_for(known.0);
        if !self.contexts.get(&known.0).is_some_and(|context| context.is_set_up) {
            let text = "PDU SESSION RESOURCE SETUP REQUEST for a UE without AS security";
            self.violation("TS 38.413 8.2.1.1", text);
        }
        let sessions = self.set_up_sessions(known.0, request.sessions);
        let response = PduSessionResourceSetupResponse {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            setup: sessions.setup,
            failed: sessions.failed,
            diagnostics: None,
        };
        self.send(stream, response.encode());
        for nas in request.nas_pdu.into_iter().chain(sessions.nas) {
            self.deliver_nas(known.0, nas);
        }
    }

    /// Sets up each session independently. The NAS message of a failed session is not delivered (TS
    /// 38.413 8.2.1.2).
    pub(super) fn set_up_sessions(&mut self, ran_id: RanUeNgapId, items: Vec<SetupItem>) -> SetupResult {
        let (mut setup, mut failed, mut nas) = (Vec::new(), Vec::new(), Vec::new());
        let ids: Vec<u8> = items.iter().map(|item| item.pdu_session_id).collect();
        for item in items {
            let pdu_session_id = item.pdu_session_id;
            let instances = ids.iter().filter(|id| **id == pdu_session_id).count();
            match self.set_up_session(ran_id, &item, instances) {
                Ok(transfer) => {
                    setup.push(SessionTransfer { pdu_session_id, transfer: transfer.encode() });
                    nas.extend(item.nas_pdu);
                }
                Err(cause) => {
                    let transfer = SetupUnsuccessfulTransfer { cause }.encode();
                    failed.push(SessionTransfer { pdu_session_id, transfer });
                }
            }
        }
        SetupResult { setup: listed(setup), failed: listed(failed), nas }
    }

    pub(super) fn set_up_session(
        &mut self,
        ran_id: RanUeNgapId,
        item: &SetupItem,
        instances: usize,
    ) -> Result<SetupResponseTransfer, Cause> {
        self.check_handover(ran_id)?;
        let transfer = self.check_setup_item(ran_id, item, instances)?;
        let downlink = self.allocate_teid();
        let flows: Vec<u8> = transfer.flows.iter().map(|flow| flow.qfi).collect();
        let bearer = Bearer {
            session: item.pdu_session_id,
            uplink: transfer.uplink,
            downlink,
            n3: self.settings.n3,
            qfi: flows.first().copied().unwrap_or_default(),
            flows: flows.iter().copied().collect(),
            reflective: transfer.flows.iter().filter(|flow| flow.reflective).map(|flow| flow.qfi).collect(),
            ambr: transfer.session_ambr,
        };
        if let Some(context) = self.contexts.get_mut(&ran_id) {
            context.bearers.push(bearer);
            self.out.push(Output::BearerUp { ue: context.ue, bearer });
        }
        let downlink = Tunnel { address: self.settings.n3, teid: downlink };
        Ok(SetupResponseTransfer { downlink, flows, additional: Vec::new(), failed: Vec::new() })
    }

    /// A gNB sets up and modifies nothing for a UE that it hands over (TS 38.413 8.2.1.2, 8.2.3.2). While the handover is prepared, some gNBs do.
    fn check_handover(&self, ran_id: RanUeNgapId) -> Result<(), Cause> {
        let refuses = self.contexts.get(&ran_id).is_some_and(|context| match context.part {
            Part::Left => true,
            Part::Preparing { .. } => ran_id.0 & 1 == 1,
            Part::None | Part::Arriving => false,
        });
        if refuses {
            return Err(Cause::RadioNetwork(CauseRadioNetwork::ng_intra_system_handover_triggered));
        }
        Ok(())
    }

    pub(super) fn allocate_teid(&mut self) -> Teid {
        let teid = Teid(self.next_teid);
        self.next_teid = self.next_teid.wrapping_add(1).max(1);
        teid
    }

    /// The abnormal conditions of TS 38.413 8.2.1.4.
    fn check_setup_item(
        &mut self,
        ran_id: RanUeNgapId,
        item: &SetupItem,
        instances: usize,
    ) -> Result<SetupRequestTransfer, Cause> {
        let id = item.pdu_session_id;
        let has = |context: &UeContext| context.bearers.iter().any(|bearer| bearer.session == id);
        if instances > 1 || self.contexts.get(&ran_id).is_some_and(has) {
            self.violation("TS 38.413 8.2.1.4", format!("setup of PDU session {id} requested twice"));
            return Err(Cause::RadioNetwork(CauseRadioNetwork::multiple_PDU_session_ID_instances));
        }
        if !self.settings.slices.contains(&item.snssai) {
            self.violation(
                "TS 38.413 8.2.1.2",
                format!("PDU session {id} in slice {}, not the gNB's", item.snssai),
            );
            return Err(Cause::RadioNetwork(CauseRadioNetwork::slice_not_supported));
        }
        let transfer = SetupRequestTransfer::decode(&item.transfer).map_err(|error| {
            self.violation("TS 38.413 9.3.4.1", format!("PDU session {id}: {error}"));
            error.cause()
        })?;
        match fault_of_transfer(&transfer) {
            None => Ok(transfer),
            Some(why) => {
                self.violation("TS 38.413 8.2.1.4", format!("PDU session {id}: {why}"));
                Err(Cause::Protocol(CauseProtocol::semantic_error))
            }
        }
    }

    /// PDU SESSION RESOURCE RELEASE COMMAND (TS 38.413 8.2.2.2).
    pub(super) fn receive_release_command(
        &mut self,
        stream: super::N2Stream,
        command: PduSessionResourceReleaseCommand,
    ) {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (command.amf_ue_ngap_id, command.ran_ue_ngap_id);
        let known =
            self.check_ids("PduSessionResourceReleaseCommand", amf_ue_ngap_id, ran_ue_ngap_id, stream);
        let Some(known) = known else { return };
        let stream = self.stream_for(known.0);
        for item in &command.sessions {
            self.release_session(known.0, item);
        }
        let released = |item: &SessionTransfer| SessionTransfer {
            pdu_session_id: item.pdu_session_id,
            transfer: ReleaseResponseTransfer.encode(),
        };
        let response = PduSessionResourceReleaseResponse {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            released: Some(command.sessions.iter().map(released).collect()),
            location: Some(self.location()),
            diagnostics: None,
        };
        self.send(stream, response.encode());
        if let Some(nas) = command.nas_pdu {
            self.deliver_nas(known.0, nas);
        }
    }

    fn release_session(&mut self, ran_id: RanUeNgapId, item: &SessionTransfer) {
        let id = item.pdu_session_id;
        if let Err(error) = ReleaseCommandTransfer::decode(&item.transfer) {
            self.violation("TS 38.413 9.3.4.12", format!("PDU session {id}: {error}"));
        }
        let Some(context) = self.contexts.get_mut(&ran_id) else { return };
        let Some(at) = context.bearers.iter().position(|bearer| bearer.session == id) else {
            let text = format!("release of PDU session {id}, which the gNB does not have");
            return self.violation("TS 38.413 8.2.2.4", text);
        };
        let (ue, bearer) = (context.ue, context.bearers.remove(at));
        self.out.push(Output::BearerDown { ue, bearer });
    }

    /// PDU SESSION RESOURCE MODIFY REQUEST (TS 38.413 8.2.3.2): the simulated radio accepts every
    /// modification.
    pub(super) fn receive_modify_request(
        &mut self,
        stream: super::N2Stream,
        request: PduSessionResourceModifyRequest,
    ) {
        let (amf_ue_ngap_id, ran_ue_ngap_id) = (request.amf_ue_ngap_id, request.ran_ue_ngap_id);
        let known = self.check_ids("PduSessionResourceModifyRequest", amf_ue_ngap_id, ran_ue_ngap_id, stream);
        let Some(known) = known else { return };
        let stream = self.stream_for(known.0);
        let (mut modified, mut failed, mut nas) = (Vec::new(), Vec::new(), Vec::new());
        for item in request.sessions {
            let pdu_session_id = item.pdu_session_id;
            match self.modify_session(known.0, &item) {
                Ok(transfer) => {
                    modified.push(SessionTransfer { pdu_session_id, transfer: transfer.encode() });
                    nas.extend(item.nas_pdu);
                }
                Err(cause) => {
                    let transfer = ModifyUnsuccessfulTransfer { cause }.encode();
                    failed.push(SessionTransfer { pdu_session_id, transfer });
                }
            }
        }
        let (modified, failed) = (listed(modified), listed(failed));
        let response = PduSessionResourceModifyResponse {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            modified,
            failed,
            diagnostics: None,
        };
        self.send(stream, response.encode());
        nas.into_iter().for_each(|nas| self.deliver_nas(known.0, nas));
    }

    fn modify_session(
        &mut self,
        ran_id: RanUeNgapId,
        item: &ModifyItem,
    ) -> Result<ModifyResponseTransfer, Cause> {
        self.check_handover(ran_id)?;
        let id = item.pdu_session_id;
        let transfer = ModifyRequestTransfer::decode(&item.transfer).map_err(|error| {
            self.violation("TS 38.413 9.3.4.3", format!("PDU session {id}: {error}"));
            error.cause()
        })?;
        let found = self.contexts.get_mut(&ran_id).and_then(|context| {
            let ue = context.ue;
            Some((ue, context.bearers.iter_mut().find(|bearer| bearer.session == id)?))
        });
        let Some((ue, bearer)) = found else {
            let text = format!("modification of PDU session {id}, which the gNB does not have");
            self.violation("TS 38.413 8.2.3.4", text);
            return Err(Cause::RadioNetwork(CauseRadioNetwork::unknown_PDU_session_ID));
        };
        // Each bearer has one tunnel, identified by the gNB's endpoint (TS 38.413 8.2.3.2).
        let of_bearer =
            |change: &&TunnelChange| change.downlink == Tunnel { address: bearer.n3, teid: bearer.downlink };
        let change = transfer.tunnels.iter().find(of_bearer).copied();
        if change.is_none() && !transfer.tunnels.is_empty() {
            let text = format!("PDU session {id}: a tunnel that the gNB does not have");
            self.violation("TS 38.413 8.2.3.2", text);
            return Err(Cause::RadioNetwork(CauseRadioNetwork::unspecified));
        }
        let before = *bearer;
        // A flow that is released already may be in the list of a command that is repeated.
        let releases_default = transfer.to_release.iter().any(|(qfi, _)| *qfi == bearer.qfi);
        bearer.ambr = transfer.session_ambr.or(bearer.ambr);
        bearer.uplink = change.map_or(bearer.uplink, |change| change.uplink);
        for flow in &transfer.flows {
            bearer.flows.add(flow.qfi);
            bearer.reflective.set(flow.qfi, flow.reflective);
        }
        for (qfi, _) in &transfer.to_release {
            bearer.flows.remove(*qfi);
            bearer.reflective.remove(*qfi);
        }
        let bearer = *bearer;
        let what = |it: &Bearer| (it.uplink, it.flows, it.reflective);
        if what(&bearer) != what(&before) {
            self.out.push(Output::BearerMoved { ue, bearer });
        }
        if releases_default {
            let text = format!("release of the default QoS flow of PDU session {id}");
            self.violation("TS 38.413 8.2.3.2", text);
        }
        if let Some(why) = transfer.flows.iter().find_map(fault_of_flow) {
            self.violation("TS 38.413 8.2.3.4", format!("PDU session {id}: {why}"));
        }
        let flows = transfer.flows.iter().map(|flow| flow.qfi).collect();
        Ok(ModifyResponseTransfer { flows, ..ModifyResponseTransfer::default() })
    }
}

/// A list for a message; `None` if empty.
fn listed(list: Vec<SessionTransfer>) -> Option<Vec<SessionTransfer>> {
    (!list.is_empty()).then_some(list)
}

/// Why a QoS flow can't be set up (TS 38.413 8.2.1.4, 9.3.1.12).
fn fault_of_flow(flow: &QosFlow) -> Option<&'static str> {
    let is_non_gbr = matches!(flow.five_qi, 5..=10 | 69 | 70 | 79 | 80);
    if flow.gbr.is_none() && !is_non_gbr && flow.five_qi < 128 {
        Some("a GBR QoS flow without bit rates")
    } else if flow.gbr.is_some() && is_non_gbr {
        Some("a Non-GBR QoS flow with guaranteed bit rates")
    } else if flow.gbr.is_some_and(|gbr| gbr.guaranteed.uplink > gbr.maximum.uplink) {
        Some("a guaranteed bit rate above the maximum bit rate")
    } else if flow.gbr.is_some() && flow.reflective {
        Some("a GBR QoS flow with the Reflective QoS Attribute")
    } else if flow.qfi > 63 {
        Some("a QFI above 63")
    } else if !(1..=15).contains(&flow.arp.priority_level) {
        Some("an ARP priority level that is not 1 to 15")
    } else {
        None
    }
}

/// Why a session can't be set up (TS 38.413 8.2.1.4, TS 29.281 5.1).
fn fault_of_transfer(transfer: &SetupRequestTransfer) -> Option<&'static str> {
    let flows = &transfer.flows;
    let is_repeated =
        |(at, flow): (usize, &QosFlow)| flows.iter().skip(at + 1).any(|other| other.qfi == flow.qfi);
    if flows.is_empty() {
        Some("no QoS flow")
    } else if flows.iter().any(|flow| flow.gbr.is_none()) && transfer.session_ambr.is_none() {
        Some("a Non-GBR QoS flow without session-AMBR")
    } else if let Some(why) = flows.iter().find_map(fault_of_flow) {
        Some(why)
    } else if flows.iter().enumerate().any(is_repeated) {
        Some("a QFI twice")
    } else if transfer.uplink.teid.0 == 0 {
        Some("an uplink tunnel with TEID 0")
    } else if transfer.uplink.address.is_unspecified() {
        Some("an uplink tunnel without address")
    } else {
        None
    }
}
