//! PDU session establishment (TS 23.502 4.3.2.2.1; TS 24.501 6.4.1).
//!
//! ```text
//!  AMF ─> PostSmContexts                step 3    5GSM message checked
//!         AwaitingSubscriptionData      4         <─ UDM; answer to the AMF (5)
//!         AwaitingPolicy                7         <─ PCF; address allocated (8)
//!         AwaitingN4Establishment       10        <─ UPF (a second one: chain.rs)
//!         AwaitingTunnel                11        Accept and N2 information ─> AMF ─> UE, gNB
//!         AwaitingN4Modification        15, 16    <─ AMF with the gNB's tunnel; <─ UPF
//!         Established
//! ```

use super::super::config::{DataNetwork, Network};
use super::super::context::{Access, AmfLink, Asks, Qos, SmContext, State, UpfSession};
use super::super::error::EstablishmentError;
use super::super::pool::contains;
use super::super::selection::{FrontPlan, Path};
use super::super::{Smf, n1, n2, n4};
use super::release::delete_at_upfs;
use crate::kit::{Caller, Key, Level, N4Effect, N4Error, Outbox, Owner, Target, Timer, UpfHandle};
use pith_nas::gsm::PduSessionEstablishmentRequest;
use pith_nas::ie::{PduSessionType, SscMode};
use pith_nas::{GsmBody, GsmMessage};
use pith_pfcp::Message;
use pith_pfcp::ie::Cause as N4Cause;
use pith_pfcp::message::SessionEstablishmentResponse;
use pith_sbi::common::{PduSessionType as SbiSessionType, SubscribedDefaultQos};
use pith_sbi::namf_communication::{
    N1MessageClass, N1MessageContainer, N1N2MessageTransfer, N1N2MessageTransferReqData, N2InfoContainer,
    N2InfoContent, N2InformationClass, N2SmInformation, NgapIeType,
};
use pith_sbi::npcf_smpolicycontrol::{
    CreateSmPolicy, PolicyControlRequestTrigger, ServingNfIdentity, SmPolicyContextData, SmPolicyDecision,
    SmPolicyUpdateContextData, UpdateSmPolicy,
};
use pith_sbi::nsmf_pdusession::{SmContextCreateData, SmContextCreateErrorData, SmContextCreatedData};
use pith_sbi::nudm_sdm::{DnnConfiguration, GetSmData, SessionManagementSubscriptionData, SmSubsData};
use pith_sbi::nudm_uecm::{RegisterSmf, SmfRegistration};
use pith_sbi::{Cause, Created, NfType, Operation, Problem, ProblemMore, Reply, Response, Uri};
use pith_types::{Ambr, BitRate, Dnn, Seid, Snssai, Supi, Tac, words_of_name};
use std::net::Ipv4Addr;

/// Until the subscription says otherwise.
const UNKNOWN_QOS: Qos =
    Qos { ambr: Ambr { uplink: BitRate::mbps(1), downlink: BitRate::mbps(1) }, five_qi: 9, arp_priority: 15 };

/// A request that may become a session.
struct Asked {
    supi: Supi,
    pdu_session_id: u8,
    dnn: Dnn,
    snssai: Snssai,
    tac: Option<Tac>,
    pti: u8,
    asks: Asks,
    access: Box<Access>,
}

/// A request that can't, and how to tell the UE.
struct Refused {
    supi: Option<Supi>,
    pdu_session_id: u8,
    pti: u8,
    error: EstablishmentError,
}

impl Smf {
    /// Begins an establishment: the AMF brings the UE's request (step 3).
    pub(in crate::smf) fn establish(&mut self, from: Caller, data: SmContextCreateData, out: &mut Outbox) {
        let asked = match self.check_request(&data) {
            Ok(asked) => asked,
            Err(refused) => return refuse(from, &refused, out),
        };
        let amf = AmfLink {
            instance: data.serving_nf_id,
            root: data.sm_context_status_uri.root.clone(),
            status_uri: data.sm_context_status_uri,
            owner: Owner::of(from),
        };
        // A session of the same identity is one that the UE has forgotten (step 3a).
        if let Some(old) = self.by_ue.get(&(asked.supi.clone(), asked.pdu_session_id)).copied() {
            self.end(old, out);
        }
        let query = GetSmData {
            supi: asked.supi.clone(),
            single_nssai: Some(asked.snssai),
            dnn: Some(asked.dnn.clone()),
            plmn_id: Some(data.serving_network.plmn_id),
        };
        match self.insert(asked, amf, from) {
            Ok(key) => {
                out.start(key.to_u64(), Timer::SbiGuard, self.config.guard);
                self.call(key, Target::any(), query.into(), out);
            }
            Err(refused) => refuse(from, &refused, out),
        }
    }

    /// What can be said without asking anybody (TS 24.501 6.4.1.4.1, 7.3 to 7.6).
    fn check_request(&self, data: &SmContextCreateData) -> Result<Asked, Refused> {
        let octets = data.n1_sm_msg.as_ref().map(|message| message.content.clone()).unwrap_or_default();
        let (pdu_session_id, pti) = (data.pdu_session_id.unwrap_or(0), octets.get(2).copied().unwrap_or(0));
        let refused = |error| Refused { supi: data.supi.clone(), pdu_session_id, pti, error };
        let message =
            GsmMessage::decode(&octets).map_err(|error| refused(EstablishmentError::Message(error)))?;
        let GsmBody::PduSessionEstablishmentRequest(request) = message.body else {
            return Err(refused(EstablishmentError::WrongMessage));
        };
        check_kind(&request).map_err(refused)?;
        let (Some(supi), Some(dnn), Some(snssai)) = (data.supi.clone(), data.dnn.clone(), data.s_nssai)
        else {
            return Err(refused(EstablishmentError::WrongMessage));
        };
        if self.network(&dnn, &snssai).is_none() {
            let name = |network: &DataNetwork| format!("'{}' in slice {}", network.dnn, network.snssai);
            let served = self.config.data_networks.iter().map(name).collect::<Vec<_>>().join(", ");
            let asked = format!("'{dnn}' in slice {snssai}");
            return Err(refused(EstablishmentError::UnknownDnnInSlice { asked, served }));
        }
        let asks = n1::asks(&request);
        let location = data.ue_location.as_ref().and_then(|location| location.nr_location.as_ref());
        let tac = location.map(|location| location.tai.tac);
        let access = Box::new(Access {
            kind: data.an_type,
            rat_type: data.rat_type.clone(),
            serving_network: data.serving_network.clone(),
            location: data.ue_location.clone(),
            time_zone: data.ue_time_zone.clone(),
            pei: data.pei.clone(),
            gpsi: data.gpsi.clone(),
            guami: data.guami,
        });
        Ok(Asked { supi, pdu_session_id, dnn, snssai, tac, pti, asks, access })
    }

    pub(in crate::smf) fn network(&self, dnn: &Dnn, snssai: &Snssai) -> Option<&DataNetwork> {
        let served = |network: &&DataNetwork| network.dnn == *dnn && network.snssai == *snssai;
        self.config.data_networks.iter().find(served)
    }

    fn insert(&mut self, asked: Asked, amf: AmfLink, from: Caller) -> Result<Key, Refused> {
        let (supi, pdu_session_id, pti) = (asked.supi.clone(), asked.pdu_session_id, asked.pti);
        let name = (asked.supi.clone(), pdu_session_id);
        let context = SmContext {
            supi: asked.supi,
            pdu_session_id,
            dnn: asked.dnn,
            snssai: asked.snssai,
            pti,
            tac: asked.tac,
            asks: asked.asks,
            access: Some(asked.access),
            planned: None,
            amf,
            address: None,
            seid: Seid(0),
            tried: Vec::new(),
            anchor: None,
            front: None,
            leaving: None,
            told: None,
            data_waits: false,
            withdrawn: None,
            gnb: None,
            lost: None,
            qos: UNKNOWN_QOS,
            decided: None,
            modifying: None,
            policy: None,
            is_registered: false,
            state: State::AwaitingSubscriptionData(from),
            held: Vec::new(),
            step: 0,
        };
        let key = self.contexts.insert_with(|_| context);
        let key = key.ok_or(Refused {
            supi: Some(supi),
            pdu_session_id,
            pti,
            error: EstablishmentError::Resources,
        })?;
        let seid = self.seid(key);
        if let Some(context) = self.contexts.get_mut(key) {
            context.seid = seid;
        }
        self.by_ue.insert(name, key);
        Ok(key)
    }

    /// The subscription came: the session may be, or not (steps 4, 5).
    pub(in crate::smf) fn subscription_data(
        &mut self,
        key: Key,
        from: Caller,
        reply: Reply,
        out: &mut Outbox,
    ) {
        let qos = match reply {
            Ok(Response::SmData(data)) => self.subscribed_qos(key, &data),
            Ok(_) => Err(EstablishmentError::Network("the UDM gave no session management data".into())),
            Err(problem) if problem.cause() == Some(&Cause::DataNotFound) => {
                Err(self.not_subscribed(key, &[]))
            }
            Err(problem) => Err(EstablishmentError::of_problem(Operation::GetSmData, &problem)),
        };
        match qos {
            Ok(qos) => self.accept_request(key, from, qos, out),
            Err(error) => self.refuse_request(key, from, error, out),
        }
    }

    /// Ends an establishment that the AMF waits for, and tells it.
    fn refuse_request(&mut self, key: Key, from: Caller, error: EstablishmentError, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        let (supi, pdu_session_id) = (Some(context.supi.clone()), context.pdu_session_id);
        let refused = Refused { supi, pdu_session_id, pti: context.pti, error };
        context.state = State::AwaitingPolicy; // the AMF is answered below, not by `end`
        self.end(key, out);
        refuse(from, &refused, out);
    }

    fn subscribed_qos(&self, key: Key, data: &SmSubsData) -> Result<Qos, EstablishmentError> {
        let context = self.contexts.get(key).ok_or(EstablishmentError::Resources)?;
        let slices = data.individual().iter().filter(|slice| slice.single_nssai == context.snssai);
        let named = |name: &str| name.eq_ignore_ascii_case(context.dnn.as_str()) || name == "*";
        let mut configurations = slices.flat_map(|slice| &slice.dnn_configurations);
        let (_, configuration) = configurations
            .find(|(name, _)| named(name))
            .ok_or_else(|| self.not_subscribed(key, data.individual()))?;
        allows_ipv4(configuration)?;
        let profile = configuration.five_g_qos_profile.as_ref();
        Ok(Qos {
            ambr: configuration.session_ambr.unwrap_or_else(|| self.default_ambr(context)),
            five_qi: profile.map_or(UNKNOWN_QOS.five_qi, |profile| profile.five_qi),
            arp_priority: profile.map_or(UNKNOWN_QOS.arp_priority, |profile| profile.arp.priority_level),
        })
    }

    /// What was asked for, and what the subscription has instead.
    fn not_subscribed(&self, key: Key, slices: &[SessionManagementSubscriptionData]) -> EstablishmentError {
        let asked =
            self.contexts.get(key).map(|context| format!("'{}' in slice {}", context.dnn, context.snssai));
        let names = slices.iter().flat_map(|slice| {
            slice.dnn_configurations.keys().map(move |dnn| format!("'{dnn}' in slice {}", slice.single_nssai))
        });
        let subscribed = names.collect::<Vec<_>>().join(", ");
        EstablishmentError::NotSubscribed { asked: asked.unwrap_or_default(), subscribed }
    }

    /// The data network's session-AMBR, for subscriptions that have none.
    fn default_ambr(&self, context: &SmContext) -> Ambr {
        let network = self.network(&context.dnn, &context.snssai);
        network.map_or(UNKNOWN_QOS.ambr, |network| network.ambr)
    }

    /// Answers the AMF (step 5), registers with the UDM, and asks the PCF (step 7b).
    fn accept_request(&mut self, key: Key, from: Caller, qos: Qos, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        context.qos = qos;
        context.state = State::AwaitingPolicy;
        context.is_registered = true;
        let reference = self.references.of_key(key);
        let location =
            Uri::new(&self.identity.api_root, &format!("/nsmf-pdusession/v1/sm-contexts/{reference}"));
        let mut body = SmContextCreatedData::default();
        body.pdu_session_id = Some(context.pdu_session_id);
        body.s_nssai = Some(context.snssai);
        out.answer(from, Response::SmContextCreated(Box::new(Created { location, body })));
        self.register(key, &reference, out);
        self.reserve(key);
        self.ask_policy(key, &reference, out);
    }

    /// Nudm_UECM_Registration (step 4a): nobody waits for the answer.
    fn register(&self, key: Key, reference: &str, out: &mut Outbox) {
        let Some(context) = self.contexts.get(key) else { return };
        let plmn = self.identity.plmn;
        let mut body =
            SmfRegistration::new(self.identity.instance_id, context.pdu_session_id, context.snssai, plmn);
        body.dnn = Some(context.dnn.clone());
        body.dereg_callback_uri =
            Some(Uri::callback(&self.identity.api_root, &NfType::Smf, "dereg-notify", reference));
        let (ue_id, pdu_session_id) = (context.supi.clone(), context.pdu_session_id);
        out.call(super::super::NOBODY, Target::any(), RegisterSmf { ue_id, pdu_session_id, body }.into());
    }

    /// The UPFs and the address that the session will have, unless they are gone when the PCF has decided: the PCF is told
    /// the address (TS 23.502 4.3.2.2.1 step 8). Where there is none, the second attempt says why.
    fn reserve(&mut self, key: Key) {
        let Some(context) = self.contexts.get(key) else { return };
        let path = self.upfs.choose(context);
        let pool = path.as_ref().and_then(|path| self.pool(context, path.anchor));
        let address = pool.and_then(|pool| self.pools.take(pool));
        if let Some(context) = self.contexts.get_mut(key) {
            (context.planned, context.address) = (path, address);
        }
    }

    /// The UPFs chosen before the PCF was asked, while they are still there; else others.
    fn path(&mut self, key: Key) -> Option<Path> {
        let planned = self.contexts.get_mut(key)?.planned.take();
        let is_there = |upf| self.upfs.info(upf).is_some();
        let stands = |path: &Path| {
            is_there(path.anchor) && path.front.as_ref().is_none_or(|front| is_there(front.upf))
        };
        let planned = planned.filter(stands);
        planned.or_else(|| self.contexts.get(key).and_then(|context| self.upfs.choose(context)))
    }

    /// Where the UE addresses of a session come from.
    fn pool(&self, context: &SmContext, anchor: UpfHandle) -> Option<Network> {
        let of_network = || self.network(&context.dnn, &context.snssai).map(|network| network.pool);
        self.upfs.pool(anchor, &context.dnn).or_else(of_network)
    }

    fn ask_policy(&mut self, key: Key, reference: &str, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        let notification = Uri::callback(&self.identity.api_root, &NfType::Smf, "sm-policy", reference);
        let mut body = SmPolicyContextData::new(
            context.supi.clone(),
            context.pdu_session_id,
            SbiSessionType::Ipv4,
            context.dnn.clone(),
            notification,
            context.snssai,
        );
        body.subs_sess_ambr = Some(context.qos.ambr);
        body.subs_def_qos = Some(subscribed_default_qos(&context.qos));
        body.ipv4_address = context.address;
        let mut serving = ServingNfIdentity::default();
        serving.serv_nf_inst_id = Some(context.amf.instance);
        if let Some(access) = context.access.take() {
            serving.guami = access.guami;
            body.access_type = Some(access.kind);
            body.rat_type = access.rat_type;
            body.serving_network = Some(access.serving_network);
            body.user_location_info = access.location;
            body.ue_time_zone = access.time_zone;
            body.pei = access.pei;
            body.gpsi = access.gpsi;
        }
        body.serv_nf_id = Some(serving);
        body.smf_id = Some(self.identity.instance_id);
        self.call(key, Target::any(), CreateSmPolicy { body }.into(), out);
    }

    /// The PCF decided: allocate the address and set the UPF up (steps 8 to 10).
    pub(in crate::smf) fn policy(&mut self, key: Key, reply: Reply, out: &mut Outbox) {
        match reply {
            Ok(Response::SmPolicyDecisionCreated(created)) => {
                let Some(context) = self.contexts.get_mut(key) else { return };
                context.policy = Some(created.location);
                authorise(&mut context.qos, &created.body);
                if let Err(error) = self.ask_for_session(key, out) {
                    self.fail(key, &error, out);
                }
            }
            Ok(_) => self.fail(key, &EstablishmentError::Network("the PCF gave no decision".into()), out),
            Err(problem) => {
                let error = EstablishmentError::of_problem(Operation::CreateSmPolicy, &problem);
                self.fail(key, &error, out);
            }
        }
    }

    /// Chooses the UPFs (step 8) and asks the anchor first: others are told its tunnel.
    fn ask_for_session(&mut self, key: Key, out: &mut Outbox) -> Result<(), EstablishmentError> {
        let no_upf = || EstablishmentError::UserPlane("none that serves it is associated".into());
        let path = self.path(key).ok_or_else(no_upf)?;
        let context = self.contexts.get(key).ok_or(EstablishmentError::Resources)?;
        let local = self.upfs.info(path.anchor).map(|info| info.local_address);
        let local = local.ok_or(EstablishmentError::Resources)?;
        let pool = self.pool(context, path.anchor).ok_or(EstablishmentError::Resources)?;
        let address = self.take_address(key, pool, out).ok_or(EstablishmentError::Resources)?;
        let context = self.contexts.get_mut(key).ok_or(EstablishmentError::Resources)?;
        context.state = State::AwaitingN4Establishment(path.anchor, path.front);
        let message = n4::establishment(context, address, local);
        self.ask_upf(key, path.anchor, Seid(0), message, out);
        Ok(())
    }

    /// The session's address, of that pool: the reserved one, or another one, which the PCF is told of (trigger UE_IP_CH,
    /// TS 29.512 table 5.6.3.6-1).
    fn take_address(&mut self, key: Key, pool: Network, out: &mut Outbox) -> Option<Ipv4Addr> {
        let reserved = self.contexts.get(key)?.address;
        if let Some(address) = reserved.filter(|address| contains(pool, *address)) {
            return Some(address);
        }
        let address = self.pools.take(pool)?;
        let context = self.contexts.get_mut(key)?;
        context.address = Some(address);
        reserved.into_iter().for_each(|address| self.pools.give_back(address));
        let mut body = SmPolicyUpdateContextData::default();
        body.rep_policy_ctrl_req_triggers = vec![PolicyControlRequestTrigger::UeIpCh];
        body.ipv4_address = Some(address);
        body.rel_ipv4_address = reserved;
        if let Some(policy) = &context.policy {
            let request = UpdateSmPolicy { sm_policy_id: policy.id().to_owned(), body };
            out.call(super::super::NOBODY, Target::Root(policy.root.clone()), request.into());
        }
        Some(address)
    }

    /// A UPF did not take the session: another one is asked, if there is one (TS 23.501 6.3.3.3).
    pub(in crate::smf) fn try_another_upf(
        &mut self,
        key: Key,
        refusing: UpfHandle,
        error: EstablishmentError,
        out: &mut Outbox,
    ) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        context.state = State::AwaitingPolicy; // nothing is under way at a UPF
        context.tried.push(refusing);
        delete_at_upfs(context, out);
        match self.ask_for_session(key, out) {
            Ok(()) => self.log(key, Level::Warn, out, |_| format!("another UPF is asked: {error}")),
            Err(_) => self.fail(key, &error, out),
        }
    }

    /// The anchor answered (step 10b).
    pub(in crate::smf) fn n4_established(
        &mut self,
        key: Key,
        (upf, front): (UpfHandle, Option<FrontPlan>),
        result: Result<Message, N4Error>,
        out: &mut Outbox,
    ) {
        let tunnel = |response: &SessionEstablishmentResponse| n4::tunnel(response, n4::UPLINK_PDR);
        match accepted(upf, result, tunnel, out) {
            Ok((seid, tunnel)) => {
                let Some(context) = self.contexts.get_mut(key) else { return };
                context.anchor = Some(UpfSession { upf, seid, tunnel });
                match front {
                    Some(plan) => self.ask_front(key, plan, out),
                    None => self.tell_ue_and_gnb(key, out),
                }
            }
            Err(error) => self.try_another_upf(key, upf, error, out),
        }
    }

    /// Namf_Communication_N1N2MessageTransfer with Accept and N2 SM information (step 11).
    pub(in crate::smf) fn tell_ue_and_gnb(&mut self, key: Key, out: &mut Outbox) {
        let Some(context) = self.contexts.get_mut(key) else { return };
        context.state = State::AwaitingTunnel;
        context.told = context.at_n3().map(|session| session.tunnel);
        let Some(context) = self.contexts.get(key) else { return };
        let Some(network) = self.network(&context.dnn, &context.snssai) else { return };
        let accept = n1::establishment_accept(context, network);
        let (n2, target) = (n2::setup_request(context), Target::Root(context.amf.root.clone()));
        let mut request = transfer(context, Some(accept), n2.map(|info| (NgapIeType::PduResSetupReq, info)));
        request.body.n1n2_failure_txf_notif_uri = Some(self.failure_uri(key));
        self.call(key, target, request.into(), out);
    }

    /// The AMF took the messages, or could not (TS 23.502 4.3.2.2.1 step 11; TS 29.518 5.2.2.3.1).
    pub(in crate::smf) fn transferred(&mut self, key: Key, reply: &Reply, out: &mut Outbox) {
        if let Err(problem) = reply {
            self.log(key, Level::Warn, out, |_| format!("the AMF can't reach the UE: {problem}"));
            self.end_and_tell_amf(key, out);
        }
    }

    /// Ends an establishment after the AMF was answered: the UE gets its Reject by itself.
    pub(in crate::smf) fn fail(&mut self, key: Key, error: &EstablishmentError, out: &mut Outbox) {
        let Some(context) = self.contexts.get(key) else { return };
        self.log(key, Level::Warn, out, |_| format!("refused: {error}"));
        let reject = n1::establishment_reject(context.pdu_session_id, context.pti, error.gsm_cause());
        let request = transfer(context, Some(reject), None);
        out.call(super::super::NOBODY, Target::Root(context.amf.root.clone()), request.into());
        self.end_and_tell_amf(key, out);
    }

    /// Somebody took too long: UDM, PCF, UPF or gNB.
    pub(in crate::smf) fn establishment_too_slow(&mut self, key: Key, out: &mut Outbox) {
        match self.contexts.get(key).map(|context| &context.state) {
            Some(State::AwaitingSubscriptionData(from)) => {
                let from = *from;
                let error = EstablishmentError::Network("the UDM does not answer".into());
                self.refuse_request(key, from, error, out);
            }
            Some(
                State::AwaitingPolicy
                | State::AwaitingN4Establishment(..)
                | State::AwaitingFrontEstablishment(_)
                | State::AwaitingN9,
            ) => {
                self.fail(key, &EstablishmentError::Network("no answer in time".into()), out);
            }
            Some(State::AwaitingTunnel) => self.end_and_tell_amf(key, out),
            Some(State::AwaitingGnb(towards)) => {
                self.gnb_silent(key, *towards, out);
            }
            Some(State::AwaitingResourceRelease) => self.resources_released(key, out),
            _ => {}
        }
    }
}

/// The UPF's SEID and what was looked for in its answer. A session that it has, but to which packets can't come, it is
/// not to keep.
pub(in crate::smf) fn accepted<T>(
    upf: UpfHandle,
    result: Result<Message, N4Error>,
    find: impl Fn(&SessionEstablishmentResponse) -> Option<T>,
    out: &mut Outbox,
) -> Result<(Seid, T), EstablishmentError> {
    let response = match result {
        Ok(Message::SessionEstablishmentResponse(response)) => response,
        Ok(_) => return Err(EstablishmentError::UserPlane("an answer to another request".into())),
        Err(error) => return Err(EstablishmentError::UserPlane(error.to_string())),
    };
    let seid = response.up_f_seid.map(|seid| Seid(seid.seid));
    match (response.cause, seid, find(&response)) {
        (N4Cause::RequestAccepted, Some(seid), Some(found)) => Ok((seid, found)),
        (N4Cause::RequestAccepted, Some(seid), None) => {
            out.n4(N4Effect::Request { tag: super::super::NOBODY, upf, seid, message: n4::deletion() });
            Err(EstablishmentError::UserPlane("accepted without F-TEID".into()))
        }
        (cause, ..) => {
            Err(EstablishmentError::UserPlane(format!("it answers {}", words_of_name(&format!("{cause:?}")))))
        }
    }
}

/// IPv4 and SSC mode 1, or whatever includes it (TS 24.501 6.4.1.3, 6.4.1.4.1).
fn check_kind(request: &PduSessionEstablishmentRequest) -> Result<(), EstablishmentError> {
    match request.pdu_session_type {
        None | Some(PduSessionType::Ipv4 | PduSessionType::Ipv4v6) => {}
        Some(PduSessionType::Ipv6 | PduSessionType::Ethernet | PduSessionType::Unstructured) => {
            return Err(EstablishmentError::OnlyIpv4);
        }
        Some(_) => return Err(EstablishmentError::UnknownSessionType),
    }
    match request.ssc_mode {
        None | Some(SscMode::Mode1) => Ok(()),
        Some(_) => Err(EstablishmentError::SscMode),
    }
}

fn allows_ipv4(configuration: &DnnConfiguration) -> Result<(), EstablishmentError> {
    let types = &configuration.pdu_session_types;
    let is_ipv4 = |kind: &SbiSessionType| matches!(kind, SbiSessionType::Ipv4 | SbiSessionType::Ipv4v6);
    let mut allowed = types.default_session_type.iter().chain(&types.allowed_session_types);
    if allowed.any(is_ipv4) { Ok(()) } else { Err(EstablishmentError::Ipv4NotSubscribed) }
}

fn subscribed_default_qos(qos: &Qos) -> SubscribedDefaultQos {
    use pith_sbi::common::{Arp, PreemptionCapability, PreemptionVulnerability};
    let arp =
        Arp::new(qos.arp_priority, PreemptionCapability::NotPreempt, PreemptionVulnerability::Preemptable);
    SubscribedDefaultQos::new(qos.five_qi, arp)
}

/// What the session rule authorises in place of what is subscribed (TS 29.512 4.2.6.3).
pub(in crate::smf) fn authorise(qos: &mut Qos, decision: &SmPolicyDecision) {
    for rule in decision.sess_rules.values().flatten() {
        qos.ambr = rule.auth_sess_ambr.unwrap_or(qos.ambr);
        if let Some(default) = &rule.auth_def_qos {
            qos.five_qi = default.five_qi.unwrap_or(qos.five_qi);
            qos.arp_priority = default.arp.as_ref().map_or(qos.arp_priority, |arp| arp.priority_level);
        }
    }
}

/// Refuses PostSmContexts, with PDU SESSION ESTABLISHMENT REJECT for the UE.
fn refuse(from: Caller, refused: &Refused, out: &mut Outbox) {
    let Refused { supi, pdu_session_id, pti, error } = refused;
    let who = || supi.as_ref().map_or_else(|| "a phone".into(), Supi::masked);
    out.log(Level::Warn, || format!("{} session {pdu_session_id}: refused: {error}", who()));
    let mut data = SmContextCreateErrorData::default();
    data.n1_sm_msg = Some(n1::establishment_reject(*pdu_session_id, *pti, error.gsm_cause()).into());
    let more = ProblemMore::SmContextCreateError(Box::new(data));
    out.refuse(from, Problem::new(error.cause()).detail(error).with(more));
}

/// A transfer to UE, gNB or both.
pub(in crate::smf) fn transfer(
    context: &SmContext,
    n1: Option<Vec<u8>>,
    n2: Option<(NgapIeType, Vec<u8>)>,
) -> N1N2MessageTransfer {
    let mut body = N1N2MessageTransferReqData::default();
    body.pdu_session_id = Some(context.pdu_session_id);
    body.n1_message_container = n1.map(|message| N1MessageContainer::new(N1MessageClass::Sm, message));
    body.n2_info_container = n2.map(|(kind, info)| {
        let mut content = N2InfoContent::new(info);
        content.ngap_ie_type = Some(kind);
        let mut information = N2SmInformation::new(context.pdu_session_id);
        information.n2_info_content = Some(content);
        information.s_nssai = Some(context.snssai);
        let mut container = N2InfoContainer::new(N2InformationClass::Sm);
        container.sm_info = Some(information);
        container
    });
    N1N2MessageTransfer { ue_context_id: context.supi.clone().into(), body }
}
