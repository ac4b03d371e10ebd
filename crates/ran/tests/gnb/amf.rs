//! A scripted AMF: it sends what a test requests.

use pith_ngap::*;
use pith_ran::gnb::{Event, Gnb, Input, Output, Settings, UeKey};
use pith_ran::{Instant, Violation};
use pith_types::{AmfUeNgapId, Guami, Plmn, RanUeNgapId, Snssai, Tac};

pub const UE: UeKey = UeKey(7);
/// RAN UE NGAP ID of the gNB's first UE.
pub const RAN: RanUeNgapId = RanUeNgapId(1);
/// SCTP stream of that UE.
pub const STREAM: u16 = 2;

pub fn amf_id() -> AmfUeNgapId {
    AmfUeNgapId::from_wire(0x12_3456_789a).unwrap()
}

pub fn plmn() -> Plmn {
    "999/70".parse().unwrap()
}

pub fn guami() -> Guami {
    Guami { plmn_id: plmn(), amf_id: "020040".parse().unwrap() }
}

pub fn settings() -> Settings {
    Settings {
        name: "gnb-1".into(),
        plmn: plmn(),
        id: 1,
        tac: Tac::new(1),
        slices: vec![Snssai::of_sst(1)],
        n3: "10.0.0.1".parse().unwrap(),
        first_teid: 0x100,
        retains_ues: false,
        joins_by_ng_setup: false,
    }
}

pub struct Pair {
    pub gnb: Gnb,
    pub now: Instant,
    pub sent: Vec<(u16, Message)>,
    /// The association that the gNB used last.
    pub association: u8,
    /// All other outputs of the gNB, in order.
    pub out: Vec<Output>,
    pub events: Vec<Event>,
    pub violations: Vec<Violation>,
}

impl Pair {
    pub fn new() -> Self {
        Self::of(settings())
    }

    pub fn of(settings: Settings) -> Self {
        let (gnb, association) = (Gnb::new(settings), 0);
        let (sent, out, events, violations) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { gnb, now: Instant::START, sent, association, out, events, violations }
    }

    /// A gNB after NG Setup.
    pub fn up() -> Self {
        let mut pair = Self::new();
        pair.input(Input::AssociationUp { association: 0, outbound_streams: 8 });
        pair.sent.clear();
        pair.give(0, ng_setup_response().encode().unwrap());
        assert_eq!(pair.events, [Event::Up]);
        pair.events.clear();
        pair.assert_clean();
        pair
    }

    /// A gNB with a UE that has sent its first message and received an answer.
    pub fn with_ue() -> Self {
        let mut pair = Self::up();
        pair.connect();
        pair.sent.clear();
        pair.give(STREAM, downlink(vec![1]).encode().unwrap());
        pair.out.clear();
        pair.assert_clean();
        pair
    }

    /// A gNB whose UE has AS security.
    pub fn with_context() -> Self {
        let mut pair = Self::with_ue();
        pair.give(STREAM, initial_context_setup().encode().unwrap());
        pair.sent.clear();
        pair.out.clear();
        pair.assert_clean();
        pair
    }

    pub fn connect(&mut self) {
        let cause = RrcEstablishmentCause::mo_Signalling;
        self.input(Input::Connect { ue: UE, nas: vec![0x7e, 0, 0x41], cause, s_tmsi: None });
    }

    pub fn input(&mut self, input: Input<'_>) {
        let mut out = Vec::new();
        self.gnb.handle(self.now, input, &mut out);
        for output in out {
            match output {
                Output::Send { association, stream, pdu } => {
                    self.association = association;
                    self.sent.push((stream, Message::decode(&pdu).unwrap()));
                }
                Output::Event(event) => self.events.push(event),
                Output::Violation(violation) => self.violations.push(violation),
                other => self.out.push(other),
            }
        }
    }

    pub fn give(&mut self, stream: u16, pdu: Vec<u8>) {
        self.give_over(0, stream, &pdu);
    }

    pub fn give_over(&mut self, association: u8, stream: u16, pdu: &[u8]) {
        assert!(!pdu.is_empty());
        self.input(Input::Pdu { association, stream, octets: pdu });
    }

    /// The one message that the gNB sent.
    pub fn message(&mut self) -> Message {
        assert_eq!(self.sent.len(), 1, "{:?}", self.sent);
        self.sent.pop().unwrap().1
    }

    pub fn assert_clean(&self) {
        assert_eq!(self.violations, []);
    }

    pub fn violation(&mut self) -> &'static str {
        assert_eq!(self.violations.len(), 1, "{:?}", self.violations);
        self.violations.pop().unwrap().clause
    }
}

pub fn ng_setup_response() -> NgSetupResponse {
    NgSetupResponse {
        amf_name: "amf".into(),
        served_guamis: vec![guami()],
        relative_amf_capacity: 255,
        plmn_support: vec![(plmn(), vec![Snssai::of_sst(1)])],
        diagnostics: None,
        ue_retention: None,
    }
}

pub fn downlink(nas_pdu: Vec<u8>) -> DownlinkNasTransport {
    DownlinkNasTransport {
        amf_ue_ngap_id: amf_id(),
        ran_ue_ngap_id: RAN,
        old_amf: None,
        nas_pdu,
        mobility_restrictions: None,
        ue_ambr: None,
        allowed_nssai: None,
    }
}

pub fn initial_context_setup() -> InitialContextSetupRequest {
    InitialContextSetupRequest {
        amf_ue_ngap_id: amf_id(),
        ran_ue_ngap_id: RAN,
        old_amf: None,
        ue_ambr: None,
        guami: guami(),
        sessions: None,
        allowed_nssai: vec![Snssai::of_sst(1)],
        security_capabilities: SecurityCapabilities {
            nr_encryption: 0xe000,
            nr_integrity: 0xe000,
            eutra_encryption: 0,
            eutra_integrity: 0,
        },
        security_key: [9; 32],
        trace: None,
        mobility_restrictions: None,
        ue_radio_capability: None,
        rfsp_index: None,
        masked_imeisv: None,
        nas_pdu: Some(vec![2]),
    }
}
