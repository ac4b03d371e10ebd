//! The policy association (TS 23.502 4.3.2.2.1 steps 7b, 8; TS 29.512 4.2.2): the SMF sends the UE's address to the
//! PCF and receives the policy decision.

use super::{AwaitingN4Establishment, UeRequest, fail, too_slow};
use crate::kit::UpfHandle;
use crate::kit::document::pack_struct;
use crate::smf::config::Network;
use crate::smf::consumer;
use crate::smf::context::{Access, CallId, Qos, SmContext};
use crate::smf::env::Env;
use crate::smf::error::EstablishmentError;
use crate::smf::procedure::State;
use crate::smf::procedure::release::Held;
use crate::smf::selection::Path;
use pith_sbi::npcf_smpolicycontrol::SmPolicyDecision;
use pith_sbi::{Operation, Reply, Response};

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
        let pool = planned.as_ref().and_then(|path| pool(session, env, path.anchor));
        session.address = pool.and_then(|pool| env.pools.allocate_for(pool, session.id.block));
        let call = consumer::create_policy(session, env, access);
        State::AwaitingPolicyDecision(Self { request, planned, call })
    }

    /// Handles the PCF's decision; the SMF then sends requests to the UPFs (steps 8 to 10).
    pub(in crate::smf) fn on_reply(self, session: &mut SmContext, env: &mut Env<'_>, reply: Reply) -> State {
        let error = match reply {
            Ok(Response::SmPolicyDecisionCreated(created)) => {
                session.policy = Some(created.location);
                authorise(&mut session.qos, &created.body);
                match AwaitingN4Establishment::begin(session, env, self.request, self.planned) {
                    Ok(next) => return next,
                    Err(error) => error,
                }
            }
            Ok(_) => EstablishmentError::Network("the PCF's response has no decision".into()),
            Err(problem) => EstablishmentError::of_problem(Operation::CreateSmPolicy, &problem),
        };
        fail(session, env, self.request, Held::default(), &error)
    }

    /// The PCF did not answer in time.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        fail(session, env, self.request, Held::default(), &too_slow())
    }
}

/// The pool of a session's address: the anchor's own pool if it has one, else the data network's.
pub(super) fn pool(session: &SmContext, env: &Env<'_>, anchor: UpfHandle) -> Option<Network> {
    let of_network = || env.network(session).map(|network| network.pool);
    env.upfs.pool(anchor, &session.dnn).or_else(of_network)
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
