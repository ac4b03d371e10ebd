//! Authorization of discovery and use of an NF: `allowedNfTypes`, `allowedPlmns`, `allowedNssais`,
//! `allowedNfDomains` of profiles and services (TS 29.510 6.1.6.2.2, 6.1.6.2.3), and
//! `allowedOperationsPerNfType`.

use pith_sbi::NfType;
use pith_sbi::common::ExtSnssai;
use pith_sbi::nnrf_nfmanagement::{NfProfile, NfService};
use pith_types::{Plmn, Snssai};
use std::sync::Arc;

/// The requesting NF, as far as it is known.
#[derive(Debug)]
pub(super) struct Requester<'a> {
    pub nf_type: &'a NfType,
    /// Its networks; if empty, the NRF's.
    pub plmns: &'a [Plmn],
    pub slices: Vec<Snssai>,
    pub fqdn: Option<&'a str>,
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
        let is_plmn = allowed.plmns.is_empty() || self.plmns.iter().all(known);
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
