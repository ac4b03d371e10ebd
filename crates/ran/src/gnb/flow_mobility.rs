//! Dual connectivity: as master, the gNB moves the downlink of a UE's sessions to a secondary gNB, or back (TS 37.340 10.2, 10.3; TS 38.413 8.2.5).
//!
//! ```text
//!  gNB                                                     AMF
//!   | PDU SESSION RESOURCE MODIFY INDICATION ->             |   another tunnel for the flows of each session
//!   | <- PDU SESSION RESOURCE MODIFY CONFIRM                |   flows that have moved, the UPF's tunnel
//! ```

use super::{Bearer, Gnb, NgState, Output, QosFlows, UeContext, UeKey};
use pith_ngap::transfer::{
    FlowTunnel, ModifyConfirmTransfer, ModifyIndicationTransfer, ModifyIndicationUnsuccessfulTransfer, Tunnel,
};
use pith_ngap::{PduSessionResourceModifyConfirm, PduSessionResourceModifyIndication, SessionTransfer};
use pith_types::{RanUeNgapId, Teid};

/// A session that is to move, with the tunnel and the flows that were indicated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moving {
    session: u8,
    tunnel: Tunnel,
    flows: QosFlows,
}

impl Gnb {
    /// Opens a tunnel for downlink packets of a UE that is at another gNB.
    pub fn open_tunnel(&mut self) -> Tunnel {
        self.has_lent_tunnels = true;
        let teid = Teid(self.next_teid);
        self.next_teid = self.next_teid.wrapping_add(1).max(1);
        Tunnel { address: self.settings.n3, teid }
    }

    /// The downlink of these sessions is to take these tunnels. Without a UE context that has the sessions the UE's flows do not move.
    pub(super) fn move_flows(&mut self, ue: UeKey, tunnels: Vec<(u8, Tunnel)>) {
        let is_up = self.state == NgState::Up;
        let ran_id = self.ran_ids.get(&ue).copied();
        let context = ran_id.and_then(|ran_id| self.contexts.get_mut(&ran_id));
        let context = context.filter(|context| is_up && can_move(context, &tunnels));
        let (Some(ran_ue_ngap_id), Some(context)) = (ran_id, context) else {
            return self.out.push(Output::FlowsMoved { ue, moved: Vec::new(), is_complete: false });
        };
        let Some(amf_ue_ngap_id) = context.amf_id else { return };
        let item = |(session, tunnel): &(u8, Tunnel)| {
            let bearer = context.bearers.iter().find(|bearer| bearer.session == *session)?;
            let downlink = FlowTunnel { tunnel: *tunnel, flows: bearer.flows.iter().collect() };
            let transfer = ModifyIndicationTransfer { downlink, additional: Vec::new(), usage: None };
            Some(SessionTransfer { pdu_session_id: *session, transfer: transfer.encode() })
        };
        let sessions = tunnels.iter().filter_map(item).collect();
        let flows_of = |session: u8| {
            let bearer = context.bearers.iter().find(|bearer| bearer.session == session);
            bearer.map(|bearer| bearer.flows).unwrap_or_default()
        };
        let moving =
            tunnels.into_iter().map(|(session, tunnel)| Moving { session, tunnel, flows: flows_of(session) });
        context.moving = moving.collect();
        let location = Some(self.location());
        let indication =
            PduSessionResourceModifyIndication { amf_ue_ngap_id, ran_ue_ngap_id, sessions, location };
        self.send(self.stream_for(ran_ue_ngap_id), indication.encode());
    }

    /// PDU SESSION RESOURCE MODIFY CONFIRM: flows that are not confirmed keep their tunnel (TS 38.413 8.2.5.2).
    pub(super) fn receive_modify_confirm(
        &mut self,
        stream: super::N2Stream,
        message: PduSessionResourceModifyConfirm,
    ) {
        let (amf_id, ran_id) = (message.amf_ue_ngap_id, message.ran_ue_ngap_id);
        let known = self.check_ids("PduSessionResourceModifyConfirm", amf_id, ran_id, stream);
        let Some(context) = known.and_then(|known| self.contexts.get_mut(&known.0)) else { return };
        let (ue, moving) = (context.ue, std::mem::take(&mut context.moving));
        if moving.is_empty() {
            let text = "PDU SESSION RESOURCE MODIFY CONFIRM without an indication";
            return self.violation("TS 38.413 8.2.5.2", text);
        }
        let (confirmed, failed) = (message.confirmed.unwrap_or_default(), message.failed.unwrap_or_default());
        self.check_answered(&moving, &confirmed, &failed);
        let mut moved = Vec::new();
        for item in &confirmed {
            if let Some(moving) = moving.iter().find(|moving| moving.session == item.pdu_session_id) {
                moved.extend(self.take_confirmation(ran_id, item, *moving));
            }
        }
        let is_complete = moved.len() == moving.len();
        self.out.push(Output::FlowsMoved { ue, moved, is_complete });
    }

    /// Each session of the indication is answered once.
    fn check_answered(
        &mut self,
        moving: &[Moving],
        confirmed: &[SessionTransfer],
        failed: &[SessionTransfer],
    ) {
        for item in failed {
            if let Err(error) = ModifyIndicationUnsuccessfulTransfer::decode(&item.transfer) {
                let text = format!("PDU session {}: {error}", item.pdu_session_id);
                self.violation("TS 38.413 9.3.4.22", text);
            }
        }
        let mut answered: Vec<u8> = confirmed.iter().chain(failed).map(|item| item.pdu_session_id).collect();
        let mut indicated: Vec<u8> = moving.iter().map(|moving| moving.session).collect();
        answered.sort_unstable();
        indicated.sort_unstable();
        if answered != indicated {
            let text = format!("sessions {indicated:?} indicated, {answered:?} answered");
            self.violation("TS 38.413 8.2.5.2", text);
        }
    }

    /// The bearer with its new tunnel, if all its flows are confirmed.
    fn take_confirmation(
        &mut self,
        ran_id: RanUeNgapId,
        item: &SessionTransfer,
        Moving { tunnel, flows, .. }: Moving,
    ) -> Option<Bearer> {
        let id = item.pdu_session_id;
        let transfer = match ModifyConfirmTransfer::decode(&item.transfer) {
            Ok(transfer) => transfer,
            Err(error) => {
                self.violation("TS 38.413 9.3.4.7", format!("PDU session {id}: {error}"));
                return None;
            }
        };
        let bearer =
            self.contexts.get_mut(&ran_id)?.bearers.iter_mut().find(|bearer| bearer.session == id)?;
        let confirmed: QosFlows = transfer.flows.iter().copied().collect();
        let is_complete = confirmed == flows && transfer.failed.is_empty();
        if is_complete {
            bearer.uplink = transfer.uplink;
            (bearer.downlink, bearer.n3) = (tunnel.teid, tunnel.address);
        }
        let moved = *bearer;
        if transfer.uplink.teid.0 == 0 || transfer.uplink.address.is_unspecified() {
            self.violation("TS 38.413 9.3.4.7", format!("PDU session {id}: no uplink tunnel"));
        }
        if !is_complete {
            let indicated: Vec<u8> = flows.iter().collect();
            let text = format!(
                "PDU session {id}: flows {indicated:?} indicated, {:?} confirmed, {:?} failed",
                transfer.flows, transfer.failed
            );
            self.violation("TS 38.413 8.2.5.2", text);
        }
        is_complete.then_some(moved)
    }
}

/// Whether the gNB can indicate other tunnels: it has the UE with these sessions, and no handover is in progress.
fn can_move(context: &UeContext, tunnels: &[(u8, Tunnel)]) -> bool {
    let has = |session: u8| context.bearers.iter().any(|bearer| bearer.session == session);
    context.amf_id.is_some()
        && context.moving.is_empty()
        && context.switching.is_empty()
        && context.part == Default::default()
        && !tunnels.is_empty()
        && tunnels.iter().all(|(session, _)| has(*session))
}
