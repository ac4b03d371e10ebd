//! Xn handover: source gNB and target gNB, and the path switch (TS 38.423 8.2.1, 8.2.7; TS 38.413 8.4.4; TS 33.501 6.9.2.3.2).
//!
//! ```text
//!  source gNB            target gNB                                 AMF
//!   | HANDOVER REQUEST ->  |                                          |   K_NG-RAN*, NCC, sessions
//!   |                      |    PATH SWITCH REQUEST ->                |   the target's tunnels
//!   |                      | <- PATH SWITCH REQUEST ACKNOWLEDGE       |   NH and NCC for the next handover
//!   | <- UE CONTEXT RELEASE|                                          |
//! ```
//!
//! The simulated source gNB releases its context as soon as the UE has left: messages of the AMF for the UE are lost from then on.

use super::{Bearer, Gnb, NgState, Output, UeContext, UeKey};
use pith_crypto::kdf;
use pith_crypto::keys::{KGnb, Nh};
use pith_ngap::transfer::{
    PathSwitchRequestAcknowledgeTransfer, PathSwitchRequestTransfer, PathSwitchRequestUnsuccessfulTransfer,
    Tunnel,
};
use pith_ngap::{
    NextHop, NgRanTraceId, PathSwitchRequest, PathSwitchRequestAcknowledge, PathSwitchRequestFailure,
    SecurityCapabilities, SessionTransfer,
};
use pith_types::{AmfUeNgapId, RanUeNgapId, Teid};

/// A cell, as far as keys depend on it (TS 33.501 A.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Physical cell identity.
    pub pci: u16,
    /// Absolute frequency of the downlink.
    pub arfcn: u32,
}

/// Keys of a UE's access stratum at its gNB.
#[derive(Debug, Clone)]
pub(super) struct AsKeys {
    /// K_gNB in use.
    pub key: [u8; 32],
    /// NCC of that key.
    pub chaining_count: u8,
    /// NH of the AMF, which no handover has used.
    pub fresh: Option<NextHop>,
    /// UE security capabilities.
    pub capabilities: SecurityCapabilities,
}

/// The context of a UE that moves to another gNB (HANDOVER REQUEST, TS 38.423 9.1.1.1).
#[derive(Debug, Clone)]
pub struct XnHandover {
    ue: UeKey,
    amf_id: AmfUeNgapId,
    keys: AsKeys,
    bearers: Vec<Bearer>,
    /// Trace Activation (TS 38.423 9.1.1.1).
    traces: Vec<NgRanTraceId>,
}

impl XnHandover {
    /// The radio bearers at the source gNB.
    pub fn bearers(&self) -> &[Bearer] {
        &self.bearers
    }
}

impl AsKeys {
    /// Keys of a new context: K_gNB of the AMF, with NCC 0.
    pub const fn new(key: [u8; 32], capabilities: SecurityCapabilities) -> Self {
        Self { key, chaining_count: 0, fresh: None, capabilities }
    }

    /// The keys in the target cell: from a fresh NH, else from the current key (TS 33.501 6.9.2.3.1).
    fn in_cell(&self, Cell { pci, arfcn }: Cell) -> Self {
        let (key, chaining_count) = match &self.fresh {
            Some(next) => (kdf::k_ng_ran_star_vertical(&Nh::new(next.nh), pci, arfcn), next.chaining_count),
            None => (kdf::k_ng_ran_star_horizontal(&KGnb::new(self.key), pci, arfcn), self.chaining_count),
        };
        Self { key: *key.as_bytes(), chaining_count, fresh: None, capabilities: self.capabilities }
    }
}

impl Gnb {
    /// Its cell.
    pub fn cell(&self) -> Cell {
        Cell { pci: (self.settings.id % 1008) as u16, arfcn: 620_000 + self.settings.id % 1000 }
    }

    /// The UE leaves for a cell of another gNB. `None` if it cannot be handed over: without a UE context, without bearers, or
    /// while the path is being switched to this gNB.
    pub fn start_xn_handover(&mut self, ue: UeKey, target: Cell) -> Option<XnHandover> {
        let ran_id = *self.ran_ids.get(&ue)?;
        let context = self.contexts.get(&ran_id)?;
        let (amf_id, keys) = (context.amf_id?, context.keys.as_ref()?.in_cell(target));
        if context.bearers.is_empty()
            || !(context.switching.is_empty() && context.moving.is_empty())
            || context.part != Default::default()
        {
            return None;
        }
        let context = self.contexts.remove(&ran_id)?;
        self.ran_ids.remove(&ue);
        self.departed.insert(ran_id, self.now);
        Some(XnHandover { ue, amf_id, keys, bearers: context.bearers, traces: context.traces })
    }

    /// A UE arrives from another gNB: it gets the keys, and the AMF switches the path.
    pub(super) fn receive_xn_handover(&mut self, handover: XnHandover) {
        let XnHandover { ue, amf_id, keys, bearers, traces } = handover;
        if self.state != NgState::Up {
            return self.out.push(Output::Released { ue });
        }
        let ran_ue_ngap_id = self.allocate_ran_id();
        let bearers: Vec<_> = bearers
            .into_iter()
            .map(|bearer| {
                let downlink = Teid(self.next_teid);
                self.next_teid = self.next_teid.wrapping_add(1).max(1);
                Bearer { downlink, n3: self.settings.n3, ..bearer }
            })
            .collect();
        let (key, chaining_count) = (keys.key, keys.chaining_count);
        self.out.push(Output::HandedOver { ue, key, chaining_count, cell: self.cell() });
        for bearer in &bearers {
            self.out.push(Output::BearerUp { ue, bearer: *bearer });
        }
        let item = |bearer: &Bearer| SessionTransfer {
            pdu_session_id: bearer.session,
            transfer: PathSwitchRequestTransfer {
                downlink: Tunnel { address: self.settings.n3, teid: bearer.downlink },
                flows: bearer.flows.iter().collect(),
                additional: Vec::new(),
            }
            .encode(),
        };
        let request = PathSwitchRequest {
            ran_ue_ngap_id,
            source_amf_ue_ngap_id: amf_id,
            location: Some(self.location()),
            security_capabilities: Some(keys.capabilities),
            sessions: bearers.iter().map(item).collect(),
            failed: None,
        };
        let switching = bearers.iter().map(|bearer| bearer.session).collect();
        let context = UeContext {
            ue,
            amf_id: Some(amf_id),
            association: None,
            amf_stream: None,
            is_set_up: true,
            bearers,
            keys: Some(keys),
            is_emergency: false,
            switching,
            moving: Vec::new(),
            part: Default::default(),
            traces,
        };
        self.contexts.insert(ran_ue_ngap_id, context);
        self.ran_ids.insert(ue, ran_ue_ngap_id);
        self.send(self.stream_for(ran_ue_ngap_id), request.encode());
    }

    /// PATH SWITCH REQUEST ACKNOWLEDGE (TS 38.413 8.4.4.2).
    pub(super) fn receive_path_switch_acknowledge(
        &mut self,
        stream: super::N2Stream,
        message: PathSwitchRequestAcknowledge,
    ) {
        let ids = (message.amf_ue_ngap_id, message.ran_ue_ngap_id);
        let Some(known) = self.check_path_switch("PathSwitchRequestAcknowledge", ids, stream) else { return };
        let (switched, released) =
            (message.switched.unwrap_or_default(), message.released.unwrap_or_default());
        self.check_complete(known, &switched, &released);
        let Some(context) = self.contexts.get_mut(&known) else { return };
        let ue = context.ue;
        let next = message.security_context;
        let repeated = context.keys.as_ref().is_some_and(|keys| keys.chaining_count == next.chaining_count);
        if let Some(keys) = &mut context.keys {
            keys.fresh = Some(next);
            keys.capabilities = message.security_capabilities.unwrap_or(keys.capabilities);
        }
        if repeated {
            self.violation(
                "TS 33.501 6.9.2.3.2",
                "NCC of PATH SWITCH REQUEST ACKNOWLEDGE is that of the key in use",
            );
        }
        for item in &switched {
            self.move_uplink(known, item);
        }
        for item in &released {
            if let Err(error) = PathSwitchRequestUnsuccessfulTransfer::decode(&item.transfer) {
                self.violation("TS 38.413 9.3.4.20", error.to_string());
            }
            self.drop_bearer(known, item.pdu_session_id);
        }
        self.out.push(Output::PathSwitched { ue });
    }

    /// PATH SWITCH REQUEST FAILURE: the UE loses its connection (TS 38.413 8.4.4.3).
    pub(super) fn receive_path_switch_failure(
        &mut self,
        stream: super::N2Stream,
        message: &PathSwitchRequestFailure,
    ) {
        let ids = (message.amf_ue_ngap_id, message.ran_ue_ngap_id);
        if let Some(known) = self.check_path_switch("PathSwitchRequestFailure", ids, stream) {
            self.release_context(known);
        }
    }

    /// The connection whose path is being switched.
    fn check_path_switch(
        &mut self,
        name: &str,
        (amf_id, ran_id): (AmfUeNgapId, RanUeNgapId),
        stream: super::N2Stream,
    ) -> Option<RanUeNgapId> {
        let known = self.check_ids(name, amf_id, ran_id, stream)?.0;
        if self.contexts.get(&known).is_some_and(|context| context.switching.is_empty()) {
            self.violation("TS 38.413 8.4.4", format!("{name} without PATH SWITCH REQUEST"));
            return None;
        }
        Some(known)
    }

    /// Each session of the request is switched or released.
    fn check_complete(
        &mut self,
        ran_id: RanUeNgapId,
        switched: &[SessionTransfer],
        released: &[SessionTransfer],
    ) {
        let Some(context) = self.contexts.get_mut(&ran_id) else { return };
        let requested = std::mem::take(&mut context.switching);
        let answered = |id: &u8| switched.iter().chain(released).any(|item| item.pdu_session_id == *id);
        if let Some(missing) = requested.iter().find(|id| !answered(id)) {
            let text =
                format!("PATH SWITCH REQUEST ACKNOWLEDGE does not say what became of PDU session {missing}");
            self.violation("TS 38.413 8.4.4.2", text);
        }
    }

    /// The UPF has another endpoint than at the source gNB.
    fn move_uplink(&mut self, ran_id: RanUeNgapId, item: &SessionTransfer) {
        let transfer = match PathSwitchRequestAcknowledgeTransfer::decode(&item.transfer) {
            Ok(transfer) => transfer,
            Err(error) => return self.violation("TS 38.413 9.3.4.9", error.to_string()),
        };
        let Some(context) = self.contexts.get_mut(&ran_id) else { return };
        let bearer = context.bearers.iter_mut().find(|bearer| bearer.session == item.pdu_session_id);
        let (Some(uplink), Some(bearer)) = (transfer.uplink, bearer) else { return };
        bearer.uplink = uplink;
        let (ue, bearer) = (context.ue, *bearer);
        self.out.push(Output::BearerMoved { ue, bearer });
    }

    fn drop_bearer(&mut self, ran_id: RanUeNgapId, session: u8) {
        let Some(context) = self.contexts.get_mut(&ran_id) else { return };
        if let Some(at) = context.bearers.iter().position(|bearer| bearer.session == session) {
            let (ue, bearer) = (context.ue, context.bearers.remove(at));
            self.out.push(Output::BearerDown { ue, bearer });
        }
    }
}
