//! UE contexts that are restored while the AMF serves.

use super::world::{Phone, World, config, location};
use crate::amf::Amf;
use crate::kit::{
    GnbHandle, Input, N2Input, Needs, NetworkFunction, Outbox, Rng, StoreScope, Timer, Tracking,
};
use crate::testing::Stored;
use pith_ngap::{InitialUeMessage, UplinkNasTransport};
use pith_types::{AmfUeNgapId, BlockId, FiveGSTmsi, FiveGTmsi, RanUeNgapId};

fn pdu(pdu: Vec<u8>) -> Input {
    Input::N2(N2Input::Pdu {
        gnb: GnbHandle(1),
        binding: crate::kit::TnlaBinding::unbound(1),
        pdu: pdu.into(),
    })
}

/// An INITIAL UE MESSAGE with this 5G-S-TMSI beside a NAS message without an identity.
fn initial(s_tmsi: Option<FiveGSTmsi>) -> Input {
    let message = InitialUeMessage {
        ran_ue_ngap_id: RanUeNgapId(77),
        nas_pdu: vec![0x7e, 0, 0xff],
        location: location(),
        establishment_cause: None,
        s_tmsi,
        amf_set_id: None,
        ue_context_request: None,
        allowed_nssai: None,
        reroute: None,
    };
    pdu(message.encode().unwrap())
}

fn uplink(id: AmfUeNgapId) -> Input {
    let message = UplinkNasTransport {
        amf_ue_ngap_id: id,
        ran_ue_ngap_id: RanUeNgapId(77),
        nas_pdu: vec![0x7e, 0, 0xff],
        location: None,
    };
    pdu(message.encode().unwrap())
}

#[test]
fn a_message_needs_the_block_that_it_names_and_without_a_known_ue_all_contexts() {
    let (mut world, mut phone, mut stored) = (World::new(), Phone::default(), Stored::default());
    world.amf.track_contexts(Tracking::default());
    phone.register(&mut world);
    stored.store(&mut world.amf, StoreScope::Changed);
    let s_tmsi = phone.guti.unwrap().s_tmsi();
    let block = s_tmsi.tmsi.block();
    let mut amf = Amf::new(config(), Rng::from_number(2));
    amf.track_contexts(Tracking::default());
    amf.begin_restoring(&[block].into());
    let other_block = BlockId::all().find(|other| *other != block).unwrap();
    let unknown = |block| FiveGSTmsi { tmsi: FiveGTmsi::new(block, 7), ..s_tmsi };
    assert_eq!(amf.needs(&initial(Some(s_tmsi))), Needs::Block(block));
    assert_eq!(amf.needs(&initial(Some(unknown(other_block)))), Needs::All, "its block is restored");
    assert_eq!(amf.needs(&initial(None)), Needs::All);
    assert_eq!(amf.needs(&uplink(AmfUeNgapId::new(block, 5))), Needs::Block(block));
    // The gNB is not known: the UE stays in CM-IDLE, and its timers start.
    let mut out = Outbox::new(crate::kit::Level::Info);
    amf.resume_contexts(world.now, &mut out);
    stored.restore(world.now, &mut amf, false);
    amf.note_restored(block);
    amf.resume_restored(world.now, false, &mut out);
    amf.finish_restoring(world.now, &mut out);
    assert_eq!(amf.needs(&initial(Some(s_tmsi))), Needs::Nothing);
    assert_eq!(amf.needs(&initial(Some(unknown(block)))), Needs::All);
    let starts = |timer: Timer| {
        out.effects()
            .iter()
            .any(|effect| matches!(effect, crate::kit::Effect::StartTimer { key, .. } if key.timer == timer))
    };
    assert!(starts(Timer::MobileReachable));
    let audit = amf.audit();
    assert_eq!(
        (audit.registered, audit.connected),
        (1, 0),
        "its gNB may have returned before it was restored"
    );
}
