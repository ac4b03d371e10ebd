//! NAS transport (TS 38.413 8.6).
//!
//! ```text
//!  gNB                              AMF
//!   |    INITIAL UE MESSAGE ->       |   a new RAN UE NGAP ID
//!   | <- DOWNLINK NAS TRANSPORT      |   the first answer contains the AMF UE NGAP ID
//!   |    UPLINK NAS TRANSPORT ->     |
//!   |    NAS NON DELIVERY IND. ->    |   if the UE has left in an N2 handover
//! ```

use super::{BarredUe, Gnb, NgState, Output, UeContext, UeKey};
use pith_ngap::{
    Cause, CauseRadioNetwork, DownlinkNasTransport, InitialUeMessage, NasNonDeliveryIndication,
    RrcEstablishmentCause, UplinkNasTransport,
};
use pith_types::{FiveGSTmsi, RanUeNgapId};

impl Gnb {
    /// A UE connects (TS 38.413 8.6.1.2). Without an AMF it waits, or the radio connection is released again.
    pub(super) fn connect(
        &mut self,
        ue: UeKey,
        nas_pdu: Vec<u8>,
        cause: RrcEstablishmentCause,
        s_tmsi: Option<FiveGSTmsi>,
    ) {
        if self.state != NgState::Up {
            self.barred.retain(|barred| barred.ue != ue);
            if self.bars_cell {
                return self.barred.push(BarredUe { ue, nas: nas_pdu, cause, s_tmsi });
            }
            return self.out.push(Output::Released { ue });
        }
        if let Some(old) = self.ran_ids.get(&ue).copied() {
            self.release_context(old);
        }
        let ran_ue_ngap_id = self.allocate_ran_id();
        let stream = self.stream_for(ran_ue_ngap_id);
        // An emergency registered UE answers PAGING, too (TS 24.501 table 4.5.6.1).
        let may_be_emergency =
            matches!(cause, RrcEstablishmentCause::emergency | RrcEstablishmentCause::mt_Access);
        self.open(ue, ran_ue_ngap_id, may_be_emergency);
        let message = InitialUeMessage {
            ran_ue_ngap_id,
            nas_pdu,
            location: self.location(),
            establishment_cause: Some(cause),
            s_tmsi,
            amf_set_id: None,
            ue_context_request: Some(()),
            allowed_nssai: None,
            reroute: None,
        };
        self.send(stream, message.encode());
    }

    /// A UE's connection that the AMF has not answered yet.
    pub(super) fn open(&mut self, ue: UeKey, ran_id: RanUeNgapId, is_emergency: bool) {
        let context = UeContext {
            ue,
            amf_id: None,
            association: None,
            amf_stream: None,
            is_set_up: false,
            bearers: Vec::new(),
            keys: None,
            is_emergency,
            switching: Vec::new(),
            moving: Vec::new(),
            part: Default::default(),
            traces: Vec::new(),
        };
        self.contexts.insert(ran_id, context);
        self.ran_ids.insert(ue, ran_id);
    }

    /// UEs that found the cell barred connect.
    pub(super) fn connect_barred(&mut self) {
        for BarredUe { ue, nas, cause, s_tmsi } in std::mem::take(&mut self.barred) {
            self.connect(ue, nas, cause, s_tmsi);
        }
    }

    /// The next id in sequence, so that an id stays unused as long as possible (TS 38.413 10.6).
    pub(super) fn allocate_ran_id(&mut self) -> RanUeNgapId {
        loop {
            self.last_ran_id = self.last_ran_id.wrapping_add(self.ran_id_step);
            let id = RanUeNgapId(self.last_ran_id);
            if !self.contexts.contains_key(&id) {
                self.unanswered.remove(&id);
                self.departed.remove(&id);
                return id;
            }
        }
    }

    /// A UE sends on its connection (TS 38.413 8.6.3.2). Before the AMF has answered, the gNB has
    /// no AMF UE NGAP ID, so the message is dropped.
    pub(super) fn send_uplink(&mut self, ue: UeKey, nas_pdu: Vec<u8>) {
        let Some((ran_ue_ngap_id, Some(amf_ue_ngap_id))) = self.ids_of(ue) else { return };
        let stream = self.stream_for(ran_ue_ngap_id);
        let location = Some(self.location());
        let message = UplinkNasTransport { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu, location };
        self.send(stream, message.encode());
    }

    /// DOWNLINK NAS TRANSPORT (TS 38.413 8.6.2.2).
    pub(super) fn receive_downlink_nas_transport(
        &mut self,
        stream: super::N2Stream,
        transport: DownlinkNasTransport,
    ) {
        let (amf_id, ran_id) = (transport.amf_ue_ngap_id, transport.ran_ue_ngap_id);
        if let Some(old_amf) = self.redirected_from(transport.old_amf.as_ref(), ran_id) {
            return self.await_redirected((old_amf, ran_id), stream, transport.into());
        }
        let Some(known) = self.check_ids("DownlinkNasTransport", amf_id, ran_id, stream) else { return };
        if self.returns_nas(known.0) {
            return self.return_nas(transport);
        }
        self.check_restrictions(transport.mobility_restrictions.as_ref(), false);
        self.deliver_nas(known.0, transport.nas_pdu);
    }

    /// Whether the UE has left for another gNB.
    fn returns_nas(&self, ran_id: RanUeNgapId) -> bool {
        self.contexts.get(&ran_id).is_some_and(|context| context.part == super::n2_handover::Part::Left)
    }

    /// NAS NON DELIVERY INDICATION: the UE is being handed over (TS 38.413 8.6.4.2).
    fn return_nas(&mut self, transport: DownlinkNasTransport) {
        let DownlinkNasTransport { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu, .. } = transport;
        let cause = Some(Cause::RadioNetwork(CauseRadioNetwork::ng_intra_system_handover_triggered));
        let message =
            NasNonDeliveryIndication { amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu: Some(nas_pdu), cause };
        self.send(self.stream_for(ran_ue_ngap_id), message.encode());
    }

    /// Delivers a NAS message to the UE of a context.
    pub(super) fn deliver_nas(&mut self, ran_id: RanUeNgapId, nas: Vec<u8>) {
        if let Some(context) = self.contexts.get(&ran_id) {
            self.out.push(Output::Nas { ue: context.ue, nas });
        }
    }
}
