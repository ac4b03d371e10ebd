//! PFCP associations: the SMFs that this UPF serves (TS 29.244 5.8, 6.2.6 to 6.2.8).

use std::net::SocketAddr;
use std::time::Duration;

use pith_pfcp::ie::{CpFunctionFeatures, NtpSeconds, UpFunctionFeatures};

use crate::config::Config;

/// An association with an SMF.
#[derive(Debug)]
pub struct Association {
    /// Where the SMF's PFCP entity is reached.
    pub address: SocketAddr,
    /// What the SMF can do.
    pub cp_features: CpFunctionFeatures,
    /// The Recovery Time Stamp of the entity at `address`, from its heartbeats: that of the set-up does not count
    /// (TS 29.244 table 7.4.4.1-1, note).
    pub recovery: Option<NtpSeconds>,
    /// Whether the SMF answers heartbeats.
    pub path: Path,
    /// When to send the next heartbeat; none while one waits for its response.
    pub next_heartbeat: Option<Duration>,
}

/// Whether a peer answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// It does.
    Up,
    /// It has not since then.
    FailedSince(Duration),
}

/// What this UPF can do beyond what every UPF must (TS 29.244 8.2.25); rules can be activated where there are some.
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
