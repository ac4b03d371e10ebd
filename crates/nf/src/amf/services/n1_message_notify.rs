//! Namf_Communication_N1MessageNotify at the target AMF of a re-allocation (TS 29.518 5.2.2.3.5; TS 23.502 4.2.2.2.3 steps 7A, 8): another AMF
//! passes on the registration of a UE whose slices it does not serve.
//!
//! The UE's gNB must be connected to this AMF. The registration goes on with the keys, the sessions and the NSSF's answer that the initial AMF
//! sends; this AMF passes it on to no third one. What the other AMF says is checked before a context is made of it, as at a handover. It ends
//! nothing that this shard has: a subscriber who is connected here is not taken, one who is registered here is authenticated first, and no UE
//! loses its connection. The number of UEs that have not sent anything with the keys is limited.
//!
//! These checks see the receiving shard only: neither a subscriber whom another shard or instance of the AMF Set serves is recognised, nor a
//! RAN-UE-NGAP-ID that a UE of another shard has. The registration then goes on by the word of the other AMF, and the UDM has the former shard
//! end its own (TS 23.502 4.2.2.2.2 step 14d).

use crate::amf::Amf;
use crate::amf::config::HALF_OPEN;
use crate::amf::connection::{OF_HANDOVER, RanContext};
use crate::amf::consumer::REGISTRATIONS_OF_OTHER_AMFS;
use crate::amf::context::{Env, UeContext};
use crate::amf::mobility::{n2_handover, n14};
use crate::amf::n2::{Initial, N2Origin, octets_kept};
use crate::amf::procedure::context_transfer::{self, Received};
use crate::amf::procedure::registration;
use crate::amf::reallocation::{NssfSlices, Origin, Reallocation};
use crate::kit::{GnbHandle, Instant, Outbox};
use pith_nas::GmmMessage;
use pith_nas::gmm::RegistrationRequest;
use pith_ngap::{TargetId, UserLocation, is_amf_name};
use pith_sbi::namf_communication as namf;
use pith_sbi::nsmf_pdusession::NgRanTargetId;
use pith_sbi::{Cause, Problem, Reply, Response};
use pith_types::{RanUeNgapId, Supi};

/// Octets of a REGISTRATION REQUEST that is passed on.
const MAX_MESSAGE: usize = 8 << 10;

/// UEs are taken while unauthenticated UEs, which include those that were passed on and have sent nothing yet, have that part of their limit.
const UNVERIFIED_PART: usize = 8;

/// A checked request.
struct PassedOn {
    request: Box<RegistrationRequest>,
    supi: Supi,
    security: Received,
    gnb: GnbHandle,
    ran_id: RanUeNgapId,
    location: UserLocation,
    container: namf::RegistrationContextContainer,
}

impl Amf {
    /// Takes the UE, and goes on with its registration.
    pub(super) fn n1_message_notify(
        &mut self,
        now: Instant,
        notification: namf::N1MessageNotify,
        out: &mut Outbox,
    ) -> Reply {
        if notification.uri.id() != REGISTRATIONS_OF_OTHER_AMFS {
            return Err(Problem::context_not_found().into());
        }
        let passed_on = self.check_passed_on(notification.body)?;
        let most = self.shared.config.max_ues as usize;
        let most_unverified = most.min(HALF_OPEN.entries) / UNVERIFIED_PART;
        let is_full = self.ues.len() >= most || self.shared.half_open.len() >= most_unverified;
        if is_full || self.shared.refuses_new || !self.shared.connections.has_room() {
            return Err(Problem::new(Cause::NfCongestion).into());
        }
        let from = N2Origin { gnb: passed_on.gnb, binding: OF_HANDOVER };
        self.drop_stale(now, from, passed_on.ran_id, out);
        let octets = octets_kept(MAX_MESSAGE);
        let key = self.half_open(now, from, octets).ok_or_else(|| Problem::new(Cause::NfCongestion))?;
        self.with_ue(now, key, out, |ue, env| take(ue, env, from, passed_on));
        self.give_up_excess(now, from, out);
        Ok(Response::NoContent)
    }

    fn check_passed_on(&self, body: namf::N1MessageNotification) -> Result<PassedOn, Box<Problem>> {
        let incorrect = |param, why: &str| Box::new(Problem::mandatory_ie_incorrect(param, why));
        let container = body.registration_ctxt_container;
        let container =
            container.ok_or_else(|| Problem::mandatory_ie_missing("/registrationCtxtContainer"))?;
        let request = registration_request(&body.n1_message_container)
            .ok_or_else(|| incorrect("/n1MessageContainer", "not a REGISTRATION REQUEST in cleartext"))?;
        let context = &container.ue_context;
        let supi = context.supi.clone();
        let supi =
            supi.ok_or_else(|| Problem::mandatory_ie_missing("/registrationCtxtContainer/ueContext/supi"))?;
        if !context_transfer::are_session_contexts(&context.session_context_list) {
            return Err(incorrect(
                "/registrationCtxtContainer/ueContext/sessionContextList",
                "not different PDU sessions of a UE",
            ));
        }
        // gNBs get it.
        if !is_amf_name(&container.initial_amf_name) {
            return Err(incorrect("/registrationCtxtContainer/initialAmfName", "not an AMF Name of NGAP"));
        }
        let security = context_transfer::received(context).ok_or_else(|| {
            incorrect("/registrationCtxtContainer/ueContext/seafData", "no security context that is in use")
        })?;
        let refused = |why: &str| Box::new(Problem::of_status(403).detail(why));
        let location = container.user_location.nr_location.as_ref();
        let location = location.ok_or_else(|| refused("the UE is not in NR"))?;
        let tai = location.tai;
        if !self.shared.config.tais.contains(&tai) {
            return Err(refused("this AMF does not serve the UE's tracking area"));
        }
        let node = n14::target_of(&NgRanTargetId::new(container.ran_node_id.clone(), tai));
        let gnb = match &node {
            Some(TargetId::RanNode { node, tai }) => n2_handover::gnb_of(&self.shared.gnbs, node, tai),
            _ => None,
        };
        let gnb = gnb.ok_or_else(|| refused("the UE's gNB is not connected to this AMF"))?;
        let location = UserLocation { cell_plmn: location.ncgi.plmn_id, cell: location.ncgi.nr_cell_id, tai };
        let ran_id = RanUeNgapId(container.an_n2_ap_id);
        if self.is_connected(&supi) {
            return Err(refused("the subscriber is connected to this AMF"));
        }
        if self.is_in_use(gnb, ran_id) {
            return Err(refused("the connection at the gNB is that of another UE of this AMF"));
        }
        Ok(PassedOn { request, supi, security, gnb, ran_id, location, container })
    }

    /// Whether the subscriber is connected to this shard: another AMF can't have its registration.
    fn is_connected(&self, supi: &Supi) -> bool {
        let ue = self.shared.index.find_supi(supi).and_then(|key| self.ues.view(key));
        let connection = ue.and_then(|ue| self.shared.connections.get(ue.connection?));
        connection.is_some_and(|connection| connection.context != RanContext::Releasing)
    }

    /// Whether a UE that is authenticated at this shard has that connection. (A gNB uses an id again when its former use is over.)
    fn is_in_use(&self, gnb: GnbHandle, ran_id: RanUeNgapId) -> bool {
        let connections = &self.shared.connections;
        let known = connections.find_by_ran(gnb, ran_id).and_then(|key| connections.get(key));
        let used = known.filter(|it| it.context != RanContext::Releasing).and_then(|it| it.ue);
        // A UE whose copy is dropped is stored.
        used.is_some_and(|key| self.ues.view(key).is_none_or(|ue| ue.half_open.is_none()))
    }
}

/// The REGISTRATION REQUEST in a message that is not protected.
fn registration_request(message: &namf::N1MessageContainer) -> Option<Box<RegistrationRequest>> {
    let content = &message.n1_message_content.content;
    let is_short = content.len() <= MAX_MESSAGE && message.n1_message_class == namf::N1MessageClass::FiveGmm;
    match is_short.then(|| GmmMessage::decode(content)) {
        Some(Ok(GmmMessage::RegistrationRequest(request))) => Some(request),
        _ => None,
    }
}

/// The UE has a context, with its connection at the gNB. Its sessions are the initial AMF's until it is verified
/// ([`crate::amf::procedure::reallocation::confirm`]).
fn take(ue: &mut UeContext, env: &mut Env<'_>, from: N2Origin, passed_on: PassedOn) {
    let PassedOn { request, supi, security, gnb: _, ran_id, location, container } = passed_on;
    let address = (from.gnb, from.binding);
    let Some(connection) = env.connections.open(ue.id.block, address, ran_id) else { return };
    if let Some(connection) = env.connections.get_mut(connection) {
        connection.ue = Some(ue.key);
    }
    ue.connection = Some(connection);
    ue.location = Some(location);
    ue.initial = Initial { wants_context: container.ue_context_request == Some(true), ..Initial::default() };
    let (nssf, old_amf) = (NssfSlices::of_container(&container), Some(container.initial_amf_name));
    let sessions = container.ue_context.session_context_list.into_iter().map(context_transfer::session);
    let origin = Some(Origin { nssf, old_amf, sessions: Some(sessions.collect()) });
    ue.reallocation = Some(Box::new(Reallocation { origin, ..Reallocation::default() }));
    ue.k_gnb_count = security.uplink;
    ue.capability = Some(security.security.capability);
    ue.security = Some(security.security);
    ue.pei = container.ue_context.pei;
    registration::go_on(ue, env, request, supi);
}
