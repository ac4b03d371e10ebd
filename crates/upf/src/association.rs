//! PFCP associations: the SMFs that this UPF serves (TS 29.244 5.8, 6.2.6 to 6.2.8).

use std::net::SocketAddr;
use std::time::Duration;

use pith_pfcp::ie::{CpFunctionFeatures, NtpSeconds, SmfSetId, UpFunctionFeatures};

use crate::config::Config;

/// Time in which a restarted SMF sets its association up again. Later a set-up from an unknown port is verified again.
const SETUP_AFTER_RESTART: Duration = Duration::from_secs(60);

/// An association with an SMF.
#[derive(Clone, Debug)]
pub struct Association {
    /// The address of the SMF's PFCP entity.
    pub address: SocketAddr,
    /// The port from which the SMF set the association up.
    pub port: u16,
    pub cp_features: CpFunctionFeatures,
    /// The SMF's set, if the UPF serves that.
    pub set: Option<SmfSetId>,
    /// The Recovery Time Stamp of the entity at `address`, from its heartbeats; the one in the set-up is not
    /// used (TS 29.244 table 7.4.4.1-1, note).
    pub recovery: Option<NtpSeconds>,
    /// The Recovery Time Stamp in the set-up.
    pub recovery_at_setup: NtpSeconds,
    /// Whether the SMF's heartbeats have shown a restart since the set-up.
    pub has_restarted: bool,
    /// When a heartbeat first had another Recovery Time Stamp than the set-up: the SMF may have restarted between the two.
    pub differed_at: Option<Duration>,
    /// Whether the SMF answers heartbeats.
    pub path: PathState,
    /// Time of the next heartbeat; `None` while a response is pending.
    pub next_heartbeat: Option<Duration>,
}

impl Association {
    /// Whether the SMF sends its requests from that port: the one of PFCP, or the one it set the association up from. Any process
    /// at the SMF's address can send from others.
    pub fn is_port(&self, port: u16) -> bool {
        [self.address.port(), self.port].contains(&port)
    }

    /// Whether the SMF answers heartbeats.
    pub fn is_up(&self) -> bool {
        self.path == PathState::Up
    }

    /// Whether the SMF has restarted since the set-up, so that another one is due. Time stamps that differed from the beginning prove that
    /// for a while only: an SMF may always use two.
    pub fn has_restarted(&self, now: Duration) -> bool {
        let differed = self.differed_at.is_some_and(|at| now.saturating_sub(at) < SETUP_AFTER_RESTART);
        self.has_restarted || differed
    }

    /// Records a Recovery Time Stamp of the SMF; returns whether it restarted since the one before.
    pub fn recovered_at(&mut self, now: Duration, recovery: NtpSeconds) -> bool {
        let before = self.recovery.replace(recovery);
        if before.is_none() && self.recovery_at_setup != recovery {
            self.differed_at = Some(now);
        }
        let has_restarted = before.is_some_and(|before| before != recovery);
        self.has_restarted |= has_restarted;
        has_restarted
    }
}

/// Whether the SMF answers heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// The SMF answers.
    Up,
    /// The SMF has not answered since this time.
    FailedSince(Duration),
}

/// This UPF's optional features (TS 29.244 8.2.25); activation of predefined rules only if any are
/// configured.
pub fn up_function_features(config: &Config) -> UpFunctionFeatures {
    UpFunctionFeatures::FTUP
        | UpFunctionFeatures::EMPU
        | UpFunctionFeatures::PDIU
        | UpFunctionFeatures::UDBC
        | UpFunctionFeatures::MNOP
        | UpFunctionFeatures::BUNDL
        | UpFunctionFeatures::VTIME
        | UpFunctionFeatures::UPIDP
        | UpFunctionFeatures::DDND
        | UpFunctionFeatures::FRRT
        | UpFunctionFeatures::default()
            .with(UpFunctionFeatures::ADPDP, !config.predefined.0.is_empty())
            .with(UpFunctionFeatures::MPAS, !config.smf_sets.is_empty())
}
