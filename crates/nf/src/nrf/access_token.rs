//! Nnrf_AccessToken_Get (TS 29.510 5.4.2, TS 33.501 13.4.1.1.2).
//!
//! ```text
//!  1  NF ─> NRF   AccessTokenRequest: requester, services, NF type or instance of the producer
//!  2        NRF   verifies the requester (certificate, profile), and that producers allow it
//!  3  NF <─ NRF   AccessTokenRsp: claims, signed by the shell
//! ```

use super::authorization::{Claimed, Requester};
use super::{Nrf, is_named};
use crate::kit::{Caller, Duration, Instant, Owner};
use pith_sbi::nnrf_accesstoken::{AccessTokenErrorCode, AccessTokenReq, AccessTokenRsp, refused};
use pith_sbi::nnrf_nfmanagement::NfProfile;
use pith_sbi::token::{AccessTokenClaims, Audience};
use pith_sbi::{NfInstanceId, NfType, Problem, Reply, Response, ServiceName};
use pith_types::Plmn;
use std::fmt;
use std::sync::Arc;

/// Maximum number of scopes in a request.
const SCOPES: usize = 32;

/// Signs tokens: the shell has the key.
pub trait TokenSigner: Send + Sync {
    /// A token with those claims, signed at `now`, in seconds since 1970; `None` if it can't be signed.
    fn sign(&self, now: u64, claims: &AccessTokenClaims) -> Option<String>;
}

/// Parameters with which an NRF issues tokens.
#[derive(Clone)]
pub struct TokenIssuer {
    /// Signs the tokens.
    pub signer: Arc<dyn TokenSigner>,
    /// The NRF's instance id (`iss`).
    pub instance: NfInstanceId,
    /// The network of the NRF.
    pub plmn: Plmn,
    /// How long a token is valid.
    pub lifetime: Duration,
}

impl fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tokens of {} for {:?}", self.instance, self.lifetime)
    }
}

type Refused<T> = Result<T, Box<Problem>>;

impl Nrf {
    /// Issues a token, or refuses it (TS 29.510 5.4.2.2.1).
    pub(super) fn access_token(&self, now: Instant, request: &AccessTokenReq, from: Caller) -> Reply {
        let issuer = self.tokens.as_ref().ok_or_else(|| refused(AccessTokenErrorCode::UnauthorizedClient))?;
        let nf_type = self.requester_type(request, from)?;
        let claimed = Claimed {
            instance: Some(request.nf_instance_id),
            plmns: request.requester_plmn.as_slice(),
            slices: request.requester_snssais.as_deref(),
            fqdn: request.requester_fqdn.as_deref(),
        };
        let requester = self.requester(nf_type, claimed, from);
        let requester = requester.ok_or_else(|| refused(AccessTokenErrorCode::InvalidClient))?;
        if request.target_plmn.is_some_and(|plmn| plmn != issuer.plmn) {
            // For producers of another network that network's NRF issues tokens (TS 33.501
            // 13.4.1.2); this NRF does not forward requests.
            return Err(refused(AccessTokenErrorCode::InvalidRequest));
        }
        let scope = self.grant(request, &requester)?;
        let mut claims = AccessTokenClaims::new(
            issuer.instance,
            request.nf_instance_id,
            audience(request)?,
            scope.clone(),
            self.wall.unix_s(now) + issuer.lifetime.as_secs(),
        );
        claims.consumer_plmn_id = requester.plmns.first().copied().or(Some(issuer.plmn));
        claims.producer_plmn_id = Some(issuer.plmn);
        claims.producer_snssai_list = request.target_snssais.clone().unwrap_or_default();
        claims.producer_nf_set_id = request.target_nf_set_id.clone();
        let signed = issuer.signer.sign(self.wall.unix_s(now), &claims);
        let token = signed.ok_or_else(|| Problem::system_failure("the access token can't be signed"))?;
        Ok(Response::AccessTokenRsp(Box::new(AccessTokenRsp {
            access_token: token.into(),
            token_type: "Bearer".into(),
            expires_in: u32::try_from(issuer.lifetime.as_secs()).ok(),
            scope: (scope != request.scope).then_some(scope),
        })))
    }

    /// The requester's NF type: that of its profile, else the claimed one if its certificate names the instance.
    fn requester_type<'a>(&'a self, request: &'a AccessTokenReq, from: Caller) -> Refused<&'a NfType> {
        let invalid = || refused(AccessTokenErrorCode::InvalidClient);
        let known = self.instances.get(&request.nf_instance_id);
        match (known, &request.nf_type) {
            (Some(known), claimed) => {
                known.check_owner(from).map_err(|_| invalid())?;
                let nf_type = &known.profile.nf_type;
                let is_same = claimed.as_ref().is_none_or(|claimed| claimed == nf_type);
                is_same.then_some(nf_type).ok_or_else(invalid)
            }
            // Not registered, for example after a restart of the NRF.
            (None, Some(claimed)) if is_named(from) || Owner::of(from) == Owner::Process => Ok(claimed),
            (None, _) => Err(invalid()),
        }
    }

    /// The scope of the token: the requested services that a producer offers and allows, limited to
    /// the operations that the producer allows for this NF type.
    fn grant(&self, request: &AccessTokenReq, requester: &Requester<'_>) -> Refused<Arc<str>> {
        let asked: Vec<&str> = request.scope.split(' ').filter(|scope| !scope.is_empty()).collect();
        if asked.is_empty() || asked.len() > SCOPES {
            return Err(refused(AccessTokenErrorCode::InvalidScope));
        }
        let mut granted: Vec<&str> = Vec::new();
        for scope in &asked {
            let (name, _) = scope.split_once(':').unwrap_or((scope, ""));
            if !asked.contains(&name) {
                return Err(refused(AccessTokenErrorCode::InvalidScope));
            }
        }
        for name in asked.iter().filter(|scope| !scope.contains(':')) {
            let service = ServiceName::from(*name);
            let additional: Vec<&str> = asked.iter().copied().filter(|s| is_additional(s, name)).collect();
            let allowed = self.allowed_operations(request, requester, &service)?;
            granted.push(name);
            match allowed {
                // The producer's list limits the operations; the request may limit them further.
                Some(list) => {
                    let kept: Vec<&str> = list
                        .iter()
                        .map(|s| &**s)
                        .filter(|s| additional.is_empty() || additional.contains(s))
                        .collect();
                    if kept.is_empty() {
                        return Err(refused(AccessTokenErrorCode::InvalidScope));
                    }
                    granted.extend(kept);
                }
                None => granted.extend(additional),
            }
        }
        Ok(granted.join(" ").into())
    }

    /// The operations that a producer allows: all (`None`), or a list. An error if no producer
    /// offers the service to this requester.
    fn allowed_operations(
        &self,
        request: &AccessTokenReq,
        requester: &Requester<'_>,
        service: &ServiceName,
    ) -> Refused<Option<&[Arc<str>]>> {
        let offered =
            self.instances.values().map(|instance| &instance.profile).filter(|p| is_target(p, request));
        let mut services = offered
            .flat_map(|profile| profile.services().map(move |offered| (profile, offered)))
            .filter(|(_, offered)| offered.service_name == *service)
            .peekable();
        if services.peek().is_none() {
            return Err(refused(AccessTokenErrorCode::InvalidScope));
        }
        let (_, allowed) = services
            .find(|(profile, offered)| requester.may_use(profile, offered))
            .ok_or_else(|| refused(AccessTokenErrorCode::UnauthorizedClient))?;
        let lists = &allowed.allowed_operations_per_nf_type;
        Ok(lists.get(requester.nf_type.as_str()).map(Vec::as_slice))
    }
}

fn is_additional(scope: &str, service: &str) -> bool {
    scope.strip_prefix(service).is_some_and(|rest| rest.starts_with(':'))
}

/// Whether a token for this request is valid for this instance.
fn is_target(profile: &NfProfile, request: &AccessTokenReq) -> bool {
    let slices = |wanted: &Vec<pith_types::Snssai>| {
        profile.s_nssais.is_empty()
            || wanted.iter().any(|slice| profile.s_nssais.iter().any(|s| s.contains(*slice)))
    };
    request.target_nf_type.as_ref().is_none_or(|wanted| *wanted == profile.nf_type)
        && request.target_nf_instance_id.is_none_or(|wanted| wanted == profile.nf_instance_id)
        && request.target_snssais.as_ref().is_none_or(slices)
        && request.target_nf_set_id.as_ref().is_none_or(|wanted| profile.nf_set_id_list.contains(wanted))
}

/// The requested instance, else the NF type.
fn audience(request: &AccessTokenReq) -> Refused<Audience> {
    let of_type = request.target_nf_type.clone().map(Audience::from);
    let audience = request.target_nf_instance_id.map(Audience::from).or(of_type);
    audience.ok_or_else(|| refused(AccessTokenErrorCode::InvalidRequest))
}
