//! Requests that map to one request to the UDR: subscription data (TS 29.503 5.2), registrations of
//! SMFs (5.3.2.2.3), results of authentications (5.4.2.3).

use super::super::config::UdmConfig;
use super::subscription::{
    IMPLICIT, UNNAMED_SMFS, check_subscriber, implicit_subscription, of_client, of_subscription, of_unnamed,
};
use super::{Step, Transaction};
use crate::kit::{Caller, check_instance, context_in_reference};
use pith_sbi::common::{PlmnIdNid, ServingPlmnId};
use pith_sbi::nudm_sdm::{
    DataSetName, GetDataSets, PduSession, SdmSubscription, SubscriptionDataSets, UeContextInSmfData,
};
use pith_sbi::nudm_ueau::AuthEvent;
use pith_sbi::nudm_uecm::{
    DeregistrationData, DeregistrationNotification, DeregistrationReason, RegisterSmf, RegistrationReason,
    SmfRegistration, SmfRegistrationInfo,
};
use pith_sbi::nudr_dr::{
    CreateAuthenticationStatus, CreateOrUpdateSmfRegistration, DeleteAuthenticationStatus,
    DeleteSmfRegistration, QueryAmData, QueryAmfContextThreeGpp, QuerySdmSubscriptions, QuerySmData,
    QuerySmfRegList, QuerySmfRegistration, QuerySmfSelectData, RemoveSdmSubscriptions,
};
use pith_sbi::{Cause, Created, Problem, Reply, Request, Response, Uri};
use pith_types::Supi;

/// How the UDR's reply is converted.
pub(in crate::udm) enum Relay {
    /// Forwarded unchanged.
    AsItIs,
    /// The end of a subscription.
    Unsubscription,
    /// The subscribed slices from the access and mobility data.
    Nssai,
    /// The registrations as one object.
    SmfRegistrations,
    /// The registrations as the UE's PDU sessions (TS 29.503 5.2.2.2: UE Context in SMF data).
    PduSessions,
    /// The registration of an SMF, as a resource of the UDM. The SMF context that had the session before is notified.
    SmfRegistered(Box<RegisterSmf>, Option<Box<DeregistrationNotification>>),
    /// The registration of the session that another one replaces.
    FormerSmfRegistration(Box<RegisterSmf>),
    /// The subscription of the SMF of the former registration has ended: then the new one is stored.
    FormerUnsubscribed(Box<RegisterSmf>, Option<Box<DeregistrationNotification>>),
    /// The registration that an SMF deletes.
    SmfRegistrationToDelete(Supi, u8, Caller),
    /// The authentication event, as a resource of the UDM.
    Confirmed(Supi, AuthEvent),
    /// The next of the requested data sets.
    DataSets(Box<DataSets>),
    /// The registration of an AMF is marked as purged: then this subscription ends, and those of SMFs whose registrations were lost.
    Purged(Box<RemoveSdmSubscriptions>),
    /// The subscriptions to the data of a UE that was purged.
    PurgedSubscriptions(Box<(RemoveSdmSubscriptions, Response)>),
    /// The registrations of SMFs, some of which have these implicit subscriptions.
    PurgedRegistrations(Box<Purged>),
    /// The subscription of an SMF that deletes its registration has ended: then the registration is deleted.
    Unsubscribed(Box<DeleteSmfRegistration>),
}

/// An AMF has purged a UE.
pub(in crate::udm) struct Purged {
    /// The end of the AMF's own subscription.
    of_amf: RemoveSdmSubscriptions,
    /// The other implicit ones.
    others: Vec<SdmSubscription>,
    /// The answer to the AMF.
    response: Response,
}

/// Several data sets in one request (TS 29.503 5.2.2.2.8), read one after the other.
pub(in crate::udm) struct DataSets {
    supi: Supi,
    plmn: ServingPlmnId,
    /// Data sets still to be read; the request for the last one is pending.
    wanted: Vec<DataSetName>,
    got: SubscriptionDataSets,
}

/// The one request that serves an operation.
pub(super) fn begin(config: &UdmConfig, from: Caller, request: Request) -> Step {
    let home = ServingPlmnId(config.plmn);
    let plmn = |asked: &Option<PlmnIdNid>| asked.as_ref().map_or(home, |asked| ServingPlmnId(asked.plmn_id));
    let (call, relay): (Request, Relay) = match request {
        Request::GetAmData(r) => (am_data(r.supi, plmn(&r.plmn_id)), Relay::AsItIs),
        Request::GetNssai(r) => (am_data(r.supi, plmn(&r.plmn_id)), Relay::Nssai),
        Request::GetSmfSelData(r) => (selection(r.supi, plmn(&r.plmn_id)), Relay::AsItIs),
        Request::GetSmData(r) => {
            let serving_plmn_id = r.plmn_id.map_or(home, ServingPlmnId);
            let query =
                QuerySmData { ue_id: r.supi, serving_plmn_id, single_nssai: r.single_nssai, dnn: r.dnn };
            (query.into(), Relay::AsItIs)
        }
        Request::GetDataSets(r) => return data_sets(&r, plmn(&r.plmn_id)),
        Request::SdmUnsubscribe(r) => {
            if let Err(problem) = check_subscriber(&r.subscription_id, from) {
                return Step::refuse(problem);
            }
            let remove = RemoveSdmSubscriptions { ue_id: r.ue_id, subs_id: r.subscription_id };
            (remove.into(), Relay::Unsubscription)
        }
        Request::GetThreeGppRegistration(r) => {
            (QueryAmfContextThreeGpp { ue_id: r.ue_id }.into(), Relay::AsItIs)
        }
        // The SMFs that serve the UE, requested by an AMF that takes over (TS 23.502 4.2.2.2.2 step 14b).
        Request::GetUeCtxInSmfData(r) => (QuerySmfRegList { ue_id: r.supi }.into(), Relay::PduSessions),
        Request::GetSmfRegistration(r) => {
            (QuerySmfRegList { ue_id: r.ue_id }.into(), Relay::SmfRegistrations)
        }
        Request::RetrieveSmfRegistration(r) => {
            (QuerySmfRegistration { ue_id: r.ue_id, pdu_session_id: r.pdu_session_id }.into(), Relay::AsItIs)
        }
        Request::RegisterSmf(r) => {
            if let Err(problem) = check_session(&r) {
                return Step::refuse(problem);
            }
            let (ue_id, pdu_session_id) = (r.ue_id.clone(), r.pdu_session_id);
            (QuerySmfRegistration { ue_id, pdu_session_id }.into(), Relay::FormerSmfRegistration(r))
        }
        Request::SmfDeregistration(r) => {
            let relay = Relay::SmfRegistrationToDelete(r.ue_id.clone(), r.pdu_session_id, from);
            (QuerySmfRegistration { ue_id: r.ue_id, pdu_session_id: r.pdu_session_id }.into(), relay)
        }
        Request::ConfirmAuth(r) => {
            let relay = Relay::Confirmed(r.supi.clone(), r.body.clone());
            (CreateAuthenticationStatus { ue_id: r.supi, body: r.body }.into(), relay)
        }
        Request::DeleteAuth(r) => (DeleteAuthenticationStatus { ue_id: r.supi }.into(), Relay::AsItIs),
        _ => return Step::refuse(Problem::new(Cause::ResourceUriStructureNotFound)),
    };
    Step::Call(call, Transaction::Relay(relay))
}

fn am_data(ue_id: Supi, serving_plmn_id: ServingPlmnId) -> Request {
    QueryAmData { ue_id, serving_plmn_id }.into()
}

fn selection(ue_id: Supi, serving_plmn_id: ServingPlmnId) -> Request {
    QuerySmfSelectData { ue_id, serving_plmn_id }.into()
}

impl Purged {
    /// Ends the AMF's implicit subscription. Others may be of SMFs whose registrations were not stored, and so do not end them.
    fn begin(of_amf: RemoveSdmSubscriptions, response: Response, reply: Reply) -> Step {
        let Ok(Response::SdmSubscriptions(all)) = reply else {
            return Step::Answer(Ok(response), vec![of_amf.into()]);
        };
        let is_other = |id: &str| id.starts_with(IMPLICIT) && id != of_amf.subs_id;
        let mut others = *all;
        others.retain(|subscription| subscription.subscription_id.as_deref().is_some_and(is_other));
        if others.is_empty() {
            return Step::Answer(Ok(response), vec![of_amf.into()]);
        }
        let query = QuerySmfRegList { ue_id: of_amf.ue_id.clone() };
        let next = Relay::PurgedRegistrations(Box::new(Self { of_amf, others, response }));
        Step::Call(query.into(), Transaction::Relay(next))
    }

    /// Ends the subscriptions of NFs without a registration. Those of others end with it: an SMF may have sessions of the UE in EPS.
    fn end(self, reply: Reply) -> Step {
        let Self { of_amf, others, response } = self;
        let mut ends = Vec::new();
        if let Ok(Response::SmfRegList(registered)) = registrations_or_none(reply) {
            let keeps = |it: &SdmSubscription, of: &SmfRegistration| match subscription_of(of) {
                Some(id) => {
                    let ids = [of_unnamed(&id, UNNAMED_SMFS), id];
                    ids.iter().any(|id| it.subscription_id.as_deref() == Some(id.as_str()))
                }
                None => it.nf_instance_id == of.smf_instance_id,
            };
            let lost = others.into_iter().filter(|it| !registered.iter().any(|of| keeps(it, of)));
            let ids = lost.filter_map(|subscription| subscription.subscription_id);
            ends.extend(ids.map(|id| RemoveSdmSubscriptions { subs_id: id.to_string(), ..of_amf.clone() }));
        }
        ends.push(of_amf);
        Step::Answer(Ok(response), ends.into_iter().map(Into::into).collect())
    }
}

/// A session's id is the UE's (TS 24.501 9.4) or, for a UE without N1 mode, the core network's (TS 29.571 5.4.2): an SMF cannot fill the UDR's room
/// with others. It is the same in the resource and in the registration: an SMF deletes no other registration than its own.
fn check_session(request: &RegisterSmf) -> Result<(), Box<Problem>> {
    let id = request.body.pdu_session_id;
    if id != request.pdu_session_id {
        return Err(Problem::mandatory_ie_incorrect("/pduSessionId", "not that of the resource").into());
    }
    if !matches!(id, 1..=15 | 64..=95) {
        return Err(Problem::mandatory_ie_incorrect("/pduSessionId", "reserved").into());
    }
    Ok(())
}

/// Registers an SMF for a session, after the end of the implicit subscription of the SMF context that had the session before: that was lost before
/// it could deregister, or the UE has established the session again without its end. The same context may have subscribed as another instance of
/// an SMF set.
fn replace_registration(request: RegisterSmf, reply: Reply) -> Step {
    let former = match reply {
        Ok(Response::SmfRegistration(former)) => Some(former),
        Ok(_) => None,
        Err(problem) if problem.status == 404 => None,
        Err(problem) => return Step::Answer(Err(problem), Vec::new()),
    };
    let other = former.as_ref().filter(|former| is_other_context(former, &request.body));
    if other.is_some_and(|other| is_repetition(&request.body, other)) {
        // A request whose answer was lost, and that is repeated. TS 29.503 has no cause for it: that of Nsmf_PDUSession.
        let problem = Problem::new(Cause::LateOverlappingRequest);
        return Step::refuse(problem.detail("another SM context has been registered since"));
    }
    let notification = other.and_then(|other| notification_of(other, &request));
    let own = subscription_of(&request.body);
    match former.and_then(|former| subscription_of(&former)).filter(|id| own.as_ref() != Some(id)) {
        Some(subs_id) => {
            // Whether the former SMF has proven its instance is not known: it has one of two ids.
            let end = |subs_id: String| RemoveSdmSubscriptions { ue_id: request.ue_id.clone(), subs_id };
            let (of_unnamed, of_named) = (end(of_unnamed(&subs_id, UNNAMED_SMFS)), end(subs_id));
            let relay = Relay::FormerUnsubscribed(Box::new(request), notification);
            Step::SendAndCall(vec![of_unnamed.into()], of_named.into(), Transaction::Relay(relay))
        }
        None => store_registration(request, notification),
    }
}

/// An SMF repeats a request that is not answered for less than this. Times further apart are those of a wrong clock, which must not keep other
/// SMFs from registering.
const REPEATED_MS: i64 = 60_000;

/// Whether a request is older than the registration of another SM context, which has the session since.
fn is_repetition(request: &SmfRegistration, stored: &SmfRegistration) -> bool {
    let times = stored.registration_time.zip(request.registration_time);
    let age = times.map(|(stored, new)| stored.unix_ms().saturating_sub(new.unix_ms()));
    age.is_some_and(|age| (1..REPEATED_MS).contains(&age))
}

/// The notification of the SMF that was registered before (TS 29.503 5.3.2.3).
fn notification_of(
    former: &SmfRegistration,
    request: &RegisterSmf,
) -> Option<Box<DeregistrationNotification>> {
    let uri = former.dereg_callback_uri.clone()?;
    let new = &request.body;
    let is_transferred = new.registration_reason == Some(RegistrationReason::SmfContextTransferred);
    let mut body = DeregistrationData::new(if is_transferred {
        DeregistrationReason::SmfContextTransferred
    } else {
        DeregistrationReason::DuplicatePduSession
    });
    body.pdu_session_id = Some(request.pdu_session_id);
    body.new_smf_instance_id = is_transferred.then_some(new.smf_instance_id);
    Some(Box::new(DeregistrationNotification { uri, body }))
}

/// Whether the former registration is that of another SMF context. References with MAC in callback URIs identify contexts, whichever instance of
/// an SMF set has registered. Callback URIs of other vendors' SMFs name no contexts; SMFs of a set share theirs.
fn is_other_context(former: &SmfRegistration, new: &SmfRegistration) -> bool {
    if former.dereg_callback_uri == new.dereg_callback_uri {
        return false;
    }
    match (context_reference(former), context_reference(new)) {
        (Some(former), Some(new)) => former != new,
        _ if former.smf_instance_id == new.smf_instance_id => false,
        _ => former.smf_set_id.is_none() || former.smf_set_id != new.smf_set_id,
    }
}

/// The reference in the callback URI of a registration, if it names a context.
fn context_reference(registration: &SmfRegistration) -> Option<&str> {
    let reference = registration.dereg_callback_uri.as_ref()?.id();
    context_in_reference(reference).map(|_| reference)
}

fn store_registration(request: RegisterSmf, notification: Option<Box<DeregistrationNotification>>) -> Step {
    let RegisterSmf { ue_id, pdu_session_id, body } = request.clone();
    let relay = Relay::SmfRegistered(Box::new(request), notification);
    let store = CreateOrUpdateSmfRegistration { ue_id, pdu_session_id, body };
    Step::Call(store.into(), Transaction::Relay(relay))
}

/// The new registration is stored, or may be: the SMF of the former one deletes its context.
fn smf_registered(
    config: &UdmConfig,
    request: RegisterSmf,
    notification: Option<Box<DeregistrationNotification>>,
    reply: Reply,
) -> Step {
    let answer = reply.map(|stored| match stored {
        Response::SmfRegistrationCreated(_) => {
            let RegisterSmf { ue_id: supi, pdu_session_id: id, body } = request;
            let path = format!("/nudm-uecm/v1/{supi}/registrations/smf-registrations/{id}");
            let location = Uri::new(&config.identity.api_root, &path);
            Response::SmfRegistrationCreated(Box::new(Created { location, body }))
        }
        updated => updated,
    });
    let may_be_stored = answer.as_ref().map_or_else(|problem| problem.status == 504, |_| true);
    let notification = notification.filter(|_| may_be_stored).map(|notification| (*notification).into());
    Step::Answer(answer, notification.into_iter().collect())
}

/// The id of the implicit subscription of the SMF context in a registration, if its callback URI names it.
fn subscription_of(registration: &SmfRegistration) -> Option<String> {
    context_reference(registration)?;
    Some(implicit_subscription(&registration.smf_instance_id, registration.dereg_callback_uri.as_ref()?))
}

/// Deletes the registration of an SMF, if it is the caller's (TS 29.503 5.3.2.4), after the SMF's implicit subscription to the data of that
/// session, which its callback URIs name: an SMF that gets no answer repeats its request as long as the registration is there.
fn delete_registration((ue_id, pdu_session_id): (Supi, u8), from: Caller, reply: Reply) -> Step {
    let registration = match reply {
        Ok(Response::SmfRegistration(registration)) => registration,
        Ok(_) => return Step::refuse(Problem::system_failure("the UDR sent no registration")),
        Err(problem) => return Step::Answer(Err(problem), Vec::new()),
    };
    if let Err(problem) = check_instance(registration.smf_instance_id, from) {
        return Step::refuse(problem);
    }
    let delete = DeleteSmfRegistration { ue_id: ue_id.clone(), pdu_session_id };
    match subscription_of(&registration) {
        Some(id) => {
            let subs_id = of_client(id, from, UNNAMED_SMFS);
            let remove = RemoveSdmSubscriptions { ue_id, subs_id };
            Step::Call(remove.into(), Transaction::Relay(Relay::Unsubscribed(Box::new(delete))))
        }
        None => Step::Call(delete.into(), Transaction::Relay(Relay::AsItIs)),
    }
}

/// The data sets that the UDM has, in the order in which they are read: each once, however often a request names it.
const READABLE: [DataSetName; 4] =
    [DataSetName::Am, DataSetName::SmfSel, DataSetName::UecSmf, DataSetName::Sm];

fn data_sets(request: &GetDataSets, plmn: ServingPlmnId) -> Step {
    let is_wanted = |name: &DataSetName| request.dataset_names.contains(name);
    let wanted: Vec<DataSetName> = READABLE.into_iter().rev().filter(is_wanted).collect();
    let got = SubscriptionDataSets::default();
    Box::new(DataSets { supi: request.supi.clone(), plmn, wanted, got }).ask()
}

impl DataSets {
    fn ask(mut self: Box<Self>) -> Step {
        while let Some(name) = self.wanted.last() {
            let (supi, plmn) = (self.supi.clone(), self.plmn);
            let call = match name {
                DataSetName::Am => am_data(supi, plmn),
                DataSetName::SmfSel => selection(supi, plmn),
                DataSetName::Sm => {
                    QuerySmData { ue_id: supi, serving_plmn_id: plmn, single_nssai: None, dnn: None }.into()
                }
                DataSetName::UecSmf => QuerySmfRegList { ue_id: supi }.into(),
                _ => {
                    self.wanted.pop();
                    continue;
                }
            };
            return Step::Call(call, Transaction::Relay(Relay::DataSets(self)));
        }
        Step::Answer(Ok(Response::SubscriptionDataSets(Box::new(self.got))), Vec::new())
    }

    fn note(mut self: Box<Self>, reply: Reply) -> Step {
        let name = self.wanted.pop();
        let reply = if name == Some(DataSetName::UecSmf) { registrations_or_none(reply) } else { reply };
        match reply {
            Ok(Response::SmfRegList(list)) => self.got.uec_smf_data = Some(pdu_sessions(*list)),
            Ok(Response::AmData(data)) => self.got.am_data = Some(*data),
            Ok(Response::SmfSelData(data)) => self.got.smf_sel_data = Some(*data),
            Ok(Response::SmData(data)) => self.got.sm_data = Some(*data),
            Ok(_) => {}
            Err(problem) => return Step::Answer(Err(problem), Vec::new()),
        }
        self.ask()
    }
}

impl Relay {
    pub(super) fn reply(self, config: &UdmConfig, reply: Reply) -> Step {
        match self {
            Self::DataSets(sets) => return sets.note(reply),
            Self::FormerSmfRegistration(request) => return replace_registration(*request, reply),
            Self::FormerUnsubscribed(request, notification) => {
                return match reply {
                    Err(problem) if problem.status != 404 => Step::Answer(Err(problem), Vec::new()),
                    _ => store_registration(*request, notification),
                };
            }
            Self::SmfRegistered(request, notification) => {
                return smf_registered(config, *request, notification, reply);
            }
            Self::SmfRegistrationToDelete(supi, id, from) => {
                return delete_registration((supi, id), from, reply);
            }
            Self::Unsubscribed(delete) => {
                return match reply {
                    Err(problem) if problem.status != 404 => Step::Answer(Err(problem), Vec::new()),
                    _ => Step::Call((*delete).into(), Transaction::Relay(Self::AsItIs)),
                };
            }
            Self::Purged(subscription) => {
                let Ok(response) = reply else { return Step::Answer(reply, Vec::new()) };
                let query = QuerySdmSubscriptions { ue_id: subscription.ue_id.clone() };
                let next = Self::PurgedSubscriptions(Box::new((*subscription, response)));
                return Step::Call(query.into(), Transaction::Relay(next));
            }
            Self::PurgedSubscriptions(purged) => {
                let (subscription, response) = *purged;
                return Purged::begin(subscription, response, reply);
            }
            Self::PurgedRegistrations(purged) => return purged.end(reply),
            Self::Unsubscription => return Step::Answer(reply.map_err(of_subscription), Vec::new()),
            _ => {}
        }
        let reply = if matches!(self, Self::PduSessions) { registrations_or_none(reply) } else { reply };
        let answer = reply.and_then(|response| self.answer(config, response));
        Step::Answer(answer, Vec::new())
    }

    fn answer(self, config: &UdmConfig, response: Response) -> Reply {
        let location = |path: String| Uri::new(&config.identity.api_root, &path);
        Ok(match (self, response) {
            (Self::Nssai, Response::AmData(data)) => {
                let nssai = data.nssai.ok_or_else(|| Box::new(Problem::data_not_found()))?;
                Response::Nssai(Box::new(nssai))
            }
            (Self::SmfRegistrations, Response::SmfRegList(list)) => {
                Response::SmfRegistrationInfo(Box::new(SmfRegistrationInfo::new(*list)))
            }
            (Self::PduSessions, Response::SmfRegList(list)) => {
                Response::UeContextInSmfData(Box::new(pdu_sessions(*list)))
            }
            (Self::Confirmed(supi, body), Response::NoContent) => {
                let location = location(format!("/nudm-ueau/v1/{supi}/auth-events/1"));
                Response::AuthEventCreated(Box::new(Created { location, body }))
            }
            (_, response) => response,
        })
    }
}

/// A subscriber for whom no SMF is registered has no PDU sessions.
fn registrations_or_none(reply: Reply) -> Reply {
    match reply {
        Err(problem) if problem.cause() == Some(&Cause::DataNotFound) => {
            Ok(Response::SmfRegList(Box::default()))
        }
        other => other,
    }
}

/// The sessions of those registrations; a registration without a data network is skipped, because
/// an AMF can't use it.
fn pdu_sessions(list: Vec<SmfRegistration>) -> UeContextInSmfData {
    let session = |registration: SmfRegistration| {
        let (smf, plmn) = (registration.smf_instance_id, registration.plmn_id);
        let mut session = PduSession::new(registration.dnn?, smf, plmn);
        session.single_nssai = Some(registration.single_nssai);
        Some((registration.pdu_session_id.to_string().into(), session))
    };
    let mut data = UeContextInSmfData::default();
    data.pdu_sessions = list.into_iter().filter_map(session).collect();
    data
}
