//! What an NF is told.

use super::{Caller, N2Input, N4Input, StoreError, StoreResponse, Tag, TimerKey};
use pith_sbi::{ApiRoot, Problem, Request, Response};
use std::sync::Arc;

/// One thing that happened, for one NF.
#[derive(Debug)]
pub enum Input {
    /// From the N2 gateway; AMF only.
    N2(N2Input),
    /// From the N4 gateway; SMF only.
    N4(Box<N4Input>),
    /// Another NF asks for a service; answer `from` once, now or later.
    Request {
        /// Whom to answer.
        from: Caller,
        /// What is asked.
        request: Request,
    },
    /// A call of this NF was answered, or failed: no instance, timeout and cancellation are
    /// problems too.
    Reply {
        /// As given with the call.
        tag: Tag,
        /// Who answered; further operations on the resource go there.
        from: Option<Arc<ApiRoot>>,
        /// The answer.
        reply: Result<Response, Box<Problem>>,
    },
    /// The database did what was asked; UDR only.
    Stored {
        /// As given with the request.
        tag: Tag,
        /// What came of it.
        result: Result<StoreResponse, StoreError>,
    },
    /// A timer ran out.
    Timer(TimerKey),
}
