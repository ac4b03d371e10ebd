//! The SMF sends the accept to the UE and the setup request to the gNB (TS 23.502 4.3.2.2.1 steps 11 to 15; TS 24.501 6.4.1.3).

use super::UeRequest;
use crate::kit::Level;
use crate::kit::document::pack_struct;
use crate::smf::context::{CallId, SmContext, UserPlane};
use crate::smf::env::Env;
use crate::smf::procedure::State;
use crate::smf::procedure::release;
use crate::smf::{consumer, n1, n2};
use pith_sbi::Reply;
use pith_sbi::namf_communication::NgapIeType;

/// The SMF has sent the accept to the UE and the setup request to the gNB, and waits for the gNB's tunnel endpoint.
#[derive(Debug)]
pub(in crate::smf) struct AwaitingResourceSetup {
    /// With all UPFs of the session.
    pub user_plane: UserPlane,
    /// The transfer.
    pub call: CallId,
}

pack_struct!(AwaitingResourceSetup { user_plane, call });

impl AwaitingResourceSetup {
    /// Namf_Communication_N1N2MessageTransfer with Accept and N2 SM information (step 11).
    pub(super) fn begin(
        session: &mut SmContext,
        env: &mut Env<'_>,
        request: UeRequest,
        mut user_plane: UserPlane,
    ) -> State {
        user_plane.note_uplink_sent_to_gnb();
        let accept = n1::establishment_accept(session, request, env.network(session));
        let setup = n2::setup_request(session, &user_plane);
        let transfer = consumer::transfer(session, Some(accept), Some((NgapIeType::PduResSetupReq, setup)));
        let transfer = consumer::with_failure_notification(session, env, transfer);
        let call = consumer::call_amf(session, env, transfer);
        State::AwaitingResourceSetup(Self { user_plane, call })
    }

    /// Handles the AMF's answer: it delivers the messages, or refuses (step 12; TS 29.518 5.2.2.3.1).
    pub(in crate::smf) fn on_reply(self, session: &mut SmContext, env: &mut Env<'_>, reply: Reply) -> State {
        let Err(problem) = reply else { return State::AwaitingResourceSetup(self) };
        session.log(env, Level::Warn, || format!("the AMF can't reach the UE: {problem}"));
        release::end_and_notify_amf(self.user_plane.into(), session, env)
    }

    /// The messages did not reach UE or gNB, the gNB refused, or it did not answer in time: the session ends.
    pub(in crate::smf) fn on_failure(self, session: &mut SmContext, env: &mut Env<'_>) -> State {
        release::end_and_notify_amf(self.user_plane.into(), session, env)
    }
}
