//! Emergency sessions (TS 23.501 5.16.4.6; TS 23.502 4.3.2.2.1): the SMF's configuration takes the place of the subscription, and neither
//! the UDM nor a missing policy can refuse the session.
//!
//! ```text
//!  step    state                        from
//!  3       (request.rs)                 AMF: PostSmContexts with INITIAL_EMERGENCY_REQUEST; answered at once (5)
//!  7       AwaitingPolicyDecision       PCF; not for a UE without an authenticated SUPI
//!  10      as of other sessions
//! ```

use super::subscription::answer_created;
use super::{AwaitingPolicyDecision, UeRequest};
use crate::kit::PendingReply;
use crate::smf::config::EmergencyServices;
use crate::smf::context::{Access, IpVersions, Qos, SmContext};
use crate::smf::env::Env;
use crate::smf::procedure::State;
use crate::smf::timers::SessionTimer;

/// Answers the AMF (step 5), and continues with the configured QoS.
pub(super) fn begin(
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    request: UeRequest,
    access: Access,
    services: &EmergencyServices,
) -> State {
    session.start(env, SessionTimer::Guard, env.config.guard);
    let network = env.network(session);
    session.qos = Qos {
        ambr: network.map_or(Qos::UNKNOWN.ambr, |network| network.ambr),
        five_qi: services.five_qi,
        arp_priority: services.arp_priority,
    };
    session.subscribed = session.qos.clone();
    session.ip = selected_ip(session.ip, network.is_some_and(|network| network.pool6.is_some()));
    answer_created(session, env, reply);
    AwaitingPolicyDecision::begin(session, env, request, access)
}

/// The requested IP versions that the data network has; IPv4 if the UE leaves the choice to the network (TS 24.501 6.4.1.3).
const fn selected_ip(requested: IpVersions, has_ipv6: bool) -> IpVersions {
    match requested {
        IpVersions::NONE => IpVersions::V4,
        requested => requested.and(IpVersions { v4: true, v6: has_ipv6 }),
    }
}
