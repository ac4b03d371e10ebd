//! The associations of a gNB with its AMF (TS 38.412 7, TS 23.501 5.21.1).
//!
//! ```text
//!  gNB                                                     AMF
//!   |  1st association: NG SETUP REQUEST ->                 |
//!   |  <- NG SETUP RESPONSE                                 |
//!   |  each further one: RAN CONFIGURATION UPDATE ->        |   with the Global RAN Node ID; or NG SETUP REQUEST, which retains UEs
//!   |  <- RAN CONFIGURATION UPDATE ACKNOWLEDGE              |   the association carries messages of UEs from now on
//!   |  <- any message of a UE                               |   the UE is bound to that association
//!   |  <- UE TNLA BINDING RELEASE REQUEST                   |   its next message takes another one
//!   |  <- AMF CONFIGURATION UPDATE                          |   endpoints of the AMF to add, to remove, or with other weights
//!   |  AMF CONFIGURATION UPDATE ACKNOWLEDGE ->              |   when the associations with new ones are established, or have failed
//! ```

use super::{Event, Gnb, NgState, Output};
use pith_ngap::{
    AmfConfigurationUpdate, AmfConfigurationUpdateAcknowledge, Cause, CauseTransport, CpTransportLayer,
    FailedTnla, GlobalRanNodeId, NgSetupRequest, PagingDrx, RanConfigurationUpdate, SupportedTa, TimeToWait,
    UeRetentionInformation, UeTnlaBindingReleaseRequest,
};
use pith_types::RanUeNgapId;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// A stream of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct N2Stream {
    /// The association, by the caller's number; `None`: that of the message which is answered, or the first one.
    pub association: Option<u8>,
    /// The number of the stream.
    pub number: u16,
}

/// The stream of non-UE-associated procedures (TS 38.412 7).
pub(super) const COMMON_STREAM: N2Stream = N2Stream { association: None, number: 0 };

/// One association.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    number: u8,
    streams: u16,
    is_ready: bool,
}

/// All associations of a gNB, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: Vec<Link>,
    /// The association of the message that is processed.
    current: Option<u8>,
    /// That of NG SETUP REQUEST.
    set_up_over: Option<u8>,
    /// The AMF's end of each association, also of those that are not established.
    endpoints: BTreeMap<u8, SocketAddr>,
    /// Weights of the AMF's endpoints, as far as it has named them.
    weights: BTreeMap<SocketAddr, u8>,
    /// Endpoints of each AMF CONFIGURATION UPDATE, until it is known whether the associations are established. They are answered in order.
    added: VecDeque<AddedEndpoints>,
}

/// The answer to AMF CONFIGURATION UPDATE so far.
#[derive(Debug, Default)]
struct AddedEndpoints {
    waiting: BTreeMap<u8, CpTransportLayer>,
    set_up: Vec<CpTransportLayer>,
    failed: Vec<FailedTnla>,
}

impl Links {
    /// Nothing of the former AMF is answered.
    pub fn forget_updates(&mut self) {
        self.added.clear();
    }

    pub fn receive_on(&mut self, number: Option<u8>) {
        self.current = number;
    }

    fn add(&mut self, link: Link) {
        self.links.retain(|other| other.number != link.number);
        self.links.push(link);
        self.links.sort_unstable_by_key(|link| link.number);
    }

    fn find(&self, number: u8) -> Option<&Link> {
        self.links.iter().find(|link| link.number == number)
    }

    fn ready(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| link.is_ready)
    }

    /// Whether messages of UEs, and those of the AMF, may take the association.
    pub fn is_ready(&self, number: Option<u8>) -> bool {
        number.is_none_or(|number| self.find(number).is_some_and(|link| link.is_ready))
    }

    pub fn set_up_over(&self) -> Option<u8> {
        self.set_up_over
    }

    fn set_ready(&mut self, number: u8) {
        self.links.iter_mut().filter(|link| link.number == number).for_each(|link| link.is_ready = true);
    }

    /// Whether UEs may begin connections over the association: not if the weight of its endpoint is 0 (TS 23.502 4.2.7.1).
    fn takes_initial_messages(&self, link: &Link) -> bool {
        self.endpoints.get(&link.number).and_then(|end| self.weights.get(end)) != Some(&0)
    }

    /// A number that no association has.
    fn unused(&self) -> Option<u8> {
        (0..=u8::MAX).find(|number| !self.endpoints.contains_key(number) && self.find(*number).is_none())
    }

    /// Number of streams of an association.
    pub fn streams(&self, number: Option<u8>) -> u16 {
        number.and_then(|number| self.find(number)).or(self.links.first()).map_or(1, |link| link.streams)
    }
}

impl Gnb {
    /// An association is established. The first one is for NG Setup; further ones join when that has succeeded.
    pub(super) fn on_association_up(&mut self, number: u8, streams: u16) {
        self.links.add(Link { number, streams, is_ready: false });
        self.note_added(number, true);
        match self.state {
            NgState::Down => self.begin_ng_setup(number),
            NgState::Up => self.join(number),
            NgState::AwaitingNgSetupResponse | NgState::Waiting => {}
        }
    }

    fn begin_ng_setup(&mut self, number: u8) {
        self.links.set_up_over = Some(number);
        self.send_ng_setup_request();
    }

    /// An association is lost. If there are others, the UEs stay, and use these.
    pub(super) fn on_association_down(&mut self, number: u8) {
        self.links.links.retain(|link| link.number != number);
        self.note_added(number, false);
        for context in self.contexts.values_mut().filter(|it| it.association == Some(number)) {
            (context.association, context.amf_stream) = (None, None);
        }
        let is_set_up_over = self.links.set_up_over == Some(number);
        if self.state == NgState::Up && self.links.ready().next().is_some() {
            return self.out.push(Output::Event(Event::AssociationLost));
        }
        if self.state == NgState::Down || (self.state != NgState::Up && !is_set_up_over) {
            return;
        }
        self.lose_amf();
        self.links.set_up_over = None;
        if let Some(next) = self.links.links.first().map(|link| link.number) {
            self.begin_ng_setup(next);
        }
    }

    /// NG Setup has succeeded: its association carries all messages, and the others join.
    pub(super) fn join_all(&mut self) {
        if let Some(number) = self.links.set_up_over {
            self.links.set_ready(number);
        }
        let others: Vec<_> =
            self.links.links.iter().filter(|link| !link.is_ready).map(|it| it.number).collect();
        others.into_iter().for_each(|number| self.join(number));
    }

    fn join(&mut self, number: u8) {
        let stream = N2Stream { association: Some(number), number: 0 };
        if self.settings.joins_by_ng_setup {
            let retained = Some(UeRetentionInformation::ues_retained);
            return self.send(stream, self.ng_setup_request(retained).encode());
        }
        let update = RanConfigurationUpdate {
            ran_node_name: None,
            supported_tas: None,
            default_paging_drx: None,
            global_ran_node_id: Some(self.global_id()),
            tnla_to_remove: None,
        };
        self.send(stream, update.encode());
    }

    /// The AMF has accepted the association.
    pub(super) fn receive_joined(&mut self) {
        if self.state != NgState::Up {
            // It crossed the NG SETUP REQUEST of a gNB that has lost all other associations.
            return;
        }
        match self.links.current.filter(|number| !self.links.is_ready(Some(*number))) {
            Some(number) => {
                self.links.set_ready(number);
                self.out.push(Output::Event(Event::AssociationJoined));
            }
            None => self.violation("TS 38.413 10.4", "an answer without RAN CONFIGURATION UPDATE"),
        }
    }

    /// RAN CONFIGURATION UPDATE FAILURE, or NG SETUP FAILURE over a further association: again after Time To Wait (TS 38.413 8.7.2.3,
    /// 8.7.1.3).
    pub(super) fn receive_not_joined(&mut self, cause: Cause, time_to_wait: Option<TimeToWait>) {
        self.out.push(Output::Event(Event::JoinRejected(cause)));
        let wait = time_to_wait.map(super::management::length_of);
        if let Some((number, wait)) = self.links.current.zip(wait) {
            self.joins.push((self.now + wait, number));
        }
    }

    /// Associations whose Time To Wait is over.
    pub(super) fn join_again(&mut self) {
        let now = self.now;
        for (_, number) in self.joins.extract_if(.., |(due, _)| *due <= now).collect::<Vec<_>>() {
            if self.state == NgState::Up && self.links.find(number).is_some_and(|link| !link.is_ready) {
                self.join(number);
            }
        }
    }

    pub(super) fn global_id(&self) -> GlobalRanNodeId {
        GlobalRanNodeId::Gnb { plmn: self.settings.plmn, id: self.settings.id, bits: 32 }
    }

    pub(super) fn ng_setup_request(&self, ue_retention: Option<UeRetentionInformation>) -> NgSetupRequest {
        let settings = &self.settings;
        NgSetupRequest {
            global_ran_node_id: self.global_id(),
            ran_node_name: Some(settings.name.clone()),
            supported_tas: vec![SupportedTa {
                tac: settings.tac,
                plmns: vec![(settings.plmn, settings.slices.clone())],
            }],
            default_paging_drx: Some(PagingDrx::v128),
            ue_retention,
        }
    }

    /// The stream of a UE, which is bound to an association or takes any: streams from 1 up are assigned to UEs in turn (TS 38.412 7).
    pub(super) fn stream_for(&self, ran_id: RanUeNgapId) -> N2Stream {
        let bound = self.contexts.get(&ran_id).and_then(|context| context.association);
        let is_initial = !self.contexts.contains_key(&ran_id);
        let may_take = |link: &&Link| !is_initial || self.links.takes_initial_messages(link);
        let mut ready: Vec<&Link> = self.links.ready().filter(may_take).collect();
        if ready.is_empty() {
            ready.extend(self.links.ready());
        }
        if ready.is_empty() {
            ready.extend(&self.links.links);
        }
        let any = || ready.get(ran_id.0 as usize % ready.len().max(1)).copied();
        let link = bound.and_then(|number| self.links.find(number)).or_else(any);
        let number = match link.map_or(1, |link| link.streams) {
            0 | 1 => 0,
            streams => (ran_id.0 % u32::from(streams - 1)) as u16 + 1,
        };
        N2Stream { association: link.map(|link| link.number), number }
    }

    /// The association for a message.
    pub(super) fn association_for(&self, stream: N2Stream) -> u8 {
        let is_there = |number: &u8| self.links.find(*number).is_some();
        let named = stream.association.or(self.links.current).filter(is_there);
        named.or_else(|| self.links.ready().next().map(|link| link.number)).unwrap_or_default()
    }

    /// UE TNLA BINDING RELEASE REQUEST (TS 38.413 8.13.1): the UE's next message takes another association, if there is one.
    pub(super) fn receive_binding_release(
        &mut self,
        stream: N2Stream,
        request: &UeTnlaBindingReleaseRequest,
    ) {
        let ids = (request.amf_ue_ngap_id, request.ran_ue_ngap_id);
        let Some(known) = self.check_ids("UeTnlaBindingReleaseRequest", ids.0, ids.1, stream) else { return };
        let left = stream.association;
        let others: Vec<_> =
            self.links.ready().map(|link| link.number).filter(|it| Some(*it) != left).collect();
        let next = others.get(known.0.0 as usize % others.len().max(1)).copied();
        if let Some(context) = self.contexts.get_mut(&known.0) {
            (context.association, context.amf_stream) = (next, None);
        }
    }

    /// The AMF's end of an association that the caller establishes.
    pub fn note_endpoint(&mut self, association: u8, endpoint: SocketAddr) {
        self.links.endpoints.insert(association, endpoint);
    }

    /// The endpoints in AMF CONFIGURATION UPDATE (TS 38.413 8.7.3.2). It is answered when the associations with new ones are established, or
    /// have failed.
    pub(super) fn change_endpoints(&mut self, update: &AmfConfigurationUpdate) {
        for changed in update.tnla_to_update.iter().flatten() {
            if let Some(weight) = changed.weight {
                self.links.weights.insert(changed.endpoint.socket(), weight);
            }
        }
        for removed in update.tnla_to_remove.iter().flatten() {
            let gone: Vec<_> =
                self.links.endpoints.extract_if(.., |_, it| *it == removed.endpoint.socket()).collect();
            for (association, _) in gone {
                self.out.push(Output::RemoveAssociation { association });
            }
        }
        let mut added = AddedEndpoints::default();
        for new in update.tnla_to_add.iter().flatten() {
            let endpoint = new.endpoint.socket();
            self.links.weights.insert(endpoint, new.weight);
            if self.links.endpoints.values().any(|known| *known == endpoint) {
                added.set_up.push(new.endpoint);
                continue;
            }
            let Some(association) = self.links.unused() else {
                added.failed.push(unavailable(new.endpoint));
                continue;
            };
            self.links.endpoints.insert(association, endpoint);
            added.waiting.insert(association, new.endpoint);
            self.out.push(Output::AddAssociation { association, endpoint });
        }
        self.links.added.push_back(added);
        self.answer_endpoints();
    }

    /// An association to an endpoint of AMF CONFIGURATION UPDATE is established, or has failed.
    fn note_added(&mut self, number: u8, is_established: bool) {
        let added = self.links.added.iter_mut();
        let found = added.filter_map(|added| Some((added.waiting.remove(&number)?, added))).next();
        let Some((endpoint, added)) = found else { return };
        if is_established {
            added.set_up.push(endpoint);
        } else {
            self.links.endpoints.remove(&number);
            added.failed.push(unavailable(endpoint));
        }
        self.answer_endpoints();
    }

    fn answer_endpoints(&mut self) {
        while let Some(added) = self.links.added.pop_front_if(|added| added.waiting.is_empty()) {
            let answer = AmfConfigurationUpdateAcknowledge {
                tnla_set_up: Some(added.set_up).filter(|list| !list.is_empty()),
                tnla_failed: Some(added.failed).filter(|list| !list.is_empty()),
                diagnostics: None,
            };
            self.send(COMMON_STREAM, answer.encode());
        }
    }

    /// The association to which a UE is bound.
    pub fn association_of(&self, ran_id: RanUeNgapId) -> Option<u8> {
        self.contexts.get(&ran_id)?.association
    }
}

/// An endpoint to which there is no association: TNL Association Failed to Setup List (TS 38.413 9.2.6.8).
const fn unavailable(endpoint: CpTransportLayer) -> FailedTnla {
    let cause = Cause::Transport(CauseTransport::transport_resource_unavailable);
    FailedTnla { endpoint, cause }
}
