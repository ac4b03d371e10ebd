//! Users of a world's services: local area data network, emergency sessions, reflective QoS.

use super::user::Act;
use super::{Failure, SimEvent, SimUe, World};
use crate::dice::Dice;
use crate::network;
use crate::services::{EmergencyUes, edrx};
use pith_nas::ie::{DrxParameters, PduSessionType};
use pith_ran::ue::SessionRequest;
use pith_types::Snssai;
use serde_json::Value;
use std::net::Ipv6Addr;
use std::time::Duration;

/// PDU session identity of sessions of the local area data network.
pub(crate) const LOCAL: u8 = 3;
/// PDU session identity of emergency sessions.
pub(crate) const EMERGENCY: u8 = 4;

impl World {
    /// A UE enters and leaves the local area data network, and has sessions of it. Drawn apart.
    pub(super) fn draw_ladn(&mut self, time: Duration) {
        if !self.plan.services.ladn {
            return;
        }
        let mut dice = Dice::new(self.plan.seed ^ 0x6c61_646e_0000);
        let millis = time.as_millis() as u64;
        for ue in 0..self.ues.len() {
            for _ in 0..dice.below(6) {
                let when = dice.millis(millis / 8, millis);
                let act = match dice.below(5) {
                    0 => Act::Release(LOCAL),
                    1 => Act::Reselect,
                    _ => Act::Establish(LOCAL),
                };
                self.at(when, SimEvent::Act { ue, act });
            }
        }
    }

    /// Emergency sessions, also of UEs that are registered normally. Drawn apart.
    pub(super) fn draw_emergencies(&mut self, time: Duration) {
        if self.plan.services.emergency == EmergencyUes::None {
            return;
        }
        let mut dice = Dice::new(self.plan.seed ^ 0x736f_7300_0000);
        let millis = time.as_millis() as u64;
        for ue in 0..self.ues.len() {
            for _ in 0..dice.below(5) {
                let when = dice.millis(millis / 8, millis);
                let act = if dice.chance(700) { Act::Establish(EMERGENCY) } else { Act::Release(EMERGENCY) };
                self.at(when, SimEvent::Act { ue, act });
            }
        }
    }

    /// UEs revoke their support of reflective QoS. Drawn apart.
    pub(super) fn draw_revocations(&mut self, time: Duration) {
        let mut dice = Dice::new(self.plan.seed ^ 0x7265_766f_6b65);
        let millis = time.as_millis() as u64;
        for ue in 0..self.ues.len() {
            if dice.chance(300) {
                let when = dice.millis(millis / 4, millis);
                let session = 1 + dice.below(2) as u8;
                self.at(when, SimEvent::Act { ue, act: Act::RevokeReflectiveQos(session) });
            }
        }
    }

    /// What a UE requests as session with that identity.
    pub(super) fn session_request(&self, ue: usize, id: u8) -> SessionRequest {
        let is_emergency = id == EMERGENCY || self.ues[ue].service.is_emergency();
        // The network selects data network and slice of an emergency session (TS 24.501 5.4.5.2.2).
        let dnn = (!is_emergency).then(|| if id == LOCAL { network::ladn() } else { network::dnn() });
        let mut dice = Dice::new(self.plan.seed ^ 0x7265_666c_0000 ^ (ue as u64) << 48 ^ u64::from(id) << 56);
        SessionRequest {
            id,
            snssai: dnn.is_some().then(|| Snssai::of_sst(1)),
            session_type: if id == 2 { PduSessionType::Ipv4v6 } else { PduSessionType::Ipv4 },
            // A world without random acts is to show all of it.
            reflective_qos: self.plan.acts == 0 || dice.chance(500),
            is_emergency,
            dnn,
        }
    }

    /// What a UE was granted, and what its AMF has, agree.
    pub(super) fn check_reachability(&self, at: usize, ue: &Value) -> Result<(), Box<Failure>> {
        let granted = self.ues[at].ue.reachability();
        let drx = match granted.drx {
            Some(DrxParameters::T32) => Some(32),
            Some(DrxParameters::T64) => Some(64),
            Some(DrxParameters::T128) => Some(128),
            Some(DrxParameters::T256) => Some(256),
            _ => None,
        };
        let cycle = granted.edrx.as_ref().and_then(|it| edrx(it.value, it.paging_time_window));
        let own = (drx, cycle.map(|(cycle, _)| cycle.as_millis() as u64), granted.mico.is_some());
        let of_amf = (ue["drx"].as_u64(), ue["extendedDrxMs"].as_u64(), ue["mico"] == true);
        // A periodic update, which requests no DRX, of a UE that does not know that its AMF has ended the registration: the UE goes on with
        // what it was granted before (TS 24.501 5.5.1.3.2).
        let is_forgotten = self.is_kill && of_amf == (None, own.1, own.2);
        self.demand(own == of_amf || is_forgotten, || {
            format!("UE{} was granted (DRX, extended DRX, MICO mode) {own:?}, its AMF has {of_amf:?}", at + 1)
        })
    }

    /// UE and SMF agree about reflective QoS and emergency sessions; no session of the local area data network is outside.
    pub(super) fn check_services(&self, at: usize, sessions: &[Value]) -> Result<(), Box<Failure>> {
        let sim_ue = &self.ues[at];
        for own in sim_ue.ue.sessions() {
            let is_it = |session: &&Value| sim_ue.owns(session) && session["pduSessionId"] == own.id;
            let Some(of_smf) = sessions.iter().find(is_it) else { continue };
            let is_right = of_smf["emergency"] == own.is_emergency
                && (self.may_lag() || of_smf["reflectiveQos"] == own.reflective_qos);
            self.demand(is_right, || format!("UE{} has {own:?}, the SMF {of_smf}", at + 1))?;
            let is_here = own.dnn != Some(network::ladn()) || self.is_in_ladn(at);
            self.demand(is_here || self.tolerates_leaks(), || {
                format!("UE{} has session {} outside the LADN's service area", at + 1, own.id)
            })?;
        }
        Ok(())
    }

    /// Whether UE and SMF may know different results of a modification: its command or the answer to it was lost.
    fn may_lag(&self) -> bool {
        !self.plan.is_faultless() || self.crash_points.crashed.is_some()
    }

    /// The prefixes of two sessions do not overlap.
    pub(super) fn check_prefixes(&self, sessions: &[Value]) -> Result<(), Box<Failure>> {
        let mut ranges: Vec<(u128, u128)> =
            sessions.iter().filter_map(|it| range(it["ipv6Prefix"].as_str()?)).collect();
        ranges.sort_unstable();
        let overlaps = ranges.windows(2).any(|pair| pair[1].0 <= pair[0].1);
        self.demand(!overlaps, || format!("prefixes overlap: {sessions:?}"))
    }

    /// Whether a UE camps in the service area of the local area data network.
    pub(super) fn is_in_ladn(&self, ue: usize) -> bool {
        self.plan.tracking_area_of_gnb(self.ues[ue].gnb) == 0
    }

    /// Whether the AMF may use null algorithms for a UE: COUNTs protect nothing then.
    pub(super) fn may_have_null_security(&self, ue: usize) -> bool {
        self.plan.services.emergency == EmergencyUes::WithoutSim && self.ues[ue].service.is_emergency()
    }
}

impl SimUe {
    /// Whether a context of AMF or SMF is of this UE: an unauthenticated one is known by its PEI.
    pub(super) fn owns(&self, context: &Value) -> bool {
        match context["supi"].as_str() {
            Some(supi) => supi == self.subscriber.supi.as_str(),
            None => context["pei"] == self.pei.as_str(),
        }
    }
}

/// The first and the last address of a prefix.
fn range(prefix: &str) -> Option<(u128, u128)> {
    let (address, length) = prefix.split_once('/')?;
    let first = address.parse::<Ipv6Addr>().ok()?.to_bits();
    Some((first, first | u128::MAX.checked_shr(length.parse().ok()?).unwrap_or(0)))
}
