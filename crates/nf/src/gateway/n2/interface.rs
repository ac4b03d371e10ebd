//! NG Setup, RAN and AMF Configuration Update, NG Reset (TS 38.413 8.7.1 to 8.7.4).

use super::{N2Gateway, N2GatewayEffect};
use crate::kit::{GnbHandle, GnbInfo, Level, N2Input, ResetUe};
use pith_ngap::{
    Cause, CauseMisc, CauseRadioNetwork, GlobalRanNodeId, Message, NgConnection, NgReset, NgResetAcknowledge,
    NgSetupFailure, NgSetupRequest, NgSetupResponse, NgapError, RanConfigurationUpdate,
    RanConfigurationUpdateAcknowledge, RanConfigurationUpdateFailure, ResetScope, SupportedTa, TimeToWait,
};
use pith_types::{Snssai, Tai};
use std::sync::Arc;

/// How long a gNB that was refused is asked to wait before it tries again.
const RETRY_AFTER: TimeToWait = TimeToWait::v10s;

impl N2Gateway {
    pub(super) fn interface_management(&mut self, gnb: GnbHandle, pdu: &[u8]) {
        match Message::decode(pdu) {
            Ok(Message::NgSetupRequest(request)) => self.ng_setup(gnb, request),
            Ok(Message::RanConfigurationUpdate(update)) => self.ran_configuration_update(gnb, update),
            Ok(Message::NgReset(reset)) => self.ng_reset(gnb, reset),
            // Answers to what this gateway does not ask.
            Ok(_) => {}
            Err(error) => self.interface_error(gnb, error),
        }
    }

    /// NG Setup: a gNB tells what it serves, and is told what the AMF serves
    /// (TS 38.413 8.7.1.2; without a common network or slice 8.7.1.3).
    fn ng_setup(&mut self, gnb: GnbHandle, request: NgSetupRequest) {
        let supported = match self.common_areas(&request.supported_tas) {
            Ok(supported) => supported,
            Err(cause) => return self.refuse_setup(gnb, cause),
        };
        let name = request.ran_node_name.unwrap_or_default();
        let id = request.global_ran_node_id;
        let info = Arc::new(self.info(gnb, name, id, supported));
        let again = self.is_set_up(gnb);
        self.supersede(gnb, &info.global_id);
        self.remember(gnb, &info);
        if again {
            // A gNB that sets up anew has forgotten all UEs (TS 38.413 8.7.1.1).
            self.tell_all(|| N2Input::Reset { gnb, ues: None });
        }
        self.tell_all(|| N2Input::GnbUp { gnb, info: Arc::clone(&info) });
        let response = NgSetupResponse {
            amf_name: self.config.amf_name.clone(),
            served_guamis: self.config.guamis.clone(),
            relative_amf_capacity: self.config.relative_capacity,
            plmn_support: self.config.plmns.clone(),
            diagnostics: None,
        };
        self.answer(gnb, response.encode());
        self.event(Level::Info, format!("gNB {} ({}) set up from {}", info.name, info.global_id, info.peer));
    }

    /// NG Setup on a new association erases what there was of that gNB (TS 38.413 8.7.1.1): its earlier
    /// associations are dead ones that SCTP has not given up yet.
    fn supersede(&mut self, gnb: GnbHandle, global_id: &str) {
        let same = |setup: &Arc<GnbInfo>| setup.global_id == global_id;
        let earlier = self.gnbs().filter(|(other, setup)| *other != gnb && same(setup));
        let earlier: Vec<_> = earlier.map(|(other, _)| other).collect();
        for other in earlier {
            let Some(association) = self.associations.get_mut(&other) else { continue };
            let Some(info) = association.setup.take() else { continue };
            self.tell_all(|| N2Input::GnbDown { gnb: other });
            let text = format!("gNB {} ({global_id}) sets up anew: {} counts no more", info.name, info.peer);
            self.event(Level::Warn, text);
        }
    }

    fn refuse_setup(&mut self, gnb: GnbHandle, cause: Cause) {
        let name = self.name(gnb);
        self.event(
            Level::Warn,
            format!("NG Setup of gNB {name} refused: {cause}. Compare its PLMN, TAC and slices with 'network' in the configuration"),
        );
        let failure = NgSetupFailure { cause, time_to_wait: Some(RETRY_AFTER), diagnostics: None };
        self.answer(gnb, failure.encode());
    }

    /// RAN Configuration Update (TS 38.413 8.7.2).
    fn ran_configuration_update(&mut self, gnb: GnbHandle, update: RanConfigurationUpdate) {
        let Some(old) = self.associations.get(&gnb).and_then(|association| association.setup.clone()) else {
            let cause = pith_ngap::CauseProtocol::message_not_compatible_with_receiver_state;
            return self.refuse_update(gnb, Cause::Protocol(cause));
        };
        let supported = match update.supported_tas.as_deref().map(|tas| self.common_areas(tas)) {
            None => old.supported.clone(),
            Some(Ok(supported)) => supported,
            Some(Err(cause)) => return self.refuse_update(gnb, cause),
        };
        let name = update.ran_node_name.unwrap_or_else(|| old.name.clone());
        let info = Arc::new(GnbInfo { name, supported, ..(*old).clone() });
        self.remember(gnb, &info);
        self.tell_all(|| N2Input::GnbUp { gnb, info: Arc::clone(&info) });
        self.answer(gnb, RanConfigurationUpdateAcknowledge { diagnostics: None }.encode());
    }

    fn refuse_update(&mut self, gnb: GnbHandle, cause: Cause) {
        let failure =
            RanConfigurationUpdateFailure { cause, time_to_wait: Some(RETRY_AFTER), diagnostics: None };
        self.answer(gnb, failure.encode());
    }

    /// NG Reset by the gNB: shards drop the connections, the gateway acknowledges
    /// (TS 38.413 8.7.4.2.2).
    fn ng_reset(&mut self, gnb: GnbHandle, reset: NgReset) {
        let name = self.name(gnb);
        self.event(Level::Info, format!("gNB {name} resets: {}", reset.cause));
        let connections = match reset.scope {
            ResetScope::NgInterface => {
                self.tell_all(|| N2Input::Reset { gnb, ues: None });
                None
            }
            ResetScope::Part(connections) => {
                self.reset_part(gnb, &connections);
                Some(connections)
            }
        };
        self.answer(gnb, NgResetAcknowledge { connections, diagnostics: None }.encode());
    }

    /// Each connection goes to the shard that its AMF-UE-NGAP-ID names; one with the gNB's id only may be
    /// anywhere.
    fn reset_part(&mut self, gnb: GnbHandle, connections: &[NgConnection]) {
        for shard in 0..self.config.shards {
            let mine = |connection: &&NgConnection| {
                connection.amf_ue_ngap_id.is_none_or(|id| self.owns(id) && id.shard().0 == shard)
            };
            let ues: Vec<ResetUe> = connections.iter().filter(mine).map(reset_ue).collect();
            if !ues.is_empty() {
                let input = N2Input::Reset { gnb, ues: Some(ues) };
                self.out.push(N2GatewayEffect::ToShard { shard: pith_types::ShardId(shard), input });
            }
        }
    }

    /// What is wrong with an interface management message: the procedure's failure if it has one
    /// (TS 38.413 10.3.4.2, 10.3.5), ERROR INDICATION otherwise.
    fn interface_error(&mut self, gnb: GnbHandle, error: NgapError) {
        let NgapError::AbstractSyntax {
            cause, response_diagnostics, procedure_code, initiating: true, ..
        } = &error
        else {
            return self.report(gnb, Some(error));
        };
        let diagnostics = Some((**response_diagnostics).clone());
        match *procedure_code {
            super::procedure::NG_SETUP => {
                let failure = NgSetupFailure { cause: *cause, time_to_wait: None, diagnostics };
                self.answer(gnb, failure.encode());
            }
            super::procedure::RAN_CONFIGURATION_UPDATE => {
                let failure =
                    RanConfigurationUpdateFailure { cause: *cause, time_to_wait: None, diagnostics };
                self.answer(gnb, failure.encode());
            }
            _ => self.report(gnb, Some(error)),
        }
    }

    /// The areas that gNB and AMF both serve, each with the slices that both know.
    fn common_areas(&self, tas: &[SupportedTa]) -> Result<Vec<(Tai, Vec<Snssai>)>, Cause> {
        let mut known_plmn = false;
        let mut common = Vec::new();
        for ta in tas {
            for (plmn_id, slices) in &ta.plmns {
                let Some((_, own)) = self.config.plmns.iter().find(|(plmn, _)| plmn == plmn_id) else {
                    continue;
                };
                let tai = Tai { plmn_id: *plmn_id, tac: ta.tac };
                if !self.config.tais.is_empty() && !self.config.tais.contains(&tai) {
                    continue;
                }
                known_plmn = true;
                let slices: Vec<Snssai> =
                    slices.iter().copied().filter(|slice| own.contains(slice)).collect();
                if !slices.is_empty() {
                    common.push((tai, slices));
                }
            }
        }
        match (known_plmn, common.is_empty()) {
            (false, _) => Err(Cause::Misc(CauseMisc::unknown_PLMN_or_SNPN)),
            (true, true) => Err(Cause::RadioNetwork(CauseRadioNetwork::slice_not_supported)),
            (true, false) => Ok(common),
        }
    }

    fn info(
        &self,
        gnb: GnbHandle,
        name: String,
        id: GlobalRanNodeId,
        supported: Vec<(Tai, Vec<Snssai>)>,
    ) -> GnbInfo {
        let peer =
            self.associations.get(&gnb).map(|association| association.peer.clone()).unwrap_or_default();
        let global_id = id.to_string();
        let name = if name.is_empty() { global_id.clone() } else { name };
        GnbInfo { name, global_id, plmn: id.plmn(), supported, peer }
    }

    fn is_set_up(&self, gnb: GnbHandle) -> bool {
        self.associations.get(&gnb).is_some_and(|association| association.setup.is_some())
    }

    fn remember(&mut self, gnb: GnbHandle, info: &Arc<GnbInfo>) {
        if let Some(association) = self.associations.get_mut(&gnb) {
            association.setup = Some(Arc::clone(info));
        }
    }
}

fn reset_ue(connection: &NgConnection) -> ResetUe {
    ResetUe { amf: connection.amf_ue_ngap_id, ran: connection.ran_ue_ngap_id }
}
