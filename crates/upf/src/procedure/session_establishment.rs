//! Session establishment (TS 29.244 6.3.2).
//!
//! ```text
//! SMF  Session Establishment Request ─▶  1 association?  2 rules  3 F-TEIDs  4 compile  5 install
//!      Session Establishment Response ◀─  UP F-SEID, F-TEIDs allocated; or cause, offending IE, failed rule
//! ```

use std::collections::BTreeSet;
use std::net::SocketAddr;

use pith_pfcp::IeType;
use pith_pfcp::ie::{Cause, Choice, FSeid, FTeid, NodeId, PdnType, PfcpSeReqFlags};
use pith_pfcp::message::{SessionEstablishmentRequest, SessionEstablishmentResponse};
use pith_pfcp::rules::{CreatedPdr, CreatedTrafficEndpoint};

use crate::contract::{self, Rates, SessionId, Teid, UeAddress};
use crate::port::{Context, Notice};
use crate::rejection::Rejection;
use crate::session::{
    Allocation, FlowHistory, Inactivity, Measurements, RuleSet, Session, allocate, compile, cp_address,
};
use crate::upf::{ProcedureResult, Upf};

impl Upf {
    /// Establishes a session; if it rejects the request, nothing has changed.
    pub(crate) fn session_establishment(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        request: SessionEstablishmentRequest,
    ) -> ProcedureResult {
        let seid = request.cp_f_seid.seid;
        let response = self.establish(context, peer, request).map_err(|rejection| (seid, rejection))?;
        Ok((seid, response.into()))
    }

    fn establish(
        &mut self,
        context: &mut Context<'_>,
        peer: SocketAddr,
        mut request: SessionEstablishmentRequest,
    ) -> Result<SessionEstablishmentResponse, Rejection> {
        // 1. Can this UPF serve the request?
        self.check_establishment(peer, &request)?;
        // 2. The rules as provisioned.
        let mut rules = RuleSet::establish(&mut request, self.config.max_rules)?;
        // 3. F-TEIDs, which are freed if a later step fails.
        let id = self.sessions.next_id();
        let set = self.set_of(&request.node_id).cloned();
        let restoring = request.pfcp_se_req_flags.is_some_and(|flags| flags.contains(PfcpSeReqFlags::RESTI));
        if restoring {
            self.delete_restored(context, &request.node_id, &rules);
        }
        let (none, local) = (BTreeSet::new(), self.config.n3);
        let allocation = allocate(&mut rules, id, &mut self.sessions.teids, local, &none, restoring)?;
        // 4. The rules as the datapath needs them.
        let measurements = Measurements::new(&rules, context.now);
        let compiled = compile(id, &rules, &measurements, &self.config)
            .and_then(|compiled| self.sessions.check_admission(id, &compiled).map(|()| compiled))
            .and_then(|compiled| {
                self.delete_stale_sessions(context, id, &request, compiled.ue).map(|()| compiled)
            })
            .and_then(|compiled| self.check_framed_routes(id, &compiled).map(|()| compiled));
        let compiled = compiled.inspect_err(|_| self.free_allocation(&allocation))?;
        // 5. Install the rules.
        let response = self.establishment_response(id, &allocation);
        self.sessions.insert(Session { set, ..new_session(id, request, measurements, context) });
        self.sessions.commit(id, rules, &compiled, allocation.teids);
        context.datapath.begin(compiled.ue, restoring);
        self.install(context, compiled);
        self.schedule(context, id);
        context.notice(Notice::SessionEstablished { session: id });
        Ok(response)
    }

    fn check_establishment(
        &self,
        peer: SocketAddr,
        request: &SessionEstablishmentRequest,
    ) -> Result<(), Rejection> {
        let of_peer: usize = self.nodes_at(peer).map(|node| self.sessions.count_of(node)).sum();
        let has_room =
            self.sessions.len() < self.config.max_sessions && of_peer < self.config.max_sessions_of_peer;
        if !has_room || request.fq_csids.len() > super::association::MAX_FQ_CSIDS {
            return Err(Cause::NoResourcesAvailable.into());
        }
        self.check_endpoint(&request.cp_f_seid)?;
        if let Some(PdnType::Unknown(_)) = request.pdn_type {
            return Err(Rejection::new(Cause::MandatoryIeIncorrect).because_of(IeType::PDN_TYPE));
        }
        let unsupported = [
            (matches!(request.pdn_type, Some(PdnType::NonIp | PdnType::Ethernet)), IeType::PDN_TYPE),
            (!request.create_mars.is_empty(), IeType::CREATE_MAR),
            (!request.create_srrs.is_empty(), IeType::CREATE_SRR),
        ];
        match unsupported.into_iter().find(|(present, _)| *present) {
            Some((_, ie_type)) => Err(Rejection::new(Cause::ServiceNotSupported).because_of(ie_type)),
            None => Ok(()),
        }
    }

    /// Reports of a session are sent to permitted SMFs only; SEID 0 is no session endpoint (TS 29.244
    /// 7.2.2.4.2).
    pub(crate) fn check_endpoint(&self, cp: &FSeid) -> Result<(), Rejection> {
        let address = cp_address(cp, self.config.n4).ip();
        if cp.seid != 0 && self.config.permits_endpoint(address) {
            Ok(())
        } else {
            Err(Rejection::new(Cause::MandatoryIeIncorrect).because_of(IeType::F_SEID))
        }
    }

    /// A UE address belongs to one session. If the same SMF, or another of its set, has assigned it again, the old session is stale
    /// and deleted; if another SMF uses it, the request is rejected.
    fn delete_stale_sessions(
        &mut self,
        context: &mut Context<'_>,
        id: SessionId,
        request: &SessionEstablishmentRequest,
        ue: UeAddress,
    ) -> Result<(), Rejection> {
        let sharing_address = self.sessions.sharing_address(id, ue);
        let is_own = |rival: &Session| self.may_replace(&request.node_id, rival);
        if !sharing_address.iter().all(|rival| self.sessions.get(*rival).is_some_and(is_own)) {
            let taken = Rejection::new(Cause::RuleCreationModificationFailure);
            return Err(taken.because_of(IeType::UE_IP_ADDRESS));
        }
        self.drop_sessions(context, &sharing_address, "the SMF assigned its UE address to another session");
        Ok(())
    }

    /// A framed route belongs to one session: packets to it have one destination.
    pub(crate) fn check_framed_routes(
        &self,
        id: SessionId,
        compiled: &contract::Session,
    ) -> Result<(), Rejection> {
        let Some(route) = self.sessions.shared_route(id, &compiled.framed_routes) else { return Ok(()) };
        let ie_type = if route.address.is_ipv4() { IeType::FRAMED_ROUTE } else { IeType::FRAMED_IPV6_ROUTE };
        Err(Rejection::new(Cause::RuleCreationModificationFailure).because_of(ie_type))
    }

    /// The SMF restores a session that the UPF still has: the SMF of its set that had it did not know more of it, or its answer was lost. Its
    /// F-TEIDs are free for the new one. So it ends, even if the request fails.
    fn delete_restored(&mut self, context: &mut Context<'_>, node: &NodeId, rules: &RuleSet) {
        let f_teids = rules.pdrs.values().filter_map(|pdr| pdr.pdi.local_f_teid);
        let teids = f_teids.filter_map(|f_teid| match f_teid {
            FTeid::Allocated { teid, .. } => Some(Teid(teid)),
            FTeid::Choose { .. } => None,
        });
        let owners: BTreeSet<_> = teids.filter_map(|teid| self.sessions.teids.owner(teid)).collect();
        let ues = rules.pdrs.values().flat_map(|pdr| &pdr.pdi.ue_ip_addresses);
        let addresses: Vec<_> = ues.filter_map(|ue| ue.ipv4).collect();
        let is_former = |id: &SessionId| {
            self.sessions.get(*id).is_some_and(|session| {
                let has_address =
                    session.ue.v4.is_some_and(|address| addresses.contains(&Choice::Given(address)));
                has_address && self.may_replace(node, session)
            })
        };
        let former: Vec<_> = owners.into_iter().filter(is_former).collect();
        self.drop_sessions(context, &former, "the SMF restores it");
    }

    /// Frees the TEIDs of a failed request.
    pub(crate) fn free_allocation(&mut self, allocation: &Allocation) {
        allocation.fresh.iter().for_each(|teid| self.sessions.teids.free(*teid));
    }

    fn establishment_response(&self, id: SessionId, allocation: &Allocation) -> SessionEstablishmentResponse {
        let node = self.config.node_id.clone();
        SessionEstablishmentResponse {
            up_f_seid: Some(FSeid::new(id.0, self.config.n4)),
            created_pdrs: created_pdrs(allocation),
            created_traffic_endpoints: created_endpoints(allocation),
            ..SessionEstablishmentResponse::new(node, Cause::RequestAccepted)
        }
    }
}

fn new_session(
    id: SessionId,
    request: SessionEstablishmentRequest,
    measurements: Measurements,
    context: &Context<'_>,
) -> Session {
    let inactivity = request.user_plane_inactivity_timer;
    Session {
        id,
        cp: request.cp_f_seid,
        node: request.node_id,
        set: None,
        dnn: request.apn_dnn,
        fq_csids: request.fq_csids,
        rules: RuleSet::default(),
        teids: BTreeSet::new(),
        ue: UeAddress::default(),
        guaranteed_rates: Rates { uplink: 0, downlink: 0 },
        tunnels: Vec::new(),
        measurements,
        flows: FlowHistory::default(),
        inactivity: inactivity.and_then(|timer| Inactivity::start(timer.0, context.now)),
        delayed: None,
        reported: Vec::new(),
        lost_tunnels: Vec::new(),
        reports: Vec::new(),
        due: None,
    }
}

/// The F-TEIDs allocated for PDRs.
pub(crate) fn created_pdrs(allocation: &Allocation) -> Vec<CreatedPdr> {
    let created = allocation.pdrs.iter();
    created.map(|(id, f_teid)| CreatedPdr { local_f_teids: vec![*f_teid], ..CreatedPdr::new(*id) }).collect()
}

/// The F-TEIDs allocated for traffic endpoints.
pub(crate) fn created_endpoints(allocation: &Allocation) -> Vec<CreatedTrafficEndpoint> {
    let created = allocation.endpoints.iter();
    let created = created.map(|(id, f_teid)| CreatedTrafficEndpoint {
        local_f_teids: vec![*f_teid],
        ..CreatedTrafficEndpoint::new(*id)
    });
    created.collect()
}
