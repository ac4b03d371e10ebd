//! NG Setup, RAN and AMF Configuration Update, NG Reset (TS 38.413 8.7.1 to 8.7.4).

use super::admission::share_of;
use super::{N2Gateway, N2GatewayEffect};
use crate::kit::{GnbHandle, GnbInfo, Level, MovedConnection, N2Input, ResetUe};
use pith_ngap::{
    Cause, CauseMisc, GlobalRanNodeId, Message, NgConnection, NgReset, NgResetAcknowledge, NgSetupFailure,
    NgSetupRequest, NgapError, RanConfigurationUpdate, RanConfigurationUpdateAcknowledge,
    RanConfigurationUpdateFailure, ResetScope, TimeToWait,
};
use pith_types::{AmfUeNgapId, BlockOwner, OwnerMap, RanUeNgapId, ShardId, Snssai, Tai};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Time To Wait in a refusal.
const RETRY_AFTER: TimeToWait = TimeToWait::v10s;

/// Connections in one NG RESET, which may list 65,536 (TS 38.413 9.2.6.11): the message stays below 64 kB.
const MAX_RESET: usize = 2_048;

impl N2Gateway {
    pub(super) fn interface_management(&mut self, gnb: GnbHandle, pdu: &[u8]) {
        let message = match Message::decode(pdu) {
            Ok(message) => message,
            Err(error) => {
                self.count_procedure(gnb);
                return self.interface_error(gnb, error);
            }
        };
        match message {
            // Answers to procedures of this gateway; without one in progress they have no effect (TS 38.413 10.4).
            Message::NgResetAcknowledge(answer) => self.reset_is_acknowledged(gnb, &answer),
            Message::AmfConfigurationUpdateAcknowledge(_) => self.update_is_acknowledged(gnb),
            Message::AmfConfigurationUpdateFailure(failure) => self.update_is_refused(gnb, &failure),
            message if !self.count_procedure(gnb) => self.refuse_for_overload(gnb, &message),
            Message::NgSetupRequest(request) => self.ng_setup(gnb, request),
            Message::RanConfigurationUpdate(update) => self.ran_configuration_update(gnb, update),
            Message::NgReset(reset) => self.ng_reset(gnb, reset),
            Message::UplinkRanConfigurationTransfer(message) => self.relay_configuration(gnb, message),
            // Only an AMF sends them; NG SETUP and RAN CONFIGURATION UPDATE have no other answers.
            message => self.event(Level::Debug, format!("{} is not for an AMF", message.name())),
        }
    }

    /// NG Setup: gNB and AMF exchange what they serve (TS 38.413 8.7.1.2). The AMF refuses a gNB ID that may
    /// not be used from this address, and a gNB without a common network, area or slice (8.7.1.3, 8.7.1.4).
    fn ng_setup(&mut self, gnb: GnbHandle, request: NgSetupRequest) {
        let global_id = request.global_ran_node_id.to_string();
        let name = request.ran_node_name.unwrap_or_default();
        let who = NodeName { name: &name, global_id: &global_id };
        if let Err((cause, why)) = self.check_identity(gnb, &global_id) {
            return self.refuse_setup(gnb, who, cause, &why);
        }
        let supported = match self.common_areas(&request.supported_tas) {
            Ok(supported) => supported,
            Err(mismatch) => {
                let why = self.explain(mismatch, &request.supported_tas);
                return self.refuse_setup(gnb, who, mismatch.cause(), &why);
            }
        };
        let info = Arc::new(self.info(gnb, &who, request.global_ran_node_id, supported));
        let again = self.is_set_up(gnb);
        self.supersede(gnb, &info.global_id);
        self.remember(gnb, &info);
        self.leave_half_open(gnb);
        self.initiated.forget(gnb);
        if again {
            // After NG Setup the gNB has no UEs (TS 38.413 8.7.1.1).
            self.reset_all(gnb);
        }
        self.send_to_all_shards(|| N2Input::GnbUp { gnb, info: Arc::clone(&info) });
        self.event(Level::Info, format!("gNB {} ({}) set up from {}", info.name, info.global_id, info.peer));
        self.await_shards(gnb, request.ue_retention.is_some());
    }

    /// The gNB starts procedures faster than the AMF carries them out. NG RESET has no failure message: it is not
    /// answered, and the gNB may repeat it (TS 38.413 8.7.4.4).
    fn refuse_for_overload(&mut self, gnb: GnbHandle, message: &Message) {
        let name = self.name(gnb);
        self.warn(gnb, || {
            format!("gNB {name} repeats NG Setup, NG Reset, configuration updates or transfers too fast")
        });
        let cause = Cause::Misc(CauseMisc::control_processing_overload);
        match message {
            Message::NgSetupRequest(_) => {
                let failure = NgSetupFailure { cause, time_to_wait: Some(RETRY_AFTER), diagnostics: None };
                self.answer(gnb, failure.encode());
            }
            Message::RanConfigurationUpdate(_) => self.refuse_update(gnb, cause),
            _ => {}
        }
    }

    fn refuse_setup(&mut self, gnb: GnbHandle, who: NodeName<'_>, cause: Cause, why: &str) {
        let peer = self.associations.get(&gnb).map(|association| association.peer.to_string());
        let peer = peer.unwrap_or_default();
        self.warn(gnb, || format!("NG Setup of gNB {who} from {peer} refused: {why}"));
        self.extend_half_open(gnb);
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
            Some(Err(mismatch)) => {
                let why = self.explain(mismatch, update.supported_tas.as_deref().unwrap_or_default());
                self.warn(gnb, || format!("RAN Configuration Update of gNB {} refused: {why}", old.name));
                return self.refuse_update(gnb, mismatch.cause());
            }
        };
        let name = update.ran_node_name.as_deref().map_or_else(|| old.name.clone(), printable);
        let info = Arc::new(GnbInfo { name, supported, ..(*old).clone() });
        self.remember(gnb, &info);
        self.send_to_all_shards(|| N2Input::GnbUp { gnb, info: Arc::clone(&info) });
        self.answer(gnb, RanConfigurationUpdateAcknowledge { diagnostics: None }.encode());
    }

    fn refuse_update(&mut self, gnb: GnbHandle, cause: Cause) {
        let failure =
            RanConfigurationUpdateFailure { cause, time_to_wait: Some(RETRY_AFTER), diagnostics: None };
        self.answer(gnb, failure.encode());
    }

    /// NG Reset by the gNB: shards close the connections, the gateway acknowledges (TS 38.413 8.7.4.2.2).
    fn ng_reset(&mut self, gnb: GnbHandle, reset: NgReset) {
        let name = self.name(gnb);
        self.event(Level::Info, format!("gNB {name} resets: {}", reset.cause));
        let connections = match reset.scope {
            ResetScope::NgInterface => {
                self.reset_all(gnb);
                None
            }
            ResetScope::Part(connections) => {
                self.reset_part(gnb, &connections);
                Some(connections)
            }
        };
        self.answer(gnb, NgResetAcknowledge { connections, diagnostics: None }.encode());
    }

    /// All connections of the gNB are closed, so none of its RAN-UE-NGAP-IDs is in use.
    pub(super) fn reset_all(&mut self, gnb: GnbHandle) {
        self.clear_ran_ids(gnb);
        self.send_to_all_shards(|| N2Input::Reset { gnb, ues: None });
    }

    /// Each connection is routed to the owner of its AMF-UE-NGAP-ID's block, or to the shard at which the gateway recorded the
    /// gNB's id: to each shard only its own connections.
    fn reset_part(&mut self, gnb: GnbHandle, connections: &[NgConnection]) {
        let mut of_shards: BTreeMap<ShardId, Vec<ResetUe>> = BTreeMap::new();
        for connection in connections {
            let shards = match connection.amf_ue_ngap_id {
                Some(id) => self.shard_of(id.block()).into_iter().collect(),
                None => self.shards_that_may_have(gnb, connection.ran_ue_ngap_id),
            };
            for shard in shards {
                of_shards.entry(shard).or_default().push(reset_ue(connection));
            }
        }
        for (shard, ues) in of_shards {
            self.note_reset(Some(shard), gnb, Some(&ues));
            let input = N2Input::Reset { gnb, ues: Some(ues) };
            self.out.push(N2GatewayEffect::ToShard { shard, input });
        }
        if let Some(association) = self.associations.get_mut(&gnb) {
            association.ran_ids.reset(&connections.iter().map(reset_ue).collect::<Vec<_>>());
        }
    }

    /// A shard continues after a panic with these connections. Others that it had are released by the gNB: NG RESET for a part of
    /// the interface (TS 38.413 8.7.4.2.1). Those that the gNB has released meanwhile are closed by the shard.
    pub(super) fn taken_over(&mut self, shard: ShardId, owners: &OwnerMap, connections: &[MovedConnection]) {
        let own = BlockOwner { instance: self.config.instance, shard };
        let is_of_shard = |amf: AmfUeNgapId| owners.owner(amf.block()) == own;
        let mut gnbs: Vec<_> = self.associations.keys().copied().collect();
        gnbs.sort_unstable();
        for gnb in gnbs {
            let Some(association) = self.associations.get_mut(&gnb) else { continue };
            let of_gnb = connections.iter().filter(|(of, ..)| *of == gnb);
            let kept: BTreeMap<_, _> = of_gnb.map(|(_, amf, ran)| (*ran, *amf)).collect();
            let (left, closed) = association.ran_ids.reconcile(shard, is_of_shard, &kept);
            let left: Vec<_> = left.into_iter().map(|(amf, ran)| (amf, Some(ran))).collect();
            self.release_at_gnb(gnb, &left);
            if !closed.is_empty() {
                let ues = closed.into_iter().map(|(amf, ran)| ResetUe { amf: Some(amf), ran: Some(ran) });
                let input = N2Input::Reset { gnb, ues: Some(ues.collect()) };
                self.out.push(N2GatewayEffect::ToShard { shard, input });
            }
        }
    }

    /// The gNB is to release these connections: NG RESET for a part of the interface (TS 38.413 8.7.4.2.1).
    pub(super) fn release_at_gnb(
        &mut self,
        gnb: GnbHandle,
        connections: &[(AmfUeNgapId, Option<RanUeNgapId>)],
    ) {
        for part in connections.chunks(MAX_RESET) {
            let named = |(amf, ran): &(AmfUeNgapId, Option<RanUeNgapId>)| NgConnection {
                amf_ue_ngap_id: Some(*amf),
                ran_ue_ngap_id: *ran,
            };
            let scope = ResetScope::Part(part.iter().map(named).collect());
            let cause = Cause::Misc(CauseMisc::unspecified);
            self.answer(gnb, NgReset { cause, scope }.encode());
        }
    }

    /// An error in an interface management message: answered with the procedure's failure message
    /// if it has one (TS 38.413 10.3.4.2, 10.3.5), otherwise with ERROR INDICATION.
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

    fn info(
        &self,
        gnb: GnbHandle,
        who: &NodeName<'_>,
        node: GlobalRanNodeId,
        supported: Vec<(Tai, Vec<Snssai>)>,
    ) -> GnbInfo {
        let peer = self.associations.get(&gnb).map(|association| association.peer);
        let host = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| share_of(peer.ip()));
        let name = if who.name.is_empty() { who.global_id.to_owned() } else { printable(who.name) };
        let peer = peer.map(|peer| peer.to_string()).unwrap_or_default();
        GnbInfo { name, global_id: who.global_id.to_owned(), node, supported, peer, host }
    }

    /// The gNB has no UEs.
    fn clear_ran_ids(&mut self, gnb: GnbHandle) {
        if let Some(association) = self.associations.get_mut(&gnb) {
            association.ran_ids.clear();
        }
    }

    pub(super) fn is_set_up(&self, gnb: GnbHandle) -> bool {
        self.associations.get(&gnb).is_some_and(|association| association.setup.is_some())
    }

    fn remember(&mut self, gnb: GnbHandle, info: &Arc<GnbInfo>) {
        if let Some(association) = self.associations.get_mut(&gnb) {
            let before = association.setup.replace(Arc::clone(info));
            if let Some(before) = before.filter(|before| before.global_id != info.global_id) {
                self.by_global_id.remove(&before.global_id);
            }
            self.by_global_id.insert(info.global_id.clone(), gnb);
        }
    }
}

fn reset_ue(connection: &NgConnection) -> ResetUe {
    ResetUe { amf: connection.amf_ue_ngap_id, ran: connection.ran_ue_ngap_id }
}

/// The name of a gNB.
struct NodeName<'a> {
    name: &'a str,
    global_id: &'a str,
}

impl fmt::Display for NodeName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", printable(self.name), self.global_id)
    }
}

/// A RAN Node Name for logs and terminals, without the line breaks and control characters that a
/// gNB could send.
fn printable(name: &str) -> String {
    name.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}
