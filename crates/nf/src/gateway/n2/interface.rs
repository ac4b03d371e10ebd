//! NG Setup, RAN and AMF Configuration Update, NG Reset (TS 38.413 8.7.1 to 8.7.4).

use super::admission::{PROCEDURE, share_of};
use super::{N2Gateway, N2GatewayEffect, NgInterface, RanIds};
use crate::kit::{GnbHandle, GnbInfo, Level, MovedConnection, N2Input, ResetUe, Tnla};
use pith_ngap::{
    Cause, CauseMisc, CauseProtocol, GlobalRanNodeId, Message, NgConnection, NgReset, NgResetAcknowledge,
    NgSetupFailure, NgSetupRequest, NgapError, Notice, RanConfigurationUpdate,
    RanConfigurationUpdateAcknowledge, RanConfigurationUpdateFailure, ResetScope, TimeToWait,
};
use pith_types::{AmfUeNgapId, BlockOwner, OwnerMap, RanUeNgapId, ShardId, Snssai, Tai};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Time To Wait in a refusal.
const RETRY_AFTER: TimeToWait = TimeToWait::v10s;

/// As long as a gNB waits that is to join before its NG SETUP REQUEST, over another association, has arrived.
const JOIN_AGAIN_AFTER: TimeToWait = TimeToWait::v1s;

/// Connections in one NG RESET, which may list 65,536 (TS 38.413 9.2.6.11): the message stays below 64 kB.
const MAX_RESET: usize = 2_048;

/// What a procedure takes of the gNB's allowance.
fn cost_of(message: &Message) -> u32 {
    match message {
        Message::NgReset(NgReset { scope: ResetScope::Part(connections), .. }) => {
            u32::try_from(connections.len()).unwrap_or(PROCEDURE).clamp(1, PROCEDURE)
        }
        _ => PROCEDURE,
    }
}

impl N2Gateway {
    pub(super) fn interface_management(&mut self, tnla: Tnla, pdu: &[u8]) {
        let (message, notice) = match Message::decode_with_notice(pdu) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.count_procedure(tnla, PROCEDURE);
                return self.interface_error(tnla, error);
            }
        };
        if let Some(notice) = notice {
            self.note_notice(tnla, notice);
        }
        self.process_interface_message(tnla, message);
    }

    /// What was ignored of a message is reported in the response of its procedure, which may wait for the shards, else by ERROR INDICATION
    /// (TS 38.413 10.3.4.2).
    fn note_notice(&mut self, tnla: Tnla, notice: Box<Notice>) {
        let name = self.name(tnla);
        self.warn(tnla, || format!("gNB {name}: ignored, and reported to it: {}", notice.text));
        if !notice.awaits_response() {
            self.indicate(tnla, Notice::CAUSE, Some(notice.diagnostics));
        } else if let Some(association) = self.associations.get_mut(&tnla) {
            association.notice = Some(notice);
        }
    }

    fn process_interface_message(&mut self, tnla: Tnla, message: Message) {
        match message {
            // Answers to procedures of this gateway; without one in progress they have no effect (TS 38.413 10.4).
            Message::NgResetAcknowledge(answer) => self.reset_is_acknowledged(tnla, &answer),
            Message::AmfConfigurationUpdateAcknowledge(answer) => self.update_is_acknowledged(tnla, &answer),
            Message::AmfConfigurationUpdateFailure(failure) => self.update_is_refused(tnla, &failure),
            message if !self.count_procedure(tnla, cost_of(&message)) => {
                self.refuse_for_overload(tnla, &message);
            }
            Message::NgSetupRequest(request) => self.ng_setup(tnla, request),
            Message::RanConfigurationUpdate(update) => self.ran_configuration_update(tnla, update),
            Message::NgReset(reset) => self.ng_reset(tnla, reset),
            Message::UplinkRanConfigurationTransfer(message) => self.relay_configuration(tnla, message),
            // Only an AMF sends them; NG SETUP and RAN CONFIGURATION UPDATE have no other answers.
            message => self.event(Level::Debug, format!("{} is not for an AMF", message.name())),
        }
    }

    /// NG Setup: gNB and AMF exchange what they serve (TS 38.413 8.7.1.2). The AMF refuses a gNB ID that may
    /// not be used from this address, and a gNB without a common network, area or slice (8.7.1.3, 8.7.1.4).
    fn ng_setup(&mut self, tnla: Tnla, request: NgSetupRequest) {
        let global_id = request.global_ran_node_id.to_string();
        let name = request.ran_node_name.unwrap_or_default();
        let who = NodeName { name: &name, global_id: &global_id };
        let retains_ues = request.ue_retention.is_some();
        let known = self.by_global_id.get(&global_id).copied();
        let identity = self.check_identity(tnla, &global_id);
        if let Err((cause, why)) = identity.and_then(|()| self.check_further(tnla, (known, retains_ues))) {
            return self.refuse_setup(tnla, who, cause, &why);
        }
        let supported = match self.common_areas(&request.supported_tas) {
            Ok(supported) => supported,
            Err(mismatch) => {
                let why = self.explain(mismatch, &request.supported_tas);
                return self.refuse_setup(tnla, who, mismatch.cause(), &why);
            }
        };
        let info = Arc::new(self.info(tnla, &who, request.global_ran_node_id, supported));
        self.leave_half_open(tnla);
        // The interface goes on with its UEs, whichever of its associations the request arrives on.
        let retaining = known.filter(|_| retains_ues);
        let gnb = retaining.unwrap_or_else(|| self.begin_interface(tnla, known, &info));
        if retaining.is_some() {
            self.change_info(gnb, &info);
            self.join(tnla, gnb, true);
        }
        self.report_info(gnb, &info);
        self.event(Level::Info, format!("gNB {} ({}) set up from {}", info.name, info.global_id, info.peer));
        match retaining {
            Some(_) => self.set_up_further(tnla, gnb),
            None => self.await_shards(tnla, gnb, retains_ues),
        }
    }

    /// An association that belongs to a gNB with others can't become another gNB's, and the number of a gNB's associations is limited.
    fn check_further(
        &self,
        tnla: Tnla,
        (known, retains_ues): (Option<GnbHandle>, bool),
    ) -> Result<(), (Cause, String)> {
        let own = self.gnb_of(tnla);
        // It may begin as another gNB, but not join one, or leave one that goes on.
        let is_bound = |own| self.associations_of(own).len() > 1 || (retains_ues && known.is_some());
        if own.is_some_and(|own| known != Some(own) && is_bound(own)) {
            let cause = Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state);
            return Err((cause, "the association is that of another gNB ID".into()));
        }
        if known.is_some_and(|known| retains_ues && own != Some(known) && !self.has_room(known)) {
            return Err(too_many());
        }
        Ok(())
    }

    /// NG Setup erases what the AMF has of the gNB, and of the one that the association belonged to (TS 38.413 8.7.1.1).
    fn begin_interface(&mut self, tnla: Tnla, known: Option<GnbHandle>, info: &Arc<GnbInfo>) -> GnbHandle {
        // A gNB that begins again over new associations gets no more procedures by that.
        let procedures = self.take_allowance(tnla, known);
        if let Some(known) = known {
            self.supersede(tnla, known);
        }
        let again = self.gnb_of(tnla);
        // A handle is as unique as the first association.
        let gnb = again.unwrap_or(GnbHandle(tnla.0));
        self.setups.remove(&gnb);
        self.initiated.forget(gnb);
        if again.is_some() {
            self.change_info(gnb, info);
            // After NG Setup the gNB has no UEs.
            self.reset_all(gnb);
        } else {
            let ran_ids = RanIds::default();
            let associations = Vec::new();
            let interface = NgInterface { info: Arc::clone(info), associations, ran_ids, procedures };
            self.interfaces.insert(gnb, interface);
            self.by_global_id.insert(info.global_id.clone(), gnb);
            self.join(tnla, gnb, false);
        }
        gnb
    }

    /// The gNB starts procedures faster than the AMF carries them out. NG RESET has no failure message: it is not
    /// answered, and the gNB may repeat it (TS 38.413 8.7.4.4).
    fn refuse_for_overload(&mut self, tnla: Tnla, message: &Message) {
        let name = self.name(tnla);
        self.warn(tnla, || {
            format!("gNB {name} repeats NG Setup, NG Reset, configuration updates or transfers too fast")
        });
        let cause = Cause::Misc(CauseMisc::control_processing_overload);
        match message {
            Message::NgSetupRequest(_) => {
                let failure = NgSetupFailure { cause, time_to_wait: Some(RETRY_AFTER), diagnostics: None };
                self.answer(tnla, failure.encode());
            }
            Message::RanConfigurationUpdate(_) => self.refuse_update(tnla, cause, RETRY_AFTER),
            _ => {}
        }
    }

    fn refuse_setup(&mut self, tnla: Tnla, who: NodeName<'_>, cause: Cause, why: &str) {
        let peer = self.associations.get(&tnla).map(|association| association.peer.to_string());
        let peer = peer.unwrap_or_default();
        self.warn(tnla, || format!("NG Setup of gNB {who} from {peer} refused: {why}"));
        self.extend_half_open(tnla);
        let failure = NgSetupFailure { cause, time_to_wait: Some(RETRY_AFTER), diagnostics: None };
        self.answer(tnla, failure.encode());
    }

    /// RAN Configuration Update (TS 38.413 8.7.2.2). Over an association that belongs to no gNB yet, it joins that of the Global RAN Node ID.
    fn ran_configuration_update(&mut self, tnla: Tnla, update: RanConfigurationUpdate) {
        let gnb = match self.updated_gnb(tnla, &update) {
            Ok(gnb) => gnb,
            Err((cause, why)) => {
                let name = self.name(tnla);
                self.warn(tnla, || format!("RAN Configuration Update of gNB {name} refused: {why}"));
                self.extend_half_open(tnla);
                let again = if self.is_early(tnla, &update) { JOIN_AGAIN_AFTER } else { RETRY_AFTER };
                return self.refuse_update(tnla, cause, again);
            }
        };
        let Some(old) = self.interfaces.get(&gnb).map(|interface| Arc::clone(&interface.info)) else {
            return;
        };
        let supported = match update.supported_tas.as_deref().map(|tas| self.common_areas(tas)) {
            None => old.supported.clone(),
            Some(Ok(supported)) => supported,
            Some(Err(mismatch)) => {
                let why = self.explain(mismatch, update.supported_tas.as_deref().unwrap_or_default());
                self.warn(tnla, || format!("RAN Configuration Update of gNB {} refused: {why}", old.name));
                return self.refuse_update(tnla, mismatch.cause(), RETRY_AFTER);
            }
        };
        let name = update.ran_node_name.as_deref().map_or_else(|| old.name.clone(), printable);
        let info = Arc::new(GnbInfo { name, supported, ..(*old).clone() });
        self.change_info(gnb, &info);
        self.report_info(gnb, &info);
        if self.gnb_of(tnla).is_none() {
            self.leave_half_open(tnla);
            self.join(tnla, gnb, false);
            let peer = self.associations.get(&tnla).map(|it| it.peer.to_string()).unwrap_or_default();
            self.event(
                Level::Info,
                format!("gNB {} ({}) has a further association, from {peer}", info.name, info.global_id),
            );
        }
        self.answer(tnla, RanConfigurationUpdateAcknowledge { diagnostics: None }.encode());
        self.remove_associations(gnb, update.tnla_to_remove.as_deref().unwrap_or_default());
    }

    /// Whether the association may join after the NG Setup of its gNB, whose request may still be in transit over another one.
    fn is_early(&self, tnla: Tnla, update: &RanConfigurationUpdate) -> bool {
        let is_unknown = |id: &GlobalRanNodeId| !self.by_global_id.contains_key(&id.to_string());
        self.gnb_of(tnla).is_none() && update.global_ran_node_id.as_ref().is_some_and(is_unknown)
    }

    /// The gNB whose data RAN CONFIGURATION UPDATE changes: that of the association, or the one that it joins.
    fn updated_gnb(&self, tnla: Tnla, update: &RanConfigurationUpdate) -> Result<GnbHandle, (Cause, String)> {
        let global_id = update.global_ran_node_id.as_ref().map(ToString::to_string);
        let named = global_id.as_ref().and_then(|global_id| self.by_global_id.get(global_id).copied());
        let state = Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state);
        match (self.gnb_of(tnla), global_id, named) {
            (Some(own), None, _) => Ok(own),
            (Some(own), Some(_), Some(named)) if own == named => Ok(own),
            (Some(_), Some(global_id), _) => Err((state, format!("{global_id} is the ID of another gNB"))),
            (None, Some(global_id), Some(named)) => {
                self.check_identity(tnla, &global_id)?;
                if self.has_room(named) { Ok(named) } else { Err(too_many()) }
            }
            // The gNB is to begin with NG Setup, or its NG SETUP REQUEST is still in transit over another association.
            (None, ..) => Err((state, "the gNB has not completed NG Setup".into())),
        }
    }

    fn refuse_update(&mut self, tnla: Tnla, cause: Cause, again: TimeToWait) {
        let failure = RanConfigurationUpdateFailure { cause, time_to_wait: Some(again), diagnostics: None };
        self.answer(tnla, failure.encode());
    }

    /// NG Reset by the gNB: shards close the connections, the gateway acknowledges (TS 38.413 8.7.4.2.2). It concerns connections over any
    /// association of the gNB.
    fn ng_reset(&mut self, tnla: Tnla, reset: NgReset) {
        let Some(gnb) = self.gnb_of(tnla) else { return };
        let name = self.name(tnla);
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
        self.answer(tnla, NgResetAcknowledge { connections, diagnostics: None }.encode());
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
        if let Some(interface) = self.interfaces.get_mut(&gnb) {
            interface.ran_ids.reset(&connections.iter().map(reset_ue).collect::<Vec<_>>());
        }
    }

    /// A shard continues after a panic with these connections. Others that it had are released by the gNB: NG RESET for a part of
    /// the interface (TS 38.413 8.7.4.2.1). Those that the gNB has released meanwhile are closed by the shard.
    pub(super) fn taken_over(&mut self, shard: ShardId, owners: &OwnerMap, connections: &[MovedConnection]) {
        let own = BlockOwner { instance: self.config.instance, shard };
        let is_of_shard = |amf: AmfUeNgapId| owners.owner(amf.block()) == own;
        let gnbs: Vec<_> = self.interfaces.keys().copied().collect();
        for gnb in gnbs {
            let Some(interface) = self.interfaces.get_mut(&gnb) else { continue };
            let of_gnb = connections.iter().filter(|(of, ..)| *of == gnb);
            let kept: BTreeMap<_, _> = of_gnb.map(|(_, amf, ran)| (*ran, *amf)).collect();
            let (left, closed) = interface.ran_ids.reconcile(shard, is_of_shard, &kept);
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
            self.send_common(gnb, NgReset { cause, scope }.encode());
        }
    }

    /// An error in an interface management message: answered with the procedure's failure message
    /// if it has one (TS 38.413 10.3.4.2, 10.3.5), otherwise with ERROR INDICATION.
    fn interface_error(&mut self, tnla: Tnla, error: NgapError) {
        let NgapError::AbstractSyntax {
            cause, response_diagnostics, procedure_code, initiating: true, ..
        } = &error
        else {
            return self.report(tnla, Some(error));
        };
        let diagnostics = Some((**response_diagnostics).clone());
        match *procedure_code {
            super::procedure::NG_SETUP => {
                let failure = NgSetupFailure { cause: *cause, time_to_wait: None, diagnostics };
                self.answer(tnla, failure.encode());
            }
            super::procedure::RAN_CONFIGURATION_UPDATE => {
                let failure =
                    RanConfigurationUpdateFailure { cause: *cause, time_to_wait: None, diagnostics };
                self.answer(tnla, failure.encode());
            }
            _ => self.report(tnla, Some(error)),
        }
    }

    fn info(
        &self,
        tnla: Tnla,
        who: &NodeName<'_>,
        node: GlobalRanNodeId,
        supported: Vec<(Tai, Vec<Snssai>)>,
    ) -> GnbInfo {
        let peer = self.associations.get(&tnla).map(|association| association.peer);
        // A gNB with several addresses counts as one host, and as the same one when it returns with another of them first.
        let listed = self.permitted_addresses(who.global_id).next();
        let host = listed.or(peer.map(|peer| peer.ip())).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let name = if who.name.is_empty() { who.global_id.to_owned() } else { printable(who.name) };
        let peer = peer.map(|peer| peer.to_string()).unwrap_or_default();
        GnbInfo { name, global_id: who.global_id.to_owned(), node, supported, peer, host: share_of(host) }
    }

    /// The gNB has no UEs.
    fn clear_ran_ids(&mut self, gnb: GnbHandle) {
        if let Some(interface) = self.interfaces.get_mut(&gnb) {
            interface.ran_ids.clear();
        }
    }

    /// The gNB has other data, perhaps another Global RAN Node ID.
    fn change_info(&mut self, gnb: GnbHandle, info: &Arc<GnbInfo>) {
        let Some(interface) = self.interfaces.get_mut(&gnb) else { return };
        let before = std::mem::replace(&mut interface.info, Arc::clone(info));
        if before.global_id != info.global_id {
            self.by_global_id.remove(&before.global_id);
            self.by_global_id.insert(info.global_id.clone(), gnb);
        }
    }

    fn report_info(&mut self, gnb: GnbHandle, info: &Arc<GnbInfo>) {
        self.send_to_all_shards(|| N2Input::GnbUp { gnb, info: Arc::clone(info) });
    }
}

/// The gNB has as many associations as it may have.
fn too_many() -> (Cause, String) {
    let cause = Cause::Misc(CauseMisc::control_processing_overload);
    (cause, format!("the gNB has {} associations already", super::tnla::MOST))
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
