//! Operator configuration of an AMF.

use super::ladn::Ladn;
use super::pending_table::Bounds;
use super::retained::Retention;
use super::time_zone::LocalTime;
use crate::kit::{Duration, Identity, SetInstances};
use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
use pith_nas::ie::{EmergencyNumber, GprsTimer3};
use pith_ngap::UserLocation;
use pith_sbi::ApiRoot;
use pith_types::{AmfId, BlockId, Dnn, FiveGSTmsi, FiveGTmsi, Guami, InstanceId, Plmn, Snssai, Tai};
use std::net::IpAddr;
use std::sync::Arc;

/// Configuration of one AMF instance, or of one shard of it.
#[derive(Debug, Clone, PartialEq)]
pub struct AmfConfig {
    /// Identity on the SBI, and the block of identifiers that belongs to this instance.
    pub identity: Identity,
    /// AMF Name (TS 38.413 9.3.3.21), sent in NG SETUP RESPONSE.
    pub name: String,
    /// GUAMI of the 5G-GUTIs that this AMF allocates, in its first network.
    pub guami: Guami,
    /// Other instances that allocate 5G-GUTIs of the same GUAMI, each from its own blocks. This AMF requests UE contexts
    /// from them, as from its own other shards, when one of their UEs registers here.
    pub peers: Vec<Peer>,
    /// Number of UEs that get identifiers of one block, before others get those of the next. The ten leading bits of a UE's 5G-TMSIs are those of its
    /// block: among these UEs it can't be recognised by them (TS 33.501 6.12.3).
    pub ues_in_a_row: u32,
    /// Blocks of ids pass between this AMF and others of its set.
    pub shares_blocks: bool,
    /// The instances of the set.
    pub instances: Arc<SetInstances>,
    /// Networks served, with their slices.
    pub plmns: Vec<ServedPlmn>,
    /// Slices of the networks that other AMFs may serve: a UE can request them here, too, and is passed on (TS 23.502 4.2.2.2.3).
    pub slices_elsewhere: Vec<Snssai>,
    /// Tracking areas served. A UE in any other tracking area is rejected.
    pub tais: Vec<Tai>,
    /// Equivalent PLMNs sent to UEs; at most 15.
    pub equivalent_plmns: Vec<Plmn>,
    /// Network name sent to UEs after each initial registration, if set.
    pub network_name: Option<NetworkNames>,
    /// Local time of the network, sent to UEs when they have registered, and to SMFs.
    pub local_time: Option<LocalTime>,
    /// Integrity algorithms in order of preference. A UE that supports none of them is rejected.
    pub integrity: Vec<IntegrityAlgorithm>,
    /// Ciphering algorithms in order of preference.
    pub ciphering: Vec<CipheringAlgorithm>,
    /// Another AMF at which a UE registers gets a key that is derived from K_AMF, not K_AMF (TS 33.501 6.9.3).
    pub derives_k_amf: bool,
    /// NFs of other processes prove their identities, so that an SMF knows AMFs from each other (`sbi.security: mtls`).
    pub nfs_are_identified: bool,
    /// The NSSF selects the slice instance of each session (TS 23.502 4.3.2.2.3.2).
    pub selects_slice_instances: bool,
    /// Lengths of the 5GMM timers.
    pub timers: Timers,
    /// Retransmissions of a NAS message before its procedure is aborted (TS 24.501 table 10.2.2 has four).
    pub max_retransmissions: u8,
    /// Maximum number of UE contexts, 1 to [`AmfConfig::most_ues`]. Further UEs are rejected with #22 congestion.
    pub max_ues: u32,
    /// Back-off time sent to rejected UEs when the AMF is full (T3346).
    pub congestion_backoff: Duration,
    /// Retention of the security contexts of deregistered UEs.
    pub retention: Retention,
    /// Emergency services; `None`: not supported.
    pub emergency: Option<EmergencyServices>,
    /// Local area data networks.
    pub ladns: Vec<Ladn>,
    /// The longest cycle of extended DRX that UEs get (TS 23.501 5.31.7.2). Below 5 s: none.
    pub longest_edrx_cycle: Duration,
    /// MICO mode; `None`: no UE gets it.
    pub mico: Option<MicoMode>,
    /// ARP priority levels of priority services, highest first: the place is the Paging Priority (TS 23.501 5.4.3.2).
    pub paging_priorities: Vec<u8>,
    /// IMS voice over PS sessions is supported (TS 23.501 5.16.3.2).
    pub ims_voice: bool,
    /// After a restart UEs stay connected at gNBs that retain them (UE Retention Information, TS 38.413 8.7.1.2).
    pub retains_ues: bool,
    /// Addresses of the N2 endpoints.
    pub endpoints: Vec<IpAddr>,
}

/// Emergency services: the Emergency Configuration Data of the AMF (TS 23.501 5.16.4.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmergencyServices {
    /// The data network of emergency sessions.
    pub dnn: Dnn,
    /// Their slice.
    pub snssai: Snssai,
    /// Maximum number of UEs that are admitted without authentication. 0: none is.
    pub unauthenticated: u32,
    /// Periodic registration update interval of emergency registered UEs. Such a UE is deregistered as soon as it misses an update.
    pub t3512: Duration,
    /// Local emergency numbers, sent to all UEs.
    pub numbers: Vec<EmergencyNumber>,
}

/// MICO mode (TS 23.501 5.4.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MicoMode {
    /// Periodic registration update interval of UEs in MICO mode; of a UE that requests a shorter one, that.
    pub t3512: Duration,
    /// The registration area of UEs without mobility restrictions is the whole network.
    pub all_plmn_area: bool,
}

/// Another instance of the same AMF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The instance in the owner map.
    pub instance: InstanceId,
    /// API root of its services.
    pub api_root: Arc<ApiRoot>,
}

/// A network that the AMF serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedPlmn {
    /// The network.
    pub plmn: Plmn,
    /// Slices that this AMF serves in the network.
    pub slices: Vec<Snssai>,
}

/// Names of the network that a UE can show (TS 24.501 8.2.19).
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
    /// Periodic registration update interval; sent to the UE.
    pub t3512: Duration,
    /// Wait of a UE after its last failed registration attempt; sent to the UE.
    pub t3502: Duration,
    /// Retransmission interval of PAGING.
    pub t3513: Duration,
    /// Retransmission interval of DEREGISTRATION REQUEST by the network.
    pub t3522: Duration,
    /// Retransmission interval of REGISTRATION ACCEPT.
    pub t3550: Duration,
    /// Retransmission interval of CONFIGURATION UPDATE COMMAND.
    pub t3555: Duration,
    /// Retransmission interval of AUTHENTICATION REQUEST and SECURITY MODE COMMAND.
    pub t3560: Duration,
    /// Retransmission interval of IDENTITY REQUEST.
    pub t3570: Duration,
    /// Added to T3512 for the mobile reachable timer: a UE that is silent longer counts as unreachable.
    pub mobile_reachable_margin: Duration,
    /// Time from unreachable to implicit de-registration.
    pub implicit_deregistration: Duration,
    /// Maximum time for a gNB to answer a UE-associated NGAP procedure.
    pub ngap_guard: Duration,
    /// Maximum time for the target gNB to answer HANDOVER REQUEST.
    pub handover_preparation: Duration,
    /// Maximum time from HANDOVER COMMAND to HANDOVER NOTIFY.
    pub handover_completion: Duration,
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
            handover_preparation: seconds(5),
            handover_completion: seconds(10),
        }
    }
}

impl AmfConfig {
    /// A configuration for one network. The rest has the defaults of the specifications: 128-NIA2
    /// and 128-NEA2 are preferred, null integrity is not accepted.
    pub fn new(identity: Identity, guami: Guami, slices: Vec<Snssai>, tais: Vec<Tai>) -> Self {
        Self {
            identity,
            name: "pith".into(),
            guami,
            peers: Vec::new(),
            ues_in_a_row: 1,
            shares_blocks: false,
            instances: Arc::default(),
            plmns: vec![ServedPlmn { plmn: guami.plmn_id, slices }],
            slices_elsewhere: Vec::new(),
            tais,
            equivalent_plmns: Vec::new(),
            network_name: None,
            local_time: None,
            integrity: vec![IntegrityAlgorithm::Nia2, IntegrityAlgorithm::Nia1, IntegrityAlgorithm::Nia3],
            ciphering: vec![
                CipheringAlgorithm::Nea2,
                CipheringAlgorithm::Nea1,
                CipheringAlgorithm::Nea3,
                CipheringAlgorithm::Nea0,
            ],
            derives_k_amf: false,
            nfs_are_identified: false,
            selects_slice_instances: false,
            timers: Timers::default(),
            max_retransmissions: 4,
            max_ues: 1 << 17,
            congestion_backoff: Duration::from_secs(60),
            retention: Retention { contexts: 16_384, time: Duration::from_secs(24 * 3600) },
            emergency: None,
            ladns: Vec::new(),
            longest_edrx_cycle: Duration::ZERO,
            mico: None,
            paging_priorities: Vec::new(),
            ims_voice: false,
            retains_ues: false,
            endpoints: Vec::new(),
        }
    }

    /// Slices served in that network.
    pub fn slices(&self, plmn: Plmn) -> &[Snssai] {
        let served = self.plmns.iter().find(|served| served.plmn == plmn);
        served.map_or(&[], |served| &served.slices)
    }

    /// Periodic registration update interval of UEs that are registered for emergency services, or normally, as they get it: the IE has no
    /// 54 minutes, for example, but 60 (TS 24.008 10.5.7.4a).
    pub(super) fn t3512(&self, is_emergency: bool) -> Duration {
        let emergency = self.emergency.as_ref().filter(|_| is_emergency);
        let t3512 = emergency.map_or(self.timers.t3512, |emergency| emergency.t3512);
        GprsTimer3::at_least(t3512).duration().unwrap_or(t3512)
    }

    /// Whether this AMF serves UEs in that network.
    pub(super) fn serves_plmn(&self, plmn: Plmn) -> bool {
        self.plmns.iter().any(|served| served.plmn == plmn)
    }

    /// The network identifier of a DNN whose operator identifier is that of a served network (TS 23.003 9A).
    pub(super) fn network_identifier(&self, dnn: &Dnn) -> Option<Dnn> {
        self.plmns.iter().find_map(|served| dnn.network_identifier_in(served.plmn))
    }

    /// The AMF's GUAMI for a UE there: the AMF has one in each network (TS 23.003 2.10.1; TS 23.501 5.18.2a).
    pub(super) fn guami_in(&self, location: Option<UserLocation>) -> Guami {
        self.guami_in_network(location.map(|location| location.tai.plmn_id))
    }

    /// The AMF's GUAMI in that network; in another one than it serves, that of its first.
    pub(super) fn guami_in_network(&self, plmn: Option<Plmn>) -> Guami {
        let plmn = plmn.filter(|plmn| self.serves_plmn(*plmn));
        Guami { plmn_id: plmn.unwrap_or(self.guami.plmn_id), ..self.guami }
    }

    /// The serving network of a UE there: the one that the UE has selected, or that was selected for it in a handover, is that of the TAI (TS
    /// 38.413 8.6.1.2; TS 23.502 4.9.1.3.1).
    pub(super) fn plmn_in(&self, location: Option<UserLocation>) -> Plmn {
        self.guami_in(location).plmn_id
    }

    /// The GUAMI in 5G-GUTIs of a block for a UE there: its AMF Pointer is the number of the block's home.
    pub(super) fn guami_of(&self, block: BlockId, location: Option<UserLocation>) -> Guami {
        let home = self.instances.home(block).filter(|_| self.shares_blocks);
        let pointer = home.map_or(self.guami.amf_id.pointer, |home| home.0);
        Guami { amf_id: AmfId { pointer, ..self.guami.amf_id }, ..self.guami_in(location) }
    }

    /// Whether 5G-GUTIs with that GUAMI may be of UEs of this AMF: it has allocated them, or another AMF of its set has, whose blocks
    /// have passed to this one.
    pub(super) fn serves(&self, guami: &Guami) -> bool {
        let (own, of) = (self.guami.amf_id, guami.amf_id);
        let is_of_set = self.shares_blocks && (of.region, of.set) == (own.region, own.set);
        self.serves_plmn(guami.plmn_id) && (own == of || is_of_set)
    }

    /// As [`AmfConfig::serves`], for a 5G-S-TMSI.
    pub(super) fn serves_s_tmsi(&self, s_tmsi: FiveGSTmsi) -> bool {
        let own = self.guami.amf_id;
        s_tmsi.amf_set == own.set && (s_tmsi.amf_pointer == own.pointer || self.shares_blocks)
    }

    /// API root of the owner of the 5G-TMSI's block: a peer, or another shard of this process, which has this process's
    /// root. `None` for this shard's own blocks and for an owner that is no peer.
    pub(super) fn peer_of(&self, tmsi: FiveGTmsi) -> Option<&Arc<ApiRoot>> {
        let (own, owner) = (self.identity.owner, self.identity.owners.owner(tmsi.block()));
        if owner.instance == own.instance {
            return (owner != own).then_some(&self.identity.api_root);
        }
        self.peers.iter().find(|peer| peer.instance == owner.instance).map(|peer| &peer.api_root)
    }

    /// Whether the 5G-TMSI is of a UE that another instance of the set serves, which is gone or may be, and whose blocks have no other
    /// owner yet: the UE's context is in the store.
    pub(super) fn awaits_owner(&self, tmsi: FiveGTmsi) -> bool {
        let (own, owner) = (self.identity.owner, self.identity.owners.owner(tmsi.block()));
        self.shares_blocks && owner.instance != own.instance && self.instances.may_be_gone(owner.instance)
    }

    /// Checks the configuration. The error is a sentence that says what to change.
    pub fn check(&self) -> Result<(), String> {
        if self.integrity.is_empty() || self.ciphering.is_empty() {
            return Err("list at least one integrity and one ciphering algorithm".into());
        }
        if self.tais.is_empty() || self.tais.len() > 16 {
            return Err("list 1 to 16 tracking areas: they form the registration area".into());
        }
        if let Some(tai) = self.tais.iter().find(|tai| self.slices(tai.plmn_id).is_empty()) {
            return Err(format!(
                "PLMN {} of a tracking area has no slices: add it to the PLMNs",
                tai.plmn_id
            ));
        }
        let most = self.most_ues();
        if !(1..=most).contains(&self.max_ues) {
            return Err(format!("1 to {most} UEs fit a shard with its blocks of 5G-TMSIs"));
        }
        Ok(())
    }

    /// The largest number of UE contexts: at most half of the 5G-TMSIs of the shard's blocks are in use, so that a random one is
    /// unused in one or two attempts, and cannot be guessed. A UE has two 5G-TMSIs at most.
    pub fn most_ues(&self) -> u32 {
        let unused_half = (self.identity.blocks().count() as u64) << (FiveGTmsi::OWN_BITS - 1);
        let ues = (unused_half / 2).saturating_sub(u64::from(REJECTABLE_UES));
        u32::try_from(ues.min(MAX_UES.into())).unwrap_or(MAX_UES)
    }

    /// Maximum number of connections: one for each UE, and those that gNBs are to release.
    pub(super) const fn max_connections(&self) -> u32 {
        self.max_ues.saturating_add(REJECTABLE_UES).saturating_add(RELEASING.entries as u32)
    }
}

/// Limits of unauthenticated UE contexts in a shard. During a flood of 15,000 registrations a
/// second, a UE of the flooding host has half a second to authenticate; UEs of another host have
/// the time of T3560 as long as that host has fewer octets here than the flooding one. The octet limit corresponds to
/// the same number of contexts, each with a REGISTRATION REQUEST of 500 octets.
pub(super) const HALF_OPEN: Bounds =
    Bounds { entries: 16_384, entries_of_host: 8_192, octets: 48 * 1024 * 1024 };

/// Octets of an unauthenticated context without its messages: context, connection, procedure and
/// table entries.
pub(super) const HALF_OPEN_CONTEXT: usize = 2_320;

/// Limits of connections in a shard for which UE CONTEXT RELEASE COMMAND was sent and not answered.
/// If a gNB does not answer, a connection stays until the NGAP guard timer expires.
pub(super) const RELEASING: Bounds = Bounds { entries: 16_384, entries_of_host: 8_192, octets: usize::MAX };

/// Contexts beyond `max_ues`, used to reject UEs with a back-off time, and by UEs that register for emergency services.
pub(super) const REJECTABLE_UES: u32 = 1024;

/// Those of them that registrations for emergency services may hold. The others stay free: a UE that is rejected needs one for a moment.
pub(super) const EMERGENCY_UES: u32 = REJECTABLE_UES / 2;

/// Maximum number of UE contexts in a shard, whatever its blocks.
const MAX_UES: u32 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::super::tests::world::config;
    use crate::testing::{identity_of_shard, sparse_owners};

    #[test]
    fn a_block_is_at_most_half_full() {
        let mut config = config();
        config.identity = identity_of_shard(0, 1);
        assert!(config.most_ues() > 1 << 20, "a process has all blocks");
        config.max_ues = 1 << 20;
        assert_eq!(config.check(), Ok(()));
        config.identity.owners = sparse_owners(1);
        config.identity.owner = config.identity.owners.owner(crate::testing::block(0));
        assert_eq!(config.most_ues(), (1 << 20) - 1024, "one block has 2^22 5G-TMSIs");
        assert!(config.check().unwrap_err().contains("1047552"));
    }
}
