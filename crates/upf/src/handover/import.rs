//! A UPF-C from the records of its predecessor. Each session passes the checks of an establishment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pith_pfcp::ie::{ApnDnn, FSeid, NodeId, NtpSeconds, SmfSetId, UrrId};
use pith_pfcp::message::SessionModificationRequest;
use pith_pfcp::{Message, MessageType};

use super::HandoverError;
use super::provisioned;
use super::record::*;
use super::usage::usage;
use crate::association::{Association, PathState};
use crate::config::Config;
use crate::contract::{Datapath, PdrId, Qfi, Rates, SessionId, Teid, UeAddress};
use crate::rejection::Rejection;
use crate::session::{
    FlowHistory, HeldPackets, Inactivity, Measurements, RuleSet, Session, allocate, compile,
};
use crate::upf::{Purpose, Upf};

/// Takes the records, in order.
#[derive(Debug)]
pub struct Importer {
    upf: Upf,
    /// Whether the head was taken.
    begun: bool,
    ended: bool,
}

impl Importer {
    /// For a UPF-C with these settings, whose start becomes that of its predecessor; `seed` is entropy for its identifiers.
    pub fn new(config: Config, seed: [u8; 32]) -> Self {
        Self { upf: Upf::new(config, seed), begun: false, ended: false }
    }

    /// Takes a record. Sessions are installed in `datapath`, with the usage so far.
    pub fn take(
        &mut self,
        now: Duration,
        record: &[u8],
        datapath: &mut dyn Datapath,
    ) -> Result<(), HandoverError> {
        let record: Record = serde_json::from_slice(record)?;
        let is_head = matches!(record, Record::Head(_));
        if self.ended || self.begun == is_head {
            return Err(HandoverError::Incomplete);
        }
        let upf = &mut self.upf;
        match record {
            Record::Head(head) => {
                let node = NodeId::from(head.node);
                if node != upf.config.node_id {
                    return Err(HandoverError::OtherNode(node.to_string()));
                }
                upf.config.started = head.started;
                upf.load = head.load;
                upf.requests.continue_after(head.sequence);
                self.begun = true;
            }
            Record::Association(record) => upf.adopt_association(record)?,
            Record::FormerAddress { node, address } => {
                upf.former_addresses.insert(node.into(), address);
            }
            Record::Session(record) => upf.adopt_session(now, *record, datapath)?,
            Record::Request(record) => upf.adopt_request(record),
            Record::Response(record) => upf.responses.adopt(record),
            Record::End { associations, sessions } => {
                if (associations, sessions) != (upf.associations.len(), upf.sessions.len()) {
                    return Err(HandoverError::Incomplete);
                }
                self.ended = true;
            }
        }
        Ok(())
    }

    /// The UPF-C, after the last record.
    pub fn finish(self) -> Result<Upf, HandoverError> {
        if self.ended { Ok(self.upf) } else { Err(HandoverError::Incomplete) }
    }
}

impl Upf {
    /// Whether the SMF was notified of packets held for a PDR, or soon is.
    pub fn has_reported(&self, session: SessionId, pdr: PdrId) -> bool {
        let held = self.sessions.get(session).into_iter().flat_map(|session| {
            session.reported.iter().chain(session.delayed.iter().flat_map(|(_, held)| held))
        });
        held.into_iter().any(|(held, _)| held.0 == pdr.0)
    }

    fn adopt_association(&mut self, record: AssociationRecord) -> Result<(), HandoverError> {
        let request = match Message::decode(&record.setup.0) {
            Ok((_, Message::AssociationSetupRequest(request))) => request,
            Ok((header, _)) => return Err(HandoverError::Unexpected(header.message_type)),
            Err(error) => return Err(HandoverError::Pfcp(error.to_string())),
        };
        if self.associations.len() >= self.config.max_associations {
            return Err(HandoverError::TooMany("associations"));
        }
        let association = Association {
            address: record.address,
            port: record.port,
            cp_features: request.cp_function_features.unwrap_or_default(),
            set: self.set_of_request(&request),
            recovery: record.recovery.map(NtpSeconds),
            recovery_at_setup: request.recovery_time_stamp,
            has_restarted: record.has_restarted,
            differed_at: record.differed_at,
            path: record.failed_since.map_or(PathState::Up, PathState::FailedSince),
            next_heartbeat: record.next_heartbeat,
        };
        self.associations.insert(request.node_id, association);
        Ok(())
    }

    fn adopt_session(
        &mut self,
        now: Duration,
        record: SessionRecord,
        datapath: &mut dyn Datapath,
    ) -> Result<(), HandoverError> {
        let id = SessionId(record.seid);
        let request = provisioned::decode(&record.provisioned)?;
        let (Some(node), Some(cp)) = (request.node_id.clone(), request.cp_f_seid) else {
            return Err(HandoverError::Incomplete);
        };
        if self.sessions.len() >= self.config.max_sessions {
            return Err(HandoverError::TooMany("sessions"));
        }
        if id.0 == 0 || self.sessions.get(id).is_some() {
            return Err(HandoverError::Incomplete);
        }
        let usage = usage(&record.usage, now);
        self.install_adopted(now, (id, node, cp), request, record, datapath)
            .map(|()| datapath.add_usage(id, &usage))
            .map_err(|rejection| HandoverError::Session { session: id, reason: rejection.to_string() })
    }

    /// The steps of a Session Establishment: rules, F-TEIDs as they are, compile, install.
    fn install_adopted(
        &mut self,
        now: Duration,
        (id, node, cp): (SessionId, NodeId, FSeid),
        request: SessionModificationRequest,
        record: SessionRecord,
        datapath: &mut dyn Datapath,
    ) -> Result<(), Rejection> {
        self.check_endpoint(&cp)?;
        let mut rules = RuleSet::default().modify(&request, self.config.max_rules)?;
        let (none, local) = (BTreeSet::new(), self.config.n3);
        let allocation = allocate(&mut rules, id, &mut self.sessions.teids, local, &none, true)?;
        let meters = record.meters.into_iter().map(|(urr, meter)| (UrrId(urr), meter));
        let measurements = Measurements::resumed(&rules, meters);
        let compiled = measurements.as_ref().ok_or_else(missing_meter).and_then(|measurements| {
            let compiled = compile(id, &rules, measurements, &self.config)?;
            self.sessions.check_admission(id, &compiled)?;
            self.check_framed_routes(id, &compiled)?;
            match self.sessions.sharing_address(id, compiled.ue).first() {
                None => Ok(compiled),
                Some(_) => Err(Rejection::from(pith_pfcp::ie::Cause::RuleCreationModificationFailure)),
            }
        });
        let compiled = compiled.inspect_err(|_| self.free_allocation(&allocation))?;
        let held = |held: Vec<HeldRecord>| held.into_iter().map(HeldPackets::from).collect::<Vec<_>>();
        self.sessions.insert(Session {
            id,
            cp,
            node,
            set: record.set.map(|set| SmfSetId(set.0)),
            dnn: record.dnn.map(|dnn| ApnDnn(dnn.0)),
            fq_csids: request.fq_csids,
            rules: RuleSet::default(),
            teids: BTreeSet::new(),
            ue: UeAddress::default(),
            guaranteed_rates: Rates { uplink: 0, downlink: 0 },
            tunnels: Vec::new(),
            measurements: measurements.unwrap_or_default(),
            flows: FlowHistory::resumed(
                record.former_flows.into_iter().map(|flow| (Qfi(flow.qfi), flow.until)),
            ),
            inactivity: record.inactivity.map(Inactivity::from),
            delayed: record.delayed.map(|delayed| (delayed.due, held(delayed.held))),
            reported: held(record.reported),
            lost_tunnels: record.lost_tunnels.into_iter().map(|(peer, teid)| (peer, Teid(teid))).collect(),
            reports: record.reports,
            due: None,
        });
        self.sessions.commit(id, rules, &compiled, allocation.teids);
        let mut compiled = compiled;
        if let Some(session) = self.sessions.get_mut(id) {
            session.flows.apply(&mut compiled, now);
        }
        datapath.begin(compiled.ue, true);
        datapath.install(Arc::new(compiled));
        self.sessions.set_due(id, record.due);
        Ok(())
    }

    fn adopt_request(&mut self, record: RequestRecord) {
        let purpose = match record.purpose {
            PurposeRecord::Heartbeat(node) => Purpose::Heartbeat(node.into()),
            PurposeRecord::SessionReport(session) => Purpose::SessionReport(SessionId(session)),
            PurposeRecord::Release => Purpose::Release,
        };
        let key = (record.sequence, MessageType(record.message_type));
        self.requests.adopt(key, record.peer, record.octets.0, purpose, (record.attempts, record.due));
    }
}

fn missing_meter() -> Rejection {
    Rejection::from(pith_pfcp::ie::Cause::SystemFailure)
}
