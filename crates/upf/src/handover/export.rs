//! The state as records.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use pith_pfcp::Message;
use pith_pfcp::message::AssociationSetupRequest;

use super::HandoverError;
use super::provisioned;
use super::record::*;
use super::usage::usage_record;
use crate::association::{Association, PathState};
use crate::contract::{Datapath, SessionId};
use crate::session::Session;
use crate::transaction::Outstanding;
use crate::upf::{Purpose, Upf};
use pith_pfcp::ie::{CpFunctionFeatures, NodeId};

/// What the records of a state say of each session's usage.
#[derive(Debug, Default)]
pub struct Counted(pub(super) BTreeMap<SessionId, UsageRecord>);

impl Upf {
    /// Writes the state at `now` as records, up to the first error of `put`. Until the successor has taken over, or has failed, no input may be
    /// handled, except what [`Heartbeats`](super::Heartbeats) answers.
    pub fn export(
        &mut self,
        now: Duration,
        datapath: &dyn Datapath,
        mut put: impl FnMut(Vec<u8>) -> io::Result<()>,
    ) -> Result<Counted, HandoverError> {
        let mut put = |record: &Record| Ok::<_, HandoverError>(put(serde_json::to_vec(record)?)?);
        put(&Record::Head(Head {
            started: self.config.started,
            node: (&self.config.node_id).into(),
            sequence: self.requests.last_sequence(),
            load: self.load,
        }))?;
        for (node, association) in &self.associations {
            put(&Record::Association(association_record(node, association)?))?;
        }
        for (node, address) in &self.former_addresses {
            put(&Record::FormerAddress { node: node.into(), address: *address })?;
        }
        let mut counted = Counted::default();
        for session in self.sessions.iter_mut() {
            let usage = datapath.usage(session.id).unwrap_or_default();
            session.measurements.sample(&session.rules, now, &usage);
            let usage = usage_record(session.id, &usage, now);
            put(&Record::Session(Box::new(session_record(session, usage.clone())?)))?;
            counted.0.insert(session.id, usage);
        }
        for (sequence, request) in self.requests.iter() {
            put(&Record::Request(request_record(sequence, request)))?;
        }
        for response in self.responses.records(now) {
            put(&Record::Response(response))?;
        }
        put(&Record::End { associations: self.associations.len(), sessions: self.sessions.len() })?;
        Ok(counted)
    }
}

fn association_record(node: &NodeId, association: &Association) -> Result<AssociationRecord, HandoverError> {
    // A set is served only of an SMF with this feature.
    let request = AssociationSetupRequest {
        cp_function_features: Some(association.cp_features).filter(|it| *it != CpFunctionFeatures::default()),
        smf_set_id: association.set.clone(),
        ..AssociationSetupRequest::new(node.clone(), association.recovery_at_setup)
    };
    let mut setup = Vec::new();
    Message::from(request)
        .encode(0, 0, &mut setup)
        .map_err(|error| HandoverError::Pfcp(error.to_string()))?;
    Ok(AssociationRecord {
        setup: Octets(setup),
        address: association.address,
        port: association.port,
        recovery: association.recovery.map(|recovery| recovery.0),
        has_restarted: association.has_restarted,
        differed_at: association.differed_at,
        failed_since: match association.path {
            PathState::Up => None,
            PathState::FailedSince(since) => Some(since),
        },
        next_heartbeat: association.next_heartbeat,
    })
}

fn session_record(session: &Session, usage: UsageRecord) -> Result<SessionRecord, HandoverError> {
    Ok(SessionRecord {
        seid: session.id.0,
        provisioned: provisioned::encode(session)?,
        dnn: session.dnn.as_ref().map(|dnn| Octets(dnn.0.clone())),
        set: session.set.as_ref().map(|set| Octets(set.0.clone())),
        inactivity: session.inactivity.map(InactivityRecord::from),
        delayed: session.delayed.as_ref().map(|(due, held)| DelayedRecord {
            due: *due,
            held: held.iter().map(HeldRecord::from).collect(),
        }),
        reported: session.reported.iter().map(HeldRecord::from).collect(),
        lost_tunnels: session.lost_tunnels.iter().map(|(peer, teid)| (*peer, teid.0)).collect(),
        reports: session.reports.clone(),
        due: session.due,
        meters: session.measurements.meters().map(|(id, meter)| (id.0, meter.clone())).collect(),
        usage,
        former_flows: session
            .flows
            .former()
            .map(|(qfi, until)| FormerFlowRecord { qfi: qfi.0, until })
            .collect(),
    })
}

fn request_record(sequence: u32, request: &Outstanding<Purpose>) -> RequestRecord {
    RequestRecord {
        sequence,
        peer: request.peer,
        message_type: request.message_type.0,
        purpose: match &request.purpose {
            Purpose::Heartbeat(node) => PurposeRecord::Heartbeat(node.into()),
            Purpose::SessionReport(session) => PurposeRecord::SessionReport(session.0),
            Purpose::Release => PurposeRecord::Release,
        },
        octets: Octets(request.octets().to_vec()),
        attempts: request.attempts(),
        due: request.due(),
    }
}
