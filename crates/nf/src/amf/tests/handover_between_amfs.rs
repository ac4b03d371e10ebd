//! N2 handover between two AMFs of different GUAMIs (TS 23.502 4.9.1.3, TS 29.518 5.2.2.2.3, 5.2.2.2.4, 5.2.2.3.6). Each AMF has one of the gNBs.

use super::emergency;
use super::n2_handover::{
    AT_TARGET, acknowledge, answer, failure, failure_at, gnb_target, refuse, required, states, updates,
};
use super::world::*;
use crate::amf::AmfConfig;
use crate::kit::{
    Caller, GnbHandle, GnbInfo, Input, N2Input, NetworkFunction, PendingReply, StoreScope, Tag, Timer,
    Tracking,
};
use crate::testing::{Stored, client};
use pith_crypto::kdf;
use pith_crypto::keys::KSeaf;
use pith_crypto::nas::{CipheringAlgorithm, Direction, IntegrityAlgorithm, MessageInput, NasMac};
use pith_nas::gmm::{ConfigurationUpdateComplete, RegistrationComplete};
use pith_nas::ie::{NgKsi, RegistrationKind, UeSecurityCapability};
use pith_nas::security::Algorithms;
use pith_nas::{GmmCause, GmmMessage};
use pith_ngap::{
    Cause, CauseRadioNetwork, EarlyRanStatus, HandoverCancel, HandoverCommand, HandoverFailure,
    HandoverNotify, HandoverRequest, RanStatus, UeContextReleaseCommand, UeNgapIds,
    UplinkRanEarlyStatusTransfer, UplinkRanStatusTransfer,
};
use pith_sbi::common::NfInstanceId;
use pith_sbi::namf_communication as namf;
use pith_sbi::nsmf_pdusession::{HoState, N2SmInfoType, UpCnxState};
use pith_sbi::{
    ApiRoot, Cause as SbiCause, NfType, Operation, Problem, ProblemMore, Request, Response, Scheme, Uri,
};
use pith_types::{AmfUeNgapId, Guami, RanUeNgapId, Snssai};
use std::sync::Arc;

/// The source AMF, as the target AMF knows it.
const SOURCE_AMF: fn() -> Caller = || client(11);

pub(super) fn target_config() -> AmfConfig {
    let guami = Guami { amf_id: "030080".parse().unwrap(), ..config().guami };
    let mut config = AmfConfig { guami, ..config() };
    config.identity.instance_id = NfInstanceId::from_random(8);
    config.identity.api_root = Arc::new(ApiRoot::new(Scheme::Http, "127.0.0.2:7000"));
    config
}

macro_rules! take_message {
    ($world:expr, $gnb:expr, $message:ident) => {
        match $world.downlinks.pop_front() {
            Some((gnb, pith_ngap::Message::$message(message))) if gnb == $gnb => message,
            other => panic!("not {}: {other:?}", stringify!($message)),
        }
    };
}
pub(super) use take_message;

/// Both AMFs, and the UE, which is registered and connected at the source, with sessions.
pub(super) struct Amfs {
    pub source: World,
    pub target: World,
    pub phone: Phone,
    /// CreateUEContext, until the source AMF gets the answer.
    pub creation: Option<Tag>,
}

impl Amfs {
    pub fn new(sessions: &[u8]) -> Self {
        Self::with(target_config(), sessions)
    }

    pub fn with(target: AmfConfig, sessions: &[u8]) -> Self {
        Self::of(config(), target, |source, phone| {
            phone.register(source);
            sessions.iter().for_each(|id| phone.establish(source, *id));
        })
    }

    /// The UE registers at the source AMF by that function.
    pub fn of(source: AmfConfig, target: AmfConfig, register: impl FnOnce(&mut World, &mut Phone)) -> Self {
        let (mut source, mut target) = (World::with(source), World::with(target));
        let mut phone = Phone::default();
        source.input(Input::N2(N2Input::GnbDown { gnb: OTHER_GNB }));
        target.input(Input::N2(N2Input::GnbDown { gnb: GNB }));
        target.caller = SOURCE_AMF();
        register(&mut source, &mut phone);
        for world in [&mut source, &mut target] {
            for operation in [Operation::UpdateSmContext, Operation::CreateUeContext, Operation::N2InfoNotify]
            {
                world.script.insert(operation, None);
            }
            world.take_ladder();
        }
        Self { source, target, phone, creation: None }
    }

    /// HANDOVER REQUIRED, and CreateUEContext on its way to the target AMF.
    pub fn require(&mut self, sessions: &[u8]) -> Box<namf::CreateUeContext> {
        self.source.ngap(GNB, "HandoverRequired", required(&self.phone, sessions).encode());
        let (tag, request) = take_call(&mut self.source, Operation::CreateUeContext);
        self.creation = Some(tag);
        let Request::CreateUeContext(request) = request else { panic!("{request:?}") };
        request
    }

    /// The target AMF gets CreateUEContext.
    pub fn create(&mut self, request: namf::CreateUeContext) {
        deliver(&mut self.target, request);
    }

    /// HANDOVER REQUEST is sent.
    pub fn requested(&mut self, sessions: &[u8]) -> HandoverRequest {
        let request = self.require(sessions);
        self.create(*request);
        for _ in sessions {
            answer(&mut self.target, Some(N2SmInfoType::PduResSetupReq));
        }
        take_message!(self.target, OTHER_GNB, HandoverRequest)
    }

    /// The source AMF gets the answer to CreateUEContext.
    pub fn created(&mut self) {
        let reply = self.target.answers.pop().expect("the target AMF answers");
        self.source.reply(self.creation.take().expect("CreateUEContext is pending"), reply);
    }

    /// HANDOVER COMMAND is sent.
    pub fn commanded(&mut self, sessions: &[u8]) -> (AmfUeNgapId, HandoverCommand) {
        let request = self.requested(sessions);
        acknowledge(&mut self.target, request.amf_ue_ngap_id, sessions, &[]);
        for _ in sessions {
            answer(&mut self.target, Some(N2SmInfoType::HandoverCmd));
        }
        self.created();
        (request.amf_ue_ngap_id, take_message!(self.source, GNB, HandoverCommand))
    }

    /// The UE is at the target gNB, and the source AMF does not know yet.
    pub fn notified(&mut self, id: AmfUeNgapId) -> Box<namf::N2InfoNotify> {
        notify(&mut self.target, id);
        (self.phone.gnb, self.phone.ran_id, self.phone.amf_id) = (OTHER_GNB, AT_TARGET, Some(id));
        let (_, request) = take_call(&mut self.target, Operation::N2InfoNotify);
        let Request::N2InfoNotify(notification) = request else { panic!("{request:?}") };
        notification
    }

    /// The handover is complete at both AMFs.
    pub fn completed(&mut self, sessions: &[u8]) {
        let (id, _) = self.commanded(sessions);
        let notification = self.notified(id);
        assert_eq!(self.source.request(*notification), Ok(Response::NoContent));
        while updates(&self.target).last().is_some() {
            answer(&mut self.target, None);
        }
        confirm_release(&mut self.source);
    }

    /// The refusal of CreateUEContext with a change.
    pub fn refusal(mut self, change: impl FnOnce(&mut namf::CreateUeContext)) -> Problem {
        let mut request = self.require(&[5]);
        change(&mut request);
        self.create(*request);
        let refusal = self.target.answers.pop().expect("an answer at once").expect_err("a refusal");
        self.target.assert_empty();
        *refusal
    }
}

/// HANDOVER COMMAND is sent: the source AMF and the target AMF.
pub(super) fn commanded() -> (World, World) {
    let mut amfs = Amfs::new(&[5]);
    amfs.commanded(&[5]);
    (amfs.source, amfs.target)
}

pub(super) fn take_call(world: &mut World, operation: Operation) -> (Tag, Request) {
    let at = world.calls.iter().position(|(_, _, request)| request.operation() == operation);
    let (tag, _, request) = world.calls.remove(at.unwrap_or_else(|| panic!("{operation:?} was not called")));
    (tag, request)
}

/// A request that need not be answered at once.
pub(super) fn deliver(world: &mut World, request: impl Into<Request>) {
    let (request, reply) = (request.into(), PendingReply::owed_to(world.caller));
    world.ladder.push(format!("nf   -> {:?}", request.operation()));
    world.input(Input::Request { reply, request });
}

pub(super) fn notify(world: &mut World, id: AmfUeNgapId) {
    let message =
        HandoverNotify { amf_ue_ngap_id: id, ran_ue_ngap_id: AT_TARGET, location: Some(location()) };
    world.ngap(OTHER_GNB, "HandoverNotify", message.encode());
}

/// The source gNB is released when the target AMF's SMFs have had time to switch the paths.
pub(super) fn confirm_release(world: &mut World) {
    let is_command = |(_, message): &(crate::kit::GnbHandle, pith_ngap::Message)| {
        matches!(message, pith_ngap::Message::UeContextReleaseCommand(_))
    };
    assert!(!world.downlinks.iter().any(is_command), "the source gNB forwards packets");
    world.expire(Timer::NgapGuard);
    let cause = confirm_any_release(world);
    assert_eq!(cause, Cause::RadioNetwork(CauseRadioNetwork::successful_handover));
}

/// The source gNB has released the UE. Returns the cause of the command.
pub(super) fn confirm_any_release(world: &mut World) -> Cause {
    let command: UeContextReleaseCommand = take_message!(world, GNB, UeContextReleaseCommand);
    let UeNgapIds::Pair(amf_ue_ngap_id, ran_ue_ngap_id) = command.ids else { panic!("{:?}", command.ids) };
    let complete = pith_ngap::UeContextReleaseComplete {
        amf_ue_ngap_id,
        ran_ue_ngap_id,
        location: None,
        sessions: None,
        diagnostics: None,
    };
    world.ngap(GNB, "UeContextReleaseComplete", complete.encode());
    command.cause
}

pub(super) fn cancel(amfs: &mut Amfs) {
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (amfs.phone.amf_id.unwrap(), amfs.phone.ran_id);
    let message = HandoverCancel { amf_ue_ngap_id, ran_ue_ngap_id, cause: None };
    amfs.source.ngap(GNB, "HandoverCancel", message.encode());
    let _ = take_message!(amfs.source, GNB, HandoverCancelAcknowledge);
}

/// ReleaseUEContext gets from the source AMF to the target AMF, which has the gNB release the UE.
pub(super) fn release_at_target(amfs: &mut Amfs) {
    let (_, request) = take_call(&mut amfs.source, Operation::ReleaseUeContext);
    assert_eq!(amfs.target.request(request), Ok(Response::NoContent));
    assert_eq!(states(&amfs.target), [Some(HoState::Cancelled)]);
    assert_eq!(amfs.target.amf.audit().contexts, 0);
}

/// The UE is served by the source AMF, and nothing is left of the handover.
pub(super) fn assert_stays(mut amfs: Amfs) {
    let audit = amfs.source.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.in_procedure), (1, 1, 0));
    assert!(amfs.source.request(transfer(5, Some(b"5GSM"), None)).is_ok());
    let GmmMessage::DlNasTransport(message) = amfs.phone.receive(&mut amfs.source) else { panic!() };
    assert_eq!(message.payload_container, b"5GSM", "the UE accepts the COUNT");
    amfs.phone.release(&mut amfs.source);
}

#[test]
fn a_ue_is_handed_over_to_another_amf_with_its_session() {
    let mut amfs = Amfs::new(&[5]);
    amfs.completed(&[5]);
    assert_eq!(
        amfs.source.take_ladder(),
        "\
gnb1 -> HandoverRequired
amf  <- CreateUeContext
gnb1 <- HandoverCommand
nf   -> N2InfoNotify
nf   <- 204
pcf  <- DeleteAmPolicyAssociation
udm  <- SdmUnsubscribe
      NgapGuard
gnb1 <- UeContextReleaseCommand
gnb1 -> UeContextReleaseComplete"
    );
    amfs.source.assert_empty();
    assert_eq!(
        amfs.target.take_ladder(),
        "\
nf   -> CreateUeContext
smf  <- UpdateSmContext
gnb2 <- HandoverRequest
gnb2 -> HandoverRequestAcknowledge
smf  <- UpdateSmContext
nf   <- 201
gnb2 -> HandoverNotify
amf  <- N2InfoNotify
udm  <- ThreeGppRegistration
smf  <- UpdateSmContext"
    );
    let Amfs { mut target, mut phone, .. } = amfs;
    assert_eq!((target.amf.audit().registered, target.amf.audit().connected), (1, 1));
    // The UE is outside its registration area (TS 23.502 4.9.1.3.3 step 12).
    registers_without_authentication(&mut target, &mut phone);
    assert_eq!(phone.guti.unwrap().guami, target_config().guami, "a 5G-GUTI of this AMF");
    assert_eq!((target.amf.audit().registered, target.amf.audit().sessions), (1, 1));
    assert_eq!(target.running(), [], "no registration is awaited");
}

/// The UE's registration update at the target AMF, after the handover.
fn registers_without_authentication(target: &mut World, phone: &mut Phone) {
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    phone.send(target, request);
    phone.accepted(target);
    phone.send(target, RegistrationComplete::new());
    assert_eq!(
        target.take_ladder(),
        "\
gnb2 -> UplinkNasTransport
udm  <- ThreeGppRegistration
udm  <- GetDataSets
udm  <- SdmSubscribe
pcf  <- CreateAmPolicyAssociation
gnb2 <- DownlinkNasTransport
gnb2 -> UplinkNasTransport"
    );
}

/// TS 23.501 5.16.4.1: no subscription applies to it at the target AMF either.
#[test]
fn a_ue_that_is_registered_for_emergency_services_stays_so_at_another_amf() {
    let services = emergency::with_emergency(0);
    let target = AmfConfig { emergency: services.emergency.clone(), ..target_config() };
    let mut amfs = Amfs::of(services, target, |source, phone| {
        emergency::register_with_sim(source, phone);
        phone.send(source, emergency::emergency_request(5));
    });
    amfs.completed(&[5]);
    let Amfs { mut target, mut phone, .. } = amfs;
    target.take_ladder();
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    phone.send(&mut target, request);
    let accept = phone.accepted(&mut target);
    assert!(accept.result.emergency_registered && accept.allowed_nssai.is_none());
    phone.send(&mut target, RegistrationComplete::new());
    assert_eq!(
        target.take_ladder(),
        "\
gnb2 -> UplinkNasTransport
gnb2 <- DownlinkNasTransport
gnb2 -> UplinkNasTransport"
    );
    let session = target.amf.ues.iter().next().and_then(|(_, ue)| ue.emergency_session());
    assert_eq!(session, Some(5));
    phone.send(&mut target, establishment(4));
    assert_eq!(emergency::returned(&mut target, &mut phone), GmmCause::PayloadWasNotForwarded);
}

/// TS 33.501 6.9.2.3.3: the source AMF derives the next NH, and the target AMF passes it on as it is.
#[test]
fn the_target_gnb_gets_the_next_hop_of_the_source_amf() {
    let mut amfs = Amfs::new(&[5]);
    let request = amfs.requested(&[5]);
    let k_amf = kdf::k_amf(&KSeaf::new(K_SEAF), supi().imsi(), &[0, 0]);
    let k_gnb = kdf::k_gnb(&k_amf, 0, kdf::AccessType::ThreeGpp);
    let nh = kdf::next_nh(&k_amf, &kdf::first_nh(&k_amf, &k_gnb));
    assert_eq!((request.security_context.chaining_count, request.security_context.nh), (2, *nh.as_bytes()));
    assert_eq!((request.guami, request.source_to_target), (target_config().guami, b"to target".to_vec()));
    assert_eq!(request.allowed_nssai, [Snssai::of_sst(1)]);
    assert_eq!(&request.sessions[0].transfer[..], b"PDU_RES_SETUP_REQ");
    let capabilities = request.security_capabilities;
    assert_eq!((capabilities.nr_encryption, capabilities.nr_integrity), (0xc000, 0xc000));
    assert_eq!(request.nas_container, None, "the algorithms stay");
}

/// A target AMF that prefers 128-NEA1 and 128-NIA1 to those in use, which it permits, too.
fn config_of_other_algorithms() -> AmfConfig {
    AmfConfig {
        integrity: vec![IntegrityAlgorithm::Nia1, IntegrityAlgorithm::Nia2],
        ciphering: vec![CipheringAlgorithm::Nea1, CipheringAlgorithm::Nea2],
        ..target_config()
    }
}

/// The UE takes the algorithms 128-NEA1 and 128-NIA1 of a container into use, with its K_AMF and COUNTs.
fn take_container(phone: &mut Phone, octets: &[u8]) {
    let algorithms = Algorithms { integrity: IntegrityAlgorithm::Nia1, ciphering: CipheringAlgorithm::Nea1 };
    let k_amf = kdf::k_amf(&KSeaf::new(K_SEAF), supi().imsi(), &[0, 0]);
    let former = phone.security.take().unwrap();
    // The UE has got all messages of the source AMF. The target AMF leaves one COUNT out.
    let count = former.last_received().unwrap().plus(2).unwrap();
    let [.., sequence_number] = *octets else { panic!() };
    assert_eq!(sequence_number, count.sequence_number());
    let NgKsi::Native(ng_ksi) = phone.ng_ksi else { panic!() };
    assert_eq!(octets[4..6], [0x11, ng_ksi], "128-NEA1, 128-NIA1; K_AMF is kept");
    let mac = NasMac::new(algorithms.integrity, &kdf::k_nas_int(&k_amf, algorithms.integrity));
    let input = MessageInput { count: u32::MAX, bearer: 1, direction: Direction::Downlink };
    assert_eq!(octets[..4], mac.mac(input, &octets[4..]));
    let mut security = security_of(&supi(), algorithms);
    security.resume(former.next_to_send(), Some(count));
    phone.security = Some(security);
}

/// TS 33.501 6.9.2.3.3: the target AMF selects the algorithms by its own order of priority. K_AMF stays, and the NAS COUNTs go on.
#[test]
fn a_target_amf_that_prefers_other_algorithms_changes_them_with_a_nas_container() {
    let mut amfs = Amfs::with(config_of_other_algorithms(), &[5]);
    let request = amfs.requested(&[5]);
    let id = request.amf_ue_ngap_id;
    acknowledge(&mut amfs.target, id, &[5], &[]);
    answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
    amfs.created();
    let _ = take_message!(amfs.source, GNB, HandoverCommand);
    take_container(&mut amfs.phone, &request.nas_container.expect("a NAS container"));
    let notification = amfs.notified(id);
    assert_eq!(amfs.source.request(*notification), Ok(Response::NoContent));
    answer(&mut amfs.target, None);
    let Amfs { mut target, mut phone, .. } = amfs;
    // Both directions have the new algorithms, and the UE need not be authenticated for them.
    target.take_ladder();
    registers_without_authentication(&mut target, &mut phone);
}

/// TS 33.501 6.9.2.3.3, 6.9.2.3.4: the source AMF derives another K_AMF with its next downlink COUNT, and both NAS COUNTs begin at 0.
#[test]
fn a_source_amf_that_derives_another_k_amf_does_not_give_its_own_away() {
    let source = AmfConfig { derives_k_amf: true, ..config() };
    let mut amfs = Amfs::of(source, target_config(), |source, phone| {
        phone.register(source);
        phone.establish(source, 5);
    });
    let former = amfs.phone.security.take().unwrap();
    let count = former.last_received().unwrap().plus(1).unwrap();
    let k_amf = kdf::k_amf_prime(&k_amf_of(&supi()), Direction::Downlink, count.value());
    let creation = amfs.require(&[5]);
    let seaf = creation.body.ue_context.seaf_data.as_ref().unwrap();
    assert_eq!(seaf.key_amf.key_type, namf::KeyAmfType::Kprimeamf);
    assert_eq!((seaf.key_amf_h_derivation_ind, seaf.key_amf.octets()), (Some(true), Some(*k_amf.as_bytes())));
    assert_eq!(seaf.key_amf_change_ind, Some(true), "the UE changes its AS keys");
    amfs.create(*creation);
    answer(&mut amfs.target, Some(N2SmInfoType::PduResSetupReq));
    let request: HandoverRequest = take_message!(amfs.target, OTHER_GNB, HandoverRequest);
    let k_gnb = kdf::k_gnb(&k_amf, u32::MAX, kdf::AccessType::ThreeGpp);
    let next_hop = request.security_context;
    assert_eq!((next_hop.chaining_count, next_hop.nh), (0, *k_gnb.as_bytes()));
    assert_eq!(request.new_security_context, Some(()));
    let container = request.nas_container.unwrap();
    let NgKsi::Native(ng_ksi) = amfs.phone.ng_ksi else { panic!() };
    assert_eq!(container[4..], [0x22, 0x10 | ng_ksi, count.sequence_number()]);
    let algorithms = former.algorithms();
    let mac = NasMac::new(algorithms.integrity, &kdf::k_nas_int(&k_amf, algorithms.integrity));
    let input = MessageInput { count: u32::MAX, bearer: 1, direction: Direction::Downlink };
    assert_eq!(container[..4], mac.mac(input, &container[4..]));
    amfs.phone.security = Some(security_with(&k_amf, algorithms));
    let id = request.amf_ue_ngap_id;
    acknowledge(&mut amfs.target, id, &[5], &[]);
    answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
    amfs.created();
    let _ = take_message!(amfs.source, GNB, HandoverCommand);
    let notification = amfs.notified(id);
    assert_eq!(amfs.source.request(*notification), Ok(Response::NoContent));
    answer(&mut amfs.target, None);
    let Amfs { mut target, mut phone, .. } = amfs;
    target.take_ladder();
    registers_without_authentication(&mut target, &mut phone);
}

/// Without the COUNT the UE could not derive the key.
#[test]
fn a_derived_key_without_its_count_is_refused() {
    let source = AmfConfig { derives_k_amf: true, ..config() };
    let mut amfs = Amfs::of(source, target_config(), |source, phone| {
        phone.register(source);
        phone.establish(source, 5);
    });
    let mut creation = amfs.require(&[5]);
    creation.body.ue_context.mm_context_list[0].nas_downlink_count = None;
    amfs.create(*creation);
    amfs.created();
    failure(&mut amfs.source);
    amfs.target.assert_empty();
    assert_stays(amfs);
}

/// Each reserves COUNTs for the target AMF, which the UE must not miss by more than 255.
#[test]
fn a_ue_whose_handovers_are_cancelled_can_be_handed_over_again() {
    let source = AmfConfig { derives_k_amf: true, ..config() };
    let mut amfs = Amfs::of(source, target_config(), |source, phone| {
        phone.register(source);
        phone.establish(source, 5);
    });
    let mut updates = 0;
    for _ in 0..20 {
        amfs.commanded(&[5]);
        amfs.source.script.insert(Operation::ReleaseUeContext, None);
        cancel(&mut amfs);
        release_at_target(&mut amfs);
        answer(&mut amfs.target, None);
        let command: UeContextReleaseCommand = take_message!(amfs.target, OTHER_GNB, UeContextReleaseCommand);
        let UeNgapIds::Pair(amf_ue_ngap_id, ran_ue_ngap_id) = command.ids else { panic!() };
        let complete = pith_ngap::UeContextReleaseComplete {
            amf_ue_ngap_id,
            ran_ue_ngap_id,
            location: None,
            sessions: None,
            diagnostics: None,
        };
        amfs.target.ngap(OTHER_GNB, "UeContextReleaseComplete", complete.encode());
        if amfs.source.downlinks.is_empty() {
            continue;
        }
        let command = amfs.phone.receive(&mut amfs.source);
        assert!(matches!(command, GmmMessage::ConfigurationUpdateCommand(_)), "{command:?}");
        amfs.phone.send(&mut amfs.source, ConfigurationUpdateComplete::new());
        updates += 1;
    }
    assert_eq!(updates, 6);
}

/// The source AMF continues with its algorithms.
#[test]
fn a_ue_that_stays_keeps_the_algorithms_of_the_source_amf() {
    let mut amfs = Amfs::with(config_of_other_algorithms(), &[5]);
    amfs.commanded(&[5]);
    amfs.source.script.insert(Operation::ReleaseUeContext, None);
    cancel(&mut amfs);
    release_at_target(&mut amfs);
    assert_stays(amfs);
}

/// TS 29.502 5.2.2.3.4.2 to 5.2.2.3.4.4.
#[test]
fn the_smf_gets_the_target_amf_and_then_the_new_one() {
    let mut amfs = Amfs::new(&[5, 6]);
    let request = amfs.require(&[5]);
    assert_eq!(request.body.ue_context.session_context_list.len(), 2, "also one without a user plane");
    amfs.create(*request);
    let own = Some(target_config().identity.instance_id);
    let [preparing] = &updates(&amfs.target)[..] else { panic!("one session has a user plane to hand over") };
    assert_eq!((preparing.ho_state.clone(), preparing.target_serving_nf_id), (Some(HoState::Preparing), own));
    assert_eq!((preparing.serving_nf_id, preparing.target_id.is_some()), (None, true));
    answer(&mut amfs.target, Some(N2SmInfoType::PduResSetupReq));
    let request: HandoverRequest = take_message!(amfs.target, OTHER_GNB, HandoverRequest);
    acknowledge(&mut amfs.target, request.amf_ue_ngap_id, &[5], &[]);
    answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
    amfs.created();
    amfs.notified(request.amf_ue_ngap_id);
    let updates = updates(&amfs.target);
    let of =
        |state: Option<HoState>| updates.iter().filter(move |it| it.ho_state == state).collect::<Vec<_>>();
    let completed = of(Some(HoState::Completed));
    let others = of(None);
    assert_eq!((completed.len(), others.len()), (1, 1));
    for body in [completed[0], others[0]] {
        assert_eq!(body.serving_nf_id, own);
        let callback = body.sm_context_status_uri.as_ref().unwrap();
        assert_eq!(callback.root, target_config().identity.api_root);
    }
    assert_eq!(others[0].up_cnx_state, None, "it has no user plane to deactivate");
}

#[test]
fn the_target_gnb_refuses() {
    let mut amfs = Amfs::new(&[5]);
    let request = amfs.requested(&[5]);
    let message = HandoverFailure { amf_ue_ngap_id: request.amf_ue_ngap_id, cause: None, diagnostics: None };
    amfs.target.ngap(OTHER_GNB, "HandoverFailure", message.encode());
    amfs.created();
    let cause = CauseRadioNetwork::ho_failure_in_target_5GC_ngran_node_or_target_system;
    assert_eq!(failure(&mut amfs.source), cause);
    assert_eq!(states(&amfs.target), [Some(HoState::Cancelled)]);
    amfs.target.assert_empty();
    assert_stays(amfs);
}

#[test]
fn a_target_gnb_that_does_not_answer_or_is_gone_ends_the_preparation() {
    for is_gone in [true, false] {
        let mut amfs = Amfs::new(&[5]);
        amfs.requested(&[5]);
        if is_gone {
            amfs.target.input(Input::N2(N2Input::GnbDown { gnb: OTHER_GNB }));
        } else {
            amfs.target.expire(Timer::Handover);
        }
        amfs.created();
        let expected = if is_gone {
            CauseRadioNetwork::ho_failure_in_target_5GC_ngran_node_or_target_system
        } else {
            CauseRadioNetwork::tngrelocprep_expiry
        };
        assert_eq!(failure(&mut amfs.source), expected, "the target AMF's cause");
        assert_eq!(
            (states(&amfs.target), amfs.target.amf.audit().contexts),
            (vec![Some(HoState::Cancelled)], 0)
        );
        assert_stays(amfs);
    }
}

#[test]
fn a_handover_that_no_amf_takes_fails_with_its_cause() {
    for (reply, cause) in [
        (Problem::new(SbiCause::NfDiscoveryFailure), CauseRadioNetwork::unknown_targetID),
        (Problem::timed_out(), CauseRadioNetwork::tngrelocprep_expiry),
        (Problem::of_status(403), CauseRadioNetwork::ho_failure_in_target_5GC_ngran_node_or_target_system),
    ] {
        let mut amfs = Amfs::new(&[5]);
        amfs.require(&[5]);
        amfs.source.reply(amfs.creation.take().unwrap(), Err(Box::new(reply)));
        assert_eq!(failure(&mut amfs.source), cause);
        assert_stays(amfs);
    }
}

/// TS 23.502 4.9.1.4.
#[test]
fn the_source_gnb_cancels_at_each_step() {
    // Before the target AMF has answered: it is released as soon as its context is known.
    let mut amfs = Amfs::new(&[5]);
    let request = amfs.requested(&[5]);
    cancel(&mut amfs);
    acknowledge(&mut amfs.target, request.amf_ue_ngap_id, &[5], &[]);
    answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
    amfs.source.script.insert(Operation::ReleaseUeContext, None);
    amfs.created();
    assert!(amfs.source.downlinks.is_empty(), "no HANDOVER COMMAND: {:?}", amfs.source.downlinks);
    release_at_target(&mut amfs);
    assert_stays(amfs);
    // After HANDOVER COMMAND.
    let mut amfs = Amfs::new(&[5]);
    amfs.commanded(&[5]);
    amfs.source.script.insert(Operation::ReleaseUeContext, None);
    cancel(&mut amfs);
    release_at_target(&mut amfs);
    let release: UeContextReleaseCommand = take_message!(amfs.target, OTHER_GNB, UeContextReleaseCommand);
    assert_eq!(release.cause, Cause::RadioNetwork(CauseRadioNetwork::handover_cancelled));
    assert_stays(amfs);
}

#[test]
fn a_ue_that_does_not_arrive_stays_with_the_source_amf() {
    let mut amfs = Amfs::new(&[5]);
    amfs.commanded(&[5]);
    amfs.target.expire(Timer::Handover);
    assert_eq!((states(&amfs.target), amfs.target.amf.audit().contexts), (vec![Some(HoState::Cancelled)], 0));
    amfs.source.script.insert(Operation::ReleaseUeContext, None);
    amfs.source.expire(Timer::Handover);
    let (_, request) = take_call(&mut amfs.source, Operation::ReleaseUeContext);
    assert_eq!(amfs.target.request(request).unwrap_err().status, 404);
    assert_stays(amfs);
}

/// The NAS COUNTs are the target AMF's meanwhile (TS 33.501 6.4.3.1).
#[test]
fn the_source_amf_sends_no_nas_message_during_the_handover() {
    let mut amfs = Amfs::new(&[5]);
    amfs.requested(&[5]);
    let status = pith_nas::gmm::UlNasTransport::new(
        pith_nas::ie::PayloadContainerType::N1SmInformation,
        b"without a session".to_vec(),
    );
    amfs.phone.send(&mut amfs.source, status);
    assert!(amfs.source.downlinks.is_empty(), "{:?}", amfs.source.downlinks);
    amfs.source.reply(amfs.creation.take().unwrap(), Err(Box::new(Problem::of_status(403))));
    failure(&mut amfs.source);
    assert_stays(amfs);
}

/// TS 24.501 5.5.2.2.2: the handover does not take place.
#[test]
fn a_ue_that_deregisters_during_the_handover_gets_the_accept() {
    let mut amfs = Amfs::new(&[5]);
    amfs.commanded(&[5]);
    let Amfs { mut source, mut target, mut phone, .. } = amfs;
    source.script.insert(Operation::ReleaseUeContext, None);
    let request = phone.deregistration_request(false);
    phone.send(&mut source, request);
    let message = phone.receive(&mut source);
    assert!(matches!(message, GmmMessage::DeregistrationAcceptUeOriginating(_)), "{message:?}");
    phone.released(&mut source);
    assert_eq!(source.amf.audit().registered, 0);
    let (_, request) = take_call(&mut source, Operation::ReleaseUeContext);
    assert_eq!(target.request(request), Ok(Response::NoContent));
    assert_eq!(target.amf.audit().contexts, 0);
}

/// TS 23.502 4.9.1.3.1: the target AMF would not get what the source AMF queues.
#[test]
fn messages_of_smfs_are_refused_until_the_handover_is_over() {
    let mut amfs = Amfs::new(&[5]);
    amfs.requested(&[5]);
    let messages = [
        transfer(5, Some(b"5GSM"), None),
        transfer(5, None, Some((NgapIe::PduResSetupReq, b"setup"))),
        transfer(5, Some(b"5GSM"), Some((NgapIe::PduResModReq, b"modify"))),
    ];
    let assert_refused = |amfs: &mut Amfs| {
        for message in messages.clone() {
            let refusal = amfs.source.request(message).unwrap_err();
            assert_eq!(refusal.cause(), Some(&SbiCause::TemporaryRejectHandoverOngoing));
            assert_eq!(refusal.status, 409);
        }
        assert_eq!(amfs.source.request(transfer(9, Some(b"5GSM"), None)).unwrap_err().status, 404);
    };
    assert_refused(&mut amfs);
    amfs.source.reply(amfs.creation.take().unwrap(), Err(Box::new(Problem::of_status(403))));
    failure(&mut amfs.source);
    assert_stays(amfs);
    let mut amfs = Amfs::new(&[5]);
    amfs.commanded(&[5]);
    assert_refused(&mut amfs);
    cancel(&mut amfs);
    assert_stays(amfs);
}

/// The AMF to which the UE moves would not get it; the SMF sends it again (TS 23.502 4.9.1.3.1).
#[test]
fn the_accept_of_a_session_is_refused_until_the_ue_stays_or_has_moved() {
    let mut amfs = Amfs::new(&[5]);
    amfs.phone.send(&mut amfs.source, establishment(6));
    amfs.requested(&[5]);
    let accept = || transfer(6, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")));
    let refusal = amfs.source.request(accept()).unwrap_err();
    assert_eq!(refusal.cause(), Some(&pith_sbi::Cause::TemporaryRejectHandoverOngoing));
    // SMFs send it once: it waits for a UE that stays.
    let release = transfer(5, Some(b"release"), Some((NgapIe::PduResRelCmd, b"command")));
    amfs.source.request(release).unwrap();
    assert!(amfs.source.downlinks.is_empty());
    amfs.source.reply(amfs.creation.take().unwrap(), Err(Box::new(Problem::of_status(403))));
    failure(&mut amfs.source);
    let _: pith_ngap::PduSessionResourceReleaseCommand =
        take_message!(amfs.source, GNB, PduSessionResourceReleaseCommand);
    amfs.source.request(accept()).unwrap();
    let setup: pith_ngap::PduSessionResourceSetupRequest =
        take_message!(amfs.source, GNB, PduSessionResourceSetupRequest);
    assert_eq!(setup.sessions[0].pdu_session_id, 6);
}

/// TS 29.518 5.2.2.3.1.2.
#[test]
fn the_status_of_the_source_gnb_is_relayed_to_the_target_gnb() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.source.script.insert(Operation::N1N2MessageTransfer, None);
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (amfs.phone.amf_id.unwrap(), amfs.phone.ran_id);
    let status = RanStatus::decode(&[0; 12]).unwrap();
    let uplink = UplinkRanStatusTransfer { amf_ue_ngap_id, ran_ue_ngap_id, status: status.clone() };
    amfs.source.ngap(GNB, "UplinkRanStatusTransfer", uplink.encode());
    let (_, request) = take_call(&mut amfs.source, Operation::N1N2MessageTransfer);
    assert!(amfs.target.request(request.clone()).is_ok());
    let relayed = take_message!(amfs.target, OTHER_GNB, DownlinkRanStatusTransfer);
    assert_eq!((relayed.amf_ue_ngap_id, relayed.ran_ue_ngap_id, relayed.status), (id, AT_TARGET, status));
    let status = EarlyRanStatus::decode(&[0; 7]).unwrap();
    let early = UplinkRanEarlyStatusTransfer { amf_ue_ngap_id, ran_ue_ngap_id, status: status.clone() };
    amfs.source.ngap(GNB, "UplinkRanEarlyStatusTransfer", early.encode());
    let (_, early) = take_call(&mut amfs.source, Operation::N1N2MessageTransfer);
    assert!(amfs.target.request(early).is_ok());
    assert_eq!(take_message!(amfs.target, OTHER_GNB, DownlinkRanEarlyStatusTransfer).status, status);

    amfs.target.caller = client(12);
    assert_eq!(amfs.target.request(request.clone()).unwrap_err().status, 404, "of another AMF");
    amfs.target.caller = SOURCE_AMF();
    let Request::N1N2MessageTransfer(mut wrong) = request.clone() else { panic!() };
    let container = wrong.body.n2_info_container.as_mut().unwrap();
    container.ran_info.as_mut().unwrap().n2_info_content.ngap_data = vec![0xff; 3].into();
    assert_eq!(amfs.target.request(*wrong).unwrap_err().status, 400);
    assert!(amfs.target.downlinks.is_empty());
    amfs.notified(id);
    assert_eq!(amfs.target.request(request).unwrap_err().status, 404, "the UE has arrived");
}

/// What another AMF says is bounded, and no context is left of what is not accepted.
#[test]
fn claims_of_another_amf_are_checked() {
    let of_status = |status: u16, change: &dyn Fn(&mut namf::CreateUeContext)| {
        let refusal = Amfs::new(&[5]).refusal(change);
        assert_eq!(refusal.status, status, "{refusal}");
    };
    of_status(400, &|it| it.body.ue_context.supi = None);
    of_status(400, &|it| it.body.ue_context.supi = Some("imsi-999700000000002".parse().unwrap()));
    of_status(400, &|it| {
        let session = it.body.ue_context.session_context_list[0].clone();
        it.body.ue_context.session_context_list.push(session);
    });
    of_status(400, &|it| {
        let session = it.body.ue_context.session_context_list[0].clone();
        let with_its_context = namf::PduSessionContext { pdu_session_id: 6, ..session };
        it.body.ue_context.session_context_list.push(with_its_context);
    });
    of_status(400, &|it| it.body.ue_context.session_context_list[0].pdu_session_id = 16);
    of_status(400, &|it| it.body.pdu_session_list[0].pdu_session_id = 0);
    of_status(400, &|it| {
        let session = it.body.pdu_session_list[0].clone();
        it.body.pdu_session_list =
            (1..=16).map(|id| namf::N2SmInformation { pdu_session_id: id, ..session.clone() }).collect();
    });
    of_status(400, &|it| it.body.source_to_target_data.ngap_data = vec![0; (64 << 10) + 1].into());
    of_status(400, &|it| it.body.target_id.ran_node_id.g_nb_id = None);
    of_status(400, &|it| it.body.target_id.ran_node_id.g_nb_id.as_mut().unwrap().bit_length = 22 - 1);
    let seaf = |it: &mut namf::CreateUeContext, change: &dyn Fn(&mut namf::SeafData)| {
        change(it.body.ue_context.seaf_data.as_mut().unwrap());
    };
    of_status(403, &|it| it.body.ue_context.seaf_data = None);
    of_status(403, &|it| seaf(it, &|seaf| seaf.nh = None));
    of_status(403, &|it| seaf(it, &|seaf| seaf.ncc = Some(8)));
    of_status(403, &|it| seaf(it, &|seaf| seaf.key_amf_change_ind = Some(true)));
    of_status(403, &|it| seaf(it, &|seaf| seaf.key_amf.key_type = namf::KeyAmfType::Kprimeamf));
    let mm = |it: &mut namf::CreateUeContext, change: &dyn Fn(&mut namf::MmContext)| {
        change(&mut it.body.ue_context.mm_context_list[0]);
    };
    // Null integrity is not configured.
    of_status(403, &|it| {
        mm(it, &|mm| {
            mm.nas_security_mode.as_mut().unwrap().integrity_algorithm = namf::IntegrityAlgorithm::Nia0
        });
    });
    // One that the UE does not support.
    of_status(403, &|it| {
        let capability = UeSecurityCapability::of_5gs(0xe0, 0x80);
        mm(it, &|mm| mm.ue_security_capability = Some(capability.octets().to_vec().into()));
    });
    of_status(403, &|it| mm(it, &|mm| mm.allowed_nssai = vec![Snssai::of_sst(9)]));
}

#[test]
fn a_gnb_that_is_not_connected_to_the_target_amf_is_an_unknown_target() {
    let refusal = Amfs::new(&[5]).refusal(|it| {
        it.body.target_id.ran_node_id.g_nb_id.as_mut().unwrap().g_nb_value = "00000009".into();
    });
    let Some(ProblemMore::UeContextCreateError(error)) = &refusal.more else { panic!("{refusal:?}") };
    let cause = error.ngap_cause.as_ref().unwrap();
    assert_eq!((cause.group, cause.value), (0, CauseRadioNetwork::unknown_targetID as u32));
    assert_eq!(refusal.cause(), Some(&SbiCause::HandoverFailure));
}

/// The UE supports 128-NIA1 and 128-NIA2.
#[test]
fn a_ue_without_an_algorithm_that_the_target_amf_permits_is_refused() {
    let config = AmfConfig { integrity: vec![IntegrityAlgorithm::Nia3], ..target_config() };
    let mut amfs = Amfs::with(config, &[5]);
    let request = amfs.require(&[5]);
    amfs.create(*request);
    amfs.created();
    let cause = CauseRadioNetwork::encryption_and_or_integrity_protection_algorithms_not_supported;
    assert_eq!(failure(&mut amfs.source), cause);
    amfs.target.assert_empty();
    assert_stays(amfs);
}

#[test]
fn only_the_source_amf_may_release_the_context_and_only_before_the_ue_arrives() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    let cause = pith_sbi::common::NgApCause::new(0_u32, 5_u32);
    let body = namf::UeContextRelease::new(cause);
    let release = namf::ReleaseUeContext { ue_context_id: supi().into(), body };
    amfs.target.caller = client(12);
    assert_eq!(amfs.target.request(release.clone()).unwrap_err().status, 403);
    amfs.target.caller = SOURCE_AMF();
    amfs.notified(id);
    assert_eq!(amfs.target.request(release).unwrap_err().status, 404);
    assert_eq!(amfs.target.amf.audit().registered, 1);
}

/// A notification of a handover that was cancelled does not end the UE's context, nor does one with the reference of another callback.
#[test]
fn a_notification_of_no_handover_in_progress_is_refused() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    let notification = amfs.notified(id);
    (amfs.phone.gnb, amfs.phone.ran_id) = (GNB, RanUeNgapId(2));
    let of = |uri: Uri| namf::N2InfoNotify { uri, body: notification.body.clone() };
    let root = &config().identity.api_root;
    let callback = |reference: &str| namf::N2InfoNotify::callback_uri(root, &NfType::Amf, reference);
    let name = notification.uri.id().to_owned();
    let guess = format!("{}0", &name[..name.len() - 1]);
    let forged = if guess == name { format!("{}1", &name[..name.len() - 1]) } else { guess };
    let other = amfs.source.amf.key_of(&supi());
    for reference in ["x", &forged, &other, &amfs.source.amf.session_reference(&supi(), 5)] {
        let refusal = amfs.source.request(of(callback(reference))).unwrap_err();
        assert_eq!(refusal.status, 404, "{reference}");
    }
    let mut wrong = *notification.clone();
    wrong.body.notify_reason = None;
    assert_eq!(amfs.source.request(wrong).unwrap_err().status, 404);
    amfs.source.expire(Timer::Handover);
    amfs.source.expire(Timer::WithdrawnHandover);
    assert_eq!(amfs.source.request(*notification).unwrap_err().status, 404, "the handover is over");
    assert_eq!(amfs.source.amf.audit().registered, 1);
}

/// TS 23.501 5.15.5.2.1: the Allowed NSSAI is that of the target's tracking area.
#[test]
fn a_ue_without_a_slice_of_the_target_tracking_area_is_not_taken_over() {
    let mut amfs = Amfs::new(&[5]);
    let supported = vec![(tai(), vec![Snssai::of_sst(2)])];
    amfs.target.set_up_gnb(OTHER_GNB, GnbInfo { supported, ..World::gnb_info(OTHER_GNB) }, false);
    amfs.target.take_ladder();
    let refusal = amfs.refusal(|_| ());
    let Some(ProblemMore::UeContextCreateError(error)) = refusal.more else { panic!("{refusal:?}") };
    let cause = Cause::RadioNetwork(CauseRadioNetwork::slice_not_supported);
    assert_eq!(error.ngap_cause, Some(crate::amf::mobility::n14::sbi_cause(cause)));
}

/// TS 23.502 4.9.1.3.3 step 6a.
#[test]
fn sessions_of_slices_that_the_target_amf_does_not_serve_are_released() {
    let mut amfs = Amfs::new(&[5]);
    let mut request = amfs.require(&[5]);
    let mut other = request.body.ue_context.session_context_list[0].clone();
    (other.pdu_session_id, other.s_nssai) = (6, Snssai::of_sst(9));
    other.sm_context_ref = other.sm_context_ref.join("6");
    request.body.ue_context.session_context_list.push(other);
    let information = namf::N2SmInformation { pdu_session_id: 6, ..request.body.pdu_session_list[0].clone() };
    request.body.pdu_session_list.push(information);
    amfs.create(*request);
    answer(&mut amfs.target, Some(N2SmInfoType::PduResSetupReq));
    let request: HandoverRequest = take_message!(amfs.target, OTHER_GNB, HandoverRequest);
    assert_eq!(request.sessions.iter().map(|item| item.pdu_session_id).collect::<Vec<_>>(), [5]);
    acknowledge(&mut amfs.target, request.amf_ue_ngap_id, &[5], &[]);
    answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
    let Some(Ok(Response::UeContextCreated(created))) = amfs.target.answers.last() else { panic!() };
    assert_eq!(created.body.failed_session_list[0].pdu_session_id, 6);
    let notification = amfs.notified(request.amf_ue_ngap_id);
    assert_eq!(notification.body.to_release_session_list, [6]);
}

#[test]
fn the_source_amf_releases_the_sessions_that_the_target_amf_does_not_take() {
    let mut amfs = Amfs::new(&[5, 6]);
    let (id, _) = amfs.commanded(&[5]);
    let mut notification = amfs.notified(id);
    notification.body.to_release_session_list = vec![6];
    amfs.source.take_ladder();
    assert!(amfs.source.request(*notification).is_ok());
    let ladder = amfs.source.take_ladder();
    assert_eq!(ladder.matches("ReleaseSmContext").count(), 1, "{ladder}");
}

/// A UE whose registration area has the tracking area of the target gNB does not register by itself (TS 24.501 5.4.4.2).
#[test]
fn a_ue_that_does_not_register_after_the_handover_is_requested_to() {
    let mut amfs = Amfs::new(&[5]);
    amfs.completed(&[5]);
    let Amfs { mut target, mut phone, .. } = amfs;
    target.expire(Timer::Handover);
    let message = phone.receive(&mut target);
    let GmmMessage::ConfigurationUpdateCommand(command) = message else { panic!("{message:?}") };
    assert!(command.indication.unwrap().registration_requested);
    assert!(command.guti.is_some());
    phone.send(&mut target, ConfigurationUpdateComplete::new());
    phone.released(&mut target);
    let audit = target.amf.audit();
    assert_eq!((audit.in_procedure, audit.registered, audit.connected), (0, 1, 0));
}

/// The target AMF does not know the subscription yet. #91 would bar the data network for the UE (TS 24.501 5.4.5.2.5).
#[test]
fn a_ue_that_has_not_registered_after_the_handover_asks_again_for_a_session() {
    let mut amfs = Amfs::new(&[5]);
    amfs.completed(&[5]);
    let Amfs { mut target, mut phone, .. } = amfs;
    phone.send(&mut target, establishment(6));
    assert_eq!(emergency::returned(&mut target, &mut phone), GmmCause::PayloadWasNotForwarded);
    target.take_ladder();
    registers_without_authentication(&mut target, &mut phone);
    phone.send(&mut target, establishment(6));
    assert!(target.take_ladder().contains("smf  <- PostSmContexts"));
    assert_eq!(target.amf.audit().sessions, 2);
}

/// HANDOVER REQUIRED of a UE that was handed over from another AMF, and has not registered.
fn require_next(target: &mut World, phone: &Phone, gnb: u32) {
    let mut message = required(phone, &[5]);
    message.target = gnb_target(gnb);
    target.ngap(OTHER_GNB, "HandoverRequired", message.encode());
}

fn assert_requests_registration(mut target: World, mut phone: Phone) {
    target.expire(Timer::Handover);
    let message = phone.receive(&mut target);
    let GmmMessage::ConfigurationUpdateCommand(command) = message else { panic!("{message:?}") };
    assert!(command.indication.unwrap().registration_requested);
}

#[test]
fn a_registration_is_requested_also_after_a_second_handover_that_uses_the_timer() {
    const THIRD_GNB: GnbHandle = GnbHandle(3);
    let mut amfs = Amfs::new(&[5]);
    amfs.completed(&[5]);
    let Amfs { mut target, phone, .. } = amfs;
    target.set_up_gnb(THIRD_GNB, World::gnb_info(THIRD_GNB), false);
    require_next(&mut target, &phone, 3);
    answer(&mut target, Some(N2SmInfoType::PduResSetupReq));
    let _ = take_message!(target, THIRD_GNB, HandoverRequest);
    target.expire(Timer::Handover);
    let _ = take_message!(target, THIRD_GNB, UeContextReleaseCommand);
    assert_eq!(failure_at(&mut target, OTHER_GNB), CauseRadioNetwork::tngrelocprep_expiry);
    assert_requests_registration(target, phone);
}

#[test]
fn a_registration_is_requested_also_if_its_timer_expires_during_a_handover() {
    let mut amfs = Amfs::new(&[5]);
    amfs.completed(&[5]);
    let Amfs { mut target, phone, .. } = amfs;
    require_next(&mut target, &phone, 9);
    target.expire(Timer::Handover);
    assert!(target.downlinks.is_empty(), "no NAS message: {:?}", target.downlinks);
    target.reply_to(Operation::CreateUeContext, Err(Box::new(Problem::of_status(403))));
    let cause = CauseRadioNetwork::ho_failure_in_target_5GC_ngran_node_or_target_system;
    assert_eq!(failure_at(&mut target, OTHER_GNB), cause);
    assert_requests_registration(target, phone);
}

/// The source AMF repeats its request, for example after a restart.
#[test]
fn a_second_request_for_the_same_ue_takes_the_place_of_the_first() {
    let mut amfs = Amfs::new(&[5]);
    let request = amfs.require(&[5]);
    amfs.create(*request.clone());
    answer(&mut amfs.target, Some(N2SmInfoType::PduResSetupReq));
    let _ = take_message!(amfs.target, OTHER_GNB, HandoverRequest);
    amfs.create(*request);
    assert!(amfs.target.answers.pop().unwrap().is_err(), "the first one is refused");
    let _ = take_message!(amfs.target, OTHER_GNB, UeContextReleaseCommand);
    assert_eq!(states(&amfs.target), [Some(HoState::Preparing)], "the SMF does not forget the second one");
    assert_eq!((amfs.target.amf.audit().contexts, amfs.target.amf.audit().supis), (1, 1));
    assert!(!amfs.target.take_ladder().contains("ReleaseSmContext"));
}

/// A UE that registered at another AMF may have a context in CM-IDLE here. Nothing proves that before it arrives. Its sessions are those of the
/// request.
#[test]
fn a_former_context_of_the_ue_gives_way_when_it_arrives() {
    let mut amfs = Amfs::new(&[5]);
    let mut former = Phone { gnb: OTHER_GNB, ..Phone::default() };
    former.register(&mut amfs.target);
    amfs.target.script.remove(&Operation::UpdateSmContext);
    former.establish(&mut amfs.target, 5);
    let request = amfs.require(&[5]);
    amfs.create(*request.clone());
    let refusal = amfs.target.answers.pop().unwrap().unwrap_err();
    assert_eq!(refusal.cause(), Some(&SbiCause::HandoverFailure), "it is connected here");
    former.release(&mut amfs.target);
    amfs.target.script.insert(Operation::UpdateSmContext, None);
    amfs.target.take_ladder();
    amfs.create(*request.clone());
    let ladder = amfs.target.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext"), "the session is the one of the request: {ladder}");
    assert_eq!(states(&amfs.target), [Some(HoState::Preparing)]);
    let audit = amfs.target.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.sessions), (2, 1, 2));
    amfs.target.caller = client(99);
    amfs.create(*request);
    assert!(amfs.target.answers.pop().unwrap().is_err(), "the handover is that of the first AMF");
    amfs.target.caller = SOURCE_AMF();
    answer(&mut amfs.target, Some(N2SmInfoType::PduResSetupReq));
    let id = take_message!(amfs.target, OTHER_GNB, HandoverRequest).amf_ue_ngap_id;
    acknowledge(&mut amfs.target, id, &[5], &[]);
    answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
    amfs.created();
    amfs.notified(id);
    let audit = amfs.target.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.sessions, audit.supis), (1, 1, 1, 1));
    assert!(!amfs.target.take_ladder().contains("ReleaseSmContext"));
}

/// Another AMF may claim that it hands the UE over: the UE, which is in CM-IDLE here, does not notice.
#[test]
fn a_handover_that_fails_leaves_the_former_context() {
    let mut amfs = Amfs::new(&[5]);
    let mut former = Phone { gnb: OTHER_GNB, ..Phone::default() };
    former.register(&mut amfs.target);
    former.release(&mut amfs.target);
    let request = amfs.require(&[5]);
    amfs.create(*request);
    assert_eq!(amfs.target.amf.audit().contexts, 2);
    refuse(&mut amfs.target);
    let audit = amfs.target.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.supis), (1, 1, 1));
}

/// Its sessions are the source AMF's until HANDOVER NOTIFY.
#[test]
fn a_context_that_ends_before_the_ue_arrives_releases_no_session() {
    let mut amfs = Amfs::new(&[5]);
    amfs.commanded(&[5]);
    amfs.target.operate(supi(), crate::kit::Deregister::Withdrawn);
    let ladder = amfs.target.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext") && !ladder.contains("UpdateThreeGpp"), "{ladder}");
    assert_eq!((states(&amfs.target), amfs.target.amf.audit().contexts), (vec![Some(HoState::Cancelled)], 0));
}

/// A restarted target AMF would release the sessions, which are the source AMF's.
#[test]
fn a_ue_is_in_a_document_of_the_target_amf_from_its_arrival_on() {
    let (mut amfs, mut stored) = (Amfs::new(&[5]), Stored::default());
    amfs.target.amf.track_contexts(Tracking::default());
    let (id, _) = amfs.commanded(&[5]);
    stored.store(&mut amfs.target.amf, StoreScope::Changed);
    assert_eq!(stored.documents.len(), 0);
    amfs.notified(id);
    stored.store(&mut amfs.target.amf, StoreScope::Changed);
    assert_eq!(stored.documents.len(), 1, "before the SMFs switch the paths");
}

#[test]
fn messages_of_smfs_and_of_the_ue_before_it_arrives_change_nothing() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    let refusal = amfs.target.request(transfer(5, Some(b"5GSM"), None)).unwrap_err();
    assert_eq!(refusal.cause(), Some(&SbiCause::TemporaryRejectHandoverOngoing));
    let request = amfs.phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas_pdu = amfs.phone.nas(request);
    let early = pith_ngap::UplinkNasTransport {
        amf_ue_ngap_id: id,
        ran_ue_ngap_id: AT_TARGET,
        nas_pdu,
        location: None,
    };
    amfs.target.ngap(OTHER_GNB, "UplinkNasTransport", early.encode());
    assert!(amfs.target.downlinks.is_empty());
    amfs.notified(id);
}

/// The session's user plane ended at the target: the SMF is requested to deactivate it by the new AMF.
#[test]
fn a_session_that_the_target_gnb_does_not_admit_loses_its_user_plane() {
    let mut amfs = Amfs::new(&[5, 6]);
    let request = amfs.requested(&[5, 6]);
    acknowledge(&mut amfs.target, request.amf_ue_ngap_id, &[5], &[]);
    answer(&mut amfs.target, Some(N2SmInfoType::HandoverCmd));
    amfs.created();
    let command: HandoverCommand = take_message!(amfs.source, GNB, HandoverCommand);
    let ids = |list: &Option<Vec<pith_ngap::SessionTransfer>>| -> Vec<u8> {
        list.iter().flatten().map(|item| item.pdu_session_id).collect()
    };
    assert_eq!((ids(&command.sessions), ids(&command.to_release)), (vec![5], vec![6]));
    while updates(&amfs.target).last().is_some() {
        answer(&mut amfs.target, None);
    }
    amfs.notified(request.amf_ue_ngap_id);
    let updates = updates(&amfs.target);
    let others: Vec<_> = updates.iter().filter(|it| it.ho_state.is_none()).collect();
    let [other] = others[..] else { panic!("{updates:?}") };
    let is_announced = other.serving_nf_id.is_some() && other.sm_context_status_uri.is_some();
    assert!(is_announced && other.up_cnx_state == Some(UpCnxState::Deactivated), "in one request: {other:?}");
}

/// Neither COMPLETED nor what follows when the UE has left the target gNB is answered.
#[test]
fn an_smf_that_does_not_answer_learns_the_target_amf_nevertheless() {
    let mut amfs = Amfs::new(&[5]);
    let (id, _) = amfs.commanded(&[5]);
    amfs.notified(id);
    amfs.target.input(Input::N2(N2Input::GnbDown { gnb: OTHER_GNB }));
    for _ in 0..2 {
        amfs.target.reply_to(Operation::UpdateSmContext, Err(Problem::timed_out().into()));
        let open = updates(&amfs.target);
        assert!(open.iter().all(|it| it.serving_nf_id.is_some()), "{open:?}");
        assert!(open.iter().any(|it| it.up_cnx_state == Some(UpCnxState::Deactivated)), "{open:?}");
    }
}
