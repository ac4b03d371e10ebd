//! Compiles rules as provisioned by PFCP to rules of the datapath.

use pith_pfcp::IeType;
use pith_pfcp::ie::{self, BitRates, FailedRuleId};
use pith_pfcp::rules::{CreatePdr, CreateQer, CreateUrr};

use super::meter::is_paused;
use super::provision::RuleSet;
use super::usage::Measurements;
use super::{detection, forwarding, framed};
use crate::config::Config;
use crate::contract::{
    Action, Destination, Direction, Far, FarId, Gate, Gates, Pdr, PdrId, Qer, QerId, Qfi, Rates, Session,
    SessionId, UeAddress, Urr, UrrId,
};
use crate::rejection::Rejection;

/// Compiles `rules`; the first rule that cannot be applied rejects all.
pub fn compile(
    id: SessionId,
    rules: &RuleSet,
    measurements: &Measurements,
    config: &Config,
) -> Result<Session, Rejection> {
    let predefined = &config.predefined;
    let mut pdrs = Vec::with_capacity(rules.pdrs.len());
    for pdr in rules.pdrs.values() {
        let base = compile_pdr(rules, pdr, measurements, config)?;
        predefined.activate(pdr, base, &mut pdrs)?;
    }
    let fars = rules.fars.values().map(|far| forwarding::compile(rules, far, config));
    let fars = fars.collect::<Result<Vec<_>, _>>()?;
    let named_fars = predefined.fars().filter(|far| pdrs.iter().any(|pdr| pdr.far == far.id));
    let named_qers = predefined.qers().filter(|qer| pdrs.iter().any(|pdr| pdr.qers.contains(&qer.id)));
    let fars: Vec<_> = fars.into_iter().chain(named_fars).collect();
    let ue = detection::ue_address(rules, config)?;
    check_source(ue, &pdrs, &fars)?;
    Ok(Session {
        id,
        ue,
        framed_routes: framed::framed_routes(rules, config)?,
        fars,
        qers: rules.qers.values().map(compile_qer).chain(named_qers).collect(),
        urrs: rules
            .urrs
            .values()
            .map(|urr| compile_urr(rules, urr, measurements))
            .collect::<Result<_, _>>()?,
        pdrs,
        former_qfis: Vec::new(),
    })
}

/// Uplink packets to N6 need the UE's address: without it, forged sources could not be detected (TS 29.244
/// 5.2.1A.2).
fn check_source(ue: UeAddress, pdrs: &[Pdr], fars: &[Far]) -> Result<(), Rejection> {
    let uplink = pdrs.iter().find(|pdr| pdr.source.direction() == Direction::Uplink);
    let leaves = fars.iter().any(|far| far.action == Action::Forward(Destination::Network));
    match uplink.filter(|_| leaves && ue.is_empty()) {
        None => Ok(()),
        Some(pdr) => {
            let failed = Rejection::rule(FailedRuleId::Pdr(ie::PdrId(pdr.id.0)));
            Err(failed.with_cause(ie::Cause::ConditionalIeMissing).because_of(IeType::UE_IP_ADDRESS))
        }
    }
}

fn compile_pdr(
    rules: &RuleSet,
    pdr: &CreatePdr,
    measurements: &Measurements,
    config: &Config,
) -> Result<Pdr, Rejection> {
    let predefined = &config.predefined;
    let failed = Rejection::rule(FailedRuleId::Pdr(pdr.pdr_id));
    let is_far = |far: &ie::FarId| rules.fars.contains(*far) || predefined.has_far(*far);
    let far = match pdr.far_id {
        None if predefined.suffice_for(pdr) => ie::FarId(0),
        far => far.filter(is_far).ok_or(failed.because_of(IeType::FAR_ID))?,
    };
    let far = measurements.quota_action(rules, &pdr.urr_ids).unwrap_or(far);
    if pdr.qer_ids.iter().any(|qer| !rules.qers.contains(*qer) && !predefined.has_qer(*qer)) {
        return Err(failed.because_of(IeType::QER_ID));
    }
    if pdr.urr_ids.iter().any(|urr| !rules.urrs.contains(*urr)) {
        return Err(failed.because_of(IeType::URR_ID));
    }
    let detection = detection::compile(rules, pdr, config)?;
    Ok(Pdr {
        id: PdrId(pdr.pdr_id.0),
        precedence: pdr.precedence.0,
        source: detection.source,
        filters: detection.filters,
        qfis: detection.qfis,
        far: FarId(far.0),
        qers: pdr.qer_ids.iter().map(|qer| QerId(qer.0)).collect(),
        urrs: pdr.urr_ids.iter().filter(|urr| measures(rules, **urr)).map(|urr| UrrId(urr.0)).collect(),
    })
}

fn compile_qer(qer: &CreateQer) -> Qer {
    let gate = |gate| match gate {
        ie::Gate::Open => Gate::Open,
        ie::Gate::Closed => Gate::Closed,
    };
    Qer {
        id: QerId(qer.qer_id.0),
        gates: Gates { uplink: gate(qer.gate_status.uplink), downlink: gate(qer.gate_status.downlink) },
        mbr: qer.maximum_bitrate.map(rates),
        gbr: qer.guaranteed_bitrate.map(rates),
        qfi: qer.qfi.map(|qfi| Qfi(qfi.0)),
        rqi: qer.rqi.is_some_and(|rqi| rqi.contains(ie::Rqi::RQI)),
    }
}

/// PFCP's unit is 1000 bit/s.
fn rates(rates: BitRates) -> Rates {
    Rates { uplink: rates.uplink.saturating_mul(1000), downlink: rates.downlink.saturating_mul(1000) }
}

/// Whether a URR is not paused (flag INAM, TS 29.244 5.2.2.2.1).
fn measures(rules: &RuleSet, id: ie::UrrId) -> bool {
    !rules.urrs.get(id).is_some_and(is_paused)
}

fn compile_urr(rules: &RuleSet, urr: &CreateUrr, measurements: &Measurements) -> Result<Urr, Rejection> {
    let unknown = |far: ie::FarId| !rules.fars.contains(far);
    if urr.far_id_for_quota_action.is_some_and(unknown) {
        return Err(Rejection::rule(FailedRuleId::Urr(urr.urr_id)).because_of(IeType::FAR_ID));
    }
    let (threshold, quota) = measurements.limits(urr.urr_id);
    Ok(Urr { id: UrrId(urr.urr_id.0), threshold, quota })
}
