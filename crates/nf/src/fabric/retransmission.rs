//! Retransmission of requests that end a resource at another NF and get no reply (TS 29.500 6.4: a
//! client may repeat idempotent requests).
//!
//! An NF that deletes a resource forgets it. If the request were lost, the
//! session or policy at the other NF would remain. Only calls over HTTP/2 can be lost, so no others are kept.

use super::agent::Call;
use crate::kit::{Duration, Nf, Tag, Timer, TimerKey};
use pith_sbi::{ApiRoot, Cause, Problem, Reply, Request};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of kept calls; a call beyond it is sent once.
const LIMIT: usize = 1 << 14;

/// Maximum number of transmissions of a call.
const TRIES: u8 = 4;

/// Pause before the second transmission; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The owner in the tags of kept calls: not a key of any NF's table.
const OWNER: u64 = u64::MAX - 1;

/// Calls in progress or waiting for retransmission.
#[derive(Debug, Default)]
pub(super) struct Retransmissions {
    kept: HashMap<u32, KeptCall>,
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
}

/// The result of a reply.
#[derive(Debug, PartialEq)]
pub(super) enum ReplyAction {
    /// Deliver the reply to the NF, with the NF's own tag.
    Deliver(Tag, Reply),
    /// Retransmit the call when the timer expires.
    RetryAfter(TimerKey, Duration),
}

impl Retransmissions {
    /// Keeps a call over HTTP/2; returns the tag to send it with.
    pub(super) fn note(&mut self, call: &Call, root: &Arc<ApiRoot>) -> Tag {
        if !may_be_repeated(&call.request) || self.kept.len() >= LIMIT {
            return call.tag;
        }
        self.numbered = self.numbered.wrapping_add(1);
        let kept = KeptCall {
            nf: call.nf,
            tag: call.tag,
            root: Arc::clone(root),
            request: call.request.clone(),
            tries: 1,
        };
        self.kept.insert(self.numbered, kept);
        Tag { owner: OWNER, step: self.numbered }
    }

    /// Handles the reply to a tag.
    pub(super) fn reply(&mut self, tag: Tag, reply: Reply) -> ReplyAction {
        let Some(kept) = self.kept.get_mut(&tag.step).filter(|_| tag.owner == OWNER) else {
            return ReplyAction::Deliver(tag, reply);
        };
        if reply.as_ref().is_err_and(|problem| has_no_answer(problem)) && kept.tries < TRIES {
            let pause = FIRST_PAUSE * (1 << (kept.tries - 1));
            kept.tries += 1;
            return ReplyAction::RetryAfter(
                TimerKey { owner: tag.step.into(), timer: Timer::SbiRetransmission },
                pause,
            );
        }
        let given = kept.tag;
        self.kept.remove(&tag.step);
        ReplyAction::Deliver(given, reply)
    }

    /// The pause is over: returns caller, tag, destination and request.
    pub(super) fn due_call(&self, key: TimerKey) -> Option<(Nf, Tag, Arc<ApiRoot>, Request)> {
        let step = u32::try_from(key.owner).ok()?;
        let kept = self.kept.get(&step)?;
        Some((kept.nf, Tag { owner: OWNER, step }, Arc::clone(&kept.root), kept.request.clone()))
    }
}

/// Requests that delete a resource whose URI is never reused, or report that one has ended.
const fn may_be_repeated(request: &Request) -> bool {
    matches!(
        request,
        Request::ReleaseSmContext(_)
            | Request::SmContextStatusNotify(_)
            | Request::DeleteSmPolicy(_)
            | Request::DeleteAmPolicyAssociation(_)
            | Request::SdmUnsubscribe(_)
    )
}

/// Whether the problem was generated locally because the producer did not answer.
fn has_no_answer(problem: &Problem) -> bool {
    problem.is(&Cause::TargetNfNotReachable) || problem.status == 504
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::Target;
    use pith_sbi::nudm_sdm::SdmUnsubscribe;
    use pith_sbi::{Response, Scheme};

    const GIVEN: Tag = Tag { owner: 5, step: 6 };

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
    fn a_lost_request_is_sent_four_times_with_growing_pauses() {
        let mut retransmissions = Retransmissions::default();
        let tag = retransmissions.note(&unsubscribe(), &root());
        for pause in [1, 2, 4] {
            let ReplyAction::RetryAfter(key, after) = retransmissions.reply(tag, lost()) else {
                panic!("gives up")
            };
            assert_eq!(after, Duration::from_secs(pause));
            let (nf, again, to, request) = retransmissions.due_call(key).unwrap();
            assert_eq!((nf, again, to), (Nf::Amf, tag, root()));
            assert!(matches!(request, Request::SdmUnsubscribe(_)));
        }
        assert_eq!(retransmissions.reply(tag, lost()), ReplyAction::Deliver(GIVEN, lost()));
        assert!(retransmissions.kept.is_empty());
    }

    #[test]
    fn a_refused_request_is_not_retransmitted() {
        let mut retransmissions = Retransmissions::default();
        let tag = retransmissions.note(&unsubscribe(), &root());
        let refused: Reply = Err(Problem::context_not_found().into());
        assert_eq!(retransmissions.reply(tag, refused.clone()), ReplyAction::Deliver(GIVEN, refused));
    }

    #[test]
    fn tags_of_other_calls_are_unchanged() {
        let mut retransmissions = Retransmissions::default();
        assert_eq!(retransmissions.reply(GIVEN, lost()), ReplyAction::Deliver(GIVEN, lost()));
        let unknown = Tag { owner: OWNER, step: 9 };
        assert_eq!(retransmissions.reply(unknown, lost()), ReplyAction::Deliver(unknown, lost()));
    }
}
