//! Services that some worlds have beside registrations and sessions.

use crate::dice::Dice;
use pith_nas::ie::DrxParameters;
use pith_ran::ue::{RequestedReachability, Service};
use std::time::Duration;

/// Services of a world. The default: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Services {
    /// There is a local area data network, in the tracking area of every second gNB or, with several AMFs, of the first one (TS 23.501 5.6.5).
    pub ladn: bool,
    /// Emergency services (TS 23.501 5.16.4).
    pub emergency: EmergencyUes,
    /// Extended DRX and MICO mode (TS 23.501 5.31.7.2, 5.4.1.3).
    pub reachability: Reachability,
    /// Bits of IPv6 prefix delegation (TS 23.501 5.8.2.2.4).
    pub delegation: u8,
}

/// Who uses emergency services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmergencyUes {
    /// No UE: they are not configured.
    #[default]
    None,
    /// UEs that are registered normally.
    Registered,
    /// Also UEs that register for emergency services only.
    Subscribers,
    /// Also UEs without a SIM card, which the AMF admits without authentication.
    WithoutSim,
}

/// What UEs request, and the AMF grants. Every UE may request UE-specific DRX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reachability {
    /// Neither extended DRX nor MICO mode.
    #[default]
    Drx,
    /// Each UE draws what it requests.
    Drawn,
    /// All request extended DRX with a cycle of 20.48 s.
    ExtendedDrx,
    /// All request MICO mode.
    Mico,
}

/// Cycles of extended DRX that UEs request: value and length.
const CYCLES: [(u8, Duration); 5] = [
    (0, Duration::from_millis(5_120)),
    (1, Duration::from_millis(10_240)),
    (2, Duration::from_millis(20_480)),
    (3, Duration::from_millis(40_960)),
    (5, Duration::from_millis(81_920)),
];

/// The longest cycle without a paging time window (TS 38.304 7.4).
const LONGEST_WITHOUT_WINDOW: Duration = Duration::from_millis(10_240);

/// The cycle of that eDRX value (TS 24.008 10.5.5.32), and the paging time window of that code, if the cycle has one.
pub(crate) fn edrx(value: u8, window: u8) -> Option<(Duration, Option<Duration>)> {
    let (_, cycle) = CYCLES.into_iter().find(|(of, _)| *of == value)?;
    let window = Duration::from_millis(1_280) * (u32::from(window) + 1);
    Some((cycle, (cycle > LONGEST_WITHOUT_WINDOW).then_some(window)))
}

impl Services {
    /// Drawn apart, so that other parameters of a seed stay the same.
    pub(crate) fn draw(seed: u64, gnbs: usize) -> Self {
        let mut dice = Dice::new(seed ^ 0x7365_7276_6963);
        let (has_ladn, emergency) = (dice.chance(400), dice.below(8));
        let reachability = dice.chance(400);
        let delegation = if dice.chance(400) { 1 + dice.below(8) as u8 } else { 0 };
        Self {
            // UEs are to leave it.
            ladn: has_ladn && gnbs > 1,
            emergency: match emergency {
                0 => EmergencyUes::Registered,
                1 => EmergencyUes::Subscribers,
                2 => EmergencyUes::WithoutSim,
                _ => EmergencyUes::None,
            },
            reachability: if reachability { Reachability::Drawn } else { Reachability::Drx },
            delegation,
        }
    }

    /// What a UE uses the network for. In worlds without random acts the first UE is the one that the service is for.
    pub(crate) fn of_ue(&self, seed: u64, ue: usize, is_drawn: bool) -> Service {
        let mut dice = Dice::new(seed ^ 0x656d_6572_6700 ^ (ue as u64) << 48);
        let (is_emergency, lacks_sim) =
            if is_drawn { (dice.chance(300), dice.chance(500)) } else { (ue == 0, true) };
        match self.emergency {
            EmergencyUes::Subscribers | EmergencyUes::WithoutSim if !is_emergency => Service::Normal,
            EmergencyUes::WithoutSim if lacks_sim => Service::EmergencyWithoutSim,
            EmergencyUes::Subscribers | EmergencyUes::WithoutSim => Service::Emergency,
            EmergencyUes::None | EmergencyUes::Registered => Service::Normal,
        }
    }

    /// What a UE requests.
    pub(crate) fn reachability_of_ue(&self, seed: u64, ue: usize) -> RequestedReachability {
        // Each PAGING is checked for it.
        let drx = RequestedReachability { drx: Some(DrxParameters::T128), ..Default::default() };
        match self.reachability {
            Reachability::Drx => drx,
            Reachability::ExtendedDrx => RequestedReachability { edrx: Some(2), ..drx },
            Reachability::Mico => RequestedReachability { mico: true, ..drx },
            Reachability::Drawn => {
                let mut dice = Dice::new(seed ^ 0x6472_7800_0000 ^ (ue as u64) << 48);
                let cycles =
                    [DrxParameters::T32, DrxParameters::T64, DrxParameters::T128, DrxParameters::T256];
                let drx = dice.chance(700).then(|| cycles[dice.index(cycles.len())]);
                let edrx = dice.chance(500).then(|| CYCLES[dice.index(CYCLES.len())].0);
                let mico = dice.chance(300);
                let active_time = dice.chance(500).then(|| Duration::from_secs(2 * (1 + dice.below(30))));
                RequestedReachability { drx, edrx, mico, active_time }
            }
        }
    }
}
