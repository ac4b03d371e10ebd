//! Session modification (TS 29.244 6.3.3): the whole request takes effect, or nothing.
//!
//! ```text
//! SMF  Session Modification Request ─▶  1 session?  2 rules  3 usage  4 F-TEIDs  5 compile  6 install, End Markers
//!      Session Modification Response ◀─  F-TEIDs allocated, usage reports; or cause, offending IE, failed rule
//! ```

use std::collections::BTreeSet;

use pith_pfcp::IeType;
use pith_pfcp::ie::{ApplyAction, Cause, FarId, PfcpSmReqFlags};
use pith_pfcp::message::{SessionModificationRequest, SessionModificationResponse};
use pith_pfcp::rules::{UpdatedPdr, UsageReport};

use super::session_establishment::{created_endpoints, created_pdrs};
use crate::config::{Config, GtpuAddress};
use crate::contract::{self, SessionId, Tunnel};
use crate::port::Context;
use crate::rejection::Rejection;
use crate::session::{
    Allocation, Inactivity, Measurements, Query, RuleSet, Session, allocate, compile, tunnel,
};
use crate::upf::{ProcedureResult, Upf};

impl Upf {
    /// Modifies a session; if it rejects the request, nothing has changed.
    pub(crate) fn session_modification(
        &mut self,
        context: &mut Context<'_>,
        id: SessionId,
        request: &SessionModificationRequest,
    ) -> ProcedureResult {
        let seid = self.sessions.get(id).map_or(0, |session| session.cp.seid);
        let response = self.modify(context, id, request).map_err(|rejection| (seid, rejection))?;
        // The response is sent to the new endpoint, if the request changes it.
        Ok((request.cp_f_seid.map_or(seid, |cp| cp.seid), response.into()))
    }

    fn modify(
        &mut self,
        context: &mut Context<'_>,
        id: SessionId,
        request: &SessionModificationRequest,
    ) -> Result<SessionModificationResponse, Rejection> {
        // 1. Is the session known and the request valid?
        self.check_modification(request)?;
        let session = self.sessions.get(id).ok_or(Cause::SessionContextNotFound)?;
        // 2. The rules after the request.
        let mut rules = session.rules.modify(request, self.config.max_rules)?;
        let end_markers = end_markers(request, &session.rules, &rules, self.config.n3);
        // 3. The usage under the old rules, and the measurements under the new ones.
        let (measurements, usage_reports) = measure(context, session, request, &rules, &self.config);
        // 4. F-TEIDs, which are freed if a later step fails.
        let owned = session.teids.clone();
        let allocation = allocate(&mut rules, id, &mut self.sessions.teids, self.config.n3, &owned, false)?;
        // 5. The rules as the datapath needs them.
        let compiled = self.compile_modified(id, &rules, &measurements);
        let compiled = compiled.inspect_err(|_| self.free_allocation(&allocation))?;
        // 6. Install the rules.
        self.adopt_session_parameters(context, id, request, measurements);
        self.sessions.commit(id, rules, &compiled, allocation.teids.clone());
        self.install(context, compiled);
        end_markers.iter().for_each(|tunnel| context.datapath.send_end_marker(tunnel));
        self.report_held_again(context, id, &notifying_fars(request));
        self.schedule(context, id);
        Ok(modification_response(request, &allocation, usage_reports))
    }

    fn check_modification(&self, request: &SessionModificationRequest) -> Result<(), Rejection> {
        if request.fq_csids.len() > super::association::MAX_FQ_CSIDS {
            return Err(Cause::NoResourcesAvailable.into());
        }
        request.cp_f_seid.iter().try_for_each(|cp| self.check_endpoint(cp))?;
        let unsupported = [
            (!request.create_mars.is_empty(), IeType::CREATE_MAR),
            (!request.create_srrs.is_empty(), IeType::CREATE_SRR),
        ];
        match unsupported.into_iter().find(|(present, _)| *present) {
            Some((_, ie_type)) => Err(Rejection::new(Cause::ServiceNotSupported).because_of(ie_type)),
            None => Ok(()),
        }
    }

    /// Compiles a session's new rules, and checks resources shared with other sessions.
    fn compile_modified(
        &self,
        id: SessionId,
        rules: &RuleSet,
        measurements: &Measurements,
    ) -> Result<contract::Session, Rejection> {
        let compiled = compile(id, rules, measurements, &self.config)?;
        if !self.sessions.sharing_address(id, compiled.ue).is_empty() {
            let taken = Rejection::new(Cause::RuleCreationModificationFailure);
            return Err(taken.because_of(IeType::UE_IP_ADDRESS));
        }
        self.check_framed_routes(id, &compiled)?;
        self.sessions.check_admission(id, &compiled)?;
        Ok(compiled)
    }

    /// Updates the session parameters that are not rules.
    fn adopt_session_parameters(
        &mut self,
        context: &mut Context<'_>,
        id: SessionId,
        request: &SessionModificationRequest,
        measurements: Measurements,
    ) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.measurements = measurements;
        session.cp = request.cp_f_seid.unwrap_or(session.cp);
        if !request.fq_csids.is_empty() {
            session.fq_csids.clone_from(&request.fq_csids);
        }
        if let Some(timer) = request.user_plane_inactivity_timer {
            session.inactivity = Inactivity::start(timer.0, context.now);
        }
        let flags = request.pfcp_sm_req_flags.unwrap_or_default();
        if flags.contains(PfcpSmReqFlags::DROBU) {
            session.reported.clear();
            context.datapath.discard_buffered(id);
        }
        if let Some(node) = &request.node_id {
            self.sessions.move_to(id, node);
        }
    }
}

/// Reports queried and ending measurements, and continues the others by the new rules.
fn measure(
    context: &Context<'_>,
    session: &Session,
    request: &SessionModificationRequest,
    rules: &RuleSet,
    config: &Config,
) -> (Measurements, Vec<UsageReport>) {
    let (mut measurements, mut reports) = (session.measurements.clone(), Vec::new());
    if !measurements.is_empty() {
        let usage = context.datapath.usage(session.id).unwrap_or_default();
        measurements.sample(&session.rules, context.now, &usage);
        reports = measurements.query(&session.rules, context.now, &query(request, session), config);
        let removed = request.remove_urrs.iter().map(|remove| remove.urr_id).collect();
        reports.extend(measurements.leave(&session.rules, rules, &removed, context.now, config));
    }
    measurements.adopt(rules, &request.update_urrs, context.now);
    (measurements, reports)
}

/// The FARs for which the request asks to be notified of buffered packets.
fn notifying_fars(request: &SessionModificationRequest) -> Vec<FarId> {
    let notifies = |action: ApplyAction| action.contains(ApplyAction::BUFF | ApplyAction::NOCP);
    let asked = request.update_fars.iter().filter(|far| far.apply_action.is_some_and(notifies));
    asked.map(|far| far.far_id).collect()
}

fn query(request: &SessionModificationRequest, session: &Session) -> Query {
    let all = request.pfcp_sm_req_flags.is_some_and(|flags| flags.contains(PfcpSmReqFlags::QAURR));
    let urrs = if all {
        session.rules.urrs.ids().collect()
    } else {
        request.query_urrs.iter().map(|query| query.urr_id).collect()
    };
    Query { urrs, reference: request.query_urr_reference }
}

/// The tunnels that FARs no longer use and for which an End Marker is requested (flag SNDEM, TS 29.244 table
/// 7.5.4.3-2).
fn end_markers(
    request: &SessionModificationRequest,
    before: &RuleSet,
    after: &RuleSet,
    local: GtpuAddress,
) -> Vec<Tunnel> {
    let asked =
        |flags: Option<PfcpSmReqFlags>| flags.is_some_and(|flags| flags.contains(PfcpSmReqFlags::SNDEM));
    let of_all = asked(request.pfcp_sm_req_flags);
    let to = |rules: &RuleSet, id: FarId| {
        let parameters = rules.fars.get(id)?.forwarding_parameters.as_ref()?;
        tunnel(parameters, local)
    };
    let left = request.update_fars.iter().filter_map(|update| {
        let flags = update.update_forwarding_parameters.as_ref().and_then(|update| update.pfcp_sm_req_flags);
        let old = to(before, update.far_id).filter(|_| of_all || asked(flags))?;
        let stays = to(after, update.far_id).is_some_and(|new| (new.peer, new.teid) == (old.peer, old.teid));
        (!stays).then_some(old)
    });
    left.collect()
}

fn modification_response(
    request: &SessionModificationRequest,
    allocation: &Allocation,
    usage_reports: Vec<UsageReport>,
) -> SessionModificationResponse {
    let updated: BTreeSet<_> = request.update_pdrs.iter().map(|update| update.pdr_id).collect();
    let (updated, created): (Vec<_>, Vec<_>) =
        created_pdrs(allocation).into_iter().partition(|pdr| updated.contains(&pdr.pdr_id));
    let updated = updated
        .into_iter()
        .map(|pdr| UpdatedPdr { local_f_teids: pdr.local_f_teids, ..UpdatedPdr::new(pdr.pdr_id) });
    SessionModificationResponse {
        created_pdrs: created,
        updated_pdrs: updated.collect(),
        created_traffic_endpoints: created_endpoints(allocation),
        usage_reports,
        ..SessionModificationResponse::new(Cause::RequestAccepted)
    }
}
