//! A session's rules as PFCP messages: the format that both versions of Pith know from TS 29.244.

use pith_pfcp::Message;
use pith_pfcp::message::SessionModificationRequest;

use super::HandoverError;
use super::record::Octets;
use crate::session::{RuleSet, Session};

/// The rules of a session, with Node ID, CP F-SEID and FQ-CSIDs. In one message if they fit, otherwise in one for each rule.
pub fn encode(session: &Session) -> Result<Vec<Octets>, HandoverError> {
    let endpoint = SessionModificationRequest {
        node_id: Some(session.node.clone()),
        cp_f_seid: Some(session.cp),
        fq_csids: session.fq_csids.clone(),
        ..SessionModificationRequest::new()
    };
    let all = creates(&session.rules).into_iter().fold(endpoint.clone(), merged);
    if let Some(octets) = encoded(session, all) {
        return Ok(vec![octets]);
    }
    let parts = std::iter::once(endpoint).chain(creates(&session.rules));
    let parts =
        parts.map(|part| encoded(session, part).ok_or(HandoverError::TooLong { session: session.id }));
    parts.collect()
}

fn encoded(session: &Session, request: SessionModificationRequest) -> Option<Octets> {
    let mut octets = Vec::new();
    Message::from(request).encode(session.id.0, 0, &mut octets).ok()?;
    Some(Octets(octets))
}

/// A request for each rule.
fn creates(rules: &RuleSet) -> Vec<SessionModificationRequest> {
    let none = SessionModificationRequest::new;
    let endpoints = rules.endpoints.values().cloned();
    let endpoints =
        endpoints.map(|it| SessionModificationRequest { create_traffic_endpoints: vec![it], ..none() });
    let bars = rules.bars.values().cloned();
    let bars = bars.map(|it| SessionModificationRequest { create_bars: vec![it], ..none() });
    let fars = rules.fars.values().cloned();
    let fars = fars.map(|it| SessionModificationRequest { create_fars: vec![it], ..none() });
    let qers = rules.qers.values().cloned();
    let qers = qers.map(|it| SessionModificationRequest { create_qers: vec![it], ..none() });
    let urrs = rules.urrs.values().cloned();
    let urrs = urrs.map(|it| SessionModificationRequest { create_urrs: vec![it], ..none() });
    let pdrs = rules.pdrs.values().cloned();
    let pdrs = pdrs.map(|it| SessionModificationRequest { create_pdrs: vec![it], ..none() });
    endpoints.chain(bars).chain(fars).chain(qers).chain(urrs).chain(pdrs).collect()
}

fn merged(
    mut all: SessionModificationRequest,
    one: SessionModificationRequest,
) -> SessionModificationRequest {
    all.create_traffic_endpoints.extend(one.create_traffic_endpoints);
    all.create_bars.extend(one.create_bars);
    all.create_fars.extend(one.create_fars);
    all.create_qers.extend(one.create_qers);
    all.create_urrs.extend(one.create_urrs);
    all.create_pdrs.extend(one.create_pdrs);
    all
}

/// Decodes the messages of a session into one request that creates all rules.
pub fn decode(messages: &[Octets]) -> Result<SessionModificationRequest, HandoverError> {
    let mut all: Option<SessionModificationRequest> = None;
    for octets in messages {
        let request = match Message::decode(&octets.0) {
            Ok((_, Message::SessionModificationRequest(request))) => request,
            Ok((header, _)) => return Err(HandoverError::Unexpected(header.message_type)),
            Err(error) => return Err(HandoverError::Pfcp(error.to_string())),
        };
        all = Some(match all {
            Some(all) => merged(all, request),
            None => request,
        });
    }
    all.ok_or(HandoverError::Incomplete)
}
