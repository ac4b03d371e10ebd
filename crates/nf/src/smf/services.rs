//! Nsmf_PDUSession (TS 29.502): what the AMF asks.

use super::context::{SmContext, State, UserPlane};
use super::{Smf, n1, n2};
use crate::kit::{Caller, Key, Level, Outbox, Owner};
use bytes::Bytes;
use pith_nas::{GsmBody, GsmCause, GsmMessage};
use pith_ngap::transfer::SetupResponseTransfer;
use pith_sbi::nsmf_pdusession::{
    N2SmInfoType, SmContextUpdateData, SmContextUpdateErrorData, SmContextUpdatedData, UpCnxState,
    UpdateSmContext,
};
use pith_sbi::{Cause, Problem, ProblemMore, Request, Response};

/// Updates of a session that may wait for the UPF.
const MOST_HELD: usize = 8;

impl Smf {
    pub(super) fn request(&mut self, from: Caller, request: Request, out: &mut Outbox) {
        match request {
            Request::PostSmContexts(request) => self.establish(from, request.body, out),
            Request::UpdateSmContext(request) => self.update(from, *request, out),
            Request::ReleaseSmContext(request) => match self.find_own(&request.sm_context_ref, from) {
                Ok(key) => {
                    self.end(key, out);
                    out.answer(from, Response::NoContent);
                }
                Err(problem) => out.refuse(from, *problem),
            },
            Request::SmPolicyUpdateNotify(notification) => match self.find(notification.uri.id()) {
                Some(key) => self.policy_changed(key, from, notification.body, out),
                None => out.refuse(from, Problem::context_not_found()),
            },
            Request::SmPolicyTerminateNotify(notification) => match self.find(notification.uri.id()) {
                Some(key) => {
                    out.answer(from, Response::NoContent);
                    self.policy_ended(key, &notification.body.cause, out);
                }
                None => out.refuse(from, Problem::context_not_found()),
            },
            // Of what is subscribed, the SMF asks for each session anew: nothing to do for those that stand.
            Request::SdmChangeNotification(_) => out.answer(from, Response::NoContent),
            Request::DeregistrationNotification(notification) => match self.find(notification.uri.id()) {
                Some(key) => {
                    self.withdraw(key, GsmCause::RegularDeactivation, out);
                    out.answer(from, Response::NoContent);
                }
                None => out.refuse(from, Problem::context_not_found()),
            },
            Request::N1N2TransferFailureNotification(notification) => {
                match self.find(notification.uri.id()) {
                    Some(key) => {
                        self.not_delivered(key, out);
                        out.answer(from, Response::NoContent);
                    }
                    None => out.refuse(from, Problem::context_not_found()),
                }
            }
            _ => out.refuse(from, Problem::new(Cause::ResourceUriStructureNotFound)),
        }
    }

    /// The context of a reference that this run gave out.
    pub(super) fn find(&self, reference: &str) -> Option<Key> {
        let key = self.references.key(reference)?;
        self.contexts.get(key).filter(|context| !matches!(context.state, State::Abandoned(_))).map(|_| key)
    }

    /// The same, if the session is the caller's.
    fn find_own(&self, reference: &str, from: Caller) -> Result<Key, Box<Problem>> {
        let key = self.find(reference).ok_or_else(|| Box::new(Problem::context_not_found()))?;
        let owner = self.contexts.get(key).map_or(Owner::Process, |context| context.amf.owner);
        owner.check(from).map(|()| key)
    }

    /// UpdateSMContext: a message of the UE, an answer of the gNB, or a change of the user plane
    /// (TS 29.502 5.2.2.3).
    fn update(&mut self, from: Caller, request: UpdateSmContext, out: &mut Outbox) {
        let data = request.body;
        // An AMF to which the UE has moved names itself (TS 23.502 4.2.2.2.2 step 17, TS 29.502 5.2.2.3.6). It knows the
        // reference from the former AMF only, so it may take the session over.
        let found = match data.serving_nf_id {
            Some(_) => self.find(&request.sm_context_ref).ok_or_else(|| Problem::context_not_found().into()),
            None => self.find_own(&request.sm_context_ref, from),
        };
        let key = match found {
            Ok(key) => key,
            Err(problem) => return out.refuse(from, *problem),
        };
        if let Some(context) = self.contexts.get_mut(key).filter(|_| data.serving_nf_id.is_some()) {
            context.amf.owner = Owner::of(from);
        }
        if data.release == Some(true) {
            self.end(key, out);
            return updated(from, SmContextUpdatedData::default(), out);
        }
        let Some(context) = self.contexts.get_mut(key).filter(|context| context.is_changing()) else {
            return self.apply(key, from, data, out);
        };
        match (&context.state, &data.n2_sm_info_type) {
            (
                State::AwaitingGnb(towards),
                Some(kind @ (N2SmInfoType::PduResModRsp | N2SmInfoType::PduResModFail)),
            ) => {
                let (towards, done) = (*towards, *kind == N2SmInfoType::PduResModRsp);
                updated(from, SmContextUpdatedData::default(), out);
                match done {
                    true => self.gnb_moved(key, towards, out),
                    false => self.gnb_refused(key, towards, "the gNB refuses", out),
                }
            }
            (
                State::AwaitingResourceRelease,
                Some(N2SmInfoType::PduResRelRsp | N2SmInfoType::PduResNtyRel),
            ) => {
                updated(from, SmContextUpdatedData::default(), out);
                self.resources_released(key, out);
            }
            (State::AwaitingResourceRelease, None) if data.up_cnx_state == Some(UpCnxState::Deactivated) => {
                hold(context, from, data, out);
                self.resources_released(key, out);
            }
            // The UE has left its gNB, which owes no answer any more.
            (State::AwaitingGnb(towards), None) if data.up_cnx_state == Some(UpCnxState::Deactivated) => {
                let towards = *towards;
                hold(context, from, data, out);
                self.gnb_moved(key, towards, out);
            }
            _ => hold(context, from, data, out),
        }
    }

    /// The UPF has taken its new rules: what came meanwhile has its turn.
    pub(super) fn apply_held(&mut self, key: Key, out: &mut Outbox) {
        while let Some(context) = self.contexts.get_mut(key).filter(|context| !context.is_changing())
            && !context.held.is_empty()
        {
            let (from, data) = context.held.remove(0);
            self.apply(key, from, data, out);
        }
    }

    fn apply(&mut self, key: Key, from: Caller, data: SmContextUpdateData, out: &mut Outbox) {
        if let Some(message) = &data.n1_sm_msg {
            return self.n1_message(key, from, &message.content, out);
        }
        match (&data.n2_sm_info_type, &data.n2_sm_info, &data.up_cnx_state) {
            (Some(kind), info, _) => {
                let info = info.as_ref().map(|info| info.content.clone()).unwrap_or_default();
                self.n2_information(key, from, &kind.clone(), &info, out);
            }
            (None, _, Some(UpCnxState::Activating)) => self.activate(key, from, out),
            (None, _, Some(UpCnxState::Deactivated)) => self.deactivate(key, from, out),
            _ => self.note(key, from, &data, out),
        }
    }

    /// Nothing to do but to take note: the UE moved, another AMF serves it.
    fn note(&mut self, key: Key, from: Caller, data: &SmContextUpdateData, out: &mut Outbox) {
        if let Some(context) = self.contexts.get_mut(key) {
            context.amf.instance = data.serving_nf_id.unwrap_or(context.amf.instance);
            if let Some(uri) = &data.sm_context_status_uri {
                context.amf.root = uri.root.clone();
                context.amf.status_uri = uri.clone();
            }
        }
        updated(from, SmContextUpdatedData::default(), out);
    }

    /// A 5GSM message of the UE (TS 24.501 clause 6, 7.3, 7.4).
    fn n1_message(&mut self, key: Key, from: Caller, octets: &Bytes, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        let message = match GsmMessage::decode(octets) {
            Ok(message) => message,
            Err(error) => return wrong_message(context, from, octets, &error, out),
        };
        match message.body {
            GsmBody::PduSessionReleaseRequest(_) => self.release_requested(key, from, message.pti, out),
            GsmBody::PduSessionReleaseComplete(_) => {
                updated(from, SmContextUpdatedData::default(), out);
                self.release_completed(key, out);
            }
            GsmBody::PduSessionModificationComplete(_) => {
                updated(from, SmContextUpdatedData::default(), out);
                self.modification_completed(key, out);
            }
            GsmBody::PduSessionModificationCommandReject(reject) => {
                updated(from, SmContextUpdatedData::default(), out);
                self.modification_rejected(key, reject.cause, out);
            }
            GsmBody::PduSessionModificationRequest(_) => {
                answer_n1(from, n1::modification_reject(message.pdu_session_id, message.pti), out);
            }
            GsmBody::GsmStatus(_) => updated(from, SmContextUpdatedData::default(), out),
            _ => {
                let cause = pith_nas::GsmCause::MessageTypeNotCompatibleWithTheProtocolState;
                answer_n1(from, n1::status(message.pdu_session_id, message.pti, cause), out);
            }
        }
    }

    /// What the gNB answered (TS 29.502 5.2.2.3.2).
    fn n2_information(
        &mut self,
        key: Key,
        from: Caller,
        kind: &N2SmInfoType,
        info: &Bytes,
        out: &mut Outbox,
    ) {
        match kind {
            N2SmInfoType::PduResSetupRsp => match SetupResponseTransfer::decode(info) {
                Ok(transfer) => self.tunnel(key, from, transfer.downlink, out),
                Err(error) => out.refuse(from, Problem::new(Cause::N2SmError).detail(error)),
            },
            N2SmInfoType::PduResSetupFail => {
                updated(from, SmContextUpdatedData::default(), out);
                self.not_delivered(key, out);
            }
            N2SmInfoType::PduResNtyRel => self.deactivate(key, from, out),
            // Answers of the gNB that change nothing here; what fails of a modification stays as it was at the gNB.
            N2SmInfoType::PduResRelRsp | N2SmInfoType::PduResModRsp => {
                updated(from, SmContextUpdatedData::default(), out);
            }
            N2SmInfoType::PduResModFail => {
                self.log(key, Level::Warn, out, |_| {
                    "the gNB does not modify the session's resources".to_owned()
                });
                updated(from, SmContextUpdatedData::default(), out);
            }
            // No flow here has a guaranteed rate that the gNB could miss (TS 38.413 8.2.4.2).
            N2SmInfoType::PduResNty | N2SmInfoType::SecondaryRatUsage => {
                updated(from, SmContextUpdatedData::default(), out);
            }
            _ => refuse_n2(from, kind, out),
        }
    }

    /// Gives the gNB what it needs to set the user plane up (TS 23.502 4.2.3.2 step 11).
    fn activate(&mut self, key: Key, from: Caller, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        match n2::setup_request(context).filter(|_| matches!(context.state, State::Established)) {
            Some(transfer) => {
                context.told = context.at_n3().map(|session| session.tunnel);
                let mut data = SmContextUpdatedData::default();
                data.up_cnx_state = Some(UpCnxState::Activating);
                data.n2_sm_info = Some(transfer.into());
                data.n2_sm_info_type = Some(N2SmInfoType::PduResSetupReq);
                updated(from, data, out);
            }
            None => out.refuse(from, Problem::new(Cause::InsufficientResources)),
        }
    }

    fn deactivate(&mut self, key: Key, from: Caller, out: &mut Outbox) {
        self.change_user_plane(key, from, UserPlane::Deactivated, out);
    }
}

/// N2 information that this SMF does not act on: what the gNB is told of it goes with the refusal (TS 29.502 table
/// 6.1.3.3.4.2.2-2).
fn refuse_n2(from: Caller, kind: &N2SmInfoType, out: &mut Outbox) {
    let problem = Problem::new(Cause::N2SmError).detail(format!("this SMF does not serve {}", kind.as_str()));
    let Some((kind, transfer)) = n2::refusal(kind) else { return out.refuse(from, problem) };
    let mut data = SmContextUpdateErrorData::default();
    data.n2_sm_info = Some(transfer.into());
    data.n2_sm_info_type = Some(kind);
    out.refuse(from, problem.with(ProblemMore::SmContextUpdateError(Box::new(data))));
}

/// One change at a time: gNB and UE may be quicker than the UPF.
fn hold(context: &mut SmContext, from: Caller, data: SmContextUpdateData, out: &mut Outbox) {
    match context.held.len() {
        0..MOST_HELD => context.held.push((from, data)),
        _ => out.refuse(from, Problem::new(Cause::InsufficientResources).detail("too many updates at once")),
    }
}

/// What is wrong with a 5GSM message, told to the UE if it can be (TS 24.501 7.3 to 7.6).
fn wrong_message(
    context: &SmContext,
    from: Caller,
    octets: &[u8],
    error: &pith_nas::NasError,
    out: &mut Outbox,
) {
    let pti = octets.get(2).copied().unwrap_or(0);
    match error.gsm_cause() {
        Some(cause) => answer_n1(from, n1::status(context.pdu_session_id, pti, cause), out),
        None => updated(from, SmContextUpdatedData::default(), out),
    }
}

/// Answers with a message for the UE.
pub(super) fn answer_n1(from: Caller, message: Vec<u8>, out: &mut Outbox) {
    let mut data = SmContextUpdatedData::default();
    data.n1_sm_msg = Some(message.into());
    updated(from, data, out);
}

/// Answers UpdateSMContext: 204 if there is nothing to say.
pub(super) fn updated(from: Caller, data: SmContextUpdatedData, out: &mut Outbox) {
    match data == SmContextUpdatedData::default() {
        true => out.answer(from, Response::NoContent),
        false => out.answer(from, Response::SmContextUpdated(Box::new(data))),
    }
}
