//! Documents of UE contexts. Every other test of the AMF runs through them, too: [`super::world::World`] reloads each context after
//! each step.

use super::world::{NgapIe, Phone, World, supi, transfer};
use crate::amf::Amf;
use crate::amf::document::{RETAINED, SECTIONS};
use crate::kit::document::{Document, UnpackError};
use crate::kit::{Input, N2Input, NetworkFunction, StoreScope, Tracking};
use crate::testing::{Stored, check_documents, check_sections};
use pith_nas::ie::RegistrationKind;

const GOLDEN: &[(&str, &str)] = &[
    ("amf-registered-1", include_str!("../../../tests/golden/amf-registered-1.hex")),
    ("amf-paging-1", include_str!("../../../tests/golden/amf-paging-1.hex")),
    ("amf-security-mode-1", include_str!("../../../tests/golden/amf-security-mode-1.hex")),
    ("amf-retained-1", include_str!("../../../tests/golden/amf-retained-1.hex")),
    ("amf-registered-2", include_str!("../../../tests/golden/amf-registered-2.hex")),
    ("amf-security-mode-2", include_str!("../../../tests/golden/amf-security-mode-2.hex")),
    ("amf-offered-1", include_str!("../../../tests/golden/amf-offered-1.hex")),
    ("amf-handover-1", include_str!("../../../tests/golden/amf-handover-1.hex")),
    ("amf-handover-2", include_str!("../../../tests/golden/amf-handover-2.hex")),
    ("amf-restricted-1", include_str!("../../../tests/golden/amf-restricted-1.hex")),
    ("amf-departure-1", include_str!("../../../tests/golden/amf-departure-1.hex")),
    ("amf-departure-2", include_str!("../../../tests/golden/amf-departure-2.hex")),
    ("amf-withdrawn-1", include_str!("../../../tests/golden/amf-withdrawn-1.hex")),
    ("amf-arrival-1", include_str!("../../../tests/golden/amf-arrival-1.hex")),
    ("amf-arrival-2", include_str!("../../../tests/golden/amf-arrival-2.hex")),
    ("amf-traced-1", include_str!("../../../tests/golden/amf-traced-1.hex")),
    ("amf-emergency-1", include_str!("../../../tests/golden/amf-emergency-1.hex")),
    ("amf-null-security-mode-1", include_str!("../../../tests/golden/amf-null-security-mode-1.hex")),
    ("amf-rerouted-1", include_str!("../../../tests/golden/amf-rerouted-1.hex")),
    ("amf-voice-1", include_str!("../../../tests/golden/amf-voice-1.hex")),
    ("amf-arrival-3", include_str!("../../../tests/golden/amf-arrival-3.hex")),
    ("amf-departure-3", include_str!("../../../tests/golden/amf-departure-3.hex")),
    ("amf-emergency-2", include_str!("../../../tests/golden/amf-emergency-2.hex")),
    ("amf-handover-3", include_str!("../../../tests/golden/amf-handover-3.hex")),
    ("amf-null-security-mode-2", include_str!("../../../tests/golden/amf-null-security-mode-2.hex")),
    ("amf-offered-2", include_str!("../../../tests/golden/amf-offered-2.hex")),
    ("amf-paging-2", include_str!("../../../tests/golden/amf-paging-2.hex")),
    ("amf-registered-3", include_str!("../../../tests/golden/amf-registered-3.hex")),
    ("amf-rerouted-2", include_str!("../../../tests/golden/amf-rerouted-2.hex")),
    ("amf-restricted-2", include_str!("../../../tests/golden/amf-restricted-2.hex")),
    ("amf-security-mode-3", include_str!("../../../tests/golden/amf-security-mode-3.hex")),
    ("amf-traced-2", include_str!("../../../tests/golden/amf-traced-2.hex")),
    ("amf-voice-2", include_str!("../../../tests/golden/amf-voice-2.hex")),
    ("amf-mico-1", include_str!("../../../tests/golden/amf-mico-1.hex")),
    ("amf-withdrawn-2", include_str!("../../../tests/golden/amf-withdrawn-2.hex")),
    ("amf-networks-1", include_str!("../../../tests/golden/amf-networks-1.hex")),
    ("amf-er-nssai-1", include_str!("../../../tests/golden/amf-er-nssai-1.hex")),
    ("amf-configured-1", include_str!("../../../tests/golden/amf-configured-1.hex")),
];

/// A registered UE with a session, CM-CONNECTED.
fn registered() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    (world, phone)
}

/// A UE in CM-IDLE that is paged for an N1 and an N2 message.
fn paged() -> World {
    let (mut world, mut phone) = registered();
    phone.release(&mut world);
    let n1 = Some(b"5GSM message" as &[u8]);
    assert!(world.request(transfer(5, n1, Some((NgapIe::PduResSetupReq, b"setup")))).is_ok());
    world
}

/// A UE in security mode control.
fn in_security_mode() -> World {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas_pdu = phone.initial_nas(request);
    phone.connect(&mut world, nas_pdu);
    phone.receive(&mut world);
    phone.send(&mut world, Phone::authentication_response());
    world
}

/// A UE that has got SECURITY MODE COMMAND, and lost its connection.
fn offered() -> World {
    let (mut world, mut phone, _) = super::outdated::offered(0);
    phone.release(&mut world);
    world
}

/// The security context of a deregistered UE.
fn retained() -> Vec<u8> {
    let (mut world, mut phone) = registered();
    world.amf.track_contexts(Tracking::default());
    let request = phone.deregistration_request(true);
    phone.send(&mut world, request);
    let mut stored = Stored::default();
    stored.store(&mut world.amf, StoreScope::Changed);
    assert_eq!(stored.documents.len(), 1);
    stored.documents.into_values().next().unwrap_or_default()
}

fn repack(world: &World, octets: &[u8]) -> Result<Document, UnpackError> {
    Amf::repack(octets, &world.amf.shared.gnbs)
}

fn only(world: &World) -> Vec<u8> {
    let [document] = &world.amf.documents()[..] else { panic!("not one UE") };
    document.octets().to_vec()
}

#[test]
fn documents_of_earlier_versions_are_read_and_damaged_ones_refused() {
    let (world, _) = registered();
    let (source, target) = super::handover_between_amfs::commanded();
    let written = [
        ("amf-registered", only(&world)),
        ("amf-paging", only(&paged())),
        ("amf-security-mode", only(&in_security_mode())),
        ("amf-retained", retained()),
        ("amf-offered", only(&offered())),
        ("amf-handover", only(&super::n2_handover::commanded(&[5]).0)),
        ("amf-restricted", only(&super::restrictions::restricted())),
        ("amf-departure", only(&source)),
        ("amf-arrival", only(&target)),
        ("amf-withdrawn", only(&super::handover_between_amfs_crossings::withdrawn())),
        ("amf-traced", only(&super::trace::traced())),
        ("amf-emergency", only(&super::emergency::unauthenticated())),
        ("amf-null-security-mode", only(&super::emergency::in_security_mode())),
        ("amf-rerouted", only(&super::reallocation::rerouted())),
        ("amf-voice", only(&super::voice_match::untold())),
        ("amf-mico", only(&super::reachability::in_mico_mode())),
        ("amf-er-nssai", only(&super::slices::with_extended_rejection().0)),
        ("amf-configured", only(&super::subscription_change::with_new_slice())),
        ("amf-networks", only(&super::networks::in_second_network())),
    ];
    check_documents(GOLDEN, &written, |octets| repack(&world, octets));
}

#[test]
fn shared_documents_have_room_for_each_section() {
    check_sections(&[SECTIONS, &[RETAINED]].concat());
}

#[test]
fn a_registered_ue_with_a_session_takes_less_than_a_kilobyte() {
    let octets = only(&registered().0);
    println!("AMF, registered with a session: {} octets", octets.len());
    assert!(octets.len() < 1024, "{} octets", octets.len());
}

#[test]
fn messages_for_an_idle_ue_keep_their_octets() {
    let octets = only(&paged());
    let contains = |part: &[u8]| octets.windows(part.len()).any(|window| window == part);
    assert!(contains(b"5GSM message") && contains(b"setup"));
}

#[test]
fn a_document_without_the_gnb_of_its_connection_is_that_of_an_idle_ue() {
    let (mut world, _) = registered();
    let connected = only(&world);
    for gnb in world.amf.shared.gnbs.keys().copied().collect::<Vec<_>>() {
        world.input(Input::N2(N2Input::GnbDown { gnb }));
    }
    let idle = repack(&world, &connected).unwrap();
    assert!(idle.octets().len() < connected.len());
    assert_eq!(repack(&world, idle.octets()).as_ref(), Ok(&idle));
}

#[test]
fn a_section_of_a_newer_program_is_refused_by_name() {
    let (world, _) = registered();
    let mut newer = only(&world);
    newer[5] = 99;
    let refused = UnpackError::SectionVersion { section: "identity", found: 99, oldest: 1, newest: 1 };
    assert_eq!(repack(&world, &newer).err(), Some(refused));
}

#[test]
fn one_section_packs_alone() {
    let (world, _) = registered();
    let key = world.amf.shared.index.find_supi(&supi()).unwrap();
    let ue = world.amf.ues.view(key).unwrap();
    let sections = super::super::document::SECTIONS;
    let parts = sections.iter().map(|section| {
        let connection = ue.connection.and_then(|key| world.amf.shared.connections.get(key));
        let packed = super::super::document::pack_sections(
            &ue,
            connection,
            &world.amf.shared.gnbs,
            std::slice::from_ref(section),
        );
        packed.unwrap().octets()[4..].to_vec()
    });
    let joined: Vec<u8> = parts.flatten().collect();
    assert_eq!(joined, only(&world)[4..], "the sections of a document are independent of each other");
}

#[test]
fn no_debug_text_of_a_document_shows_a_uri_or_key() {
    let (world, _) = registered();
    let text = format!("{:?}", world.amf.documents());
    assert!(text.starts_with("[Document(") && text.len() < 40, "{text}");
}

mod random {
    //! Contexts with random content.

    use super::super::super::connection::Connections;
    use super::super::super::context::{AmPolicy, CallId, RmState, UeContext};
    use super::super::super::delivery::{SmfMessage, Transfer, Undelivered};
    use super::super::super::document::{pack, unpack};
    use super::super::super::security::SecurityContext;
    use super::super::super::session::{PduSession, SessionCall, UserPlane};
    use crate::kit::{GnbHandle, Key, Timer};
    use bytes::Bytes;
    use pith_crypto::keys::KAmf;
    use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
    use pith_nas::NasCount;
    use pith_nas::ie::UeSecurityCapability;
    use pith_nas::security::Algorithms;
    use pith_sbi::Uri;
    use pith_sbi::common::DateTime;
    use pith_sbi::nsmf_pdusession::SmContextUpdateData;
    use pith_types::{ContextId, Dnn, FiveGGuti, FiveGTmsi, Guami, RanUeNgapId, Snssai, Tac, Tai};
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    fn octets(most: usize) -> impl Strategy<Value = Bytes> {
        vec(any::<u8>(), 0..most).prop_map(Bytes::from)
    }

    fn uri() -> impl Strategy<Value = Uri> {
        ("[a-z0-9.]{1,20}:[0-9]{1,5}", "(/[a-z0-9]{1,5})?/n[a-z]{3,9}-[a-z]{3,9}/v1(/[a-z0-9.-]{1,20}){1,3}")
            .prop_map(|(authority, path)| format!("http://{authority}{path}").parse().unwrap())
    }

    fn snssai() -> impl Strategy<Value = Snssai> {
        (any::<u8>(), any::<Option<[u8; 3]>>()).prop_map(|(sst, sd)| Snssai { sst, sd })
    }

    fn guti() -> impl Strategy<Value = FiveGGuti> {
        (any::<u32>(), 0_u32..1 << 24, "[0-9]{3}/[0-9]{2,3}").prop_map(|(tmsi, amf, plmn)| FiveGGuti {
            guami: Guami { plmn_id: plmn.parse().unwrap(), amf_id: pith_types::AmfId::from_bits(amf) },
            tmsi: FiveGTmsi(tmsi),
        })
    }

    fn count() -> impl Strategy<Value = Option<NasCount>> {
        option::of((0_u32..1 << 24).prop_map(|count| NasCount::new(count).unwrap()))
    }

    fn security() -> impl Strategy<Value = SecurityContext> {
        (0_u8..7, any::<[u8; 32]>(), (any::<u8>(), any::<u8>()), 0_u8..16, (count(), count()), any::<u32>())
            .prop_map(|(ng_ksi, key, (ea, ia), algorithms, (sent, received), unconfirmed)| {
                let algorithms = Algorithms {
                    integrity: IntegrityAlgorithm::try_from(algorithms & 3).unwrap(),
                    ciphering: CipheringAlgorithm::try_from(algorithms >> 2).unwrap(),
                };
                let capability = UeSecurityCapability::of_5gs(ea, ia);
                let mut context = SecurityContext::new(ng_ksi, KAmf::new(key), capability, algorithms);
                context.nas.resume(sent, received);
                context.unconfirmed = unconfirmed;
                context
            })
    }

    fn message() -> impl Strategy<Value = SmfMessage> {
        let transfer = prop_oneof![
            Just(Transfer::SetupRequest),
            Just(Transfer::ReleaseCommand),
            Just(Transfer::ModifyRequest),
            Just(Transfer::Unsupported),
        ];
        (1_u8..16, option::of(octets(200)), option::of((transfer, octets(200))))
            .prop_map(|(id, n1, n2)| SmfMessage { id, n1, n2 })
    }

    fn call() -> impl Strategy<Value = SessionCall> {
        prop_oneof![
            octets(100).prop_map(SessionCall::Create),
            octets(100).prop_map(SessionCall::Forward),
            (option::of(octets(100)), any::<Option<bool>>()).prop_map(|(n2, release)| {
                let mut body = SmContextUpdateData::default();
                body.n2_sm_info = n2.map(Into::into);
                body.release = release;
                SessionCall::Report(Box::new(body))
            }),
        ]
    }

    fn session() -> impl Strategy<Value = PduSession> {
        let plane = prop_oneof![
            Just(UserPlane::Deactivated),
            Just(UserPlane::Activating),
            Just(UserPlane::Activated),
            Just(UserPlane::Releasing),
            Just(UserPlane::Replacing),
        ];
        let calls = vec((any::<u32>().prop_map(CallId), call()), 0..3);
        let name = "[a-z]{1,20}(\\.[a-z]{1,20}){0,2}";
        (1_u8..16, snssai(), name, option::of(uri()), plane, calls, option::of(message()), any::<u8>())
            .prop_map(|(id, snssai, dnn, sm_context, user_plane, calls, held_setup, unheard)| {
                let mut session = PduSession::new(id, snssai, dnn.parse::<Dnn>().unwrap());
                (session.sm_context, session.user_plane) = (sm_context, user_plane);
                (session.calls, session.held_setup, session.unheard) = (calls, held_setup, unheard);
                session
            })
    }

    prop_compose! {
        fn context()(
            imsi in option::of("[0-9]{5,15}"),
            gutis in (option::of(guti()), option::of(guti())),
            security in option::of(security()),
            area in vec((any::<u32>(), "[0-9]{3}/[0-9]{2,3}"), 0..16),
            sessions in vec(session(), 0..4),
            undelivered in vec((message(), option::of((uri(), uri()))), 0..3),
            policy in option::of((uri(), any::<Option<u16>>())),
            timers in vec((0_u8..3, any::<i64>()), 0..3),
            rest in (any::<bool>(), any::<bool>(), any::<u32>(), any::<i64>(), option::of(octets(500))),
        ) -> Random {
            let (registered, discards, calls, since, radio) = rest;
            let mut ue = UeContext::new((Key::from_u64(7), ContextId::from_u64(7).unwrap()), DateTime::from_unix_ms(since));
            ue.supi = imsi.map(|imsi| format!("imsi-{imsi}").parse().unwrap());
            (ue.guti, ue.old_guti) = gutis;
            ue.security = security;
            ue.rm = if registered { RmState::Registered } else { RmState::Deregistered };
            ue.discards_security = discards;
            ue.radio_capability = radio;
            ue.registration_area = area
                .into_iter()
                .map(|(tac, plmn)| Tai { plmn_id: plmn.parse().unwrap(), tac: Tac::new(tac) })
                .collect();
            ue.sessions = sessions;
            ue.undelivered =
                undelivered.into_iter().map(|(message, on_failure)| Undelivered { message, on_failure }).collect();
            ue.policy = policy.map(|(uri, rfsp)| AmPolicy { uri, rfsp, ue_ambr: None });
            ue.timers = timers
                .into_iter()
                .map(|(timer, at)| {
                    let timers = [Timer::MobileReachable, Timer::ImplicitDeregistration, Timer::T3550];
                    (timers[usize::from(timer)], DateTime::from_unix_ms(at))
                })
                .collect();
            ue.calls = calls;
            Random(ue)
        }
    }

    /// A context that shows its name only: it has keys.
    struct Random(UeContext);

    impl std::fmt::Debug for Random {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(&self.0.name())
        }
    }

    proptest! {
        #[test]
        fn contexts_are_the_same_after_packing_and_unpacking(random in context(), ran in any::<u32>()) {
            let ue = random.0;
            let world = super::World::new();
            let gnbs = &world.amf.shared.gnbs;
            let mut connections = Connections::new(1 << 18, pith_crypto::number_order::NumberOrder::new(1));
            let key = connections.open(ue.id.block, (GnbHandle(1), crate::kit::TnlaBinding::unbound(3)), RanUeNgapId(ran)).unwrap();
            let connection = connections.get(key);
            let document = pack(&ue, connection, gnbs).unwrap();
            let unpacked = unpack(document.octets(), (ue.key, ue.id), gnbs).unwrap();
            prop_assert_eq!(unpacked.connection.as_ref().map(|it| (it.ran_id, it.binding.stream)), Some((RanUeNgapId(ran), 3)));
            let again = pack(&unpacked.ue, connection, gnbs).unwrap();
            prop_assert_eq!(again.octets(), document.octets());
            let (a, b) = (&ue, &unpacked.ue);
            prop_assert!(a.supi == b.supi && a.guti == b.guti && a.old_guti == b.old_guti && a.rm == b.rm);
            prop_assert!(a.since == b.since && a.timers == b.timers && a.calls == b.calls);
            prop_assert!(a.undelivered == b.undelivered && a.policy == b.policy);
            prop_assert!(a.registration_area == b.registration_area && a.radio_capability == b.radio_capability);
            prop_assert_eq!(format!("{:?}", a.sessions), format!("{:?}", b.sessions));
            // With as many unconfirmed COUNTs it is outdated.
            let security = |ue: &UeContext| ue.security.as_ref().or(ue.outdated.as_deref()).map(|it| (it.k_amf.clone(), it.nas.next_to_send()));
            prop_assert!(security(a) == security(b), "K_AMF and COUNT");
        }
    }
}
