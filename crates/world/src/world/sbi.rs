//! SBI calls between processes: HTTP/2 over a network that may lose a request or a reply, and a
//! client with a deadline.

use super::{SimEvent, World};
use crate::journal::CallerId;
use crate::network::root;
use crate::observed::actor;
use pith_nf::fabric::{Bearer, ShardInput, shard_of_remote};
use pith_nf::kit::{Caller, Nf, Tag};
use pith_sbi::{ApiRoot, Problem, ProblemMore, Reply, Request};
use std::sync::Arc;
use std::time::Duration;

/// Deadline of a client.
const DEADLINE: Duration = Duration::from_secs(5);

/// A reply, and its sender.
pub(super) type Answered = (Option<Arc<ApiRoot>>, Reply);

/// A pending call.
#[derive(Debug)]
pub(super) struct Exchange {
    caller: CallerId,
    caller_incarnation: u32,
    tag: Tag,
    target: (usize, usize, Nf),
    target_incarnation: u32,
    request: Option<Request>,
    bearer: Option<Bearer>,
    /// A copy of the request, to be repeated if the producer refuses the token.
    again: Option<(Arc<ApiRoot>, Box<Request>)>,
    /// A copy of the request, to be sent to another instance of the set, and how often.
    redirected: Option<(Box<Request>, u8)>,
    /// Whether the request creates a resource that leaks if the caller does not receive the reply.
    creates: bool,
}

impl Exchange {
    pub(super) const fn target_process(&self) -> usize {
        self.target.0
    }

    pub(super) const fn caller_process(&self) -> usize {
        self.caller.0
    }
}

/// Redirections of one request that are followed, as in the runtime.
const REDIRECTIONS: u8 = 2;

impl World {
    pub(super) fn http_call(
        &mut self,
        caller: CallerId,
        tag: Tag,
        to: &Arc<ApiRoot>,
        request: Request,
        bearer: Option<Bearer>,
    ) {
        self.http_call_or_follow((caller, tag), to, request, bearer, REDIRECTIONS);
    }

    fn http_call_or_follow(
        &mut self,
        (caller, tag): (CallerId, Tag),
        to: &Arc<ApiRoot>,
        request: Request,
        bearer: Option<Bearer>,
        redirections: u8,
    ) {
        self.numbered += 1;
        let number = self.numbered;
        let process = (0..self.processes.len()).find(|process| root(*process) == *to);
        let target = target_nf(&request).zip(process);
        let target =
            target.map(|(nf, process)| (process, self.shard_for((process, nf), &request, number), nf));
        let Some(target) = target.filter(|(process, ..)| self.processes[*process].is_running()) else {
            return self.unreachable(number, caller, tag);
        };
        self.record(actor(caller.2), actor(target.2), request.operation().name());
        let is_first = bearer.as_ref().is_some_and(|bearer| !bearer.renewed);
        let again = is_first.then(|| (Arc::clone(to), Box::new(request.clone())));
        let may_follow = self.plan.instances > 0 && redirections > 0;
        let redirected = may_follow.then(|| (Box::new(request.clone()), redirections - 1));
        let mut exchange = self.exchange(caller, tag, target, Some(request));
        exchange.redirected = redirected;
        (exchange.bearer, exchange.again) = (bearer, again);
        self.exchanges.insert(number, exchange);
        if !self.fault_occurs(self.plan.faults.request_loss) {
            let after = self.dice.millis(1, 20);
            self.at(after, SimEvent::SbiRequest { exchange: number });
        }
        let late: Answered = (None, Err(Box::new(Problem::timed_out())));
        self.at(DEADLINE, SimEvent::SbiReply { exchange: number, reply: Box::new(late) });
    }

    fn exchange(
        &self,
        caller: CallerId,
        tag: Tag,
        target: (usize, usize, Nf),
        request: Option<Request>,
    ) -> Exchange {
        let creates = request.as_ref().is_some_and(creates);
        let (caller_incarnation, target_incarnation) =
            (self.processes[caller.0].incarnation, self.processes[target.0].incarnation);
        Exchange {
            caller,
            caller_incarnation,
            tag,
            target,
            target_incarnation,
            request,
            bearer: None,
            again: None,
            redirected: None,
            creates,
        }
    }

    /// The destination is down: the client gets an error at once.
    fn unreachable(&mut self, number: u64, caller: CallerId, tag: Tag) {
        let exchange = self.exchange(caller, tag, caller, None);
        self.exchanges.insert(number, exchange);
        let reply: Answered = (None, Err(Box::new(Problem::not_reachable("connection refused"))));
        self.at(Duration::from_millis(1), SimEvent::SbiReply { exchange: number, reply: Box::new(reply) });
    }

    /// The shard of the server's process to which the server passes the request: the owner of the context that the request
    /// names, else any.
    fn shard_for(&self, (process, nf): (usize, Nf), request: &Request, number: u64) -> usize {
        let any = || number as usize % self.plan.shards;
        let owners = &self.processes[process].owners;
        let owner = || shard_of_remote(owners, self.plan.instance(process), request).map(usize::from);
        if nf == Nf::Nrf { 0 } else { owner().unwrap_or_else(any) }
    }

    /// The request has arrived at the server.
    pub(super) fn sbi_request(&mut self, number: u64) {
        let Some(exchange) = self.exchanges.get_mut(&number) else { return };
        let (process, shard, nf) = exchange.target;
        let incarnation = exchange.target_incarnation;
        let Some(request) = exchange.request.take() else { return };
        let (caller, caller_incarnation, bearer) =
            (exchange.caller, exchange.caller_incarnation, exchange.bearer.clone());
        if self.processes[process].is_running_as(incarnation) {
            if let Err(refusal) = self.admit(process, &request, bearer.as_ref()) {
                return self.http_answer(number, root(process), Err(refusal.problem().into()));
            }
            let client = self.client(caller, caller_incarnation);
            let from = Caller::Remote { exchange: number, client };
            self.to_shard(process, shard, ShardInput::Request { from, nf, request });
        }
    }

    /// The server replies.
    pub(super) fn http_answer(&mut self, number: u64, from: Arc<ApiRoot>, reply: Reply) {
        let Some(exchange) = self.exchanges.get(&number) else {
            // The caller gave up before, so it does not know the created resource.
            self.watch.may_leak |= reply.is_ok();
            return;
        };
        let creates = exchange.creates;
        if self.fault_occurs(self.plan.faults.reply_loss) {
            self.watch.may_leak |= creates;
            return;
        }
        let after = self.dice.millis(1, 20);
        self.at(after, SimEvent::SbiReply { exchange: number, reply: Box::new((Some(from), reply)) });
    }

    /// The client receives the reply, or its deadline passes; the later of the two is ignored.
    pub(super) fn sbi_reply(&mut self, number: u64, (from, reply): Answered) {
        let Some(exchange) = self.exchanges.remove(&number) else {
            self.watch.may_leak |= reply.is_ok();
            return;
        };
        let (process, shard, nf) = exchange.caller;
        if self.processes[process].is_running_as(exchange.caller_incarnation) {
            // The instance of the set that has the context (TS 29.500 6.10.9).
            if let (Some(root), Some((request, left))) = (redirection(&reply), exchange.redirected) {
                let call = (exchange.caller, exchange.tag);
                return self.http_call_or_follow(call, &root, *request, exchange.bearer, left);
            }
            let is_refused = reply.as_ref().is_err_and(|problem| problem.is_invalid_token());
            if let (true, Some((root, request)), Some(bearer)) = (is_refused, exchange.again, exchange.bearer)
            {
                let input = ShardInput::TokenRefused { nf, tag: exchange.tag, root, request, bearer };
                return self.to_shard(process, shard, input);
            }
            self.to_shard(process, shard, ShardInput::Reply { nf, tag: exchange.tag, from, reply });
        } else {
            // As after a lost reply: what the killed caller had created is known if its UE makes the request again.
            self.watch.may_leak |= exchange.creates && reply.is_ok();
        }
    }
}

/// Where a reply redirects its request.
fn redirection(reply: &Reply) -> Option<Arc<ApiRoot>> {
    match reply.as_ref().err()?.more.as_ref()? {
        ProblemMore::Redirect(target) => Some(Arc::clone(&target.root)),
        _ => None,
    }
}

/// The NF that a request is for; notifications of the NRF are for agents.
fn target_nf(request: &Request) -> Option<Nf> {
    match request {
        Request::NfStatusNotify(_) => Some(Nf::Agent),
        request => Nf::of_type(&request.target_nf()?),
    }
}

/// Whether a lost reply leaves a resource that the caller does not know.
fn creates(request: &Request) -> bool {
    matches!(
        request,
        Request::PostSmContexts(_)
            | Request::CreateSmPolicy(_)
            | Request::CreateAmPolicyAssociation(_)
            | Request::UeContextTransfer(_)
    )
}
