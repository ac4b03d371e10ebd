//! The areas that both gNB and AMF serve, or the reason why there is none.

use super::{N2Config, N2Gateway};
use pith_ngap::{Cause, CauseMisc, CauseRadioNetwork, SupportedTa};
use pith_types::{Plmn, Snssai, Tac, Tai};
use std::collections::BTreeMap;
use std::fmt;

/// Areas that a refusal lists for each side; a gNB may have 256.
const SHOWN_AREAS: usize = 4;

/// The first thing that gNB and AMF do not have in common, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mismatch {
    Plmn,
    TrackingArea,
    Slice,
}

impl Mismatch {
    /// Misc "Unknown PLMN or SNPN" is for PLMNs only (TS 38.413 8.7.1.4). There is no cause for an
    /// unknown TAC, so the cause is Misc "Unspecified" (TS 38.413 9.3.1.2).
    pub(super) fn cause(self) -> Cause {
        match self {
            Self::Plmn => Cause::Misc(CauseMisc::unknown_PLMN_or_SNPN),
            Self::TrackingArea => Cause::Misc(CauseMisc::unspecified),
            Self::Slice => Cause::RadioNetwork(CauseRadioNetwork::slice_not_supported),
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Plmn => "no common PLMN",
            Self::TrackingArea => "no common tracking area",
            Self::Slice => "no common slice",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Plmn => "change the gNB's PLMN or 'network.plmns'",
            Self::TrackingArea => "change the gNB's TAC or 'network.tracking_areas'",
            Self::Slice => "change the gNB's slices or 'network.slices'",
        }
    }
}

impl N2Gateway {
    /// The areas that gNB and AMF both serve, each once with the common slices.
    pub(super) fn common_areas(&self, tas: &[SupportedTa]) -> Result<Vec<(Tai, Vec<Snssai>)>, Mismatch> {
        let mut mismatch = Mismatch::Plmn;
        let (mut common, mut known) = (Vec::<(Tai, Vec<Snssai>)>::new(), BTreeMap::new());
        for ta in tas {
            for (plmn_id, slices) in &ta.plmns {
                let Some((_, own)) = self.config.plmns.iter().find(|(plmn, _)| plmn == plmn_id) else {
                    continue;
                };
                let tai = Tai { plmn_id: *plmn_id, tac: ta.tac };
                if !self.config.tais.is_empty() && !self.config.tais.contains(&tai) {
                    if mismatch == Mismatch::Plmn {
                        mismatch = Mismatch::TrackingArea;
                    }
                    continue;
                }
                mismatch = Mismatch::Slice;
                let at = *known.entry(tai).or_insert(common.len());
                if at == common.len() {
                    common.push((tai, Vec::new()));
                }
                let Some((_, listed)) = common.get_mut(at) else { continue };
                for slice in slices.iter().filter(|slice| own.contains(slice)) {
                    if !listed.contains(slice) {
                        listed.push(*slice);
                    }
                }
            }
        }
        // An area without a common slice serves emergency sessions.
        if common.iter().all(|(_, slices)| slices.is_empty()) { Err(mismatch) } else { Ok(common) }
    }

    /// The areas of both sides in one line, for the operator.
    pub(super) fn explain(&self, mismatch: Mismatch, tas: &[SupportedTa]) -> String {
        let theirs = tas.iter().flat_map(|ta| {
            ta.plmns.iter().map(|(plmn, slices)| Area { plmn: *plmn, tac: Some(ta.tac), slices })
        });
        let (theirs, own) = (listed(theirs), listed(self.config.areas()));
        format!("{}: the gNB has {theirs}; the AMF has {own}; {}", mismatch.what(), mismatch.advice())
    }
}

impl N2Config {
    fn areas(&self) -> impl Iterator<Item = Area<'_>> {
        self.plmns.iter().flat_map(|(plmn, slices)| {
            let tais = self.tais.iter().filter(move |tai| tai.plmn_id == *plmn);
            let any = self.tais.is_empty().then_some(Area { plmn: *plmn, tac: None, slices });
            any.into_iter().chain(tais.map(move |tai| Area { plmn: *plmn, tac: Some(tai.tac), slices }))
        })
    }
}

/// An area of one side, formatted for the operator.
struct Area<'a> {
    plmn: Plmn,
    /// `None` for all tracking areas of the PLMN.
    tac: Option<Tac>,
    slices: &'a [Snssai],
}

impl fmt::Display for Area<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PLMN {} ", self.plmn)?;
        match self.tac {
            Some(tac) => write!(f, "TAC 0x{tac} ({})", tac.value())?,
            None => f.write_str("any TAC")?,
        }
        let slices: Vec<_> = self.slices.iter().map(Snssai::to_string).collect();
        write!(f, " slices {}", if slices.is_empty() { "none".into() } else { slices.join(" ") })
    }
}

fn listed<'a>(areas: impl Iterator<Item = Area<'a>>) -> String {
    let all: Vec<_> = areas.collect();
    let shown: Vec<_> = all.iter().take(SHOWN_AREAS).map(Area::to_string).collect();
    match all.len().saturating_sub(SHOWN_AREAS) {
        _ if all.is_empty() => "none".into(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
