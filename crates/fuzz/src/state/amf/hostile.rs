//! A misbehaving UE, and the misbehaving rest of the world around it.

use super::honest::{ask_for_release, follow};
use crate::corpus::{Seed, read};
use crate::mutate::Mutator;
use crate::state::choices::Choices;
use crate::state::material::{self, requests_for};
use crate::target::Shape;
use pith_nas::ie::{RegistrationKind, ServiceType};
use pith_nas::{GmmMessage, SecurityHeaderType};
use pith_nf::amf::testing::{GNB, Phone, World, establishment, location};
use pith_nf::kit::{Caller, GnbHandle, GnbInfo, Input, N2Input, Nf, PendingReply, Tag, TimerKey};
use pith_ngap::{GlobalRanNodeId, InitialUeMessage};
use pith_sbi::{Operation, Problem, Request, Response};
use pith_types::{RanUeNgapId, Snssai};
use std::sync::{Arc, LazyLock};

static NAS: LazyLock<Vec<Seed>> = LazyLock::new(|| read("nas-gmm").unwrap_or_default());
static NGAP: LazyLock<Vec<Seed>> = LazyLock::new(|| read("ngap").unwrap_or_default());
static SERVES: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    requests_for(|request| request.target_nf().and_then(|of| Nf::of_type(&of)) == Some(Nf::Amf))
});

/// AMF-UE-NGAP-ID and RAN-UE-NGAP-ID of all messages of the corpus.
const SAMPLE_AMF_ID: [u8; 5] = [0x12, 0x34, 0x56, 0x78, 0x9a];
const SAMPLE_RAN_ID: [u8; 4] = [0xde, 0xad, 0xbe, 0xef];

/// The UE, and what it has observed.
pub struct HostilePhone {
    /// The UE, with correct keys.
    pub phone: Phone,
    /// Number of SBI requests to the AMF.
    pub asked: usize,
    sent: Vec<Vec<u8>>,
    answered: Vec<Tag>,
    expired: Vec<TimerKey>,
    references: Vec<String>,
    gnbs: u64,
}

impl HostilePhone {
    /// The UE before its first message.
    pub fn new(phone: Phone) -> Self {
        let (sent, answered, expired, references) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        // A RAN-UE-NGAP-ID of the same length as in the corpus, so that it can replace it.
        let phone = Phone { ran_id: RanUeNgapId(0xdead_0000), ..phone };
        Self { phone, asked: 0, sent, answered, expired, references, gnbs: 100 }
    }

    /// One unexpected action.
    pub fn act(&mut self, world: &mut World, choices: &mut Choices<'_>) {
        match choices.below(16) {
            0..5 => self.nas(world, choices),
            5..7 => self.ngap(world, choices),
            7 => follow(world, &mut self.phone, &mut (1 + choices.below(3))),
            8 | 9 => self.answer(world, choices),
            10 => self.answer_again(world, choices),
            11 => self.expire_timer(world, choices),
            12 => self.serve(world, choices),
            13 => self.leave_open(world, choices),
            14 => self.gnb(world, choices),
            _ => ask_for_release(world, &self.phone),
        }
    }

    fn nas(&mut self, world: &mut World, choices: &mut Choices<'_>) {
        let plain = self.plain(choices);
        let pdu = self.protected(&plain, choices);
        if choices.below(3) == 0 {
            self.sent.push(pdu.clone());
        }
        self.carry(world, pdu, choices);
    }

    /// A message that fits no state, or another state.
    fn plain(&mut self, choices: &mut Choices<'_>) -> Vec<u8> {
        let phone = &self.phone;
        let kinds = [
            RegistrationKind::Initial,
            RegistrationKind::MobilityUpdating,
            RegistrationKind::PeriodicUpdating,
        ];
        let made: GmmMessage = match choices.below(8) {
            0 => phone.registration_request(*choices.pick(&kinds).unwrap_or(&kinds[0])).into(),
            1 if phone.guti.is_some() => phone.service_request(ServiceType::Data).into(),
            2 => phone.deregistration_request(choices.below(2) == 0).into(),
            3 => establishment(1 + choices.below(6) as u8).into(),
            4 => Phone::authentication_response().into(),
            _ => {
                let octets = choices.pick(&NAS).map(|seed| seed.octets.clone()).unwrap_or_default();
                return self.maybe_mutated(octets, choices);
            }
        };
        self.maybe_mutated(made.encode(), choices)
    }

    fn maybe_mutated(&self, octets: Vec<u8>, choices: &mut Choices<'_>) -> Vec<u8> {
        match choices.below(3) {
            0 => Mutator::new(Shape::Octets, &NAS).mutate(&octets, &mut choices.random()),
            _ => octets,
        }
    }

    /// Protects it, correctly or not.
    fn protected(&mut self, plain: &[u8], choices: &mut Choices<'_>) -> Vec<u8> {
        let header = SecurityHeaderType::from_octet(1 + choices.below(4) as u8);
        let how = choices.below(10);
        let Some(security) = self.phone.security.as_mut().filter(|_| how > 1) else { return plain.to_vec() };
        let header = if how > 4 { SecurityHeaderType::IntegrityProtectedAndCiphered } else { header };
        let Ok(mut pdu) = security.protect(header, plain) else { return plain.to_vec() };
        match how {
            2 => pdu.iter_mut().skip(2).take(1).for_each(|octet| *octet ^= 1),
            3 => pdu = choices.pick(&self.sent).cloned().unwrap_or(pdu),
            4 => pdu = Mutator::new(Shape::Octets, &NAS).mutate(&pdu, &mut choices.random()),
            _ => {}
        }
        pdu
    }

    /// Sends it to the AMF, on the existing connection or on a new one.
    fn carry(&mut self, world: &mut World, pdu: Vec<u8>, choices: &mut Choices<'_>) {
        let gnb = if choices.below(16) == 0 { GNB } else { self.phone.gnb };
        let ran_ue_ngap_id = RanUeNgapId(self.phone.ran_id.0.wrapping_add((choices.below(16) == 1).into()));
        let uplink = self.phone.amf_id.filter(|_| choices.below(6) > 0).map(|amf_ue_ngap_id| {
            let nas_pdu = pdu.clone();
            pith_ngap::UplinkNasTransport {
                amf_ue_ngap_id,
                ran_ue_ngap_id,
                nas_pdu,
                location: Some(location()),
            }
            .encode()
        });
        let octets = uplink.unwrap_or_else(|| {
            self.phone.ran_id.0 = self.phone.ran_id.0.wrapping_add(1);
            self.phone.amf_id = None;
            let s_tmsi = self.phone.guti.map(|guti| guti.s_tmsi()).filter(|_| choices.below(2) == 0);
            InitialUeMessage {
                ran_ue_ngap_id: self.phone.ran_id,
                nas_pdu: pdu,
                location: location(),
                establishment_cause: None,
                s_tmsi,
                amf_set_id: None,
                ue_context_request: Some(()),
                allowed_nssai: None,
                reroute: None,
            }
            .encode()
        });
        world.ngap(gnb, "whatever", octets);
    }

    /// A message of the corpus with this UE's ids.
    fn ngap(&mut self, world: &mut World, choices: &mut Choices<'_>) {
        let mut octets = choices.pick(&NGAP).map(|seed| seed.octets.clone()).unwrap_or_default();
        if let Some(amf_id) = self.phone.amf_id {
            replace(&mut octets, &SAMPLE_AMF_ID, &amf_id.value().to_be_bytes()[3..]);
            replace(&mut octets, &SAMPLE_RAN_ID, &self.phone.ran_id.0.to_be_bytes());
        }
        if choices.below(3) == 0 {
            octets = Mutator::new(Shape::Octets, &NGAP).mutate(&octets, &mut choices.random());
        }
        world.ngap(self.phone.gnb, "whatever", Ok(octets));
    }

    fn answer(&mut self, world: &mut World, choices: &mut Choices<'_>) {
        if world.calls.is_empty() {
            return;
        }
        let (tag, _, request) = world.calls.remove(choices.below(world.calls.len()));
        self.learn(&request);
        self.answered.push(tag);
        let reply = match choices.below(3) {
            0 => world.usual(&request),
            _ => material::answer(request.operation(), choices),
        };
        world.reply(tag, reply);
    }

    /// Stores callback references that the AMF sent.
    fn learn(&mut self, request: &Request) {
        let body = request.to_http().body;
        let text = String::from_utf8_lossy(&body);
        let references = text.split("/namf-callback/").skip(1);
        let references = references.filter_map(|rest| rest.split('"').next()?.rsplit('/').next());
        self.references.extend(references.map(str::to_owned));
    }

    fn answer_again(&mut self, world: &mut World, choices: &mut Choices<'_>) {
        let any = Tag::new(choices.below(4) as u64, choices.below(4) as u32);
        let tag = choices.pick(&self.answered).copied().unwrap_or(any);
        if !world.calls.iter().any(|(open, ..)| *open == tag) {
            let reply = if choices.below(2) == 0 {
                Ok(Response::NoContent)
            } else {
                Err(Problem::timed_out().into())
            };
            world.reply(tag, reply);
        }
    }

    fn expire_timer(&mut self, world: &mut World, choices: &mut Choices<'_>) {
        let running: Vec<TimerKey> = world.timers.keys().copied().collect();
        let late = choices.pick(&self.expired).copied().filter(|_| choices.below(4) == 0);
        if let Some(key) = late.filter(|key| !world.timers.contains_key(key)) {
            return world.input(Input::Timer(key));
        }
        if let Some(key) = choices.pick(&running) {
            // The other UE's timers have long durations: they are left alone.
            let at = world.timers.get(key).copied().unwrap_or_default();
            if at.since(world.now).as_secs() < 60 {
                self.expired.push(*key);
                world.timers.remove(key);
                world.now = world.now.max(at);
                world.input(Input::Timer(*key));
            }
        }
    }

    fn serve(&mut self, world: &mut World, choices: &mut Choices<'_>) {
        if let Some(request) = material::ask(&SERVES, &self.references, choices) {
            self.ask(world, request);
        }
    }

    /// An NF sends a request to the AMF.
    pub fn ask(&mut self, world: &mut World, request: impl Into<Request>) {
        self.asked += 1;
        let request = request.into();
        world.input(Input::Request {
            reply: PendingReply::owed_to(Caller::Remote { exchange: self.asked as u64, client: None }),
            request,
        });
    }

    /// Starts or stops leaving calls of that operation open.
    fn leave_open(&mut self, world: &mut World, choices: &mut Choices<'_>) {
        let Some(operation) = choices.pick(Operation::ALL).copied() else { return };
        let known = choices.pick(&super::LEFT_OPEN).copied().flatten().unwrap_or(operation);
        if world.script.remove(&known).is_none() {
            world.script.insert(known, None);
        }
    }

    /// The UE's gNB resets, or disconnects and connects again.
    fn gnb(&mut self, world: &mut World, choices: &mut Choices<'_>) {
        let gnb = self.phone.gnb;
        if choices.below(2) == 0 {
            return world.input(Input::N2(N2Input::Reset { gnb, ues: None }));
        }
        self.gnbs += 1;
        world.input(Input::N2(N2Input::GnbDown { gnb }));
        world.downlinks.retain(|(to, _)| *to != gnb);
        self.phone.gnb = GnbHandle(self.gnbs);
        self.phone.amf_id = None;
        let info = GnbInfo {
            name: String::new(),
            global_id: format!("999/70-gnb-{}", self.gnbs),
            node: GlobalRanNodeId::Gnb { plmn: location().tai.plmn_id, id: self.gnbs as u32, bits: 32 },
            supported: vec![(location().tai, vec![Snssai::of_sst(1)])],
            peer: String::new(),
            host: std::net::Ipv4Addr::LOCALHOST.into(),
        };
        world.input(Input::N2(N2Input::GnbUp { gnb: self.phone.gnb, info: Arc::new(info) }));
    }
}

/// Replaces octets by others of the same length.
fn replace(octets: &mut [u8], from: &[u8], to: &[u8]) {
    let at = octets.windows(from.len()).position(|window| window == from);
    let places = at.and_then(|at| octets.get_mut(at..)).unwrap_or_default();
    places.iter_mut().zip(to).for_each(|(place, octet)| *place = *octet);
}
