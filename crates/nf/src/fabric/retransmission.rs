//! Retransmission of requests that end a resource at another NF, or report a state of it, and get no reply (TS 29.500 6.4: a
//! client may repeat idempotent requests).
//!
//! The registration of an SMF, and a subscription to changed data that ends with the subscriber's registration, are made again: the UDM
//! replaces the former ones.
//!
//! A policy association is created again, once: if its PCF was killed before its answer, the second one replaces the first. The
//! activation of a user plane, and the request of an AMF to go on with an association of another AMF, are repeated once, too, while the UE waits:
//! their result is the same. An SMF's report of the subscribed QoS is repeated, as that of a state: the session would keep what was subscribed before.
//! So is that a UE does not support reflective QoS any longer. The UDM's notification that another AMF or SMF has registered is repeated, as a
//! former one that restarts would keep the UE with its sessions.
//!
//! An NF that deletes a resource forgets it. If the request were lost, the
//! session or policy at the other NF would remain. Only calls over HTTP/2 can be lost, so no others are kept.
//!
//! A request waits for its retransmission while the other NF restarts. If the NF has sent a later request for the same resource,
//! the earlier one is not repeated: it would undo the later one. Nor is that an AMF serves a session's UE (TS 29.502 5.2.2.3.6), once the AMF has
//! transferred the UE's context: the SMF would take the session from the AMF that serves the UE now. Nor does a session that has ended subscribe
//! to changed data: it has deregistered, and nothing would end the subscription.

use super::agent::Call;
use super::reselection::may_be_reselected;
use crate::kit::{Duration, Nf, Tag, Timer, TimerKey};
use pith_sbi::npcf_smpolicycontrol::{PolicyControlRequestTrigger, UpdateSmPolicy};
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextUpdateData, UpCnxState};
use pith_sbi::{ApiRoot, Cause, Problem, Reply, Request};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of kept calls; a call beyond it is sent once, or not at all if it is for an NF that may be of another set than the consumer.
const LIMIT: usize = 1 << 14;

/// Maximum number of kept notifications: those to one AMF that is gone may be many, and requests that end resources must be kept nevertheless.
const MOST_NOTIFICATIONS: usize = LIMIT / 4;

/// Maximum number of transmissions of a call.
const TRIES: u8 = 6;

/// As [`TRIES`], of a request that a procedure of the UE waits for.
const TRIES_IN_PROCEDURE: u8 = 2;

/// The owner in the tag of a call whose reply the NF ignores: no procedure waits for it.
const NOBODY: u64 = u64::MAX;

/// Pause before the second transmission; doubled for each further one: the last is sent 7.75 s after the first.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The owner in the tags of kept calls: not a key of any NF's table.
const OWNER: u64 = u64::MAX - 1;

/// Calls in progress or waiting for retransmission.
#[derive(Debug, Default)]
pub(super) struct Retransmissions {
    kept: HashMap<u32, KeptCall>,
    /// How many of them are notifications.
    notifications: usize,
    /// The latest kept call for each resource.
    latest: HashMap<String, u32>,
    numbered: u32,
}

/// A call and its destination.
#[derive(Debug)]
struct KeptCall {
    nf: Nf,
    tag: Tag,
    root: Arc<ApiRoot>,
    request: Request,
    tries: u8,
    /// A later request for the same resource was sent.
    is_superseded: bool,
    /// It was sent to an NF that may be of another set than the consumer, and know none of its contexts.
    is_for_stranger: bool,
}

/// A call whose pause is over.
#[derive(Debug)]
pub(super) enum DueCall {
    /// Send it again: caller, tag, destination, request.
    Send(Nf, Tag, Arc<ApiRoot>, Box<Request>),
    /// It fails: caller, and the NF's own tag.
    Superseded(Nf, Tag),
}

/// The result of a reply.
#[derive(Debug, PartialEq)]
pub(super) enum ReplyAction {
    /// Deliver the reply to the NF, with the NF's own tag.
    Deliver(Tag, Reply),
    /// Retransmit the call when the timer expires.
    RetryAfter(TimerKey, Duration),
    /// A notification was not answered at this apiRoot: another instance may take it, else the reply is delivered.
    Reselect(Box<Unanswered>),
}

/// A notification that was not answered.
#[derive(Debug, PartialEq)]
#[allow(missing_docs)]
pub(super) struct Unanswered {
    pub nf: Nf,
    pub tag: Tag,
    pub root: Arc<ApiRoot>,
    pub request: Request,
    pub reply: Reply,
}

impl Retransmissions {
    /// Keeps a call over HTTP/2; returns the tag to send it with.
    pub(super) fn note(&mut self, call: &Call, root: &Arc<ApiRoot>) -> Tag {
        self.keep(call, root, (1, false)).unwrap_or(call.tag)
    }

    /// As [`Self::note`], of a notification for an NF that may be of another set than the consumer: that NF's 404 says nothing of the consumer's
    /// context. `None` if there is no room: unless it is kept, its answer would count as the consumer's.
    pub(super) fn note_for_stranger(&mut self, call: &Call, root: &Arc<ApiRoot>) -> Option<Tag> {
        self.keep(call, root, (1, true))
    }

    /// As [`Self::note_for_stranger`], of a notification that was repeated to the consumer before: it is sent once.
    pub(super) fn note_last(&mut self, call: &Call, root: &Arc<ApiRoot>) -> Option<Tag> {
        self.keep(call, root, (TRIES, true))
    }

    fn keep(
        &mut self,
        call: &Call,
        root: &Arc<ApiRoot>,
        (tries, is_for_stranger): (u8, bool),
    ) -> Option<Tag> {
        let resource = resource(root, &call.request);
        let earlier = resource.as_ref().and_then(|resource| self.latest.remove(resource));
        if let Some(earlier) = earlier.and_then(|number| self.kept.get_mut(&number)) {
            earlier.is_superseded = true;
        }
        let is_kept = may_be_repeated(&call.request) || may_be_reselected(&call.request);
        let is_notification = call.request.target_uri().is_some();
        let has_room =
            self.kept.len() < LIMIT && (!is_notification || self.notifications < MOST_NOTIFICATIONS);
        if !is_kept || !has_room {
            return None;
        }
        self.notifications += usize::from(is_notification);
        self.numbered = self.numbered.wrapping_add(1);
        let kept = KeptCall {
            nf: call.nf,
            tag: call.tag,
            root: Arc::clone(root),
            request: call.request.clone(),
            tries,
            is_superseded: false,
            is_for_stranger,
        };
        self.kept.insert(self.numbered, kept);
        self.latest.extend(resource.map(|resource| (resource, self.numbered)));
        Some(Tag::new(OWNER, self.numbered))
    }

    /// The tag that the NF gave a call.
    pub(super) fn given(&self, tag: Tag) -> Tag {
        let kept = self.kept.get(&tag.step).filter(|_| tag.owner == OWNER);
        kept.map_or(tag, |kept| kept.tag)
    }

    /// Handles the reply to a tag.
    pub(super) fn reply(&mut self, tag: Tag, reply: Reply) -> ReplyAction {
        let Some(kept) = self.kept.get_mut(&tag.step).filter(|_| tag.owner == OWNER) else {
            return ReplyAction::Deliver(tag, reply);
        };
        let is_awaited = is_awaited(&kept.request) && kept.tag.owner != NOBODY;
        let tries = if is_awaited { TRIES_IN_PROCEDURE } else { TRIES };
        // The UDR repeats a change of data, and with it the notification that the UDM's procedure waits for.
        let is_of_change =
            matches!(kept.request, Request::DeregistrationNotification(_)) && kept.tag.owner != NOBODY;
        let may_repeat =
            may_be_repeated(&kept.request) && kept.tries < tries && !kept.is_superseded && !is_of_change;
        let is_not_processed = |problem: &Problem| {
            has_no_answer(problem) || (problem.status >= 500 && is_repeated_after_errors(&kept.request))
        };
        if may_repeat && reply.as_ref().is_err_and(|problem| is_not_processed(problem)) {
            let pause = FIRST_PAUSE * (1 << (kept.tries - 1));
            kept.tries += 1;
            return ReplyAction::RetryAfter(
                TimerKey { owner: tag.step.into(), timer: Timer::SbiRetransmission },
                pause,
            );
        }
        let (given, is_for_stranger) = (kept.tag, kept.is_for_stranger);
        let is_unanswered = reply.as_ref().is_err_and(|problem| has_no_answer(problem));
        let kept = self.remove(tag.step).filter(|kept| is_unanswered && may_be_reselected(&kept.request));
        if let Some(KeptCall { nf, root, request, .. }) = kept {
            return ReplyAction::Reselect(Box::new(Unanswered { nf, tag: given, root, request, reply }));
        }
        ReplyAction::Deliver(given, if is_for_stranger { reply.map_err(of_stranger) } else { reply })
    }

    fn remove(&mut self, number: u32) -> Option<KeptCall> {
        let kept = self.kept.remove(&number)?;
        self.notifications -= usize::from(kept.request.target_uri().is_some());
        if let Some(resource) = resource(&kept.root, &kept.request)
            && self.latest.get(&resource) == Some(&number)
        {
            self.latest.remove(&resource);
        }
        Some(kept)
    }

    /// The caller of a call that is not repeated when the caller's context has ended, and the NF's own tag: one that says which AMF serves a
    /// session's UE, unless the AMF ends the session; or a session's subscription, which ends with the session's registration.
    pub(super) fn of_context(&self, key: TimerKey) -> Option<(Nf, Tag)> {
        let kept = self.kept.get(&u32::try_from(key.owner).ok()?)?;
        let is_of_context = match &kept.request {
            Request::UpdateSmContext(request) => request.body.serving_nf_id.is_some(),
            Request::SdmSubscribe(_) => kept.nf == Nf::Smf,
            _ => false,
        };
        (is_of_context && kept.tag.owner != NOBODY).then_some((kept.nf, kept.tag))
    }

    /// A call is not sent again.
    pub(super) fn supersede(&mut self, key: TimerKey) {
        let kept = u32::try_from(key.owner).ok().and_then(|number| self.kept.get_mut(&number));
        kept.into_iter().for_each(|kept| kept.is_superseded = true);
    }

    /// The pause is over.
    pub(super) fn due_call(&mut self, key: TimerKey) -> Option<DueCall> {
        let step = u32::try_from(key.owner).ok()?;
        let kept = self.kept.get(&step)?;
        if kept.is_superseded {
            let kept = self.remove(step)?;
            return Some(DueCall::Superseded(kept.nf, kept.tag));
        }
        let request = Box::new(kept.request.clone());
        Some(DueCall::Send(kept.nf, Tag::new(OWNER, step), Arc::clone(&kept.root), request))
    }
}

/// Requests that delete a resource, or report that one has ended or that a UE has arrived at another AMF, and the AMF's reports of a
/// session's user plane.
fn may_be_repeated(request: &Request) -> bool {
    match request {
        Request::ReleaseSmContext(_)
        | Request::SmContextStatusNotify(_)
        | Request::DeleteSmPolicy(_)
        | Request::DeleteAmPolicyAssociation(_)
        | Request::SdmUnsubscribe(_)
        | Request::SmfDeregistration(_)
        | Request::RegisterSmf(_)
        | Request::ReleaseUeContext(_)
        | Request::N2InfoNotify(_)
        | Request::RegistrationStatusUpdate(_)
        | Request::DeregistrationNotification(_)
        | Request::SmPolicyUpdateNotify(_) => true,
        Request::UpdateSmPolicy(request) => reported_state(request).is_some(),
        // The second one replaces the first.
        Request::SdmSubscribe(request) => request.body.implicit_unsubscribe == Some(true),
        Request::UpdateThreeGppRegistration(request) => request.body.purge_flag == Some(true),
        Request::UpdateSmContext(request) => {
            let body = &request.body;
            body.n1_sm_msg.is_none()
                && (matches!(body.up_cnx_state, Some(UpCnxState::Activating | UpCnxState::Deactivated))
                    || body.n2_sm_info_type == Some(N2SmInfoType::PduResSetupRsp)
                    || body.release == Some(true))
        }
        request => creates(request) || takes_policy(request),
    }
}

/// Requests that an NF which fails now (5xx) may process later: a notification of all rules of a session; and the deactivation or the end of a session
/// whose SMF was interrupted, which would keep a tunnel or a session that the AMF has forgotten.
fn is_repeated_after_errors(request: &Request) -> bool {
    match request {
        Request::SmPolicyUpdateNotify(_) | Request::ReleaseSmContext(_) => true,
        Request::UpdateSmContext(request) => {
            let body = &request.body;
            body.up_cnx_state == Some(UpCnxState::Deactivated) || body.release == Some(true)
        }
        _ => false,
    }
}

/// Requests whose answer a procedure of the UE waits for.
fn is_awaited(request: &Request) -> bool {
    let activates = |data: &SmContextUpdateData| data.up_cnx_state == Some(UpCnxState::Activating);
    creates(request)
        || takes_policy(request)
        || matches!(request, Request::UpdateSmContext(request) if activates(&request.body))
}

/// Requests that create a resource, and replace the one of a former request for the same subscriber or session.
const fn creates(request: &Request) -> bool {
    matches!(request, Request::CreateSmPolicy(_) | Request::CreateAmPolicyAssociation(_))
}

/// Whether an AMF takes over an AM policy association that another AMF has left to it (TS 29.507 4.2.3.1). No other AMF deletes that.
const fn takes_policy(request: &Request) -> bool {
    matches!(request, Request::UpdateAmPolicyAssociation(request) if request.body.notification_uri.is_some())
}

/// The state that a report to the PCF is about, if it does not say that something happened: the QoS that is subscribed now (TS 29.512 4.2.4.2), or
/// that the UE does not support reflective QoS (table 5.6.3.6-1).
fn reported_state(request: &UpdateSmPolicy) -> Option<&'static str> {
    use PolicyControlRequestTrigger::{DefQosCh, RefQosIndCh, SeAmbrCh};
    match &request.body.rep_policy_ctrl_req_triggers[..] {
        [] => None,
        [RefQosIndCh] => Some("reflective-qos"),
        triggers if triggers.iter().all(|it| matches!(it, SeAmbrCh | DefQosCh)) => Some("subscribed-qos"),
        _ => None,
    }
}

/// The resource of a request that later requests may concern too. A reference of an SM context is unique at its SMF.
fn resource(root: &ApiRoot, request: &Request) -> Option<String> {
    match request {
        // It says nothing about the user plane, which a former request may deactivate.
        Request::UpdateSmContext(request) if request.body.is_presence_report() => None,
        Request::UpdateSmContext(request) => Some(format!("{root}/{}", request.sm_context_ref)),
        Request::ReleaseSmContext(request) => Some(format!("{root}/{}", request.sm_context_ref)),
        // An AMF has one context of a UE that is being handed over: a late release would end the next handover.
        Request::CreateUeContext(request) => Some(format!("{root}/{}", request.ue_context_id)),
        Request::ReleaseUeContext(request) => Some(format!("{root}/{}", request.ue_context_id)),
        // A report of an earlier transfer.
        Request::UeContextTransfer(request) => Some(format!("{root}/transfer/{}", request.ue_context_id)),
        Request::RegistrationStatusUpdate(request) => {
            Some(format!("{root}/transfer/{}", request.ue_context_id))
        }
        Request::UpdateSmPolicy(request) => {
            reported_state(request).map(|state| format!("{root}/{state}/{}", request.sm_policy_id))
        }
        // Each notification has all rules of the session.
        Request::SmPolicyUpdateNotify(request) => Some(request.uri.to_string()),
        Request::DeregistrationNotification(request) => Some(request.uri.to_string()),
        Request::RegisterSmf(request) => Some(format!("{}/{}", request.ue_id, request.pdu_session_id)),
        Request::SmfDeregistration(request) => Some(format!("{}/{}", request.ue_id, request.pdu_session_id)),
        Request::ThreeGppRegistration(request) => Some(request.ue_id.to_string()),
        Request::UpdateThreeGppRegistration(request) => Some(request.ue_id.to_string()),
        _ => None,
    }
}

/// The answer of an NF that may be of another set than the consumer. If that NF does not know the context, the consumer has not lost it, and may
/// return.
fn of_stranger(problem: Box<Problem>) -> Box<Problem> {
    if problem.status == 404 {
        return Box::new(Problem::not_reachable("an NF of another set does not have the context either"));
    }
    problem
}

/// Whether the problem was generated locally because the producer did not answer.
fn has_no_answer(problem: &Problem) -> bool {
    problem.is(&Cause::TargetNfNotReachable) || problem.status == 504
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::Target;
    use pith_sbi::npcf_ampolicycontrol::{PolicyAssociationUpdateRequest, UpdateAmPolicyAssociation};
    use pith_sbi::nsmf_pdusession::{ReleaseSmContext, UpdateSmContext};
    use pith_sbi::nudm_sdm::SdmUnsubscribe;
    use pith_sbi::nudm_uecm::SmfDeregistration;
    use pith_sbi::{Response, Scheme};

    const GIVEN: Tag = Tag::new(5, 6);

    fn root() -> Arc<ApiRoot> {
        Arc::new(ApiRoot::new(Scheme::Http, "udm:80"))
    }

    fn unsubscribe() -> Call {
        let ue_id = "imsi-999700000000001".parse().unwrap();
        let request = SdmUnsubscribe { ue_id, subscription_id: "7".into() }.into();
        Call { nf: Nf::Amf, tag: GIVEN, target: Target::Root(root()), request }
    }

    fn lost() -> Reply {
        Err(Problem::timed_out().into())
    }

    #[test]
    fn an_answer_goes_to_the_nf_under_its_own_tag() {
        let mut retransmissions = Retransmissions::default();
        let tag = retransmissions.note(&unsubscribe(), &root());
        assert_ne!(tag, GIVEN);
        assert_eq!(
            retransmissions.reply(tag, Ok(Response::NoContent)),
            ReplyAction::Deliver(GIVEN, Ok(Response::NoContent))
        );
        assert!(retransmissions.kept.is_empty());
    }

    #[test]
    fn a_lost_request_is_sent_six_times_with_growing_pauses() {
        let mut retransmissions = Retransmissions::default();
        let tag = retransmissions.note(&unsubscribe(), &root());
        for pause in [250, 500, 1000, 2000, 4000] {
            let ReplyAction::RetryAfter(key, after) = retransmissions.reply(tag, lost()) else {
                panic!("gives up")
            };
            assert_eq!(after, Duration::from_millis(pause));
            let Some(DueCall::Send(nf, again, to, request)) = retransmissions.due_call(key) else { panic!() };
            assert_eq!((nf, again, to), (Nf::Amf, tag, root()));
            assert!(matches!(*request, Request::SdmUnsubscribe(_)));
        }
        assert_eq!(retransmissions.reply(tag, lost()), ReplyAction::Deliver(GIVEN, lost()));
        assert!(retransmissions.kept.is_empty());
    }

    /// The consumer did not answer, and another NF gets the notification.
    #[test]
    fn the_404_of_an_nf_that_may_be_of_another_set_is_no_answer() {
        let mut kept = Retransmissions::default();
        let tag = kept.note_last(&unsubscribe(), &root()).unwrap();
        let reply = Err(Problem::context_not_found().into());
        let ReplyAction::Deliver(given, Err(problem)) = kept.reply(tag, reply) else { panic!() };
        assert_eq!((given, problem.status), (GIVEN, 504));
        let tag = kept.note_last(&unsubscribe(), &root()).unwrap();
        assert_eq!(kept.reply(tag, lost()), ReplyAction::Deliver(GIVEN, lost()), "it is sent once");
    }

    /// Requests that end resources are kept nevertheless.
    #[test]
    fn notifications_for_nfs_that_may_be_of_another_set_have_a_bound() {
        let mut kept = Retransmissions::default();
        for _ in 0..MOST_NOTIFICATIONS {
            assert!(kept.note_for_stranger(&notification(), &root()).is_some());
        }
        assert_eq!(kept.note_for_stranger(&notification(), &root()), None);
        assert_eq!(kept.note(&notification(), &root()), GIVEN, "one for the consumer is sent once");
        assert_ne!(kept.note(&unsubscribe(), &root()), GIVEN);
    }

    /// The AMF has no context of the UE any longer.
    #[test]
    fn that_an_amf_serves_a_session_is_not_repeated_after_a_transfer() {
        for (owner, serving) in [(GIVEN.owner, true), (GIVEN.owner, false), (NOBODY, true)] {
            let mut body = SmContextUpdateData::default();
            body.up_cnx_state = Some(UpCnxState::Deactivated);
            body.serving_nf_id = serving.then_some(pith_sbi::NfInstanceId(1));
            let request = UpdateSmContext { sm_context_ref: "1".into(), body }.into();
            let tag = Tag::new(owner, 1);
            let call = Call { nf: Nf::Amf, tag, target: Target::Root(root()), request };
            let mut retransmissions = Retransmissions::default();
            let kept = retransmissions.note(&call, &root());
            let ReplyAction::RetryAfter(key, _) = retransmissions.reply(kept, lost()) else { panic!() };
            let of_context = (serving && owner != NOBODY).then_some((Nf::Amf, tag));
            assert_eq!(retransmissions.of_context(key), of_context);
            retransmissions.supersede(key);
            assert!(
                matches!(retransmissions.due_call(key), Some(DueCall::Superseded(Nf::Amf, of)) if of == tag)
            );
        }
    }

    /// Without it an AMF that restarts keeps a UE that another one serves. That of a deleted subscriber comes again with the UDR's notification.
    #[test]
    fn the_notification_that_another_amf_serves_a_ue_is_repeated() {
        use pith_sbi::nudm_uecm::{DeregistrationData, DeregistrationNotification, DeregistrationReason};
        for (owner, is_repeated) in [(NOBODY, true), (GIVEN.owner, false)] {
            let uri = pith_sbi::Uri::new(&root(), "/callbacks/1");
            let body = DeregistrationData::new(DeregistrationReason::UeRegistrationAreaChange);
            let request = DeregistrationNotification { uri, body }.into();
            let call = Call { nf: Nf::Udm, tag: Tag::new(owner, 1), target: Target::Root(root()), request };
            let mut retransmissions = Retransmissions::default();
            let tag = retransmissions.note(&call, &root());
            let action = retransmissions.reply(tag, lost());
            assert_eq!(matches!(action, ReplyAction::RetryAfter(..)), is_repeated, "{action:?}");
        }
    }

    /// A dead AMF that had many UEs.
    #[test]
    fn notifications_leave_room_for_requests_that_end_resources() {
        use pith_sbi::nudm_uecm::{DeregistrationData, DeregistrationNotification, DeregistrationReason};
        let notification = |number: usize| {
            let uri = pith_sbi::Uri::new(&root(), &format!("/callbacks/{number}"));
            let body = DeregistrationData::new(DeregistrationReason::UeRegistrationAreaChange);
            let request = DeregistrationNotification { uri, body }.into();
            Call { nf: Nf::Udm, tag: Tag::new(NOBODY, 1), target: Target::Root(root()), request }
        };
        let mut kept = Retransmissions::default();
        let tags: Vec<_> = (0..LIMIT).map(|number| kept.note(&notification(number), &root())).collect();
        let is_kept = |tag: &&Tag| tag.owner == OWNER;
        assert_eq!(tags.iter().filter(is_kept).count(), LIMIT / 4);
        assert_eq!(kept.note(&unsubscribe(), &root()).owner, OWNER);
        kept.reply(tags[0], Ok(Response::NoContent));
        assert_eq!(kept.note(&notification(0), &root()).owner, OWNER, "there is room again");
        assert_ne!(kept.note(&notification(1), &root()).owner, OWNER);
    }

    /// Without it the AMF that had the UE before releases its sessions.
    #[test]
    fn the_report_that_a_ue_context_was_transferred_is_repeated() {
        let ue_context_id = "imsi-999700000000001".parse().unwrap();
        let status = pith_sbi::namf_communication::UeContextTransferStatus::Transferred;
        let body = pith_sbi::namf_communication::UeRegStatusUpdateReqData::new(status);
        let request = pith_sbi::namf_communication::RegistrationStatusUpdate { ue_context_id, body }.into();
        let call = Call { nf: Nf::Amf, tag: GIVEN, target: Target::Root(root()), request };
        let mut retransmissions = Retransmissions::default();
        let tag = retransmissions.note(&call, &root());
        assert!(matches!(retransmissions.reply(tag, lost()), ReplyAction::RetryAfter(..)));
    }

    #[test]
    fn a_policy_association_is_created_again_once() {
        let supi: pith_types::Supi = "imsi-999700000000001".parse().unwrap();
        let callback = pith_sbi::Uri::new(&root(), "/namf-callback/v1/am-policy/1");
        let features = pith_sbi::common::SupportedFeatures(0);
        let body = pith_sbi::npcf_ampolicycontrol::PolicyAssociationRequest::new(callback, supi, features);
        let request = pith_sbi::npcf_ampolicycontrol::CreateAmPolicyAssociation { body }.into();
        let call = Call { nf: Nf::Amf, tag: GIVEN, target: Target::Root(root()), request };
        let mut retransmissions = Retransmissions::default();
        let tag = retransmissions.note(&call, &root());
        let ReplyAction::RetryAfter(key, _) = retransmissions.reply(tag, lost()) else { panic!("gives up") };
        assert!(matches!(retransmissions.due_call(key), Some(DueCall::Send(Nf::Amf, ..))));
        assert_eq!(retransmissions.reply(tag, lost()), ReplyAction::Deliver(GIVEN, lost()));
        assert!(retransmissions.kept.is_empty());
    }

    /// The AMF that had created the association has left it to this one, and does not delete it. An AMF that takes it only to delete it waits until
    /// the PCF has restarted.
    #[test]
    fn the_take_over_of_an_am_policy_is_repeated() {
        for (given, repetitions) in [(GIVEN, 1), (Tag::new(NOBODY, 0), 5)] {
            let mut body = PolicyAssociationUpdateRequest::default();
            body.notification_uri = Some(pith_sbi::Uri::new(&root(), "/npcf-callback/1"));
            let request = UpdateAmPolicyAssociation { pol_asso_id: "1".into(), body }.into();
            let call = Call { nf: Nf::Amf, tag: given, target: Target::Root(root()), request };
            let mut kept = Retransmissions::default();
            let tag = kept.note(&call, &root());
            for _ in 0..repetitions {
                let ReplyAction::RetryAfter(key, _) = kept.reply(tag, lost()) else { panic!() };
                assert!(
                    matches!(kept.due_call(key), Some(DueCall::Send(Nf::Amf, again, ..)) if again == tag)
                );
            }
            assert_eq!(kept.reply(tag, lost()), ReplyAction::Deliver(given, lost()));
        }
    }

    /// Other reports say what has happened: the PCF may have counted it.
    #[test]
    fn a_report_of_the_subscribed_qos_is_repeated_until_a_later_one() {
        use PolicyControlRequestTrigger::{AppSta, DefQosCh, SeAmbrCh};
        let call = |triggers: &[PolicyControlRequestTrigger]| {
            let mut body = pith_sbi::npcf_smpolicycontrol::SmPolicyUpdateContextData::default();
            body.rep_policy_ctrl_req_triggers = triggers.to_vec();
            let request = UpdateSmPolicy { sm_policy_id: "1".into(), body }.into();
            Call { nf: Nf::Smf, tag: GIVEN, target: Target::Root(root()), request }
        };
        let mut kept = Retransmissions::default();
        assert_eq!(kept.note(&call(&[SeAmbrCh, AppSta]), &root()), GIVEN, "it is sent once");
        let tag = kept.note(&call(&[SeAmbrCh, DefQosCh]), &root());
        let ReplyAction::RetryAfter(key, _) = kept.reply(tag, lost()) else { panic!("gives up") };
        assert_eq!(kept.note(&call(&[AppSta]), &root()), GIVEN);
        let later = kept.note(&call(&[SeAmbrCh]), &root());
        assert_ne!(later, GIVEN);
        assert!(matches!(kept.due_call(key), Some(DueCall::Superseded(Nf::Smf, GIVEN))));
        assert!(matches!(kept.reply(later, lost()), ReplyAction::RetryAfter(..)));
    }

    /// It says what the UE supports now. A report of other QoS does not supersede it.
    #[test]
    fn a_report_that_reflective_qos_is_revoked_is_repeated() {
        use PolicyControlRequestTrigger::{RefQosIndCh, SeAmbrCh};
        let call = |trigger| {
            let mut body = pith_sbi::npcf_smpolicycontrol::SmPolicyUpdateContextData::default();
            body.rep_policy_ctrl_req_triggers = vec![trigger];
            let request = UpdateSmPolicy { sm_policy_id: "1".into(), body }.into();
            Call { nf: Nf::Smf, tag: GIVEN, target: Target::Root(root()), request }
        };
        let mut kept = Retransmissions::default();
        let tag = kept.note(&call(RefQosIndCh), &root());
        let ReplyAction::RetryAfter(key, _) = kept.reply(tag, lost()) else { panic!("gives up") };
        kept.note(&call(SeAmbrCh), &root());
        assert!(matches!(kept.due_call(key), Some(DueCall::Send(Nf::Smf, again, ..)) if again == tag));
    }

    /// A session that has ended has deregistered, and its subscription would stay.
    #[test]
    fn a_session_that_is_not_there_any_longer_does_not_subscribe() {
        let ue_id = "imsi-999700000000001".parse().unwrap();
        let callback = pith_sbi::Uri::new(&root(), "/nsmf-callback/v1/sdm-change/1");
        let mut body = pith_sbi::nudm_sdm::SdmSubscription::new(pith_sbi::NfInstanceId(1), callback, vec![]);
        body.implicit_unsubscribe = Some(true);
        let request: Request = pith_sbi::nudm_sdm::SdmSubscribe { ue_id, body }.into();
        for (nf, of_context) in [(Nf::Smf, Some((Nf::Smf, GIVEN))), (Nf::Amf, None)] {
            let call = Call { nf, tag: GIVEN, target: Target::Root(root()), request: request.clone() };
            let mut kept = Retransmissions::default();
            let tag = kept.note(&call, &root());
            let ReplyAction::RetryAfter(key, _) = kept.reply(tag, lost()) else { panic!("gives up") };
            assert_eq!(kept.of_context(key), of_context);
        }
    }

    /// The SMF was killed in the middle of a service request.
    #[test]
    fn an_activation_is_repeated_once() {
        let mut body = SmContextUpdateData::default();
        body.up_cnx_state = Some(UpCnxState::Activating);
        let request = UpdateSmContext { sm_context_ref: "1".into(), body }.into();
        let call = Call { nf: Nf::Amf, tag: GIVEN, target: Target::Root(root()), request };
        let mut kept = Retransmissions::default();
        let tag = kept.note(&call, &root());
        let ReplyAction::RetryAfter(key, pause) = kept.reply(tag, lost()) else { panic!() };
        assert_eq!(pause, FIRST_PAUSE);
        assert!(matches!(kept.due_call(key), Some(DueCall::Send(Nf::Amf, again, ..)) if again == tag));
        assert_eq!(kept.reply(tag, lost()), ReplyAction::Deliver(GIVEN, lost()));
    }

    /// A panic of the SMF's shard interrupts it.
    #[test]
    fn a_deactivation_or_release_that_fails_is_repeated_and_an_activation_is_not() {
        let of_state = |state| SmContextUpdateData { up_cnx_state: Some(state), ..Default::default() };
        let release = SmContextUpdateData { release: Some(true), ..Default::default() };
        let requests = [
            (of_state(UpCnxState::Deactivated), true),
            (release, true),
            (of_state(UpCnxState::Activating), false),
        ];
        for (body, is_repeated) in requests {
            let request = UpdateSmContext { sm_context_ref: "1".into(), body }.into();
            let call = Call { nf: Nf::Amf, tag: GIVEN, target: Target::Root(root()), request };
            let mut kept = Retransmissions::default();
            let tag = kept.note(&call, &root());
            let failed: Reply = Err(Problem::new(Cause::SystemFailure).into());
            let action = kept.reply(tag, failed);
            assert_eq!(matches!(action, ReplyAction::RetryAfter(..)), is_repeated, "{action:?}");
        }
    }

    /// Where the UE is has nothing to do with its user plane.
    #[test]
    fn a_report_of_presence_supersedes_no_deactivation() {
        use pith_sbi::common::PresenceState;
        let call = |body| {
            let request = UpdateSmContext { sm_context_ref: "1".into(), body }.into();
            Call { nf: Nf::Amf, tag: GIVEN, target: Target::Root(root()), request }
        };
        let mut kept = Retransmissions::default();
        let up_cnx_state = Some(UpCnxState::Deactivated);
        let tag = kept.note(&call(SmContextUpdateData { up_cnx_state, ..Default::default() }), &root());
        let ReplyAction::RetryAfter(key, _) = kept.reply(tag, lost()) else { panic!() };
        let presence_in_ladn = Some(PresenceState::OutOfArea);
        let report = call(SmContextUpdateData { presence_in_ladn, ..Default::default() });
        assert_eq!(kept.note(&report, &root()), GIVEN, "it is sent once");
        assert!(matches!(kept.due_call(key), Some(DueCall::Send(Nf::Amf, again, ..)) if again == tag));
    }

    /// It has the UE's keys: without an answer its receiver may serve the UE.
    #[test]
    fn a_registration_that_is_passed_on_is_sent_to_one_amf_only() {
        use pith_sbi::namf_communication as namf;
        let message = namf::N1MessageContainer::new(namf::N1MessageClass::FiveGmm, vec![0x7e_u8]);
        let uri = pith_sbi::Uri::new(&root(), "/namf-callback/v1/n1-message/default");
        let body = namf::N1MessageNotification::new(message);
        let request = namf::N1MessageNotify { uri, body }.into();
        let call = Call { nf: Nf::Amf, tag: GIVEN, target: Target::Root(root()), request };
        let mut kept = Retransmissions::default();
        let tag = kept.note(&call, &root());
        assert_eq!(tag, GIVEN);
        for problem in [Problem::timed_out(), Problem::not_reachable("gone"), Cause::NetworkFailure.into()] {
            let lost: Reply = Err(problem.into());
            assert_eq!(kept.reply(tag, lost.clone()), ReplyAction::Deliver(GIVEN, lost));
        }
    }

    #[test]
    fn a_request_that_waits_fails_when_a_later_one_is_sent_for_its_resource() {
        let ue_id: pith_types::Supi = "imsi-999700000000001".parse().unwrap();
        let call = |request| Call { nf: Nf::Smf, tag: GIVEN, target: Target::Root(root()), request };
        let deregistration = |pdu_session_id| {
            let ue_id = ue_id.clone();
            call(SmfDeregistration { ue_id, pdu_session_id, smf_instance_id: None }.into())
        };
        let mut retransmissions = Retransmissions::default();
        let keys = [1, 2].map(|session| {
            let tag = retransmissions.note(&deregistration(session), &root());
            let ReplyAction::RetryAfter(key, _) = retransmissions.reply(tag, lost()) else {
                panic!("gives up")
            };
            key
        });
        let later = retransmissions.note(&deregistration(1), &root());
        assert!(matches!(retransmissions.due_call(keys[0]), Some(DueCall::Superseded(Nf::Smf, GIVEN))));
        let Some(DueCall::Send(_, other, ..)) = retransmissions.due_call(keys[1]) else { panic!() };
        for tag in [later, other] {
            retransmissions.reply(tag, Ok(Response::NoContent));
        }
        assert!(retransmissions.latest.is_empty() && retransmissions.kept.is_empty());
    }

    #[test]
    fn a_request_in_progress_is_not_repeated_after_a_later_one_for_its_resource() {
        let ue_id: pith_types::Supi = "imsi-999700000000001".parse().unwrap();
        let deregistration = SmfDeregistration { ue_id, pdu_session_id: 1, smf_instance_id: None };
        let call =
            Call { nf: Nf::Smf, tag: GIVEN, target: Target::Root(root()), request: deregistration.into() };
        let mut retransmissions = Retransmissions::default();
        let earlier = retransmissions.note(&call, &root());
        let later = retransmissions.note(&call, &root());
        assert_eq!(retransmissions.reply(earlier, lost()), ReplyAction::Deliver(GIVEN, lost()));
        assert!(matches!(retransmissions.reply(later, lost()), ReplyAction::RetryAfter(..)));
    }

    #[test]
    fn the_release_of_a_ue_context_is_not_repeated_after_the_next_handover_to_that_amf_has_begun() {
        use pith_sbi::namf_communication as namf;
        let [amf, other] = ["amf-a:80", "amf-b:80"].map(|it| Arc::new(ApiRoot::new(Scheme::Http, it)));
        let call = |root: &Arc<ApiRoot>, request| {
            (Call { nf: Nf::Amf, tag: GIVEN, target: Target::Root(root.clone()), request }, root.clone())
        };
        let id = || crate::testing::supi().into();
        let release = || {
            let body = namf::UeContextRelease::new(pith_sbi::common::NgApCause::new(0_u32, 5_u32));
            namf::ReleaseUeContext { ue_context_id: id(), body }.into()
        };
        let create = || {
            let node = pith_sbi::common::GlobalRanNodeId::new(crate::testing::plmn());
            let tai = pith_types::Tai { plmn_id: crate::testing::plmn(), tac: pith_types::Tac::new(1) };
            let target = pith_sbi::nsmf_pdusession::NgRanTargetId::new(node, tai);
            let container = namf::N2InfoContent::new(vec![0_u8]);
            let sessions = Vec::<namf::N2SmInformation>::new();
            let context = namf::UeContext::default();
            let body = namf::UeContextCreateData::new(context, target, container, sessions);
            namf::CreateUeContext { ue_context_id: id(), body }.into()
        };
        let mut kept = Retransmissions::default();
        let mut lost_release = |root| {
            let (release, root) = call(root, release());
            let tag = kept.note(&release, &root);
            let ReplyAction::RetryAfter(key, _) = kept.reply(tag, lost()) else { panic!("gives up") };
            key
        };
        let keys = [&amf, &other].map(&mut lost_release);
        let (create, root) = call(&amf, create());
        assert_eq!(kept.note(&create, &root), GIVEN, "it is sent once");
        assert!(matches!(kept.due_call(keys[0]), Some(DueCall::Superseded(Nf::Amf, GIVEN))));
        assert!(matches!(kept.due_call(keys[1]), Some(DueCall::Send(..))), "at another AMF");
    }

    #[test]
    fn sm_contexts_of_two_smfs_are_different_resources() {
        let at = |authority| {
            let root = Arc::new(ApiRoot::new(Scheme::Http, authority));
            let request = ReleaseSmContext { sm_context_ref: "1".into(), body: Default::default() }.into();
            (Call { nf: Nf::Amf, tag: GIVEN, target: Target::Root(root.clone()), request }, root)
        };
        let mut retransmissions = Retransmissions::default();
        let [one, _] = ["smf-a:80", "smf-b:80"].map(|authority| {
            let (call, root) = at(authority);
            retransmissions.note(&call, &root)
        });
        assert!(matches!(retransmissions.reply(one, lost()), ReplyAction::RetryAfter(..)));
    }

    #[test]
    fn a_refused_request_is_not_retransmitted() {
        let mut retransmissions = Retransmissions::default();
        let tag = retransmissions.note(&unsubscribe(), &root());
        let refused: Reply = Err(Problem::context_not_found().into());
        assert_eq!(retransmissions.reply(tag, refused.clone()), ReplyAction::Deliver(GIVEN, refused));
    }

    fn notification() -> Call {
        let uri = pith_sbi::Uri::new(&root(), "/nsmf-callback/v1/sm-policies/1/update");
        let body = pith_sbi::npcf_smpolicycontrol::SmPolicyNotification::default();
        let request = pith_sbi::npcf_smpolicycontrol::SmPolicyUpdateNotify { uri, body }.into();
        Call { nf: Nf::Pcf, tag: GIVEN, target: Target::Root(root()), request }
    }

    #[test]
    fn a_notification_of_rules_is_repeated_after_an_error_of_the_smf_but_not_after_its_refusal() {
        let mut retransmissions = Retransmissions::default();
        let tag = retransmissions.note(&notification(), &root());
        let failed: Reply = Err(Problem::new(Cause::SystemFailure).into());
        for _ in 1..TRIES {
            let ReplyAction::RetryAfter(key, _) = retransmissions.reply(tag, failed.clone()) else {
                panic!()
            };
            assert!(matches!(retransmissions.due_call(key), Some(DueCall::Send(Nf::Pcf, ..))));
        }
        assert_eq!(retransmissions.reply(tag, failed.clone()), ReplyAction::Deliver(GIVEN, failed));
        let tag = retransmissions.note(&notification(), &root());
        let refused: Reply = Err(Problem::context_not_found().into());
        assert_eq!(retransmissions.reply(tag, refused.clone()), ReplyAction::Deliver(GIVEN, refused));
        assert!(retransmissions.kept.is_empty() && retransmissions.latest.is_empty());
    }

    #[test]
    fn a_later_notification_of_a_session_supersedes_one_that_waits() {
        let mut retransmissions = Retransmissions::default();
        let earlier = retransmissions.note(&notification(), &root());
        let ReplyAction::RetryAfter(key, _) = retransmissions.reply(earlier, lost()) else { panic!() };
        let later = retransmissions.note(&notification(), &root());
        assert!(matches!(retransmissions.due_call(key), Some(DueCall::Superseded(Nf::Pcf, GIVEN))));
        retransmissions.reply(later, Ok(Response::NoContent));
        assert!(retransmissions.kept.is_empty() && retransmissions.latest.is_empty());
    }

    #[test]
    fn tags_of_other_calls_are_unchanged() {
        let mut retransmissions = Retransmissions::default();
        assert_eq!(retransmissions.reply(GIVEN, lost()), ReplyAction::Deliver(GIVEN, lost()));
        let unknown = Tag::new(OWNER, 9);
        assert_eq!(retransmissions.reply(unknown, lost()), ReplyAction::Deliver(unknown, lost()));
    }
}
