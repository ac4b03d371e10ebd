//! An observed NF: its SBI calls are recorded, and the world can inspect it.

use crate::journal::{Callback, CallerId, Journal, SharedJournal, Vector};
use pith_nf::kit::document::UnpackError;
use pith_nf::kit::{
    AddressNews, Caller, DocumentSink, Effect, Fate, Input, Inspect, Instant, MovedConnection, N2Effect,
    Needs, NetworkFunction, Nf, Order, Outbox, PassedPart, SetInstances, StoreScope, Tracking,
};
use pith_sbi::namf_communication as namf;
use pith_sbi::nudm_ueau::AuthenticationVector;
use pith_sbi::{Reply, Request, Response};
use pith_types::{BlockId, ContextId, OwnerMap};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An NF, and whether its state may have changed since [`NfView::take_changed`].
struct Watched<T> {
    nf: Mutex<T>,
    is_changed: AtomicBool,
}

impl<T> Watched<T> {
    fn lock(&self) -> MutexGuard<'_, T> {
        self.nf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The world's access to an NF.
pub(crate) struct NfView<T>(Arc<Watched<T>>);

impl<T> NfView<T> {
    pub fn look(&self) -> MutexGuard<'_, T> {
        self.0.lock()
    }

    /// Whether the state may have changed since the last call.
    pub fn take_changed(&self) -> bool {
        self.0.is_changed.swap(false, Ordering::Relaxed)
    }
}

/// Wraps the NF in its shard.
pub(crate) struct Observed<T> {
    place: CallerId,
    watched: Arc<Watched<T>>,
    journal: SharedJournal,
}

impl<T> Observed<T> {
    pub fn new(place: CallerId, inner: T, journal: SharedJournal) -> (Self, NfView<T>) {
        let watched = Arc::new(Watched { nf: Mutex::new(inner), is_changed: true.into() });
        (Self { place, watched: Arc::clone(&watched), journal }, NfView(watched))
    }

    fn inner(&self) -> MutexGuard<'_, T> {
        self.watched.lock()
    }

    /// For what may change its state.
    fn inner_mut(&mut self) -> MutexGuard<'_, T> {
        self.watched.is_changed.store(true, Ordering::Relaxed);
        self.watched.lock()
    }

    fn note_input(&self, input: &Input) {
        let mut journal = self.journal.open();
        match input {
            Input::Request { reply, request } => {
                if let Caller::Local { nf, .. } | Caller::Shard { nf, .. } = reply.caller() {
                    journal.record(actor(nf), actor(self.place.2), request.operation().name());
                }
                note_callback(&mut journal, request);
                if let Request::CreateUeContext(creation) = request {
                    self.note_derived_key(&mut journal, &creation.body.ue_context);
                }
            }
            Input::Reply { tag, reply, .. } => {
                journal.open_calls.remove(&(self.place, *tag));
                if let Ok(Response::UeContextTransferred(transferred)) = reply {
                    self.note_derived_key(&mut journal, &transferred.ue_context);
                }
            }
            _ => {}
        }
    }

    fn note_effect(&self, effect: &Effect) {
        match effect {
            Effect::Call { tag, request, .. } => {
                self.journal.open().open_calls.insert((self.place, *tag));
                if let Request::N1MessageNotify(notification) = request {
                    self.note_passed_on(&notification.body);
                }
            }
            Effect::Answer { reply, .. } if self.place.2 == Nf::Ausf => self.note_key(reply),
            Effect::Answer { reply, .. } if self.place.2 == Nf::Udm => self.note_vector(reply),
            _ => {}
        }
    }

    fn note_vector(&self, reply: &Reply) {
        let Ok(Response::AuthenticationInfoResult(result)) = reply else { return };
        let (rand, autn) = match &result.authentication_vector {
            Some(AuthenticationVector::FiveGHeAka(vector)) => (vector.rand, vector.autn),
            Some(AuthenticationVector::EapAkaPrime(vector)) => (vector.rand, vector.autn),
            None => return,
        };
        let Some(supi) = &result.supi else { return };
        self.journal.open().vectors.push((supi.to_string(), Vector { rand: rand.0, autn: autn.0 }));
    }

    /// This AMF gets a key that another AMF has derived. The key is this AMF's only: the other one goes on with its own if the UE does not come.
    fn note_derived_key(&self, journal: &mut Journal, context: &namf::UeContext) {
        let (Some(supi), Some(seaf)) = (&context.supi, &context.seaf_data) else { return };
        if seaf.key_amf.key_type == namf::KeyAmfType::Kprimeamf {
            let (key, process) = (seaf.key_amf.key_val.0.clone(), self.place.0);
            journal.derived_keys.entry((supi.to_string(), process)).or_default().insert(key);
        }
    }

    /// This AMF passes the UE of a connection on.
    fn note_passed_on(&self, notification: &namf::N1MessageNotification) {
        let Some(container) = &notification.registration_ctxt_container else { return };
        let gnb = container.ran_node_id.g_nb_id.as_ref();
        let gnb = gnb.and_then(|gnb| u32::from_str_radix(&gnb.g_nb_value, 16).ok());
        if let Some(gnb) = gnb {
            let mut journal = self.journal.open();
            let now = journal.now;
            journal.passed_on.insert((gnb, container.an_n2_ap_id), now);
        }
    }

    fn note_key(&self, reply: &Reply) {
        let (supi, key) = match reply {
            Ok(Response::ConfirmationDataResponse(confirmed)) => (&confirmed.supi, &confirmed.kseaf),
            Ok(Response::EapSession(session)) => (&session.supi, &session.kseaf),
            _ => return,
        };
        if let (Some(supi), Some(_)) = (supi, key) {
            *self.journal.open().keys.entry(supi.to_string()).or_default() += 1;
        }
    }
}

impl<T: NetworkFunction> NetworkFunction for Observed<T> {
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox) {
        self.note_input(&input);
        let before = out.effects().len();
        self.inner_mut().handle(now, input, out);
        out.effects().iter().skip(before).for_each(|effect| self.note_effect(effect));
    }

    fn operate(&mut self, now: Instant, what: &Order, out: &mut Outbox, list: &mut Vec<serde_json::Value>) {
        let before = out.effects().len();
        self.inner_mut().operate(now, what, out, list);
        out.effects().iter().skip(before).for_each(|effect| self.note_effect(effect));
    }

    fn inspect(&self, what: Inspect, list: &mut Vec<serde_json::Value>) {
        self.inner().inspect(what, list);
    }

    fn absent_for(&self, order: &Order) -> Option<ContextId> {
        self.inner().absent_for(order)
    }

    fn has_context(&self, request: &Request) -> bool {
        self.inner().has_context(request)
    }

    fn reload_contexts(&mut self) {
        self.inner_mut().reload_contexts();
    }

    fn has_required_contexts(&self) -> bool {
        self.inner().has_required_contexts()
    }

    fn take_awaited(&mut self) -> bool {
        self.inner_mut().take_awaited()
    }

    fn track_contexts(&mut self, tracking: Tracking) {
        self.inner_mut().track_contexts(tracking);
    }

    fn store_contexts(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        self.inner_mut().store_contexts(scope, sink);
    }

    fn restore_context(
        &mut self,
        now: Instant,
        id: ContextId,
        document: &[u8],
        is_stale: bool,
    ) -> Result<(), UnpackError> {
        self.inner_mut().restore_context(now, id, document, is_stale)
    }

    fn begin_restoring(&mut self, blocks: &BTreeSet<BlockId>) {
        self.inner_mut().begin_restoring(blocks);
    }

    fn needs(&self, input: &Input) -> Needs {
        self.inner().needs(input)
    }

    fn note_restored(&mut self, block: BlockId) {
        self.inner_mut().note_restored(block);
    }

    fn resume_restored(&mut self, now: Instant, is_needed: bool, out: &mut Outbox) {
        let before = out.effects().len();
        self.inner_mut().resume_restored(now, is_needed, out);
        out.effects().iter().skip(before).for_each(|effect| self.note_effect(effect));
    }

    fn finish_restoring(&mut self, now: Instant, out: &mut Outbox) {
        let before = out.effects().len();
        self.inner_mut().finish_restoring(now, out);
        out.effects().iter().skip(before).for_each(|effect| self.note_effect(effect));
    }

    fn resume_contexts(&mut self, now: Instant, out: &mut Outbox) {
        let before = out.effects().len();
        self.inner_mut().resume_contexts(now, out);
        out.effects().iter().skip(before).for_each(|effect| self.note_effect(effect));
    }

    fn store_failed(&mut self, id: ContextId) {
        self.inner_mut().store_failed(id);
    }

    fn store_all_contexts(&mut self) {
        self.inner_mut().store_all_contexts();
    }

    fn accept_new_contexts(&mut self, accepted: bool) {
        self.inner_mut().accept_new_contexts(accepted);
    }

    fn context_of(&self, input: &Input) -> Option<ContextId> {
        self.inner().context_of(input)
    }

    fn is_resident(&self, id: ContextId) -> bool {
        self.inner().is_resident(id)
    }

    fn drop_context(&mut self, id: ContextId) -> bool {
        self.inner_mut().drop_context(id)
    }

    fn put_context(
        &mut self,
        now: Instant,
        id: ContextId,
        document: &[u8],
        out: &mut Outbox,
    ) -> Result<(), UnpackError> {
        let before = out.effects().len();
        let put = self.inner_mut().put_context(now, id, document, out);
        out.effects().iter().skip(before).for_each(|effect| self.note_effect(effect));
        put
    }

    fn forget_context(&mut self, now: Instant, id: ContextId, out: &mut Outbox) {
        let before = out.effects().len();
        self.inner_mut().forget_context(now, id, out);
        out.effects().iter().skip(before).for_each(|effect| self.note_effect(effect));
    }

    fn take_missed(&mut self) -> Vec<ContextId> {
        self.inner_mut().take_missed()
    }

    fn begin_take_over(&mut self) {
        self.inner_mut().begin_take_over();
    }

    fn take_over_context(
        &mut self,
        now: Instant,
        id: ContextId,
        document: &[u8],
        fate: Fate,
    ) -> Result<(), UnpackError> {
        self.inner_mut().take_over_context(now, id, document, fate)
    }

    fn finish_take_over(&mut self, now: Instant, out: &mut Outbox) {
        self.inner_mut().finish_take_over(now, out);
    }

    fn in_step(&self) -> Option<ContextId> {
        self.inner().in_step()
    }

    fn has_contexts(&self) -> bool {
        self.inner().has_contexts()
    }

    fn touched(&self) -> usize {
        self.inner().touched()
    }

    fn touched_at(&self, number: usize) -> Option<ContextId> {
        self.inner().touched_at(number)
    }

    fn take_touched(&mut self, list: &mut Vec<ContextId>) {
        self.inner_mut().take_touched(list);
    }

    fn is_in_transaction(&self, id: ContextId) -> bool {
        self.inner().is_in_transaction(id)
    }

    fn is_store_failing(&self) -> bool {
        self.inner().is_store_failing()
    }

    fn note_written(&mut self) {
        self.inner_mut().note_written();
    }

    fn withholds(&self, message: &N2Effect) -> bool {
        self.inner().withholds(message)
    }

    fn change_owners(&mut self, owners: &Arc<OwnerMap>) {
        self.inner_mut().change_owners(owners);
    }

    fn unsettled(&self, block: BlockId) -> Option<ContextId> {
        self.inner().unsettled(block)
    }

    fn unsettled_for_instance(&self, block: BlockId) -> Option<ContextId> {
        self.inner().unsettled_for_instance(block)
    }

    fn is_unsettled(&self, id: ContextId) -> bool {
        self.inner().is_unsettled(id)
    }

    fn pass_block(&mut self, now: Instant, block: BlockId, out: &mut Outbox) -> PassedPart {
        let part = self.inner_mut().pass_block(now, block, out);
        let owners = part.contexts.iter().map(|context| context.key).collect();
        self.journal.open().passed.insert((self.place, block), owners);
        part
    }

    fn take_block(&mut self, now: Instant, block: BlockId, part: PassedPart, out: &mut Outbox) {
        let before = out.effects().len();
        self.inner_mut().take_block(now, block, part, out);
        out.effects().iter().skip(before).for_each(|effect| self.note_effect(effect));
    }

    fn change_instances(&mut self, instances: &Arc<SetInstances>) {
        self.inner_mut().change_instances(instances);
    }

    fn make_idle(&mut self, now: Instant, block: BlockId, out: &mut Outbox) {
        let before = out.effects().len();
        self.inner_mut().make_idle(now, block, out);
        out.effects().iter().skip(before).for_each(|effect| self.note_effect(effect));
    }

    fn adopt_block(&mut self, block: BlockId) {
        self.inner_mut().adopt_block(block);
    }

    fn resume_adopted(&mut self, now: Instant, out: &mut Outbox) {
        let before = out.effects().len();
        self.inner_mut().resume_adopted(now, out);
        out.effects().iter().skip(before).for_each(|effect| self.note_effect(effect));
    }

    fn connections_of(&self, block: BlockId) -> Vec<MovedConnection> {
        self.inner().connections_of(block)
    }

    fn key_of(&self, id: ContextId) -> Option<u64> {
        self.inner().key_of(id)
    }

    fn note_address(&mut self, news: AddressNews) {
        self.inner_mut().note_address(news);
    }

    fn take_address_news(&mut self) -> Vec<(BlockId, AddressNews)> {
        self.inner_mut().take_address_news()
    }

    fn addresses_elsewhere(&self) -> Vec<IpAddr> {
        self.inner().addresses_elsewhere()
    }

    fn contexts_in(&self, block: BlockId) -> usize {
        self.inner().contexts_in(block)
    }

    fn replies_owed(&self) -> Option<usize> {
        self.inner().replies_owed()
    }
}

/// Notes the callback URI in a request, if it has one.
fn note_callback(journal: &mut Journal, request: &Request) {
    let (supi, kind, uri) = match request {
        Request::ThreeGppRegistration(request) => {
            (&request.ue_id, Callback::Deregistration, &request.body.dereg_callback_uri)
        }
        Request::CreateSmPolicy(request) => {
            let kind = Callback::SmPolicy(request.body.pdu_session_id);
            (&request.body.supi, kind, &request.body.notification_uri)
        }
        _ => return,
    };
    journal.callbacks.insert((supi.to_string(), kind), uri.clone());
}

/// The name of an NF in ladders.
pub(crate) fn actor(nf: Nf) -> String {
    nf.name().to_uppercase()
}
