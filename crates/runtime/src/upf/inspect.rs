//! State of the UPF as JSON for operators: sessions, rules, flows, counters.

use super::question::{Name, Page};
use crate::api::ApiError;
use pith_upf::contract::{
    Action, Counters, Datapath, Destination, Direction, Far, Gate, Pdr, Qer, Rates, Session, SessionId,
    SessionUsage, Source, Traffic, Tunnel, Urr, Volume, VolumeLimits,
};
use pith_upf::qos::{Count, FlowUsage};
use pith_upf::{SessionView, TeidOwner, Upf};
use serde_json::{Map, Value, json};

/// Text form of a SEID.
pub(super) fn hex64(number: u64) -> String {
    format!("{number:#x}")
}

/// Text form of a TEID.
pub(super) fn hex32(number: u32) -> String {
    format!("{number:#010x}")
}

pub(super) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Uplink => "uplink",
        Direction::Downlink => "downlink",
    }
}

pub(super) fn tunnel(tunnel: &Tunnel) -> Value {
    json!({ "peer": tunnel.peer, "teid": hex32(tunnel.teid.0), "dscp": tunnel.dscp })
}

/// The session that a name identifies.
pub(super) fn find(upf: &Upf, name: Name) -> Result<SessionId, ApiError> {
    let found = match name {
        Name::Seid(id) => upf.session(id).map(|session| session.id),
        Name::Ue(address) => upf.session_of_ue(address),
        Name::Teid(teid) => match upf.owner_of_teid(teid) {
            TeidOwner::Session(id) => Some(id),
            TeidOwner::Several(_) | TeidOwner::Nobody => None,
        },
    };
    found.ok_or_else(|| {
        ApiError::not_found(match name {
            Name::Seid(id) => format!("the UPF has no session {}", hex64(id.0)),
            Name::Ue(address) => format!("the UPF has no session of the UE address {address}"),
            Name::Teid(teid) => format!("no session, or more than one, has the TEID {}", hex32(teid.0)),
        })
    })
}

/// A page of sessions.
pub(super) fn sessions(upf: &Upf, datapath: &dyn Datapath, page: Page) -> Value {
    let found = upf.sessions_after(page.after, page.limit);
    let next = found.last().filter(|_| found.len() == page.limit).map(|last| hex64(last.id.0));
    let shown: Vec<_> = found.iter().map(|view| session(upf, datapath, view)).collect();
    json!({ "total": upf.session_count(), "sessions": shown, "next": next })
}

/// A page with the named session, or an empty one.
pub(super) fn session_named(upf: &Upf, datapath: &dyn Datapath, name: Name) -> Value {
    let found = find(upf, name).ok().and_then(|id| upf.session(id));
    let shown: Vec<_> = found.iter().map(|view| session(upf, datapath, view)).collect();
    json!({ "total": upf.session_count(), "sessions": shown, "next": null })
}

fn session(upf: &Upf, datapath: &dyn Datapath, view: &SessionView<'_>) -> Value {
    let rules = upf.rules(view.id);
    let usage = datapath.usage(view.id).unwrap_or_default();
    let used = used(&usage, &datapath.flows(view.id));
    json!({
        "seid": hex64(view.id.0),
        "smfSeid": hex64(view.cp_seid),
        "smf": view.smf.to_string(),
        "ipv4": view.ue.v4,
        "ipv6Prefix": view.ue.network6().map(|network| format!("{}/{}", network.address, network.prefix)),
        "dnn": view.dnn,
        "teids": view.teids.iter().map(|teid| hex32(teid.0)).collect::<Vec<_>>(),
        "tunnels": view.tunnels.iter().map(tunnel).collect::<Vec<_>>(),
        "downlink": rules.as_ref().map_or("dropped", downlink_state),
        "ambr": rules.as_ref().and_then(ambr).map(rates),
        "volume": volume(&used),
        "idleMs": usage.last_packet.map(|age| age.as_millis() as u64),
    })
}

/// The forwarded volume: the larger of the highest URR count and the flows' count. A URR may count only part
/// of the session; the flows' counters restart when their QERs change.
fn used(usage: &SessionUsage, flows: &[FlowUsage]) -> Volume {
    let mut by_flows = Volume::default();
    for flow in flows {
        let passed = flow.count.passed();
        by_flows.add(flow.direction, passed.packets, passed.bytes);
    }
    let volumes = usage.urrs.iter().map(|urr| urr.volume);
    volumes.chain([by_flows]).max_by_key(Volume::total).unwrap_or_default()
}

/// The treatment of downlink packets.
fn downlink_state(session: &Session) -> &'static str {
    let fars = session.pdrs.iter().filter(|pdr| pdr.source.direction() == Direction::Downlink);
    let actions = fars.filter_map(|pdr| session.fars.iter().find(|far| far.id == pdr.far));
    let actions: Vec<_> = actions.map(|far| far.action).collect();
    if actions.iter().any(|action| matches!(action, Action::Forward(_))) {
        "forwarded"
    } else if actions.iter().any(|action| matches!(action, Action::Buffer { .. })) {
        "buffered"
    } else {
        "dropped"
    }
}

/// The session's AMBR: the MBR of the QER without GBR that most PDRs refer to.
fn ambr(session: &Session) -> Option<Rates> {
    let named = |qer: &Qer| session.pdrs.iter().filter(|pdr| pdr.qers.contains(&qer.id)).count();
    let bounds = session.qers.iter().filter(|qer| qer.gbr.is_none());
    let bounds = bounds.filter_map(|qer| Some((named(qer), qer.mbr?)));
    bounds.max_by_key(|(named, mbr)| (*named, mbr.downlink)).map(|(_, mbr)| mbr)
}

/// A session's rules.
pub(super) fn rules(upf: &Upf, datapath: &dyn Datapath, id: SessionId) -> Result<Value, ApiError> {
    let gone = || ApiError::not_found(format!("the UPF has no session {}", hex64(id.0)));
    let session = upf.rules(id).ok_or_else(gone)?;
    let usage = datapath.usage(id).unwrap_or_default();
    Ok(json!({
        "seid": hex64(id.0),
        "pdrs": session.pdrs.iter().map(pdr).collect::<Vec<_>>(),
        "fars": session.fars.iter().map(far).collect::<Vec<_>>(),
        "qers": session.qers.iter().map(qer).collect::<Vec<_>>(),
        "urrs": session.urrs.iter().map(|rule| urr(rule, &usage)).collect::<Vec<_>>(),
    }))
}

fn pdr(pdr: &Pdr) -> Value {
    let teid = match pdr.source {
        Source::Tunnel { teid, .. } => Some(hex32(teid.0)),
        Source::Network => None,
    };
    json!({
        "id": pdr.id.0,
        "precedence": pdr.precedence,
        "direction": direction(pdr.source.direction()),
        "teid": teid,
        "qfis": pdr.qfis.iter().map(|qfi| qfi.0).collect::<Vec<_>>(),
        "filters": pdr.filters.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "far": pdr.far.0,
        "qers": pdr.qers.iter().map(|qer| qer.0).collect::<Vec<_>>(),
        "urrs": pdr.urrs.iter().map(|urr| urr.0).collect::<Vec<_>>(),
    })
}

fn far(far: &Far) -> Value {
    let (action, to, packets) = match far.action {
        Action::Drop => ("drop", None, None),
        Action::Forward(Destination::Network) => ("forward_to_network", None, None),
        Action::Forward(Destination::Tunnel(to)) => ("forward_to_tunnel", Some(tunnel(&to)), None),
        Action::Buffer { notify: true, packets } => ("buffer_and_notify", None, packets),
        Action::Buffer { notify: false, packets } => ("buffer", None, packets),
    };
    json!({ "id": far.id.0, "action": action, "tunnel": to, "bufferedPackets": packets })
}

fn qer(qer: &Qer) -> Value {
    let open = |gate| gate == Gate::Open;
    json!({
        "id": qer.id.0,
        "qfi": qer.qfi.map(|qfi| qfi.0),
        "rqi": qer.rqi,
        "openUplink": open(qer.gates.uplink),
        "openDownlink": open(qer.gates.downlink),
        "mbr": qer.mbr.map(rates),
        "gbr": qer.gbr.map(rates),
    })
}

fn urr(urr: &Urr, usage: &SessionUsage) -> Value {
    let counted = usage.urr(urr.id).map(|counted| counted.volume).unwrap_or_default();
    json!({
        "id": urr.id.0,
        "volume": volume(&counted),
        "threshold": limits(&urr.threshold),
        "quota": limits(&urr.quota),
    })
}

/// Thresholds or quotas, in bytes.
fn limits(limits: &VolumeLimits) -> Value {
    if limits.is_none() {
        return Value::Null;
    }
    json!({ "total": limits.total, "uplink": limits.uplink, "downlink": limits.downlink })
}

/// Bit rates in bits per second.
fn rates(rates: Rates) -> Value {
    json!({ "uplink": rates.uplink, "downlink": rates.downlink })
}

fn volume(volume: &Volume) -> Value {
    json!({
        "uplinkPackets": volume.uplink_packets,
        "uplinkBytes": volume.uplink,
        "downlinkPackets": volume.downlink_packets,
        "downlinkBytes": volume.downlink,
    })
}

/// Traffic of a session's flows.
pub(super) fn flows(datapath: &dyn Datapath, id: SessionId) -> Value {
    let shown = datapath.flows(id).into_iter().map(|flow| {
        let count = flow.count;
        json!({
            "direction": direction(flow.direction),
            "qfi": flow.qfi.map(|qfi| qfi.0),
            "qers": flow.qers.iter().map(|qer| qer.0).collect::<Vec<_>>(),
            "offered": counted(count.offered()),
            "passed": counted(count.passed()),
            "green": counted(count.green),
            "yellow": counted(count.yellow),
            "red": counted(count.red),
            "dropped": counted(count.dropped),
            "queued": counted(count.queued),
            "marked": count.marked,
            "fast": counted(count.fast),
        })
    });
    shown.collect()
}

fn counted(count: Count) -> Value {
    json!({ "packets": count.packets, "bytes": count.bytes })
}

/// Traffic and dropped packets of the whole UPF.
pub(super) fn counters(upf: &Upf, datapath: &dyn Datapath) -> Value {
    let Counters { n3_in, n3_out, n6_in, n6_out, buffered, dropped } = datapath.counters();
    let dropped: Map<_, _> =
        dropped.into_iter().map(|(reason, count)| (reason.name().to_owned(), count.into())).collect();
    let traffic = |Traffic { packets, bytes }| json!({ "packets": packets, "bytes": bytes });
    json!({
        "n3In": traffic(n3_in),
        "n3Out": traffic(n3_out),
        "n6In": traffic(n6_in),
        "n6Out": traffic(n6_out),
        "waiting": buffered,
        "dropped": dropped,
        "sessions": upf.session_count(),
        "teids": upf.teids_in_use(),
        "promised": rates(upf.admitted_rates()),
    })
}
