//! Bounds the access tokens that refusals cost: a producer that refuses every token must not have the NRF sign one for each call.
//!
//! ```text
//!  401 invalid_token ─> first token that this producer refuses for a while ─> new token, the call is repeated once
//!                  └──> a new token was refused a moment ago ────────────────> the call fails
//! ```

use crate::token::ShardToken;
use pith_nf::kit::Nf;
use pith_sbi::{ApiRoot, ServiceName};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shortest interval of new tokens for one use, as a shard has its own tokens.
const PAUSE: Duration = Duration::from_secs(5);

/// Uses that are remembered at most: there is one for each shard, NF, producer and service, if all of them refuse tokens.
const LIMIT: usize = 1024;

/// The purpose of a token, and who refuses it: another producer of the service may accept what this one does not.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Use {
    shard: u16,
    consumer: Nf,
    service: ServiceName,
    producer: Arc<ApiRoot>,
}

/// The token in place of which a new one was last requested. Without `Debug`, as no token may reach a log.
struct Refused {
    token: Arc<str>,
    at: Instant,
}

/// The refusals of the last [`PAUSE`].
#[derive(Default)]
pub(super) struct Renewals(RefCell<HashMap<Use, Refused>>);

impl Renewals {
    /// Whether the call whose token `producer` refused is repeated with a new token. All calls with the same token are: the shard requests
    /// one new token for them.
    pub(super) fn admit(
        &self,
        now: Instant,
        caller: ShardToken,
        producer: &Arc<ApiRoot>,
        service: ServiceName,
        token: &Arc<str>,
    ) -> bool {
        let producer = Arc::clone(producer);
        let purpose = Use { shard: caller.shard, consumer: caller.nf, service, producer };
        let mut refused = self.0.borrow_mut();
        let is_recent = |refused: &Refused| now - refused.at < PAUSE;
        if let Some(former) = refused.get(&purpose).filter(|former| is_recent(former)) {
            return former.token == *token;
        }
        if refused.len() >= LIMIT {
            refused.retain(|_, former| is_recent(former));
        }
        if refused.len() >= LIMIT {
            return false;
        }
        refused.insert(purpose, Refused { token: Arc::clone(token), at: now });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_nf::kit::Tag;
    use pith_sbi::Scheme;

    fn root(port: u16) -> Arc<ApiRoot> {
        Arc::new(ApiRoot::new(Scheme::Http, &format!("127.0.0.1:{port}")))
    }

    fn admit(renewals: &Renewals, now: Instant, producer: u16, token: &str) -> bool {
        let caller = ShardToken { shard: 0, nf: Nf::Amf, tag: Tag::new(1, 1) };
        renewals.admit(now, caller, &root(producer), ServiceName::NudmSdm, &token.into())
    }

    #[test]
    fn a_use_gets_one_new_token_in_five_seconds() {
        let (renewals, now) = (Renewals::default(), Instant::now());
        let soon = now + PAUSE - Duration::from_millis(1);
        assert!(admit(&renewals, now, 1, "a"));
        assert!(admit(&renewals, soon, 1, "a"), "another call with the same token");
        assert!(!admit(&renewals, soon, 1, "b"), "the new token");
        assert!(admit(&renewals, soon, 2, "b"), "another producer");
        assert!(admit(&renewals, now + PAUSE, 1, "b"));
        assert!(!admit(&renewals, now + PAUSE, 1, "c"));
    }

    #[test]
    fn many_producers_that_refuse_tokens_do_not_fill_the_memory() {
        let (renewals, now) = (Renewals::default(), Instant::now());
        let admitted = (0..2000).filter(|producer| admit(&renewals, now, *producer, "a")).count();
        assert_eq!((admitted, renewals.0.borrow().len()), (LIMIT, LIMIT));
        assert!(admit(&renewals, now + PAUSE, 2000, "a"));
        assert_eq!(renewals.0.borrow().len(), 1);
    }
}
