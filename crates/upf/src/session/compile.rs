//! From rules as PFCP has them to rules as the datapath takes them.

use pith_pfcp::IeType;
use pith_pfcp::ie::{self, BitRates, FailedRuleId};
use pith_pfcp::rules::{CreatePdr, CreateQer};

use super::provision::RuleSet;
use super::usage::Measurements;
use super::{detection, forwarding};
use crate::contract::{
    FarId, Gate, Gates, Pdr, PdrId, Qer, QerId, Qfi, Rates, Session, SessionId, Urr, UrrId,
};
use crate::rejection::Rejection;

/// Compiles `rules`; the first rule that cannot be applied rejects them all.
pub fn compile(id: SessionId, rules: &RuleSet, measurements: &Measurements) -> Result<Session, Rejection> {
    let pdrs = rules.pdrs.values().map(|pdr| compile_pdr(rules, pdr)).collect::<Result<_, _>>()?;
    Ok(Session {
        id,
        ue: detection::ue_address(rules)?,
        pdrs,
        fars: rules.fars.values().map(|far| forwarding::compile(rules, far)).collect::<Result<_, _>>()?,
        qers: rules.qers.values().map(compile_qer).collect(),
        urrs: rules.urrs.ids().map(|urr| compile_urr(urr, measurements)).collect(),
    })
}

fn compile_pdr(rules: &RuleSet, pdr: &CreatePdr) -> Result<Pdr, Rejection> {
    let failed = Rejection::rule(FailedRuleId::Pdr(pdr.pdr_id));
    let far = pdr.far_id.filter(|far| rules.fars.contains(*far)).ok_or(failed.because_of(IeType::FAR_ID))?;
    if pdr.qer_ids.iter().any(|qer| !rules.qers.contains(*qer)) {
        return Err(failed.because_of(IeType::QER_ID));
    }
    if pdr.urr_ids.iter().any(|urr| !rules.urrs.contains(*urr)) {
        return Err(failed.because_of(IeType::URR_ID));
    }
    let detection = detection::compile(rules, pdr)?;
    Ok(Pdr {
        id: PdrId(pdr.pdr_id.0),
        precedence: pdr.precedence.0,
        source: detection.source,
        filters: detection.filters,
        qfis: detection.qfis,
        far: FarId(far.0),
        qers: pdr.qer_ids.iter().map(|qer| QerId(qer.0)).collect(),
        urrs: pdr.urr_ids.iter().map(|urr| UrrId(urr.0)).collect(),
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
    }
}

/// PFCP counts in 1000 bit/s.
fn rates(rates: BitRates) -> Rates {
    Rates { uplink: rates.uplink.saturating_mul(1000), downlink: rates.downlink.saturating_mul(1000) }
}

fn compile_urr(id: ie::UrrId, measurements: &Measurements) -> Urr {
    let (threshold, quota) = measurements.limits(id);
    Urr { id: UrrId(id.0), threshold, quota }
}
