//! Inputs of an NF.

use super::{N2Input, N4Input, PendingReply, StoreError, StoreResponse, Tag, TimerKey};
use pith_sbi::{ApiRoot, NfInstanceId, Problem, Request, Response};
use std::sync::Arc;

/// One input of an NF.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Input {
    /// From the N2 gateway; AMF only.
    N2(N2Input),
    /// From the N4 gateway; SMF only.
    N4(Box<N4Input>),
    /// A request of another NF, which waits for the reply, now or later.
    Request { reply: PendingReply, request: Request },
    /// The reply to a call of this NF, or its failure: no instance, timeout and cancellation are
    /// also problems.
    Reply {
        /// As given with the call.
        tag: Tag,
        /// The instance that answered, or that got the call over HTTP/2 and did not answer; further operations on the resource are sent to it.
        from: Option<Arc<ApiRoot>>,
        reply: Result<Response, Box<Problem>>,
    },
    /// The NF instance to which a CreateSMContext request of this NF is sent; AMF only. Comes before any reply, and before
    /// any request that the SMF sends because of it. Missing if no instance is known at the configured address.
    Routed {
        /// As given with the call.
        tag: Tag,
        instance: NfInstanceId,
    },
    /// The result of a database request; UDR only.
    Stored {
        /// As given with the request.
        tag: Tag,
        result: Result<StoreResponse, StoreError>,
    },
    /// A timer expired.
    Timer(TimerKey),
}
