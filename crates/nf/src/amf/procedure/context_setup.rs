//! Initial context setup (TS 38.413 8.3.1): the gNB's answers.

use super::{pdu_session_resources, ue_context_release, voice_match};
use crate::amf::connection::RanContext;
use crate::amf::context::{Env, UeContext};
use crate::amf::{delivery, n2, refusal};
use crate::kit::{Level, Timer};
use pith_ngap::{Cause, CauseNas, InitialContextSetupFailure, InitialContextSetupResponse};

/// INITIAL CONTEXT SETUP RESPONSE: the gNB has a UE context; sends the queued PDUs.
pub(crate) fn response(ue: &mut UeContext, env: &mut Env<'_>, message: InitialContextSetupResponse) {
    answered(ue, env);
    n2::open_context(ue, env);
    delivery::guard_requests(ue, env);
    pdu_session_resources::set_up(ue, env, message.setup, message.failed);
    voice_match::begin(ue, env);
}

/// INITIAL CONTEXT SETUP FAILURE: the gNB has no UE context. The NAS message in the request may not
/// have reached the UE, so the connection is released and the UE connects again (TS 38.413 8.3.1.3;
/// TS 24.501 5.5.1.2.8 a, 5.6.1.8 a).
pub(crate) fn failure(ue: &mut UeContext, env: &mut Env<'_>, message: InitialContextSetupFailure) {
    answered(ue, env);
    env.out.log(Level::Warn, || {
        format!("{}: initial context setup failed: {}", ue.name(), refusal::text_of(message.cause))
    });
    if let Some(connection) = ue.ng(env) {
        connection.context = RanContext::Absent;
        connection.queued.clear();
    }
    pdu_session_resources::set_up(ue, env, None, message.failed);
    ue_context_release::on_connection_lost(ue, env);
    n2::release(ue, env, message.cause.unwrap_or(Cause::Nas(CauseNas::unspecified)));
}

fn answered(ue: &UeContext, env: &mut Env<'_>) {
    if let Some(key) = ue.connection {
        env.out.stop(key.to_u64(), Timer::NgapGuard);
    }
}
