//! Nnrf_NFDiscovery (TS 29.510 5.3.2.2).

use super::Nrf;
use super::authorization::{Claimed, Requester};
use crate::kit::Caller;
use pith_sbi::nnrf_nfdiscovery::{SearchNfInstances, SearchResult};
use pith_sbi::nnrf_nfmanagement::{NfProfile, NfService, NfStatus, SupiRange, TacRange, TaiRange, UriScheme};
use pith_sbi::{Cause, NfType, Problem, Reply, Response, ServiceName};
use pith_types::{Dnn, Snssai, Tai};
use std::sync::Arc;

impl Nrf {
    /// The instances that match the query and that the requester may discover. If instances match
    /// but none allows the requester, the answer is 403 (TS 29.510 5.3.2.2.2, TS 33.518 4.2.2.2.1).
    pub(super) fn search(&self, query: &SearchNfInstances, from: Caller) -> Reply {
        let limit = limit_of(query.limit)?;
        let claimed = Claimed {
            instance: query.requester_nf_instance_id,
            plmns: query.requester_plmn_list.as_deref().unwrap_or_default(),
            slices: query.requester_snssais.as_deref(),
            fqdn: query.requester_nf_instance_fqdn.as_deref(),
        };
        let requester = self.requester(&query.requester_nf_type, claimed, from).ok_or_else(|| {
            Box::new(
                Problem::of_status(403)
                    .detail("requester-plmn-list names a network that is not the requester's"),
            )
        })?;
        let profiles = self.instances.values().map(|instance| &instance.profile);
        let names = query.dnn.as_ref().map(|dnn| self.names_of(dnn));
        let has_name = |profile: &&NfProfile| {
            names.as_ref().is_none_or(|names| names.iter().any(|name| serves_dnn(profile, name)))
        };
        let mut serving = profiles.filter(|profile| serves(profile, query)).filter(has_name).peekable();
        let exist = serving.peek().is_some();
        let scheme = self.config.scheme_of(&query.requester_nf_type);
        let shown = |profile: &NfProfile| {
            allowed_part(profile, query, &requester).map(|part| with_scheme(part, &scheme))
        };
        let found: Vec<_> = serving.filter_map(shown).take(limit).collect();
        if exist && found.is_empty() {
            let problem = Problem::of_status(403).detail("none of the matching NFs allows the requester");
            return Err(Box::new(problem));
        }
        let mut result = SearchResult::new(found);
        result.validity_period = u32::try_from(self.config.validity.as_secs()).ok();
        Ok(Response::SearchResult(Box::new(result)))
    }
}

impl Nrf {
    /// A DNN, and its network identifier if its operator identifier is that of this network: profiles have the identifier (TS 23.003 9A).
    fn names_of(&self, dnn: &Dnn) -> Vec<Dnn> {
        let identifier = self.config.plmns.iter().find_map(|network| dnn.network_identifier_in(*network));
        std::iter::once(dnn.clone()).chain(identifier).collect()
    }
}

/// The most items of an answer: query parameter `limit`, 1 at least (TS 29.510 6.1.3.2.3.1, 6.2.3.2.3.1).
pub(super) fn limit_of(limit: Option<u32>) -> Result<usize, Box<Problem>> {
    match limit {
        None => Ok(usize::MAX),
        Some(0) => {
            let problem =
                Problem::new(Cause::OptionalQueryParamIncorrect).param("query limit", "less than 1");
            Err(Box::new(problem))
        }
        Some(limit) => Ok(limit as usize),
    }
}

/// The profile without the services that the requester may not use; `None` if none of the requested
/// services is left.
fn allowed_part(
    profile: &NfProfile,
    query: &SearchNfInstances,
    requester: &Requester<'_>,
) -> Option<NfProfile> {
    let wanted = |name: &ServiceName| query.service_names.as_ref().is_none_or(|names| names.contains(name));
    let has_services = profile.services().next().is_some();
    let any = profile
        .services()
        .any(|service| wanted(&service.service_name) && requester.may_use(profile, service));
    if (has_services && !any) || !requester.may_discover(profile) {
        return None;
    }
    let mut part = profile.clone();
    part.nf_services.retain(|service| requester.may_use(profile, service));
    part.nf_service_list.retain(|_, service| requester.may_use(profile, service));
    Some(part.for_discovery())
}

/// The profile for an NF that uses this scheme. An NF may offer a service in cleartext, too: a consumer without TLS gets only
/// that address of the service, and any other consumer does not get it. Not every consumer compares schemes.
pub(super) fn with_scheme(mut profile: NfProfile, scheme: &UriScheme) -> NfProfile {
    let offered: Vec<_> = profile.services().filter(|service| service.scheme == *scheme).collect();
    let offered: Vec<_> = offered.into_iter().map(|service| service.service_name.clone()).collect();
    let is_usable =
        |service: &NfService| service.scheme == *scheme || !offered.contains(&service.service_name);
    profile.nf_services.retain(is_usable);
    profile.nf_service_list.retain(|_, service| is_usable(service));
    profile
}

/// Whether an instance matches the query (TS 29.510 6.2.3.2.3.1), but for `dnn` ([`serves_dnn`]).
fn serves(profile: &NfProfile, query: &SearchNfInstances) -> bool {
    let offers = |name: &ServiceName| profile.services().any(|service| service.service_name == *name);
    profile.nf_status == NfStatus::Registered
        && profile.nf_type == query.target_nf_type
        && query.target_nf_instance_id.is_none_or(|id| id == profile.nf_instance_id)
        && query.service_names.as_ref().is_none_or(|names| names.iter().any(offers))
        && query.snssais.as_ref().is_none_or(|slices| slices.iter().any(|slice| serves_slice(profile, slice)))
        && query.nsi_list.as_ref().is_none_or(|wanted| serves_slice_instance(profile, wanted))
        && query.target_nf_set_id.as_ref().is_none_or(|set| profile.nf_set_id_list.contains(set))
        && query.tai.as_ref().is_none_or(|tai| serves_tai(profile, tai))
        && serves_subscriber(profile, query)
        && is_amf_of(profile, query)
}

/// `amf-region-id`, `amf-set-id` and `guami`, which only AMFs have.
fn is_amf_of(profile: &NfProfile, query: &SearchNfInstances) -> bool {
    if profile.nf_type != NfType::Amf {
        return true;
    }
    let (region, set) = (&query.amf_region_id, &query.amf_set_id);
    let Some(info) = &profile.amf_info else {
        return region.is_none() && set.is_none() && query.guami.is_none();
    };
    region.as_ref().is_none_or(|region| region.eq_ignore_ascii_case(&info.amf_region_id.to_string()))
        && set.as_ref().is_none_or(|set| set.eq_ignore_ascii_case(&info.amf_set_id))
        && query.guami.is_none_or(|guami| info.guami_list.contains(&guami))
}

/// `tai`: an AMF or SMF without a list of tracking areas serves all (TS 29.510 6.1.6.2.11, 6.1.6.2.12).
fn serves_tai(profile: &NfProfile, tai: &Tai) -> bool {
    let (list, ranges) = match (&profile.amf_info, &profile.smf_info) {
        (Some(info), _) => (&info.tai_list, &info.tai_range_list),
        (None, Some(info)) => (&info.tai_list, &info.tai_range_list),
        (None, None) => return true,
    };
    (list.is_empty() && ranges.is_empty())
        || list.contains(tai)
        || ranges.iter().any(|range| is_in_range(range, tai))
}

/// A range given by a pattern is not evaluated and counts as a match.
fn is_in_range(range: &TaiRange, tai: &Tai) -> bool {
    let code = tai.tac.to_string();
    let is_in = |codes: &TacRange| match (&codes.start, &codes.end) {
        (Some(start), Some(end)) => {
            let number = |text: &str| u32::from_str_radix(text, 16).ok();
            let (start, end, code) = (number(start), number(end), number(&code));
            start.is_some() && end.is_some() && start <= code && code <= end
        }
        _ => codes.pattern.is_some(),
    };
    range.plmn_id == tai.plmn_id && range.tac_range_list.iter().any(is_in)
}

/// `supi` and `routing-indicator`: an NF without ranges serves all.
fn serves_subscriber(profile: &NfProfile, query: &SearchNfInstances) -> bool {
    let (udm, ausf) = (profile.udm_info.as_ref(), profile.ausf_info.as_ref());
    let ranges: &[SupiRange] = match profile.nf_type {
        NfType::Udm => udm.map_or(&[], |info| &info.supi_ranges),
        NfType::Ausf => ausf.map_or(&[], |info| &info.supi_ranges),
        NfType::Udr => profile.udr_info.as_ref().map_or(&[], |info| &info.supi_ranges),
        NfType::Pcf => profile.pcf_info.as_ref().map_or(&[], |info| &info.supi_ranges),
        _ => &[],
    };
    let indicators = match profile.nf_type {
        NfType::Udm => udm.map_or(&[][..], |info| &info.routing_indicators),
        NfType::Ausf => ausf.map_or(&[][..], |info| &info.routing_indicators),
        _ => &[],
    };
    let supi = query.supi.as_ref();
    supi.is_none_or(|supi| ranges.is_empty() || ranges.iter().any(|range| range.contains(supi)))
        && query.routing_indicator.as_ref().is_none_or(|ri| indicators.is_empty() || indicators.contains(ri))
}

/// An instance without a list of slice instances serves any (TS 29.510 6.1.6.2.2 `nsiList`).
fn serves_slice_instance(profile: &NfProfile, wanted: &[Arc<str>]) -> bool {
    profile.nsi_list.is_empty() || wanted.iter().any(|instance| profile.nsi_list.contains(instance))
}

/// An instance without a list of slices serves all (TS 29.510 6.1.6.2.2 `sNssais`).
fn serves_slice(profile: &NfProfile, slice: &Snssai) -> bool {
    profile.s_nssais.is_empty() || profile.s_nssais.iter().any(|known| known.contains(*slice))
}

/// An SMF without a list of data networks serves all.
fn serves_dnn(profile: &NfProfile, dnn: &Dnn) -> bool {
    let Some(info) = &profile.smf_info else { return true };
    let lists = info.s_nssai_smf_info_list.iter().map(|item| &item.dnn_smf_info_list);
    let mut names = lists.flatten().map(|item| &item.dnn);
    names.any(|name| name.eq_ignore_ascii_case(dnn.as_str()) || &**name == "*")
}
