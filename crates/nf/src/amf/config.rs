//! What an operator sets of an AMF.

use super::retained::Retention;
use super::waiting::Bounds;
use crate::kit::{Duration, Identity};
use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
use pith_sbi::ApiRoot;
use pith_types::{FiveGTmsi, Guami, InstanceId, Plmn, ShardId, Snssai, Tai};
use std::sync::Arc;

/// Configuration of one AMF instance, or of one shard of it.
#[derive(Debug, Clone, PartialEq)]
pub struct AmfConfig {
    /// Who the instance is on the SBI, and which block of ids is its own.
    pub identity: Identity,
    /// AMF Name (TS 38.413 9.3.3.21), as NG Setup tells it.
    pub name: String,
    /// What 5G-GUTIs are made with.
    pub guami: Guami,
    /// Other shards and instances that give 5G-GUTIs of the same GUAMI, each from a block of its own:
    /// they are asked for the contexts of UEs that come here.
    pub peers: Vec<Peer>,
    /// Networks served, with their slices.
    pub plmns: Vec<ServedPlmn>,
    /// Tracking areas served; a UE elsewhere is rejected.
    pub tais: Vec<Tai>,
    /// Networks that a UE takes as the same as the serving one; at most 15.
    pub equivalent_plmns: Vec<Plmn>,
    /// How the network calls itself; told to UEs after each initial registration, if set.
    pub network_name: Option<NetworkNames>,
    /// Integrity algorithms, the most wanted first. A UE that knows none of them is rejected.
    pub integrity: Vec<IntegrityAlgorithm>,
    /// Ciphering algorithms, the most wanted first.
    pub ciphering: Vec<CipheringAlgorithm>,
    /// Lengths of timers.
    pub timers: Timers,
    /// Retransmissions of a NAS message before its procedure is given up (TS 24.501 table 10.2.2
    /// has four).
    pub max_retransmissions: u8,
    /// UE contexts at most, 1 to 262,144: more UEs are rejected with #22 congestion.
    pub max_ues: u32,
    /// Back-off that UEs are told when the AMF is full (T3346).
    pub congestion_backoff: Duration,
    /// Security contexts of UEs that are no longer registered.
    pub retention: Retention,
}

/// Another shard or instance of the same AMF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its block: instance part.
    pub instance: InstanceId,
    /// Its block: shard part.
    pub shard: ShardId,
    /// Where its services stand.
    pub api_root: Arc<ApiRoot>,
}

/// A network that the AMF serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedPlmn {
    /// The network.
    pub plmn: Plmn,
    /// Slices that this AMF serves in it.
    pub slices: Vec<Snssai>,
}

/// Names of the network that a phone can show (TS 24.501 8.2.19).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkNames {
    /// Full name for network.
    pub full: String,
    /// Short name for network.
    pub short: String,
}

/// Lengths of the AMF's timers (TS 24.501 tables 10.2.1, 10.2.2; TS 23.501 5.4.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// How often a UE registers anew though it does not move; told to the UE.
    pub t3512: Duration,
    /// How long a UE waits after its last try of a registration that failed; told to the UE.
    pub t3502: Duration,
    /// Between two tries of paging.
    pub t3513: Duration,
    /// Between two DEREGISTRATION REQUESTs of the network.
    pub t3522: Duration,
    /// Between two REGISTRATION ACCEPTs.
    pub t3550: Duration,
    /// Between two CONFIGURATION UPDATE COMMANDs.
    pub t3555: Duration,
    /// Between two AUTHENTICATION REQUESTs or SECURITY MODE COMMANDs.
    pub t3560: Duration,
    /// Between two IDENTITY REQUESTs.
    pub t3570: Duration,
    /// How much longer than T3512 a UE may be silent before it counts as unreachable.
    pub mobile_reachable_margin: Duration,
    /// How long an unreachable UE stays registered.
    pub implicit_deregistration: Duration,
    /// How long a gNB may take for an NGAP procedure of one UE.
    pub ngap_guard: Duration,
}

impl Default for Timers {
    /// The values of TS 24.501 tables 10.2.1 and 10.2.2.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            t3512: seconds(54 * 60),
            t3502: seconds(12 * 60),
            t3513: seconds(2),
            t3522: seconds(6),
            t3550: seconds(6),
            t3555: seconds(6),
            t3560: seconds(6),
            t3570: seconds(6),
            mobile_reachable_margin: seconds(4 * 60),
            implicit_deregistration: seconds(4 * 60),
            ngap_guard: seconds(10),
        }
    }
}

impl AmfConfig {
    /// A configuration for one network, with the defaults of the specifications for the rest:
    /// 128-NIA2 and 128-NEA2 are wanted most, null integrity is not accepted.
    pub fn new(identity: Identity, guami: Guami, slices: Vec<Snssai>, tais: Vec<Tai>) -> Self {
        Self {
            identity,
            name: "pith".into(),
            guami,
            peers: Vec::new(),
            plmns: vec![ServedPlmn { plmn: guami.plmn_id, slices }],
            tais,
            equivalent_plmns: Vec::new(),
            network_name: None,
            integrity: vec![IntegrityAlgorithm::Nia2, IntegrityAlgorithm::Nia1, IntegrityAlgorithm::Nia3],
            ciphering: vec![
                CipheringAlgorithm::Nea2,
                CipheringAlgorithm::Nea1,
                CipheringAlgorithm::Nea3,
                CipheringAlgorithm::Nea0,
            ],
            timers: Timers::default(),
            max_retransmissions: 4,
            max_ues: 1 << 17,
            congestion_backoff: Duration::from_secs(60),
            retention: Retention { contexts: 16_384, time: Duration::from_secs(24 * 3600) },
        }
    }

    /// Slices served in that network.
    pub fn slices(&self, plmn: Plmn) -> &[Snssai] {
        let served = self.plmns.iter().find(|served| served.plmn == plmn);
        served.map_or(&[], |served| &served.slices)
    }

    /// Whose block a 5G-TMSI is of, if it is another one's that is known.
    pub(super) fn peer_of(&self, tmsi: FiveGTmsi) -> Option<&Arc<ApiRoot>> {
        let owns = |peer: &&Peer| (peer.instance, peer.shard) == (tmsi.instance(), tmsi.shard());
        let own = (self.identity.instance, self.identity.shard) == (tmsi.instance(), tmsi.shard());
        self.peers.iter().find(owns).filter(|_| !own).map(|peer| &peer.api_root)
    }

    /// What is wrong with it, as a sentence that says what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.integrity.is_empty() || self.ciphering.is_empty() {
            return Err("list at least one integrity and one ciphering algorithm".into());
        }
        if self.tais.is_empty() || self.tais.len() > 16 {
            return Err("list 1 to 16 tracking areas: they make the registration area".into());
        }
        if let Some(tai) = self.tais.iter().find(|tai| self.slices(tai.plmn_id).is_empty()) {
            return Err(format!(
                "PLMN {} of a tracking area has no slices: add it to the PLMNs",
                tai.plmn_id
            ));
        }
        if !(1..=MAX_UES).contains(&self.max_ues) {
            return Err(format!("at most {MAX_UES} UEs fit a shard"));
        }
        Ok(())
    }
}

/// UEs that have not proved who they are, of a shard. A flood of 15,000 registrations a second leaves a phone of the same
/// gNB half a second for its proof, and phones of other gNBs the time of T3560. The octets are those of as many
/// contexts, each with a REGISTRATION REQUEST of 500 octets.
pub(super) const HALF_OPEN: Bounds =
    Bounds { entries: 16_384, entries_of_gnb: 8_192, octets: 48 * 1024 * 1024 };

/// Octets of such a context without its messages: context, connection, procedure and their places in tables.
pub(super) const HALF_OPEN_CONTEXT: usize = 2_048;

/// Connections that gNBs were told to release and have not, of a shard. A gNB that does not answer keeps each until the
/// NGAP guard runs out.
pub(super) const RELEASING: Bounds = Bounds { entries: 16_384, entries_of_gnb: 8_192, octets: usize::MAX };

/// Contexts beyond `max_ues`, for UEs that are told to come back later.
pub(super) const REJECTABLE_UES: u32 = 1024;

/// Connections that an AMF-UE-NGAP-ID can number besides six bits of generation.
pub(super) const MAX_UES: u32 = 1 << 18;
