//! Policy Control Function: access and mobility policies (TS 29.507), session management policies
//! (TS 29.512).
//!
//! ```text
//!  AMF, SMF ─> Create ──> policy data <─ UDR ──> decision ─> 201
//! ```
//!
//! An AMF or SMF that was killed may not know the association that it created last. It creates it again, and the new one replaces the
//! former one: an NF has one access association for a subscriber, and one session association for a PDU session.
//!
//! Decisions follow the subscription: the session rule authorises the subscribed session-AMBR and default
//! QoS, also after a change; the access policy leaves UE-AMBR, RFSP and service area to the subscription. Operators and applications add PCC rules, with QoS flows of their own, while
//! the session lives ([`rules`], [`applications`]).

mod access;
mod applications;
mod document;
mod latest;
mod rules;
mod session;
#[cfg(test)]
mod tests;

use crate::kit::document::{Document, UnpackError};
use crate::kit::{
    Caller, ContextIds, Contexts, DocumentSink, Identity, Input, Instant, Key, Level, Needs, NetworkFunction,
    Nf, Order, Outbox, Owner, PassedContext, PassedPart, PendingReply, ProcedureName, References, Rng,
    StoreScope, StoredKey, Tag, Target, Tracker, block_of_subscriber,
};
use latest::Latest;
use pith_sbi::npcf_ampolicycontrol::PolicyAssociationRequest;
use pith_sbi::npcf_smpolicycontrol::SmPolicyContextData;
use pith_sbi::nudr_dr::ReadAccessAndMobilityPolicyData;
use pith_sbi::{ApiRoot, Cause, Created, Problem, Reply, Request, Response, Uri};
use pith_types::{BlockId, ContextId, OwnerMap, Supi};
use rules::{Notifications, Rules};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of associations of both kinds.
const LIMIT: u32 = 1 << 23;

/// The context of an association: AM or SM.
#[derive(Debug)]
enum Context {
    Access(Box<PolicyAssociationRequest>),
    Session(Box<SmPolicyContextData>),
}

impl Context {
    /// The subscriber.
    const fn ue(&self) -> &Supi {
        match self {
            Self::Access(request) => &request.supi,
            Self::Session(data) => &data.supi,
        }
    }

    /// Where the consumer gets notifications: the URI names its context.
    fn notification_uri(&self) -> &Uri {
        match self {
            Self::Access(request) => &request.notification_uri,
            Self::Session(data) => &data.notification_uri,
        }
    }
}

/// One policy association.
#[derive(Debug)]
struct Association {
    /// Its name in references.
    id: ContextId,
    context: Context,
    owner: Owner,
    /// The answer to its creation, until the policy data have arrived.
    creating: Option<PendingReply>,
    /// Its PCC rules, if it has some.
    rules: Option<Box<Rules>>,
}

impl Association {
    /// The subscriber.
    const fn ue(&self) -> &Supi {
        self.context.ue()
    }

    /// The procedure that creates it.
    const fn procedure(&self) -> ProcedureName {
        match &self.context {
            Context::Access(_) => ProcedureName::Registration,
            Context::Session(_) => ProcedureName::SessionEstablishment,
        }
    }

    /// The procedure that ends it.
    const fn end_procedure(&self) -> ProcedureName {
        match &self.context {
            Context::Access(_) => ProcedureName::Deregistration,
            Context::Session(_) => ProcedureName::SessionRelease,
        }
    }
}

/// The PCF of a shard.
pub struct Pcf {
    identity: Identity,
    root: Arc<ApiRoot>,
    references: References,
    ids: ContextIds,
    associations: Contexts<Association>,
    latest: Latest,
    /// Associations whose creation is not answered yet.
    creating: usize,
    /// Associations that changed, for a store.
    tracker: Tracker,
    /// Contexts pass through their documents after each step.
    reloads: bool,
    /// Restored associations whose SMF has not answered a notification.
    unanswered: Vec<Key>,
    notifications: Notifications,
}

/// The step of calls that request policy data; others notify SMFs.
const POLICY_DATA: u32 = 0;

impl Pcf {
    /// A PCF without associations.
    pub fn new(identity: &Identity, rng: Rng) -> Self {
        Self {
            identity: identity.clone(),
            root: Arc::clone(&identity.api_root),
            references: References::new(&identity.reference_key),
            ids: ContextIds::new(identity, rng),
            associations: Contexts::new(LIMIT),
            latest: Latest::default(),
            creating: 0,
            tracker: Tracker::default(),
            reloads: false,
            unanswered: Vec::new(),
            notifications: Notifications::default(),
        }
    }

    /// Number of associations.
    pub fn associations(&self) -> usize {
        self.associations.len()
    }

    fn request(&mut self, reply: PendingReply, request: Request, out: &mut Outbox) {
        let from = reply.caller();
        let result = match request {
            Request::CreateAmPolicyAssociation(request) => {
                let query = ReadAccessAndMobilityPolicyData { ue_id: request.body.supi.clone() };
                return self.create(reply, Context::Access(Box::new(request.body)), query.into(), out);
            }
            Request::CreateSmPolicy(request) => {
                let query = session::policy_data(&request.body);
                return self.create(reply, Context::Session(Box::new(request.body)), query.into(), out);
            }
            Request::ReadAmPolicyAssociation(request) => {
                self.access(&request.pol_asso_id, from).map(|(_, context)| {
                    let mut association = access::decide();
                    association.request = Some(context.clone());
                    Response::PolicyAssociation(Box::new(association))
                })
            }
            Request::UpdateAmPolicyAssociation(request) => {
                self.update_access(&request.pol_asso_id, from, request.body)
            }
            Request::DeleteAmPolicyAssociation(request) => {
                let found = self.access(&request.pol_asso_id, from).map(|(key, _)| key);
                found.map(|key| self.delete(key))
            }
            Request::GetSmPolicy(request) => self.session(&request.sm_policy_id, from).and_then(|key| {
                let control = self.associations.get_mut(key).and_then(|it| session::control(it));
                control.map(|control| Response::SmPolicyControl(Box::new(control))).ok_or_else(not_found)
            }),
            Request::UpdateSmPolicy(request) => self.session(&request.sm_policy_id, from).and_then(|key| {
                self.updated(key, &request.body, out);
                let decision = self.associations.get_mut(key).and_then(|it| Self::decision(it));
                decision.map(|it| Response::SmPolicyDecision(Box::new(it))).ok_or_else(not_found)
            }),
            Request::DeleteSmPolicy(request) => self.session(&request.sm_policy_id, from).map(|key| {
                if let Some(association) = self.associations.view(key) {
                    self.terminate_applications(&association, out);
                }
                self.delete(key)
            }),
            Request::PostAppSession(request) => return self.create_application(reply, request.body, out),
            Request::GetAppSession(request) => self.read_application(&request.app_session_id, from),
            Request::ModAppSession(request) => {
                self.change_application(&request.app_session_id, from, request.body, out)
            }
            Request::DeleteAppSession(request) => self.delete_application(&request.app_session_id, from, out),
            Request::UpdateEventsSubsc(request) => {
                self.subscribe_application(&request.app_session_id, from, Some(request.body))
            }
            Request::DeleteEventsSubsc(request) => {
                self.subscribe_application(&request.app_session_id, from, None)
            }
            _ => Err(Box::new(Problem::new(Cause::ResourceUriStructureNotFound))),
        };
        reply.complete(result, out);
    }

    fn create(&mut self, reply: PendingReply, context: Context, query: Request, out: &mut Outbox) {
        let owner = Owner::of(reply.caller());
        if self.associations.len() == LIMIT as usize {
            return reply.refuse(Problem::congestion(1), out);
        }
        // A later request of another process reaches the shard that has the subscriber's block then, and replaces this association. A callback
        // of another process names a block of that process.
        let block = if reply.is_remote() { block_of_subscriber(context.ue()) } else { None };
        let ids = &mut self.ids;
        let key = self.associations.insert_with(|key| {
            let id = match block {
                Some(block) => ids.allocate_in(block, key),
                None => ids.allocate_beside(context.notification_uri(), key),
            };
            Box::new(Association { id, context, owner, creating: Some(reply), rules: None })
        });
        // The bound was checked.
        let Some(key) = key else { return };
        self.creating += 1;
        self.replace_former(key);
        self.changed(key);
        out.call(Tag::new(key.to_u64(), POLICY_DATA), Target::any(), query);
    }

    /// The UDR's reply: the association is created even without policy data. Refused are an unknown subscriber, and a request of which a
    /// later one exists, or whose caller has given up.
    fn policy_data(&mut self, tag: Tag, reply: Reply, out: &mut Outbox) {
        let key = Key::from_u64(tag.owner);
        let Some(association) = self.associations.get_mut(key) else { return };
        let Some(creating) = association.creating.take() else { return };
        self.creating -= 1;
        self.changed(key);
        if !self.is_latest(key) {
            self.delete(key);
            return creating.refuse(Problem::of_status(409).detail("a later request replaces this one"), out);
        }
        if reply.as_ref().is_err_and(|problem| problem.status == 504) {
            // The caller does not wait longer than this PCF did: it would not know the association.
            self.delete(key);
            return creating.refuse(Problem::timed_out(), out);
        }
        let refused = reply.err().filter(|problem| problem.details.cause == Some(Cause::UserNotFound));
        if refused.is_some() {
            self.delete(key);
            return creating.refuse(Problem::new(Cause::UserUnknown), out);
        }
        let created = self.created(key).ok_or_else(not_found);
        creating.complete(created, out);
    }

    /// A context has changed. In simulations it passes through its document.
    fn changed(&mut self, key: Key) {
        if self.tracker.tracking().is_some()
            && let Some(id) = self.associations.id(key)
        {
            let procedure = self.associations.view(key).map(|it| it.procedure());
            self.tracker.note_change(id, procedure);
        }
        if self.reloads {
            self.reload(key);
        }
    }

    fn created(&mut self, key: Key) -> Option<Response> {
        let is_access = matches!(self.associations.get_mut(key)?.context, Context::Access(_));
        let location = if is_access { self.access_uri(key) } else { self.session_uri(key) };
        let association = self.associations.get_mut(key)?;
        Some(match &association.context {
            Context::Access(_) => {
                let body = access::decide();
                Response::PolicyAssociationCreated(Box::new(Created { location, body }))
            }
            Context::Session(_) => {
                let body = Self::decision(association)?;
                Response::SmPolicyDecisionCreated(Box::new(Created { location, body }))
            }
        })
    }

    fn delete(&mut self, key: Key) -> Response {
        if let Some(association) = self.associations.remove(key) {
            self.latest.remove(association.purpose(), key);
            self.ids.free(association.id);
            self.tracker.note_end(association.id, association.end_procedure());
        }
        Response::NoContent
    }

    fn access(&mut self, id: &str, from: Caller) -> Result<(Key, &PolicyAssociationRequest), Box<Problem>> {
        match self.find(id, from)? {
            (key, Context::Access(context)) => Ok((key, context)),
            _ => Err(not_found()),
        }
    }

    fn session(&mut self, id: &str, from: Caller) -> Result<Key, Box<Problem>> {
        match self.find(id, from)? {
            (key, Context::Session(_)) => Ok(key),
            _ => Err(not_found()),
        }
    }

    /// The association of that id, if it is the caller's.
    fn find(&mut self, id: &str, from: Caller) -> Result<(Key, &Context), Box<Problem>> {
        let key = self.find_any(id)?;
        let association = self.associations.get_mut(key).ok_or_else(not_found)?;
        association.owner.check(from)?;
        Ok((key, &association.context))
    }

    /// The association of that id.
    fn find_any(&mut self, id: &str) -> Result<Key, Box<Problem>> {
        let id = self.references.id(id).ok_or_else(not_found)?;
        let key = self.ids.find(id).ok_or_else(not_found)?;
        // Until its creation is answered, no NF knows the association's id.
        let association = self.associations.get_mut(key).filter(|association| association.creating.is_none());
        association.map(|_| key).ok_or_else(not_found)
    }

    /// Takes an association that another shard has given away.
    fn take_association(
        &mut self,
        id: ContextId,
        document: &Document,
        stored: Option<u32>,
    ) -> Result<(), UnpackError> {
        self.ids.check_free(id)?;
        let association = document::unpack(document.octets(), id)?;
        let purpose = association.purpose();
        let key = self.associations.insert_with(|_| Box::new(association)).ok_or(UnpackError::NoRoom)?;
        self.ids.claim(id, key);
        self.latest.note_if_first(purpose, key);
        self.tracker.note_passed(id, stored);
        Ok(())
    }

    /// The reference of an association.
    fn reference(&self, key: Key) -> String {
        let id = self.associations.id(key);
        id.map(|id| self.references.of_id(id)).unwrap_or_default()
    }

    fn access_uri(&self, key: Key) -> Uri {
        Uri::new(&self.root, &format!("/npcf-am-policy-control/v1/policies/{}", self.reference(key)))
    }

    fn session_uri(&self, key: Key) -> Uri {
        Uri::new(&self.root, &format!("/npcf-smpolicycontrol/v1/sm-policies/{}", self.reference(key)))
    }
}

fn not_found() -> Box<Problem> {
    Box::new(Problem::new(Cause::PolicyAssociationNotFound))
}

impl NetworkFunction for Pcf {
    fn handle(&mut self, _now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Request { reply, request } => self.request(reply, request, out),
            Input::Reply { tag, reply, .. } if tag.step != POLICY_DATA => self.notified(tag, reply, out),
            Input::Reply { tag, reply, .. } => self.policy_data(tag, reply, out),
            Input::N2(_) | Input::N4(_) | Input::Routed { .. } | Input::Stored { .. } | Input::Timer(_) => {}
        }
        self.associations.pack_idle();
    }

    fn operate(&mut self, _now: Instant, what: &Order, out: &mut Outbox, list: &mut Vec<Value>) {
        let refusal = match what {
            Order::AddRule { supi, pdu_session_id, rule } => {
                self.order_rules((supi, *pdu_session_id), out, |rules, context| {
                    Self::add_rule(rules, context, rule)
                })
            }
            Order::RemoveRule { supi, pdu_session_id, name } => {
                self.order_rules((supi, *pdu_session_id), out, |rules, _| Self::remove_rule(rules, name))
            }
            _ => return,
        };
        list.extend(refusal.map(|refusal| json!({ "refusal": refusal })));
    }

    fn absent_for(&self, order: &Order) -> Option<ContextId> {
        match order {
            Order::AddRule { supi, pdu_session_id, .. } | Order::RemoveRule { supi, pdu_session_id, .. } => {
                self.associations.absent(self.find_session(supi, *pdu_session_id)?)
            }
            _ => None,
        }
    }

    fn has_context(&self, request: &Request) -> bool {
        let Request::PostAppSession(request) = request else { return true };
        request.body.asc_req_data.as_ref().is_none_or(|request| self.bound_session(request).is_some())
    }

    fn resume_contexts(&mut self, _now: Instant, out: &mut Outbox) {
        self.repeat_notifications(out);
    }

    fn resume_restored(&mut self, _now: Instant, _is_needed: bool, out: &mut Outbox) {
        self.repeat_notifications(out);
    }

    fn change_owners(&mut self, owners: &Arc<OwnerMap>) {
        self.identity.owners = Arc::clone(owners);
        self.ids.change_blocks(&self.identity);
    }

    fn unsettled(&self, block: BlockId) -> Option<ContextId> {
        self.ids.of_block(block).map(|(id, _)| id).find(|id| self.is_unsettled(*id))
    }

    fn is_unsettled(&self, id: ContextId) -> bool {
        let Some(key) = self.ids.find(id) else { return false };
        // Without a copy here, its document must be read first.
        self.associations.view(key).is_none_or(|association| association.creating.is_some())
    }

    fn pass_block(&mut self, _now: Instant, block: BlockId, out: &mut Outbox) -> PassedPart {
        let mut ids: Vec<_> = self.ids.of_block(block).collect();
        ids.sort_unstable();
        let mut part = PassedPart::default();
        for (id, key) in ids {
            let Some(association) = self.associations.remove(key) else { continue };
            self.latest.remove(association.purpose(), key);
            self.ids.free(id);
            match document::pack(&association) {
                Ok(document) => {
                    let stored = self.tracker.counts_below(id);
                    part.contexts.push(PassedContext { id, key: key.to_u64(), document, stored });
                }
                Err(error) => out.log(Level::Error, || format!("a policy association is lost: {error}")),
            }
        }
        self.tracker.forget_block(block);
        part
    }

    fn take_block(&mut self, _now: Instant, _block: BlockId, part: PassedPart, out: &mut Outbox) {
        for PassedContext { id, document, stored, .. } in part.contexts {
            if let Err(error) = self.take_association(id, &document, stored) {
                out.log(Level::Error, || format!("policy association {id} is lost: {error}"));
            }
        }
        self.associations.pack_idle();
    }

    fn key_of(&self, id: ContextId) -> Option<u64> {
        self.ids.find(id).map(Key::to_u64)
    }

    fn contexts_in(&self, block: BlockId) -> usize {
        self.ids.of_block(block).count()
    }

    fn replies_owed(&self) -> Option<usize> {
        Some(self.creating)
    }

    fn reload_contexts(&mut self) {
        self.reloads = true;
        self.associations.keep_cold();
    }

    fn store_contexts(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        for (id, procedure) in self.tracker.take(scope) {
            sink.begin_procedure(procedure);
            let stored = StoredKey { nf: Nf::Pcf, id };
            if self.ids.find(id).is_some_and(|key| !self.associations.is_resident(key)) {
                continue;
            }
            let association = self.ids.find(id).and_then(|key| self.associations.view(key));
            // An association that is not answered yet is created again by a new request.
            let association = association.filter(|association| association.creating.is_none());
            let packed = association.and_then(|it| Some((it.ue().clone(), document::pack(&it).ok()?)));
            match packed {
                Some((ue, document)) => {
                    sink.write(stored, Some(&ue), &document);
                    self.tracker.note_stored(id, 0);
                }
                None if self.tracker.note_deleted(id) => sink.delete(stored),
                None => {}
            }
        }
    }

    fn tracker(&self) -> Option<&Tracker> {
        Some(&self.tracker)
    }

    fn tracker_mut(&mut self) -> Option<&mut Tracker> {
        Some(&mut self.tracker)
    }

    fn context_of(&self, input: &Input) -> Option<ContextId> {
        let reference = match input {
            Input::Reply { tag, .. } => return self.associations.id(Key::from_u64(tag.owner)),
            Input::Request { request: Request::ReadAmPolicyAssociation(request), .. } => &request.pol_asso_id,
            Input::Request { request: Request::UpdateAmPolicyAssociation(request), .. } => {
                &request.pol_asso_id
            }
            Input::Request { request: Request::DeleteAmPolicyAssociation(request), .. } => {
                &request.pol_asso_id
            }
            Input::Request { request: Request::GetSmPolicy(request), .. } => &request.sm_policy_id,
            Input::Request { request: Request::UpdateSmPolicy(request), .. } => &request.sm_policy_id,
            Input::Request { request: Request::DeleteSmPolicy(request), .. } => &request.sm_policy_id,
            Input::Request { request: Request::PostAppSession(request), .. } => {
                let key = self.bound_session(request.body.asc_req_data.as_ref()?)?;
                return self.associations.id(key);
            }
            Input::Request { request: Request::GetAppSession(request), .. } => {
                return applications::association_of(&self.references, &request.app_session_id);
            }
            Input::Request { request: Request::ModAppSession(request), .. } => {
                return applications::association_of(&self.references, &request.app_session_id);
            }
            Input::Request { request: Request::DeleteAppSession(request), .. } => {
                return applications::association_of(&self.references, &request.app_session_id);
            }
            Input::Request { request: Request::UpdateEventsSubsc(request), .. } => {
                return applications::association_of(&self.references, &request.app_session_id);
            }
            Input::Request { request: Request::DeleteEventsSubsc(request), .. } => {
                return applications::association_of(&self.references, &request.app_session_id);
            }
            _ => return None,
        };
        self.references.id(reference)
    }

    fn needs(&self, input: &Input) -> Needs {
        match input {
            // It may replace one that is not restored.
            Input::Request {
                request:
                    Request::CreateAmPolicyAssociation(_)
                    | Request::CreateSmPolicy(_)
                    | Request::PostAppSession(_),
                ..
            } => Needs::All,
            // An AMF that goes on with another one's association may have had one for the subscriber before.
            Input::Request { request: Request::UpdateAmPolicyAssociation(request), .. }
                if request.body.notification_uri.is_some() =>
            {
                Needs::All
            }
            input => self.context_of(input).map_or(Needs::Nothing, Needs::Context),
        }
    }

    fn begin_restoring(&mut self, blocks: &BTreeSet<BlockId>) {
        self.ids.begin_restoring(blocks);
    }

    fn note_restored(&mut self, block: BlockId) {
        self.ids.note_restored(block);
    }

    fn is_resident(&self, id: ContextId) -> bool {
        self.ids.find(id).is_none_or(|key| self.associations.is_resident(key))
    }

    fn drop_context(&mut self, id: ContextId) -> bool {
        let Some(key) = self.ids.find(id).filter(|_| self.tracker.is_current(id)) else { return false };
        let is_creating = self.associations.view(key).is_some_and(|it| it.creating.is_some());
        if !is_creating {
            self.associations.drop_copy(key);
        }
        !is_creating
    }

    fn put_context(
        &mut self,
        _now: Instant,
        id: ContextId,
        document: &[u8],
        _out: &mut Outbox,
    ) -> Result<(), UnpackError> {
        let Some(key) = self.ids.find(id) else { return Ok(()) };
        if self.associations.mark_of_absent(key).is_some() {
            self.associations.put(key, Box::new(document::unpack(document, id)?));
            self.associations.pack_idle();
        }
        Ok(())
    }

    fn forget_context(&mut self, _now: Instant, id: ContextId, _out: &mut Outbox) {
        let Some(key) = self.ids.find(id) else { return };
        if let Some(mark) = self.associations.abandon(key) {
            self.latest.remove(mark.purpose, key);
            self.ids.free(id);
            self.tracker.note_end(id, ProcedureName::Other);
        }
    }

    fn take_missed(&mut self) -> Vec<ContextId> {
        self.associations.take_missed()
    }

    fn restore_context(
        &mut self,
        _now: Instant,
        id: ContextId,
        document: &[u8],
        is_stale: bool,
    ) -> Result<(), UnpackError> {
        self.ids.check_free(id)?;
        let mut association = document::unpack(document, id)?;
        association.creating = None;
        let is_unanswered = association.rules.as_ref().is_some_and(|rules| !rules.unanswered.is_empty());
        let placed = self.associations.insert_with(|_| Box::new(association));
        let key = placed.ok_or(UnpackError::NoRoom)?;
        self.ids.claim(id, key);
        self.unanswered.extend(is_unanswered.then_some(key));
        self.tracker.note_stored(id, 0);
        if is_stale {
            // The next writer of a document that all NFs share would leave an outdated context out.
            self.tracker.keep_change((id, ProcedureName::Other));
        }
        self.replace_former(key);
        self.associations.pack_idle();
        Ok(())
    }
}
