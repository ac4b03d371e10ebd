//! The policy association (TS 23.502 4.3.2.2.1 steps 7b, 8; TS 29.512 4.2.2): the SMF sends the UE's address to the
//! PCF and receives the policy decision.

use super::{AwaitingN4Establishment, UeRequest, fail, too_slow};
use crate::kit::document::pack_struct;
use crate::kit::{Level, UpfHandle};
use crate::smf::consumer;
use crate::smf::context::{Access, CallId, Qos, SmContext, UeAddress};
use crate::smf::env::Env;
use crate::smf::error::EstablishmentError;
use crate::smf::flows::Failure;
use crate::smf::pool::{PoolNetwork, contains};
use crate::smf::procedure::release::Held;
use crate::smf::procedure::{State, subscription_change};
use crate::smf::selection::Path;
use crate::smf::timers::SessionTimer;
use pith_sbi::npcf_smpolicycontrol::SmPolicyDecision;
use pith_sbi::{Operation, Reply, Response};
use std::net::IpAddr;

/// A policy association was requested from the PCF.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingPolicyDecision {
    request: UeRequest,
    /// The UPFs selected for the time being: the request to the PCF contains the UE's address, which depends on the anchor.
    planned: Option<Path>,
    /// The call.
    pub call: CallId,
}

pack_struct!(AwaitingPolicyDecision { request, planned, call });

impl AwaitingPolicyDecision {
    /// Selects UPFs and an address, and requests the policy association (steps 7b, 8). If no UPF or address is available, the
    /// selection after the PCF's decision reports the reason.
    pub(super) fn begin(
        session: &mut SmContext,
        env: &mut Env<'_>,
        request: UeRequest,
        access: Access,
    ) -> State {
        let planned = env.upfs.choose(session, &[]);
        if let Some(path) = &planned {
            let _ = take_addresses(session, env, path.anchor);
        }
        let Some(supi) = session.ue.supi().cloned() else {
            return go_on_without_policy(session, env, request, planned);
        };
        let call = consumer::create_policy(session, env, supi, access);
        State::AwaitingPolicyDecision(Self { request, planned, call })
    }

    /// Handles the PCF's decision; the SMF then sends requests to the UPFs (steps 8 to 10).
    pub(in crate::smf) fn on_reply(self, session: &mut SmContext, env: &mut Env<'_>, reply: Reply) -> State {
        let error = match reply {
            Ok(Response::SmPolicyDecisionCreated(created)) => {
                session.policy = Some(created.location);
                authorise(&mut session.qos, &created.body);
                subscription_change::on_policy_created(session, env);
                if session.reflective.is_supported {
                    let timer = created.body.reflective_qos_timer.unwrap_or(env.config.rq_timer);
                    session.reflective.timer = Some(timer);
                }
                let of = (&session.qos, session.reflective);
                let (flows, failures) = session.flows.current.after(&created.body, &[], of);
                session.flows.current = flows;
                let reports = failures.into_iter().map(Failure::into_report).collect();
                consumer::report_rules(session, env, reports);
                match AwaitingN4Establishment::begin(session, env, self.request, self.planned) {
                    Ok(next) => return next,
                    Err(error) => error,
                }
            }
            Ok(_) => EstablishmentError::Network("the PCF's response has no decision".into()),
            Err(problem) => EstablishmentError::of_problem(Operation::CreateSmPolicy, &problem),
        };
        if session.is_emergency && session.policy.is_none() {
            session.log(env, Level::Warn, || format!("an emergency session without policy: {error}"));
            return go_on_without_policy(session, env, self.request, None);
        }
        fail(session, env, self.request, Held::default(), &error)
    }

    /// The PCF did not answer in time.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        if session.is_emergency {
            session.start(env, SessionTimer::Guard, env.config.guard);
            return go_on_without_policy(session, env, self.request, self.planned);
        }
        fail(session, env, self.request, Held::default(), &too_slow())
    }
}

/// An emergency session has the configured QoS if there is no policy (TS 23.501 5.16.4.6).
fn go_on_without_policy(
    session: &mut SmContext,
    env: &mut Env<'_>,
    request: UeRequest,
    planned: Option<Path>,
) -> State {
    match AwaitingN4Establishment::begin(session, env, request, planned) {
        Ok(next) => next,
        Err(error) => fail(session, env, request, Held::default(), &error),
    }
}

/// Allocates the session's addresses from the pools of this anchor, or assigns the subscribed static ones (TS 23.501 5.8.2.2.1). An address
/// that was allocated before is kept if it is of the pool, else released. The error says which address the session lacks.
pub(super) fn take_addresses(
    session: &mut SmContext,
    env: &mut Env<'_>,
    anchor: UpfHandle,
) -> Result<(), EstablishmentError> {
    let [v4, v6] = pools(session, env, anchor);
    let (former, addressing) = (session.address, session.addressing.clone());
    let subscribed = (addressing.v4.map(IpAddr::V4), addressing.v6.map(|(prefix, _)| IpAddr::V6(prefix)));
    let v4 = take_address(session, env, (v4, subscribed.0), former.v4.map(IpAddr::V4));
    let v6 = take_address(session, env, (v6, subscribed.1), former.v6.map(IpAddr::V6));
    let delegation = env.network(session).map_or(0, |network| network.delegation);
    session.address = UeAddress {
        delegation: if v6.is_some() { delegation } else { 0 },
        v4: v4.and_then(|address| if let IpAddr::V4(v4) = address { Some(v4) } else { None }),
        v6: v6.and_then(|address| if let IpAddr::V6(v6) = address { Some(v6) } else { None }),
    };
    let lacking = |has: bool, is_needed: bool, subscribed: Option<IpAddr>| match subscribed {
        _ if has || !is_needed => Ok(()),
        Some(address) => Err(EstablishmentError::StaticAddressInUse(address)),
        None => Err(EstablishmentError::Resources),
    };
    lacking(session.address.v4.is_some(), session.ip.v4, subscribed.0)?;
    lacking(session.address.v6.is_some(), session.ip.v6, subscribed.1)
}

/// The pools of a session's addresses, IPv4 and IPv6: the anchor's own pool if it has one, else the data network's.
fn pools(session: &SmContext, env: &Env<'_>, anchor: UpfHandle) -> [Option<PoolNetwork>; 2] {
    let network = env.network(session);
    let v4 = env.upfs.pool(anchor, &session.dnn).or_else(|| network.map(|network| network.pool));
    let v6 = network.and_then(|network| network.pool6);
    [
        v4.filter(|_| session.ip.v4).map(|(network, prefix)| (network.into(), prefix)),
        v6.filter(|_| session.ip.v6).map(|(network, prefix)| (network.into(), prefix)),
    ]
}

/// The address allocated before, if it is of the pool, else a new one of it; or the static address, unless another session has it.
fn take_address(
    session: &SmContext,
    env: &mut Env<'_>,
    (pool, subscribed): (Option<PoolNetwork>, Option<IpAddr>),
    former: Option<IpAddr>,
) -> Option<IpAddr> {
    let is_kept = |address: &IpAddr| {
        pool.is_some_and(|pool| contains(pool, *address)) && subscribed.is_none_or(|it| it == *address)
    };
    if former.is_some_and(|address| is_kept(&address)) {
        return former;
    }
    let address = match subscribed {
        Some(address) => env.pools.take_static(address).then_some(address),
        None => pool.and_then(|pool| env.pools.allocate_for(pool, session.id.block)),
    };
    if let Some(former) = former {
        env.pools.release(former);
    }
    address
}

/// Replaces the subscribed QoS by what the session rules authorise (TS 29.512 4.2.6.3).
pub(in crate::smf) fn authorise(qos: &mut Qos, decision: &SmPolicyDecision) {
    for rule in decision.sess_rules.values().flatten() {
        qos.ambr = rule.auth_sess_ambr.unwrap_or(qos.ambr);
        if let Some(default) = &rule.auth_def_qos {
            qos.five_qi = default.five_qi.unwrap_or(qos.five_qi);
            qos.arp_priority = default.arp.as_ref().map_or(qos.arp_priority, |arp| arp.priority_level);
        }
    }
}
