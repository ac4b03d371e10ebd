//! Network Slice Selection Function (TS 29.531): selects the slices that a UE may use (TS 23.501 5.15.5.2.1).
//!
//! The slices of tracking areas are those of the configuration, and the NSSF keeps no state: it does not offer Nnssf_NSSAIAvailability (TS 29.531
//! 5.3), nor does the NRF have it in the NSSF's profile. A request for it gets INVALID_API (TS 29.500 table 5.2.7.2-1).

#[cfg(test)]
mod tests;

use crate::kit::{Input, Instant, NetworkFunction, Outbox};
use pith_sbi::common::AccessType;
use pith_sbi::nnssf_nsselection::{
    AllowedNssai, AllowedSnssai, AuthorizedNetworkSliceInfo, ConfiguredSnssai, NsSelectionGet,
    NsiInformation, SliceInfoForPduSession, SliceInfoForRegistration, SliceInfoForUeConfigurationUpdate,
    SubscribedSnssai,
};
use pith_sbi::{ApiRoot, Cause, NfInstanceId, Problem, Reply, Request, Response, Uri};
use pith_types::{Snssai, Tai};
use std::sync::Arc;

/// Configuration of an NSSF.
#[derive(Debug, Clone)]
pub struct NssfConfig {
    /// Slices of the network with the tracking areas that offer them; an empty list means everywhere.
    pub slices: Vec<(Snssai, Vec<Tai>)>,
    /// The NRF of the slices' NFs.
    pub nrf: Arc<ApiRoot>,
    /// Slices that certain AMFs serve. Any AMF serves the others.
    pub amfs: Vec<AmfsOfSlices>,
    /// Instances of slices (TS 23.501 5.15.5.2.1), the preferred one first.
    pub instances: Vec<SliceInstance>,
}

/// An instance of slices: a part of the network with NFs of its own, such as a site.
#[derive(Debug, Clone)]
pub struct SliceInstance {
    /// NSI ID.
    pub id: Arc<str>,
    /// The slices.
    pub slices: Vec<Snssai>,
    /// The tracking areas that it serves; an empty list means all.
    pub tais: Vec<Tai>,
}

/// The AMFs that serve some slices (TS 23.501 5.15.5.2.1).
#[derive(Debug, Clone)]
pub struct AmfsOfSlices {
    /// The slices.
    pub slices: Vec<Snssai>,
    /// Their AMFs.
    pub amfs: TargetAmfs,
}

/// AMFs that can serve a UE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetAmfs {
    /// Those of an AMF Set.
    Set {
        /// AMF Region ID.
        region: u8,
        /// AMF Set ID.
        set: u16,
    },
    /// These instances.
    Instances(Vec<NfInstanceId>),
}

/// The NSSF of a shard. It is stateless.
#[derive(Debug)]
pub struct Nssf {
    config: NssfConfig,
}

impl Nssf {
    /// An NSSF.
    pub const fn new(config: NssfConfig) -> Self {
        Self { config }
    }

    fn select(&self, request: Request) -> Reply {
        let Request::NsSelectionGet(request) = request else {
            return Err(Box::new(Problem::new(Cause::ResourceUriStructureNotFound)));
        };
        let NsSelectionGet {
            slice_info_request_for_registration,
            slice_info_request_for_pdu_session,
            slice_info_request_for_ue_cu,
            tai,
            ..
        } = *request;
        let info = if let Some(info) = slice_info_request_for_registration {
            self.for_registration(&info, tai)?
        } else if let Some(info) = slice_info_request_for_pdu_session {
            self.for_pdu_session(&info, tai)?
        } else if let Some(info) = slice_info_request_for_ue_cu {
            self.for_configuration_update(info, tai)?
        } else {
            return Err(Box::new(Problem::mandatory_ie_missing("slice-info-request-for-registration")));
        };
        Ok(Response::AuthorizedNetworkSliceInfo(Box::new(info)))
    }

    /// The requested slices that are subscribed and offered here; if none is requested, the default
    /// subscribed ones (TS 29.531 5.2.2.2.2).
    fn for_registration(
        &self,
        info: &SliceInfoForRegistration,
        tai: Option<Tai>,
    ) -> Result<AuthorizedNetworkSliceInfo, Box<Problem>> {
        let (mut authorized, allowed) = self.authorize(&info.subscribed_nssai, &info.requested_nssai, tai)?;
        self.name_amfs(&mut authorized, &allowed, tai);
        Ok(authorized)
    }

    /// The slices of a UE whose subscription or network has changed: of those that it requested last, or else has, what is subscribed and
    /// offered here; the default subscribed ones if none is. AMFs are selected for registrations only (TS 29.531 5.2.2.2.4).
    fn for_configuration_update(
        &self,
        info: SliceInfoForUeConfigurationUpdate,
        tai: Option<Tai>,
    ) -> Result<AuthorizedNetworkSliceInfo, Box<Problem>> {
        let has_requested = !info.requested_nssai.is_empty();
        let current = info.allowed_nssai_current_access.into_iter().flat_map(|list| list.allowed_snssai_list);
        let wanted = if has_requested {
            info.requested_nssai
        } else {
            current.map(|item| item.allowed_snssai).collect()
        };
        let (mut authorized, _) = self.authorize(&info.subscribed_nssai, &wanted, tai)?;
        if !has_requested {
            authorized.rejected_nssai_in_plmn.clear();
            authorized.rejected_nssai_in_ta.clear();
        }
        Ok(authorized)
    }

    /// The allowed slices, with instances, the rejected ones, and the configured ones; and the allowed ones again, as a list.
    fn authorize(
        &self,
        subscription: &[SubscribedSnssai],
        requested: &[Snssai],
        tai: Option<Tai>,
    ) -> Result<(AuthorizedNetworkSliceInfo, Vec<Snssai>), Box<Problem>> {
        let subscribed = |slice: &Snssai| subscription.iter().any(|other| other.subscribed_snssai == *slice);
        let mut authorized = AuthorizedNetworkSliceInfo::default();
        let mut allowed: Vec<Snssai> = Vec::new();
        for slice in requested {
            match (subscribed(slice) && self.exists(slice), self.is_offered(slice, tai)) {
                (true, true) => allowed.push(*slice),
                (true, false) => authorized.rejected_nssai_in_ta.push(*slice),
                (false, _) => authorized.rejected_nssai_in_plmn.push(*slice),
            }
        }
        if allowed.is_empty() {
            let default = subscription.iter().filter(|slice| slice.default_indication == Some(true));
            allowed = default.map(|s| s.subscribed_snssai).filter(|s| self.is_offered(s, tai)).collect();
        }
        if allowed.is_empty() {
            return Err(Box::new(Problem::new(Cause::SnssaiNotSupported)));
        }
        let with_instances = |slice: Snssai| {
            let instances = self.instances_of(slice, tai).map(|id| self.nsi_information(Some(id)));
            AllowedSnssai { nsi_information_list: instances.collect(), ..AllowedSnssai::new(slice) }
        };
        let list: Vec<_> = allowed.iter().copied().map(with_instances).collect();
        authorized.allowed_nssai_list = vec![AllowedNssai::new(list, AccessType::ThreeGppAccess)];
        authorized.configured_nssai = self.configured(subscription);
        Ok((authorized, allowed))
    }

    /// The AMFs that serve all allowed slices, or the first of them that not every AMF serves: then the target AMF decides which of
    /// the others it serves, too.
    fn name_amfs(&self, authorized: &mut AuthorizedNetworkSliceInfo, allowed: &[Snssai], tai: Option<Tai>) {
        let serves = |entry: &&AmfsOfSlices, slice: &Snssai| entry.slices.contains(slice);
        let all = self.config.amfs.iter().find(|it| allowed.iter().all(|slice| serves(it, slice)));
        let one = || self.config.amfs.iter().find(|it| allowed.iter().any(|slice| serves(it, slice)));
        match all.or_else(one).map(|entry| &entry.amfs) {
            Some(TargetAmfs::Set { region, set }) => {
                let Some(plmn) = tai.map(|tai| tai.plmn_id) else { return };
                let name = format!("{}-{}-{region:02x}-{set:03x}", plmn.mcc(), plmn.mnc());
                authorized.target_amf_set = Some(name.into());
            }
            Some(TargetAmfs::Instances(instances)) => authorized.candidate_amf_list.clone_from(instances),
            None => {}
        }
    }

    /// Slices that the UE may request here: the subscribed ones that the network has.
    fn configured(&self, subscription: &[SubscribedSnssai]) -> Vec<ConfiguredSnssai> {
        let subscribed = subscription.iter().map(|slice| slice.subscribed_snssai);
        subscribed.filter(|slice| self.exists(slice)).map(ConfiguredSnssai::new).collect()
    }

    /// The NRF for the slice of a session, and the slice instance, if there are several (TS 29.531 5.2.2.2.3).
    fn for_pdu_session(
        &self,
        info: &SliceInfoForPduSession,
        tai: Option<Tai>,
    ) -> Result<AuthorizedNetworkSliceInfo, Box<Problem>> {
        if !self.is_offered(&info.s_nssai, tai) {
            return Err(Box::new(Problem::new(Cause::SnssaiNotSupported)));
        }
        let instance = self.instances_of(info.s_nssai, tai).next();
        let nsi_information = Some(self.nsi_information(instance));
        Ok(AuthorizedNetworkSliceInfo { nsi_information, ..Default::default() })
    }

    /// `nrfId` is the API for discovery of the slice's NFs: Nnrf_NFDiscovery (TS 29.531 6.1.6.2.8).
    fn nsi_information(&self, instance: Option<&Arc<str>>) -> NsiInformation {
        let nrf = Uri::new(&self.config.nrf, "/nnrf-disc/v1");
        NsiInformation { nsi_id: instance.cloned(), ..NsiInformation::new(nrf) }
    }

    /// The instances of a slice in a tracking area, by NSI ID.
    fn instances_of(&self, slice: Snssai, tai: Option<Tai>) -> impl Iterator<Item = &Arc<str>> {
        let serves = move |instance: &&SliceInstance| {
            instance.slices.contains(&slice)
                && (instance.tais.is_empty() || tai.is_none_or(|tai| instance.tais.contains(&tai)))
        };
        self.config.instances.iter().filter(serves).map(|instance| &instance.id)
    }

    fn exists(&self, slice: &Snssai) -> bool {
        self.config.slices.iter().any(|(known, _)| known == slice)
    }

    fn is_offered(&self, slice: &Snssai, tai: Option<Tai>) -> bool {
        let offered = |(known, tais): &(Snssai, Vec<Tai>)| {
            known == slice && (tais.is_empty() || tai.is_none_or(|tai| tais.contains(&tai)))
        };
        self.config.slices.iter().any(offered)
    }
}

impl NetworkFunction for Nssf {
    fn handle(&mut self, _now: Instant, input: Input, out: &mut Outbox) {
        if let Input::Request { reply, request } = input {
            reply.complete(self.select(request), out);
        }
    }

    fn replies_owed(&self) -> Option<usize> {
        Some(0)
    }
}
