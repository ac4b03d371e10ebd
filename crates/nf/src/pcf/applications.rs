//! Npcf_PolicyAuthorization (TS 29.514 4.2): an application, such as an IMS, requests QoS for its media in a UE's session.
//!
//! | | |
//! |---|---|
//! | binding (4.2.2.2) | the PDU session with the UE's address, and with DNN, slice and SUPI if the application gives them; the latest one |
//! | a media component | a PCC rule for each of its IP flows ([`MediaSubComponent`]) |
//! | 5QI | by media type: audio 1, video 2, otherwise 9 without a guaranteed rate (TS 29.513 table 7.3.3) |
//! | bit rates | maximum `marBw`; guaranteed `mirBw`, else `marBw`; of audio and video without rates 64 kbit/s and 512 kbit/s |
//! | gates | `fStatus` of the IP flow, else of the component (TS 29.513 7.3.3); flows that are REMOVED have no rule |
//! | change (4.2.3) | a merge patch of media, priority and subscription |
//! | events | FAILED_RESOURCES_ALLOCATION; the answer's subscription has no others (4.2.2.2, 4.2.6.2). The SMF answers before gNB and UE have the flows, so that the PCF does not know of success |
//! | end of the PDU session | the application is requested to end its session (4.2.5.3) |

use super::latest::{Mark, text_mark};
use super::rules::{MAX_RULES, Rule, Rules, flow_information};
use super::{Association, Context, Pcf, not_found};
use crate::kit::{
    Caller, DescribedFlow, Key, MAX_PACKET_FILTERS, MAX_RATE, Outbox, Owner, PendingReply, References, Tag,
    Target,
};
use pith_sbi::common::{Arp, PreemptionCapability, PreemptionVulnerability, SupportedFeatures};
use pith_sbi::npcf_policyauthorization::{
    AfEvent, AfEventNotification, AppSessionContext, AppSessionContextReqData, AppSessionContextRespData,
    AppSessionContextUpdateDataPatch, AppSessionEventNotify, AppSessionTerminate, EventsNotification,
    EventsSubscReqData, Flows, MediaComponent, MediaSubComponent, MediaType, ResourcesAllocationInfo,
    TerminationCause, TerminationInfo,
};
use pith_sbi::npcf_smpolicycontrol::{
    FlowDirection, FlowInformation, FlowStatus, PccRule, QosData, RuleStatus, TrafficControlData,
};
use pith_sbi::{ApiRoot, Cause, Created, Problem, Response, Uri};
use pith_types::{BitRate, ContextId, Dnn};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Application sessions of a PDU session at most.
const MAX_APPLICATIONS: usize = 8;

/// Octets of an application's request at most, as JSON: the PCF keeps it.
const MAX_REQUEST: usize = 16 << 10;

/// Media components of an application session at most.
const MAX_COMPONENTS: usize = 8;

/// The lengths of sessions' IPv6 prefixes: a shorter one than 64 bits has prefixes that the UE delegates (TS 23.501 5.8.2.2.4).
const SESSION_PREFIXES: std::ops::RangeInclusive<u8> = 48..=64;

/// The precedence of applications' rules.
const PRECEDENCE: u32 = 50;

/// An application session.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Application {
    pub(super) request: AppSessionContextReqData,
    pub(super) owner: Owner,
}

/// Marks that are looked for in all associations: most of these have a mark without a bit here, and are compared with no other.
struct Marks {
    bits: u128,
    marks: Vec<u32>,
}

impl Marks {
    fn of(marks: impl Iterator<Item = u32>) -> Self {
        let marks: Vec<_> = marks.collect();
        Self { bits: marks.iter().fold(0, |bits, mark| bits | Self::bit(*mark)), marks }
    }

    const fn bit(mark: u32) -> u128 {
        1 << (mark & 127)
    }

    fn has(&self, mark: u32) -> bool {
        self.bits & Self::bit(mark) != 0 && self.marks.contains(&mark)
    }
}

/// A tag whose answer is ignored.
const IGNORED: Tag = Tag::new(u64::MAX, 0);

impl Pcf {
    /// The PDU session of the UE with the address that the application names (TS 29.514 4.2.2.2; TS 29.513 6.2).
    pub(super) fn bound_session(&self, request: &AppSessionContextReqData) -> Option<Key> {
        let prefixes: Vec<_> = request.ue_ipv6.into_iter().flat_map(prefixes_of).collect();
        let v4 = request.ue_ipv4.map(|v4| v4.to_bits());
        let v6 = Marks::of(prefixes.iter().map(|prefix| text_mark(prefix)));
        let is_marked = |mark: Mark| v4.map_or_else(|| v6.has(mark.v6), |v4| mark.v4 == v4);
        let is_prefix = |prefix: &str| prefixes.iter().any(|known| known == prefix);
        // TS 23.003 9A: the SMF has removed the operator identifier.
        let names = |dnn: &Dnn, known: &Dnn| {
            dnn == known || dnn.network_identifier_in(self.identity.plmn).as_ref() == Some(known)
        };
        let is_it = |key: &Key| {
            let Some(association) = self.associations.view(*key) else { return true };
            let Context::Session(context) = &association.context else { return false };
            association.creating.is_none()
                && (request.ue_ipv4.is_none() || context.ipv4_address == request.ue_ipv4)
                && (v4.is_some() || context.ipv6_address_prefix.as_deref().is_some_and(is_prefix))
                && request.dnn.as_ref().is_none_or(|dnn| names(dnn, &context.dnn))
                && request.slice_info.as_ref().is_none_or(|slice| *slice == context.slice_info)
                && request.supi.as_ref().is_none_or(|supi| *supi == context.supi)
        };
        self.associations.keys_with(is_marked).filter(is_it).last()
    }

    /// Npcf_PolicyAuthorization_Create (TS 29.514 4.2.2).
    pub(super) fn create_application(
        &mut self,
        reply: PendingReply,
        context: AppSessionContext,
        out: &mut Outbox,
    ) {
        let result = self.try_create_application(reply.caller(), context, out);
        reply.complete(result, out);
    }

    fn try_create_application(
        &mut self,
        from: Caller,
        context: AppSessionContext,
        out: &mut Outbox,
    ) -> Result<Response, Box<Problem>> {
        let mut request = context.asc_req_data.ok_or_else(|| Problem::mandatory_ie_missing("ascReqData"))?;
        check_events(&mut request.ev_subsc, &request.notif_uri.root, "/ascReqData/evSubsc")?;
        check_address(&request)?;
        let unbound = || Box::new(Problem::new(Cause::PduSessionNotAvailable));
        let key = self.bound_session(&request).ok_or_else(unbound)?;
        let association = self.associations.get_mut(key).ok_or_else(unbound)?;
        let id = association.id;
        let addresses = Addresses::of(&association.context);
        let rules = association.rules.get_or_insert_default();
        if rules.applications.len() >= MAX_APPLICATIONS {
            return Err(Problem::new(Cause::RequestedServiceTemporarilyNotAuthorized).into());
        }
        let number = rules.last.wrapping_add(1).max(1);
        if let Err(problem) = install(rules, number, &request, addresses) {
            self.settle(key, out);
            return Err(problem);
        }
        rules.last = number;
        rules.applications.insert(number, Application { request: request.clone(), owner: Owner::of(from) });
        self.settle(key, out);
        let location = uri_of(&self.root, &self.references, id, number);
        Ok(Response::AppSessionCreated(Box::new(Created { location, body: context_of(request) })))
    }

    /// The association and the number of an application session, if it is the caller's.
    fn application(&mut self, reference: &str, from: Caller) -> Result<(Key, u32), Box<Problem>> {
        let missing = || Box::new(Problem::new(Cause::ApplicationSessionContextNotFound));
        let (id, number) = named(&self.references, reference).ok_or_else(missing)?;
        let key = self.ids.find(id).ok_or_else(missing)?;
        let rules = self.associations.get_mut(key).and_then(|it| it.rules.as_ref()).ok_or_else(missing)?;
        let application = rules.applications.get(&number).ok_or_else(missing)?;
        application.owner.check(from)?;
        Ok((key, number))
    }

    /// Npcf_PolicyAuthorization_Get.
    pub(super) fn read_application(&mut self, id: &str, from: Caller) -> Result<Response, Box<Problem>> {
        let (key, number) = self.application(id, from)?;
        let rules = self.associations.get_mut(key).and_then(|it| it.rules.as_ref());
        let application = rules.and_then(|rules| rules.applications.get(&number)).ok_or_else(not_found)?;
        Ok(Response::AppSessionContext(Box::new(context_of(application.request.clone()))))
    }

    /// Npcf_PolicyAuthorization_Update (TS 29.514 4.2.3): media components that are added, changed, or removed, and the subscription to events.
    pub(super) fn change_application(
        &mut self,
        id: &str,
        from: Caller,
        patch: AppSessionContextUpdateDataPatch,
        out: &mut Outbox,
    ) -> Result<Response, Box<Problem>> {
        let (key, number) = self.application(id, from)?;
        let association = self.associations.get_mut(key).ok_or_else(not_found)?;
        let addresses = Addresses::of(&association.context);
        let rules = association.rules.as_mut().ok_or_else(not_found)?;
        let request = rules.applications.get(&number).map(|it| &it.request).ok_or_else(not_found)?;
        let mut request = merged(request, &patch.asc_req_data.unwrap_or_default())?;
        check_events(&mut request.ev_subsc, &request.notif_uri.root, "/ascReqData/evSubsc")?;
        let result = install(rules, number, &request, addresses);
        if let (Ok(()), Some(application)) = (&result, rules.applications.get_mut(&number)) {
            application.request = request.clone();
        }
        self.settle(key, out);
        result.map(|()| Response::AppSessionContext(Box::new(context_of(request))))
    }

    /// Npcf_PolicyAuthorization_Subscribe and Unsubscribe (TS 29.514 4.2.6, 4.2.7): the subscription to events; `None` ends it. The answer has the
    /// events that the PCF reports, if these are not all.
    pub(super) fn subscribe_application(
        &mut self,
        id: &str,
        from: Caller,
        requested: Option<EventsSubscReqData>,
    ) -> Result<Response, Box<Problem>> {
        let (key, number) = self.application(id, from)?;
        let association = self.associations.get_mut(key).ok_or_else(not_found)?;
        let context = association.id;
        let application = association.rules.as_mut().and_then(|it| it.applications.get_mut(&number));
        let application = application.ok_or_else(not_found)?;
        let mut request = application.request.clone();
        let mut subscription = requested.clone();
        check_events(&mut subscription, &request.notif_uri.root, "")?;
        if requested.is_some() && subscription.is_none() {
            return Err(refused("none of these events is reported"));
        }
        if requested.is_none() && request.ev_subsc.is_none() {
            let problem = Problem::new(Cause::ApplicationSessionContextNotFound);
            return Err(problem.detail("no subscription to events").into());
        }
        let former = std::mem::replace(&mut request.ev_subsc, subscription.clone());
        check_size(&request)?;
        application.request = request;
        self.changed(key);
        let is_whole = subscription == requested;
        let Some(body) = subscription else { return Ok(Response::NoContent) };
        if former.is_some() {
            return Ok(if is_whole { Response::NoContent } else { Response::EventsSubsc(Box::new(body)) });
        }
        let session = uri_of(&self.root, &self.references, context, number);
        let location = Uri::new(&self.root, &format!("{}/events-subscription", session.path));
        Ok(Response::EventsSubscCreated(Box::new(Created { location, body })))
    }

    /// Npcf_PolicyAuthorization_Delete (TS 29.514 4.2.4).
    pub(super) fn delete_application(
        &mut self,
        id: &str,
        from: Caller,
        out: &mut Outbox,
    ) -> Result<Response, Box<Problem>> {
        let (key, number) = self.application(id, from)?;
        if let Some(rules) = self.associations.get_mut(key).and_then(|it| it.rules.as_mut()) {
            rules.applications.remove(&number);
            remove_rules(rules, number, |_| true);
        }
        self.settle(key, out);
        Ok(Response::NoContent)
    }

    /// The PDU session has ended: its applications are requested to end their sessions (TS 29.514 4.2.5.3).
    pub(super) fn terminate_applications(&self, association: &Association, out: &mut Outbox) {
        let applications = association.rules.iter().flat_map(|rules| &rules.applications);
        for (number, application) in applications {
            let res_uri = uri_of(&self.root, &self.references, association.id, *number);
            let body = TerminationInfo::new(TerminationCause::PduSessionTermination, res_uri);
            let uri = application.request.notif_uri.clone();
            let target = Target::Root(Arc::clone(&uri.root));
            out.call(IGNORED, target, AppSessionTerminate { uri, body }.into());
        }
    }
}

/// The context that an application session's id names, for routing.
pub(super) fn association_of(references: &References, reference: &str) -> Option<ContextId> {
    named(references, reference).map(|(id, _)| id)
}

fn named(references: &References, reference: &str) -> Option<(ContextId, u32)> {
    let (id, number) = references.name(reference)?.rsplit_once("-app")?;
    Some((id.parse().ok()?, number.parse().ok()?))
}

fn uri_of(root: &Arc<ApiRoot>, references: &References, id: ContextId, number: u32) -> Uri {
    let reference = references.of_name(&format!("{id}-app{number}"));
    Uri::new(root, &format!("/npcf-policyauthorization/v1/app-sessions/{reference}"))
}

fn context_of(request: AppSessionContextReqData) -> AppSessionContext {
    let mut response = AppSessionContextRespData::default();
    response.supp_feat = Some(SupportedFeatures(0));
    let mut context = AppSessionContext::default();
    (context.asc_req_data, context.asc_resp_data) = (Some(request), Some(response));
    context
}

/// The prefixes of sessions that may have an address, as SMFs write them.
fn prefixes_of(address: Ipv6Addr) -> impl Iterator<Item = String> {
    let prefix = move |length: u8| format!("{}/{length}", first_address(address, length));
    SESSION_PREFIXES.map(prefix)
}

/// The first address of the network with this prefix length that contains an address.
fn first_address(address: Ipv6Addr, length: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

/// Members of a request that an update may change (TS 29.514 5.6.2.5, AppSessionContextUpdateData).
const CHANGEABLE: [&str; 4] = ["afAppId", "evSubsc", "medComponents", "resPrio"];

/// The request after an update, a merge patch (RFC 7396; TS 29.514 4.2.3.2).
fn merged(
    request: &AppSessionContextReqData,
    update: &Map<String, Value>,
) -> Result<AppSessionContextReqData, Box<Problem>> {
    let mut all = serde_json::to_value(request).map_err(Problem::system_failure)?;
    let changes = update.iter().filter(|(name, _)| CHANGEABLE.contains(&name.as_str()));
    let changes: Map<_, _> = changes.map(|(name, change)| (name.clone(), change.clone())).collect();
    pith_sbi::patch::merge(&mut all, &Value::Object(changes));
    serde_json::from_value(all).map_err(|error| Problem::mandatory_ie_incorrect("/ascReqData", error).into())
}

/// The addresses of a session: IPv4, and the prefix of IPv6.
#[derive(Debug, Clone, Copy)]
struct Addresses {
    v4: Option<Ipv4Addr>,
    v6: Option<(Ipv6Addr, u8)>,
}

impl Addresses {
    fn of(context: &Context) -> Self {
        let Context::Session(context) = context else { return Self { v4: None, v6: None } };
        let prefix = context.ipv6_address_prefix.as_deref();
        let v6 = prefix.and_then(|prefix| {
            let (prefix, length) = prefix.split_once('/')?;
            Some((prefix.parse().ok()?, length.parse().ok().filter(|length| *length <= 128)?))
        });
        Self { v4: context.ipv4_address, v6 }
    }

    /// Whether the session has an address of that IP version.
    const fn have_version_of(self, other: IpAddr) -> bool {
        match other {
            IpAddr::V4(_) => self.v4.is_some(),
            IpAddr::V6(_) => self.v6.is_some(),
        }
    }

    /// Whether all addresses of a network are the session's.
    fn contain(self, (network, length): (IpAddr, u8)) -> bool {
        match network {
            IpAddr::V4(v4) => length == 32 && self.v4 == Some(v4),
            IpAddr::V6(v6) => {
                let is_in = |(own, of): (Ipv6Addr, u8)| length >= of && first_address(v6, of) == own;
                self.v6.is_some_and(is_in)
            }
        }
    }
}

/// A request has one address of the UE (TS 29.514 5.6.2.3; `oneOf` in A.2). No session has a MAC address.
fn check_address(request: &AppSessionContextReqData) -> Result<(), Box<Problem>> {
    let addresses = [
        ("ueIpv4", request.ue_ipv4.is_some()),
        ("ueIpv6", request.ue_ipv6.is_some()),
        ("ueMac", request.ue_mac.is_some()),
    ];
    let mut given = addresses.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name);
    match (given.next(), given.next()) {
        (None, _) => Err(Problem::mandatory_ie_missing("ueIpv4 or ueIpv6").into()),
        (Some(_), None) => Ok(()),
        (Some(one), Some(other)) => {
            let why = format!("a request with {one} has no other address of the UE");
            Err(Problem::mandatory_ie_incorrect(&format!("/ascReqData/{other}"), why).into())
        }
    }
}

fn check_size(request: &AppSessionContextReqData) -> Result<(), Box<Problem>> {
    if serde_json::to_vec(request).map_or(true, |json| json.len() > MAX_REQUEST) {
        return Err(refused("the request is too long"));
    }
    Ok(())
}

/// Checks a subscription to events, which is at that place of the request: it has one event at least. Removes events that the PCF never reports, a
/// subscription to no others, and a callback URI at which the application is not: notifications then go to that of its session.
fn check_events(
    subscription: &mut Option<EventsSubscReqData>,
    own: &Arc<ApiRoot>,
    at: &str,
) -> Result<(), Box<Problem>> {
    let Some(EventsSubscReqData { events, notif_uri }) = subscription else { return Ok(()) };
    if events.is_empty() {
        return Err(Problem::mandatory_ie_incorrect(&format!("{at}/events"), "no event").into());
    }
    if notif_uri.as_ref().is_some_and(|uri| uri.root != *own) {
        *notif_uri = None;
    }
    events.retain(|it| it.event == AfEvent::FailedResourcesAllocation);
    if events.is_empty() {
        *subscription = None;
    }
    Ok(())
}

fn refused(why: &str) -> Box<Problem> {
    Problem::new(Cause::RequestedServiceNotAuthorized).detail(why).into()
}

/// The element at that place of the request is wrong (TS 29.514 4.2.2.2).
fn invalid(cause: Cause, element: &str, why: &str) -> Box<Problem> {
    Problem::new(cause).param(&format!("/ascReqData/medComponents{element}"), why).detail(why).into()
}

/// Checks the numbers of components and flows, each of which is used once, and the bit rates.
fn check_media(request: &AppSessionContextReqData) -> Result<(), Box<Problem>> {
    let wrong = |element: &str, why: &str| invalid(Cause::InvalidServiceInformation, element, why);
    let mut numbers = BTreeSet::new();
    for (name, component) in &request.med_components {
        let at = format!("/{name}");
        if !numbers.insert(component.med_comp_n) {
            return Err(wrong(&format!("{at}/medCompN"), "another component has that number"));
        }
        let rates = [component.mar_bw_dl, component.mar_bw_ul, component.mir_bw_dl, component.mir_bw_ul];
        check_rates(&at, &rates)?;
        let mut flows = BTreeSet::new();
        for (name, flow) in &component.med_sub_comps {
            let at = format!("{at}/medSubComps/{name}");
            if !flows.insert(flow.f_num) {
                return Err(wrong(&format!("{at}/fNum"), "another flow of the component has that number"));
            }
            check_rates(&at, &[flow.mar_bw_dl, flow.mar_bw_ul])?;
        }
    }
    Ok(())
}

fn check_rates(element: &str, rates: &[Option<BitRate>]) -> Result<(), Box<Problem>> {
    if rates.iter().flatten().all(|rate| *rate <= MAX_RATE) {
        return Ok(());
    }
    Err(invalid(Cause::InvalidServiceInformation, element, &format!("a bit rate is at most {MAX_RATE}")))
}

/// Installs the rules of an application session's media, in place of those that it had. On an error nothing changes.
fn install(
    rules: &mut Rules,
    number: u32,
    request: &AppSessionContextReqData,
    addresses: Addresses,
) -> Result<(), Box<Problem>> {
    if request.med_components.len() > MAX_COMPONENTS {
        return Err(refused("too many media components"));
    }
    check_size(request)?;
    check_media(request)?;
    let mut wanted = Vec::new();
    for (name, component) in &request.med_components {
        for (flow_name, flows) in &component.med_sub_comps {
            let status = flows.f_status.as_ref().or(component.f_status.as_ref());
            if status == Some(&FlowStatus::Removed) || component.f_status == Some(FlowStatus::Removed) {
                continue;
            }
            let at = format!("/{name}/medSubComps/{flow_name}");
            wanted.push(rule_of((number, component, flows), request, addresses, &at)?);
        }
    }
    let of_others = rules.rules.values().filter(|rule| rule.application != Some(number)).count();
    if of_others + wanted.len() > MAX_RULES {
        return Err(refused("too many flows"));
    }
    remove_rules(rules, number, |id| wanted.iter().all(|rule| *rule.pcc.pcc_rule_id != *id));
    wanted.into_iter().for_each(|rule| rules.put(rule));
    Ok(())
}

fn remove_rules(rules: &mut Rules, number: u32, is_gone: impl Fn(&str) -> bool) {
    let of_session = rules.rules.iter().filter(|(id, rule)| rule.application == Some(number) && is_gone(id));
    let gone: Vec<Arc<str>> = of_session.map(|(id, _)| Arc::clone(id)).collect();
    gone.iter().for_each(|id| {
        rules.remove(id);
    });
}

/// The rule of IP flows of a media component, which is at that place of the request.
fn rule_of(
    (number, component, flows): (u32, &MediaComponent, &MediaSubComponent),
    request: &AppSessionContextReqData,
    addresses: Addresses,
    at: &str,
) -> Result<Rule, Box<Problem>> {
    let id: Arc<str> = format!("app{number}-{}-{}", component.med_comp_n, flows.f_num).into();
    let mut pcc = PccRule::new(Arc::clone(&id));
    if !(1..=2).contains(&flows.f_descs.len()) {
        let why = "IP flows have one or two descriptions";
        return Err(invalid(Cause::InvalidServiceInformation, &format!("{at}/fDescs"), why));
    }
    for (index, text) in flows.f_descs.iter().enumerate() {
        pcc.flow_infos.push(checked(text, flows, addresses, &format!("{at}/fDescs/{index}"))?);
    }
    pcc.precedence = Some(PRECEDENCE);
    pcc.ref_qos_data = vec![Arc::clone(&id)];
    pcc.ref_tc_data = vec![Arc::clone(&id)];
    let mut tc = TrafficControlData::new(Arc::clone(&id));
    let status = flows.f_status.as_ref().or(component.f_status.as_ref()).unwrap_or(&FlowStatus::Enabled);
    tc.flow_status = Some(status.clone());
    let qos = qos_of((id, status), component, flows, request.res_prio.as_deref());
    if qos.gbr_ul.max(qos.gbr_dl) == Some(BitRate(0)) {
        // A GBR flow has a guaranteed rate (TS 23.501 5.7.2.5).
        let why = "audio and video need a bit rate in one direction at least";
        return Err(invalid(Cause::InvalidServiceInformation, at, why));
    }
    Ok(Rule { pcc, qos, tc: Some(tc), application: Some(number) })
}

/// The flow information of a description that the SMF can encode, and whose end at the UE is the session's.
fn checked(
    text: &str,
    flows: &MediaSubComponent,
    addresses: Addresses,
    at: &str,
) -> Result<FlowInformation, Box<Problem>> {
    let restricted = |why: &str| invalid(Cause::FilterRestrictions, at, why);
    let information = description(text, flows).ok_or_else(|| restricted("not a flow description"))?;
    let described = DescribedFlow::of(&information)
        .filter(|it| it.packet_filters <= MAX_PACKET_FILTERS)
        .ok_or_else(|| restricted("the flow description cannot be enforced"))?;
    if described.remote.is_some_and(|(remote, _)| !addresses.have_version_of(remote)) {
        return Err(restricted("the PDU session has no address of this IP version"));
    }
    if described.local.is_some_and(|local| !addresses.contain(local)) {
        let why = "the end at the UE is not the address of the PDU session";
        return Err(invalid(Cause::InvalidServiceInformation, at, why));
    }
    Ok(information)
}

/// A flow description of an application; one of an uplink flow (`permit in`) is turned around (TS 29.514 5.6.2.8, TS 29.214 5.3.8).
fn description(text: &str, flows: &MediaSubComponent) -> Option<FlowInformation> {
    let (text, direction) = match text.strip_prefix("permit in ") {
        None => (text.to_owned(), FlowDirection::Downlink),
        Some(rest) => {
            let (protocol, ends) = rest.split_once(" from ")?;
            let (local, remote) = ends.split_once(" to ")?;
            (format!("permit out {protocol} from {remote} to {local}"), FlowDirection::Uplink)
        }
    };
    if text.len() > 512 || !text.starts_with("permit out ") {
        return None;
    }
    let mut flow = flow_information(&text);
    flow.flow_direction = Some(direction);
    flow.tos_traffic_class.clone_from(&flows.tos_tr_cl);
    Some(flow)
}

/// Media on hold may have no rate (TS 29.514 4.2.2.2): their gates are closed, and their flow keeps the usual one.
fn qos_of(
    (id, status): (Arc<str>, &FlowStatus),
    component: &MediaComponent,
    flows: &MediaSubComponent,
    priority: Option<&str>,
) -> QosData {
    let (five_qi, usual) = match component.med_type {
        Some(MediaType::Audio) => (1, Some(BitRate::kbps(64))),
        Some(MediaType::Video) => (2, Some(BitRate::kbps(512))),
        _ => (9, None),
    };
    let is_given = |rate: &BitRate| rate.0 > 0 || *status != FlowStatus::Disabled;
    let maximum_uplink = flows.mar_bw_ul.or(component.mar_bw_ul).filter(is_given).or(usual);
    let maximum_downlink = flows.mar_bw_dl.or(component.mar_bw_dl).filter(is_given).or(usual);
    let mut qos = QosData::new(id);
    qos.five_qi = Some(five_qi);
    (qos.maxbr_ul, qos.maxbr_dl) = (maximum_uplink, maximum_downlink);
    if usual.is_some() {
        let least = |asked: Option<BitRate>, maximum: Option<BitRate>| match (
            asked.filter(|rate| rate.0 > 0),
            maximum,
        ) {
            (Some(asked), Some(maximum)) => Some(asked.min(maximum)),
            (asked, maximum) => asked.or(maximum),
        };
        qos.gbr_ul = least(component.mir_bw_ul, maximum_uplink);
        qos.gbr_dl = least(component.mir_bw_dl, maximum_downlink);
    }
    let capability = component.preempt_cap.clone().unwrap_or(PreemptionCapability::NotPreempt);
    let vulnerability = component.preempt_vuln.clone().unwrap_or(PreemptionVulnerability::Preemptable);
    let priority = component.res_prio.as_deref().or(priority);
    qos.arp = Some(Arp::new(arp_level(priority), capability, vulnerability));
    qos
}

/// ARP priority level of a reservation priority, of which `PRIO_1` is the lowest and the default (TS 29.514 5.6.3.13).
fn arp_level(priority: Option<&str>) -> u8 {
    let number = priority.and_then(|text| text.strip_prefix("PRIO_")?.parse::<u8>().ok());
    15 - number.unwrap_or(1).clamp(1, 15) + 1
}

/// Notifies applications of media without resources, or with those that they had before a change, if they have subscribed to it (TS 29.514 4.2.5.8).
pub(super) fn notify_failures(
    root: &Arc<ApiRoot>,
    references: &References,
    association: &Association,
    (concerned, status): (&BTreeMap<u32, Vec<Arc<str>>>, &RuleStatus),
    out: &mut Outbox,
) {
    let Some(rules) = &association.rules else { return };
    for (number, failed) in concerned {
        let request = rules.applications.get(number).map(|application| &application.request);
        let subscription = request.and_then(|request| Some((request, request.ev_subsc.as_ref()?)));
        let Some((request, subscription)) = subscription else { continue };
        if subscription.events.iter().all(|it| it.event != AfEvent::FailedResourcesAllocation) {
            continue;
        }
        let flows: Vec<Flows> = failed.iter().filter_map(|id| flows_of(id)).collect();
        let mut event = AfEventNotification::new(AfEvent::FailedResourcesAllocation);
        event.flows.clone_from(&flows);
        let mut report = ResourcesAllocationInfo::default();
        (report.mc_resourc_status, report.flows) = (Some(status.as_str().into()), flows);
        let location = uri_of(root, references, association.id, *number);
        let subscription_uri = Uri::new(root, &format!("{}/events-subscription", location.path));
        let mut body = EventsNotification::new(subscription_uri, vec![event]);
        body.failed_resourc_alloc_reports = vec![report];
        // The application may have notifications sent to itself only.
        let own = subscription.notif_uri.as_ref().filter(|uri| uri.root == request.notif_uri.root);
        let uri = own.unwrap_or(&request.notif_uri).clone();
        let target = Target::Root(Arc::clone(&uri.root));
        out.call(IGNORED, target, AppSessionEventNotify { uri, body }.into());
    }
}

/// Whether a rule with that identifier is an application's.
pub(super) fn is_of_application(id: &str) -> bool {
    id.starts_with("app")
}

/// The media of a rule, by its identifier.
fn flows_of(id: &str) -> Option<Flows> {
    let mut numbers = id.strip_prefix("app")?.split('-').skip(1);
    let mut flows = Flows::new(numbers.next()?.parse::<u32>().ok()?);
    flows.f_nums = vec![numbers.next()?.parse().ok()?];
    Some(flows)
}
