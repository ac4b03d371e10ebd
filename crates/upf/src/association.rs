//! PFCP associations: the SMFs that this UPF serves (TS 29.244 5.8, 6.2.6 to 6.2.8).

use std::net::SocketAddr;
use std::time::Duration;

use pith_pfcp::ie::{CpFunctionFeatures, NtpSeconds, UpFunctionFeatures};

use crate::config::Config;

/// An association with an SMF.
#[derive(Debug)]
pub struct Association {
    /// The address of the SMF's PFCP entity.
    pub address: SocketAddr,
    /// The port from which the SMF set the association up.
    pub port: u16,
    pub cp_features: CpFunctionFeatures,
    /// The Recovery Time Stamp of the entity at `address`, from its heartbeats; the one in the set-up is not
    /// used (TS 29.244 table 7.4.4.1-1, note).
    pub recovery: Option<NtpSeconds>,
    /// Whether the SMF answers heartbeats.
    pub path: PathState,
    /// Time of the next heartbeat; `None` while a response is pending.
    pub next_heartbeat: Option<Duration>,
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
        | UpFunctionFeatures::default().with(UpFunctionFeatures::ADPDP, !config.predefined.0.is_empty())
}
