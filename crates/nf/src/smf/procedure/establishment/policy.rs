//! The policy association (TS 23.502 4.3.2.2.1 steps 7b, 8; TS 29.512 4.2.2): the PCF gets the address, and decides.

use super::{AwaitingN4Establishment, UeRequest, fail, too_slow};
use crate::kit::UpfHandle;
use crate::smf::config::Network;
use crate::smf::consumer;
use crate::smf::context::{Access, CallId, Qos, SmContext};
use crate::smf::env::Env;
use crate::smf::error::EstablishmentError;
use crate::smf::procedure::State;
use crate::smf::procedure::release::Remains;
use crate::smf::selection::Path;
use pith_sbi::npcf_smpolicycontrol::SmPolicyDecision;
use pith_sbi::{Operation, Reply, Response};

/// The PCF was asked for its decision.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingPolicyDecision {
    request: UeRequest,
    /// The UPFs chosen so far, for the sake of the address.
    planned: Option<Path>,
    /// The call.
    pub call: CallId,
}

impl AwaitingPolicyDecision {
    /// Chooses UPFs and the address that belongs to them, for the request to the PCF (step 8). Where there is
    /// none, the choice after the decision says why.
    pub(super) fn begin(
        session: &mut SmContext,
        env: &mut Env<'_>,
        request: UeRequest,
        access: Access,
    ) -> State {
        let planned = env.upfs.choose(session, &[]);
        let pool = planned.as_ref().and_then(|path| pool(session, env, path.anchor));
        session.address = pool.and_then(|pool| env.pools.take(pool));
        let call = consumer::create_policy(session, env, access);
        State::AwaitingPolicyDecision(Self { request, planned, call })
    }

    /// The PCF decided: the UPFs are asked (steps 8 to 10).
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
            Ok(_) => EstablishmentError::Network("the PCF gave no decision".into()),
            Err(problem) => EstablishmentError::of_problem(Operation::CreateSmPolicy, &problem),
        };
        fail(session, env, self.request, Remains::default(), &error)
    }

    /// The PCF took too long.
    pub(in crate::smf) fn on_guard(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        fail(session, env, self.request, Remains::default(), &too_slow())
    }
}

/// The pool of a session's address: that of the anchor, if it has one of its own.
pub(super) fn pool(session: &SmContext, env: &Env<'_>, anchor: UpfHandle) -> Option<Network> {
    let of_network = || env.network(session).map(|network| network.pool);
    env.upfs.pool(anchor, &session.dnn).or_else(of_network)
}

/// What the session rule authorises in place of what is subscribed (TS 29.512 4.2.6.3).
pub(in crate::smf) fn authorise(qos: &mut Qos, decision: &SmPolicyDecision) {
    for rule in decision.sess_rules.values().flatten() {
        qos.ambr = rule.auth_sess_ambr.unwrap_or(qos.ambr);
        if let Some(default) = &rule.auth_def_qos {
            qos.five_qi = default.five_qi.unwrap_or(qos.five_qi);
            qos.arp_priority = default.arp.as_ref().map_or(qos.arp_priority, |arp| arp.priority_level);
        }
    }
}
