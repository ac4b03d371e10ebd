//! Authorization of discovery and use of an NF: `allowedNfTypes`, `allowedPlmns`, `allowedNssais`,
//! `allowedNfDomains` of profiles and services (TS 29.510 6.1.6.2.2, 6.1.6.2.3), and
//! `allowedOperationsPerNfType`.

use super::Nrf;
use crate::kit::{Caller, Owner};
use pith_sbi::common::ExtSnssai;
use pith_sbi::nnrf_nfmanagement::{NfProfile, NfService};
use pith_sbi::{NfInstanceId, NfType};
use pith_types::{Plmn, Snssai};
use std::sync::Arc;

/// The properties that a requester claims to have.
#[derive(Debug)]
pub(super) struct Claimed<'a> {
    pub instance: Option<NfInstanceId>,
    /// Its networks; if empty, those that it registered.
    pub plmns: &'a [Plmn],
    /// Its slices; `None` for those that it registered.
    pub slices: Option<&'a [Snssai]>,
    pub fqdn: Option<&'a str>,
}

/// The requesting NF, as far as it is proven.
#[derive(Debug)]
pub(super) struct Requester<'a> {
    pub nf_type: &'a NfType,
    /// Its networks; if empty, the NRF's.
    pub plmns: Vec<Plmn>,
    pub slices: Vec<Snssai>,
    pub fqdn: Option<&'a str>,
}

impl Nrf {
    /// The requester, if what it says of itself agrees with its profile (TS 33.501 13.4.1.1.2). Slices and a name that its
    /// profile does not have are ignored; for NFs of another network this NRF does not act, so that such a request is
    /// refused (`None`). NFs of this process need no proof.
    pub(super) fn requester<'a>(
        &self,
        nf_type: &'a NfType,
        claimed: Claimed<'a>,
        from: Caller,
    ) -> Option<Requester<'a>> {
        let client = match from {
            Caller::Remote { client, .. } => client.map(|client| client.instance),
            Caller::Local { .. } | Caller::Shard { .. } => None,
        };
        let known = claimed.instance.or(client).and_then(|id| self.instances.get(&id));
        let profile = known.filter(|known| known.check_owner(from).is_ok()).map(|known| &known.profile);
        let registered =
            |slice: &Snssai| profile.is_some_and(|p| p.s_nssais.iter().any(|own| own.snssai == *slice));
        let is_trusted = matches!(Owner::of(from), Owner::Process | Owner::SameUser);
        let serves_all = profile.is_some_and(|profile| profile.s_nssais.is_empty());
        let slices = match claimed.slices {
            None => profile.into_iter().flat_map(|p| p.s_nssais.iter().map(|s| s.snssai)).collect(),
            Some(claimed) if serves_all || (is_trusted && profile.is_none()) => claimed.to_vec(),
            Some(claimed) => claimed.iter().copied().filter(registered).collect(),
        };
        let own_plmns = match profile.map(|profile| &profile.plmn_list) {
            Some(list) if !list.is_empty() => list,
            _ => &self.config.plmns,
        };
        if !is_trusted && claimed.plmns.iter().any(|plmn| !own_plmns.contains(plmn)) {
            return None;
        }
        let plmns = if claimed.plmns.is_empty() { own_plmns.clone() } else { claimed.plmns.to_vec() };
        let is_own_name = |name: &&str| {
            is_trusted
                || profile.is_some_and(|profile| {
                    let mut names =
                        profile.fqdn.iter().chain(profile.services().filter_map(|s| s.fqdn.as_ref()));
                    names.any(|own| own.eq_ignore_ascii_case(name))
                })
        };
        Some(Requester { nf_type, plmns, slices, fqdn: claimed.fqdn.filter(is_own_name) })
    }
}

/// A client that reads profiles or receives them in notifications: each NF that it has registered is a requester.
#[derive(Debug)]
pub(super) enum Reader<'a> {
    /// An NF of this process, or a process of the same user.
    Trusted,
    /// The NFs of another process, one of each type. One that has registered none reads profiles that are open to all.
    Requesters(Vec<Requester<'a>>),
}

impl Nrf {
    /// The client as reader of profiles.
    pub(super) fn reader(&self, from: Caller) -> Reader<'_> {
        let owner = Owner::of(from);
        let Owner::Client(client) = owner else { return Reader::Trusted };
        let mut requesters: Vec<Requester<'_>> = Vec::new();
        for known in self.instances.values() {
            let is_its = known.owner.is_same_process(owner)
                || (known.profile.nf_instance_id == client.instance && known.check_owner(from).is_ok());
            let nf_type = &known.profile.nf_type;
            if is_its && requesters.iter().all(|requester| requester.nf_type != nf_type) {
                let claimed = Claimed {
                    instance: Some(known.profile.nf_instance_id),
                    plmns: &[],
                    slices: None,
                    fqdn: known.profile.fqdn.as_deref(),
                };
                requesters.extend(self.requester(nf_type, claimed, from));
            }
        }
        Reader::Requesters(requesters)
    }
}

impl Reader<'_> {
    /// Whether the client may have the profile: it allows one of the client's NFs, or is of the type of one.
    pub fn may_read(&self, profile: &NfProfile) -> bool {
        match self {
            Self::Trusted => true,
            Self::Requesters(requesters) => {
                is_open(profile)
                    || requesters.iter().any(|requester| {
                        *requester.nf_type == profile.nf_type || requester.may_discover(profile)
                    })
            }
        }
    }
}

/// Whether some service of the profile, or a profile without services, is open to all.
fn is_open(profile: &NfProfile) -> bool {
    let nobody = Requester {
        nf_type: &NfType::Other(Arc::default()),
        plmns: Vec::new(),
        slices: Vec::new(),
        fqdn: None,
    };
    nobody.may_discover(profile)
}

/// The allowed requesters; an empty list allows all.
struct Allowed<'a> {
    types: &'a [NfType],
    plmns: &'a [Plmn],
    slices: &'a [ExtSnssai],
    domains: &'a [Arc<str>],
}

impl Requester<'_> {
    /// Whether the requester may discover the instance.
    pub fn may_discover(&self, profile: &NfProfile) -> bool {
        let services = profile.services().next().is_some();
        let any = || profile.services().any(|service| self.may_use(profile, service));
        if services { any() } else { self.is_in(&of_profile(profile), profile) }
    }

    /// Whether the requester may use the service. The lists of the service apply; if the service
    /// has none, those of the profile.
    pub fn may_use(&self, profile: &NfProfile, service: &NfService) -> bool {
        let whole = of_profile(profile);
        let allowed = Allowed {
            types: or(&service.allowed_nf_types, whole.types),
            plmns: or(&service.allowed_plmns, whole.plmns),
            slices: or(&service.allowed_nssais, whole.slices),
            domains: or(&service.allowed_nf_domains, whole.domains),
        };
        self.is_in(&allowed, profile)
    }

    fn is_in(&self, allowed: &Allowed<'_>, profile: &NfProfile) -> bool {
        let is_type = allowed.types.is_empty() || allowed.types.contains(self.nf_type);
        // The producer's own networks need not be listed.
        let known = |plmn: &Plmn| allowed.plmns.contains(plmn) || profile.plmn_list.contains(plmn);
        let is_plmn = allowed.plmns.is_empty() || self.plmns.is_empty() || self.plmns.iter().any(known);
        let named = |slice: &Snssai| allowed.slices.iter().any(|allowed| allowed.contains(*slice));
        let is_slice = allowed.slices.is_empty() || self.slices.iter().any(named);
        let in_domain = |fqdn: &str| allowed.domains.iter().any(|pattern| is_domain(pattern, fqdn));
        let is_domain = allowed.domains.is_empty() || self.fqdn.is_some_and(in_domain);
        is_type && is_plmn && is_slice && is_domain
    }
}

fn of_profile(profile: &NfProfile) -> Allowed<'_> {
    Allowed {
        types: &profile.allowed_nf_types,
        plmns: &profile.allowed_plmns,
        slices: &profile.allowed_nssais,
        domains: &profile.allowed_nf_domains,
    }
}

fn or<'a, T>(own: &'a [T], others: &'a [T]) -> &'a [T] {
    if own.is_empty() { others } else { own }
}

/// Whether a name matches a domain, which is a regular expression (ECMA-262). Only escaped dots,
/// `^`, `$` and a leading `.*` or `.+` are supported; any other pattern matches nothing.
fn is_domain(pattern: &str, fqdn: &str) -> bool {
    let pattern = pattern.strip_prefix('^').unwrap_or(pattern);
    let pattern = pattern.strip_suffix('$').unwrap_or(pattern);
    let (is_suffix, rest) = match pattern.strip_prefix(".*").or_else(|| pattern.strip_prefix(".+")) {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let name = rest.replace("\\.", ".").to_ascii_lowercase();
    let is_name = !name.is_empty()
        && name.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'-'));
    let fqdn = fqdn.to_ascii_lowercase();
    is_name && if is_suffix { fqdn.ends_with(&name) } else { fqdn == name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_names_or_suffixes() {
        for (pattern, fqdn, is_in) in [
            ("^amf1\\.5gc\\.example$", "AMF1.5gc.example", true),
            (".*\\.5gc\\.example", "amf1.5gc.example", true),
            (".*\\.5gc\\.example", "amf1.5gc.example.org", false),
            ("amf1.5gc.example", "amf2.5gc.example", false),
            ("(a|b)+", "a", false),
            (".*", "a", false),
        ] {
            assert_eq!(is_domain(pattern, fqdn), is_in, "{pattern} {fqdn}");
        }
    }
}
