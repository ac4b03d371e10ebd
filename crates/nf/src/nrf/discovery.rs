//! Nnrf_NFDiscovery (TS 29.510 5.3.2.2): who offers what is asked for.

use super::Nrf;
use pith_sbi::nnrf_nfdiscovery::{SearchNfInstances, SearchResult};
use pith_sbi::nnrf_nfmanagement::{NfProfile, NfStatus};
use pith_sbi::{Response, ServiceName};
use pith_types::{Dnn, Snssai};

impl Nrf {
    pub(super) fn search(&self, query: &SearchNfInstances) -> Response {
        let profiles = self.instances.values().map(|instance| &instance.profile);
        let limit = query.limit.map_or(usize::MAX, |limit| limit as usize);
        let found = profiles.filter(|profile| serves(profile, query)).take(limit);
        let mut result = SearchResult::new(found.cloned().map(NfProfile::for_discovery).collect::<Vec<_>>());
        result.validity_period = u32::try_from(self.config.validity.as_secs()).ok();
        Response::SearchResult(Box::new(result))
    }
}

/// Whether an instance is what the query asks for (TS 29.510 6.2.3.2.3.1).
fn serves(profile: &NfProfile, query: &SearchNfInstances) -> bool {
    let offers = |name: &ServiceName| profile.services().any(|service| service.service_name == *name);
    let allowed =
        profile.allowed_nf_types.is_empty() || profile.allowed_nf_types.contains(&query.requester_nf_type);
    profile.nf_status == NfStatus::Registered
        && profile.nf_type == query.target_nf_type
        && allowed
        && query.target_nf_instance_id.is_none_or(|id| id == profile.nf_instance_id)
        && query.service_names.as_ref().is_none_or(|names| names.iter().any(offers))
        && query.snssais.as_ref().is_none_or(|slices| slices.iter().any(|slice| serves_slice(profile, slice)))
        && query.dnn.as_ref().is_none_or(|dnn| serves_dnn(profile, dnn))
        && query
            .guami
            .is_none_or(|guami| profile.amf_info.as_ref().is_none_or(|info| info.guami_list.contains(&guami)))
}

/// An instance without list of slices serves all (TS 29.510 6.1.6.2.2 `sNssais`).
fn serves_slice(profile: &NfProfile, slice: &Snssai) -> bool {
    profile.s_nssais.is_empty() || profile.s_nssais.iter().any(|known| known.snssai == *slice)
}

/// An SMF without list of data networks serves all.
fn serves_dnn(profile: &NfProfile, dnn: &Dnn) -> bool {
    let Some(info) = &profile.smf_info else { return true };
    let lists = info.s_nssai_smf_info_list.iter().map(|item| &item.dnn_smf_info_list);
    let mut names = lists.flatten().map(|item| &item.dnn);
    names.any(|name| name.eq_ignore_ascii_case(dnn.as_str()) || &**name == "*")
}
