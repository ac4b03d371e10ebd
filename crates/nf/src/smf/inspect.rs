//! The SMF's contents, for operators, tests and worlds.

use super::Smf;
use super::context::{DEFAULT_QFI, FrontUpf, SmContext};
use super::flows::Flows;
use super::procedure::State;
use crate::kit::UpfHandle;
use pith_ngap::transfer::{GbrQos, Tunnel};
use pith_types::BitRate;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Numbers of the SMF's resources. All are zero when no UE has a session and no procedure is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SmfAudit {
    /// SM contexts.
    pub contexts: usize,
    /// UE addresses in use.
    pub addresses: usize,
    /// Sessions at UPFs.
    pub n4_sessions: usize,
    /// Policy associations.
    pub policies: usize,
}

impl Smf {
    /// Counts the resources.
    pub fn audit(&self) -> SmfAudit {
        let sessions = || self.sessions.iter().map(|(_, session)| session);
        SmfAudit {
            contexts: self.sessions.len(),
            addresses: self.shared.pools.in_use(),
            n4_sessions: sessions().map(|session| session.n4_sessions()).sum(),
            policies: sessions().filter(|session| session.policy.is_some()).count(),
        }
    }

    /// A session as operators see it.
    pub(super) fn describe(&self, session: &SmContext) -> Value {
        let user_plane = session.state().user_plane();
        let front = user_plane.and_then(|user_plane| user_plane.front.as_ref());
        let is_active = user_plane.is_some_and(|user_plane| user_plane.gnb.is_some());
        let gnb = |tunnel: &Tunnel| tunnel.address.to_string();
        let primary = user_plane.and_then(|user_plane| user_plane.gnb);
        let secondary = session.tunnels.iter().filter(|(_, it)| is_active && !it.flows.is_empty());
        let tunnels: Vec<_> = (primary.iter().map(|tunnel| json!({ "gnb": gnb(tunnel) })))
            .chain(secondary.map(|(_, it)| json!({ "gnb": gnb(&it.gnb), "flows": it.flows })))
            .collect();
        json!({
            "supi": session.ue.supi(),
            "pei": session.ue.supi().is_none().then(|| session.ue.as_str()),
            "emergency": session.is_emergency,
            "pduSessionId": session.pdu_session_id,
            "dnn": session.dnn,
            "snssai": session.snssai.to_string(),
            "ipv4": session.address.v4,
            "ipv6Prefix": session.address.prefix(),
            "staticAddress": session.address.iter().any(|address| session.has_static(address)),
            "framedRoutes": framed_routes(session),
            "state": session.state().phase().name(),
            "tunnels": tunnels,
            "secondaryRatUplinkOctets": session.secondary_rat.uplink,
            "secondaryRatDownlinkOctets": session.secondary_rat.downlink,
            "userPlane": if is_active { "active" } else { "inactive" },
            "upf": user_plane.and_then(|user_plane| self.name_of(user_plane.anchor.upf)),
            "frontUpf": front.and_then(|front| self.name_of(front.session.upf)),
            "breakouts": front.map(FrontUpf::breakouts).unwrap_or_default(),
            "qosFlows": describe_flows(session),
            "reflectiveQos": session.reflective.is_supported,
            "pendingRules": pending_rules(session),
        })
    }

    fn name_of(&self, upf: UpfHandle) -> Option<&str> {
        self.shared.upfs.info(upf).map(|info| info.name.as_str())
    }
}

fn framed_routes(session: &SmContext) -> Vec<String> {
    let routes = session.addressing.framed_routes.iter();
    routes.map(|(address, prefix)| format!("{address}/{prefix}")).collect()
}

/// The QoS flows of a session, the default one first, with the PCC rules that are bound to each. Until the UPF has accepted a change, those
/// before it.
fn describe_flows(session: &SmContext) -> Vec<Value> {
    let flows = flows_at_upf(session);
    let rules_of = |qfi: u8| {
        let bound = flows.rules().filter(|rule| rule.qfi == qfi);
        bound.map(|rule| rule.id.to_string()).collect::<Vec<_>>()
    };
    let qos = &session.qos;
    let default = json!({
        "qfi": DEFAULT_QFI,
        "fiveQi": qos.five_qi,
        "arp": qos.arp_priority,
        "reflective": flows.has_reflective_default(),
        "rules": rules_of(DEFAULT_QFI),
    });
    let others = flows.flows().into_iter().map(|flow| {
        let rate = |rate: fn(&GbrQos) -> BitRate| flow.gbr.as_ref().map(|gbr| rate(gbr).to_string());
        json!({
            "qfi": flow.qfi,
            "fiveQi": flow.five_qi,
            "arp": flow.arp.priority_level,
            "reflective": flow.reflective,
            "guaranteedUplink": rate(|gbr| gbr.guaranteed.uplink),
            "guaranteedDownlink": rate(|gbr| gbr.guaranteed.downlink),
            "rules": rules_of(flow.qfi),
        })
    });
    std::iter::once(default).chain(others).collect()
}

/// The rules at the UPF: until it has accepted a change, those before it.
fn flows_at_upf(session: &SmContext) -> &Flows {
    let flows = &session.flows;
    match (session.state(), &flows.former) {
        (State::AwaitingRates(_), Some(former)) => former,
        _ => &flows.current,
    }
}

/// The PCC rules that the PCF has decided to add, change or remove, and the session has not yet: another modification is in progress.
fn pending_rules(session: &SmContext) -> BTreeSet<&str> {
    let (present, latest) = (flows_at_upf(session), session.flows.latest());
    let lacks = |flows: &Flows, number: u8| flows.rules().all(|rule| rule.number != number);
    let added = latest.rules().filter(|rule| lacks(present, rule.number));
    let removed = present.rules().filter(|rule| lacks(latest, rule.number));
    added.chain(removed).map(|rule| &*rule.id).collect()
}
