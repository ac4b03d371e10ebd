//! The SMF: sessions in every state, with misbehaving UEs, gNBs, UPFs and NFs.

use super::choices::Choices;
use super::material::{requests_for, root};
use super::stage::Stage;
use crate::corpus::{Seed, read};
use crate::mutate::Mutator;
use crate::target::{CheckFailed, Shape, ensure};
use pith_nf::kit::{
    Duration, Identity, N4Error, N4Input, N4Transaction, Nf, ReferenceKey, Rng, UpfHandle, UpfInfo,
};
use pith_nf::smf::{DataNetwork, Smf, SmfAudit, SmfConfig};
use pith_pfcp::Message;
use pith_pfcp::ie::{Cause, FSeid, FTeid, NodeId, PdrId};
use pith_pfcp::message::{
    SessionDeletionResponse, SessionEstablishmentResponse, SessionModificationResponse,
};
use pith_pfcp::rules::CreatedPdr;
use pith_sbi::common::AccessType;
use pith_sbi::nsmf_pdusession::{
    N2SmInfoType, PostSmContexts, ReleaseSmContext, SmContextCreateData, SmContextReleaseData,
    SmContextUpdateData, UpCnxState, UpdateSmContext,
};
use pith_sbi::{NfInstanceId, Request, Uri};
use pith_types::{Ambr, BitRate, BlockOwner, InstanceId, OwnerMap, Plmn, Seid, ShardId, Snssai};
use pith_world::Database;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};

const UPF: UpfHandle = UpfHandle(3);
const UPF_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);

static NAS: LazyLock<Vec<Seed>> = LazyLock::new(|| read("nas-gsm").unwrap_or_default());
static TRANSFERS: LazyLock<Vec<Seed>> = LazyLock::new(|| read("ngap-transfer").unwrap_or_default());
static PFCP: LazyLock<Vec<Seed>> = LazyLock::new(|| read("pfcp").unwrap_or_default());
static SERVES: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    requests_for(|request| request.target_nf().and_then(|of| Nf::of_type(&of)) == Some(Nf::Smf))
});

fn smf() -> Smf {
    let plmn = Plmn::new("999", "70").expect("a constant that is a PLMN");
    let identity = Identity {
        instance_id: NfInstanceId::from_random(7),
        api_root: root(),
        plmn,
        owner: BlockOwner { instance: InstanceId(1), shard: ShardId(0) },
        owners: Arc::new(OwnerMap::of_instance(InstanceId(1), 1)),
        reference_key: ReferenceKey::new([7; 32]),
        epoch_unix_ms: 0,
    };
    let internet = DataNetwork {
        dnn: "internet".parse().expect("a constant that is a DNN"),
        snssai: Snssai::of_sst(1),
        pool: (Ipv4Addr::new(10, 45, 0, 0), 28),
        pool6: None,
        delegation: 0,
        reserved: 2,
        static_ranges: Vec::new(),
        dns: vec![Ipv4Addr::new(9, 9, 9, 9).into()],
        mtu: 1400,
        ambr: Ambr { uplink: BitRate::mbps(50), downlink: BitRate::mbps(50) },
        p_cscf: vec![Ipv4Addr::new(10, 9, 0, 1).into()],
        is_ladn: false,
    };
    let config = SmfConfig {
        peers: None,
        data_networks: vec![internet],
        t3591: Duration::from_secs(16),
        rq_timer: 60,
        t3592: Duration::from_secs(16),
        retransmissions: 4,
        guard: Duration::from_secs(10),
        path_grace: Duration::from_secs(1),
        shares_blocks: false,
        set_id: None,
        upfs: Vec::new(),
        breakouts: Vec::new(),
        emergency: None,
    };
    Smf::new(identity, config, Rng::from_number(1))
}

/// Runs an input, then releases all sessions: no state may be left.
pub fn run(input: &[u8]) -> Result<(), CheckFailed> {
    let mut stage = Stage::new(smf(), Database::default());
    stage.n4 = Some(Vec::new());
    upf_up(&mut stage);
    let mut choices = Choices::new(input);
    let mut seids = Vec::new();
    while !choices.is_exhausted() {
        step(&mut stage, &mut seids, &mut choices);
        stage.check()?;
    }
    stage.end()?;
    stage.expire_timers()?;
    for reference in std::mem::take(&mut stage.ids) {
        stage.ask(
            ReleaseSmContext { sm_context_ref: reference, body: SmContextReleaseData::default() }.into(),
        );
        stage.end()?;
    }
    stage.expire_timers()?;
    let audit = stage.nf.audit();
    ensure(audit == SmfAudit::default(), || format!("state left of released sessions: {audit:?}"))
}

fn upf_up(stage: &mut Stage<Smf>) {
    let info = UpfInfo {
        name: "upf".into(),
        address: IpAddr::V4(UPF_ADDRESS),
        local_address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 4)),
        has_retained: false,
        shares_sessions: false,
    };
    stage.n4_input(N4Input::UpfUp { upf: UPF, info: Arc::new(info) });
}

fn step(stage: &mut Stage<Smf>, seids: &mut Vec<Seid>, choices: &mut Choices<'_>) {
    match choices.below(16) {
        0..2 => stage.ask(create(choices)),
        2..5 => {
            if let Some(request) = update(&stage.ids, choices) {
                stage.ask(request);
            }
        }
        5 => {
            if let Some(reference) = choices.pick(&stage.ids).cloned() {
                let body = SmContextReleaseData::default();
                stage.ask(ReleaseSmContext { sm_context_ref: reference, body }.into());
            }
        }
        6..9 => upf_answers(stage, seids, choices),
        9 => report(stage, seids, choices),
        10 if choices.below(8) == 0 => {
            stage.n4_input(N4Input::UpfDown { upf: UPF });
            upf_up(stage);
        }
        _ => stage.step(&SERVES, choices),
    }
}

/// A 5GSM message of the corpus, possibly for another session or transaction, possibly mutated.
fn n1(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut octets = choices.pick(&NAS).map(|seed| seed.octets.clone()).unwrap_or_default();
    if let Some(session) = octets.get_mut(1).filter(|_| choices.below(4) > 0) {
        *session = 1 + choices.below(3) as u8;
    }
    match choices.below(3) {
        0 => Mutator::new(Shape::Octets, &NAS).mutate(&octets, &mut choices.random()),
        _ => octets,
    }
}

fn create(choices: &mut Choices<'_>) -> Request {
    let status = Uri::new(&root(), "/namf-callback/v1/sm-context-status/5");
    let plmn = Plmn::new("999", "70").expect("a constant that is a PLMN");
    let amf = NfInstanceId::from_random(2);
    let mut body = SmContextCreateData::new(amf, plmn, AccessType::ThreeGppAccess, status);
    let supi = format!("imsi-99970000000000{}", 1 + choices.below(2));
    body.supi = supi.parse().ok().filter(|_| choices.below(32) > 0);
    let id = 1 + choices.below(3) as u8;
    body.pdu_session_id = Some(id);
    body.dnn = "internet".parse().ok().filter(|_| choices.below(32) > 0);
    body.s_nssai = Some(Snssai::of_sst(1 + (choices.below(32) == 0) as u8));
    // PDU SESSION ESTABLISHMENT REQUEST, PTI 1, full rate of integrity protection.
    let honest = vec![0x2e, id, 1, 0xc1, 0xff, 0xff];
    let message = if choices.below(3) > 0 { honest } else { n1(choices) };
    body.n1_sm_msg = Some(message.into());
    PostSmContexts { body }.into()
}

fn update(ids: &[String], choices: &mut Choices<'_>) -> Option<Request> {
    let reference = choices.pick(ids)?.clone();
    let mut body = SmContextUpdateData::default();
    if choices.below(2) == 0 {
        body.n1_sm_msg = Some(n1(choices).into());
    }
    if choices.below(2) == 0 {
        let kinds = [
            N2SmInfoType::PduResSetupRsp,
            N2SmInfoType::PduResSetupFail,
            N2SmInfoType::PduResRelRsp,
            N2SmInfoType::PduResModRsp,
            N2SmInfoType::PathSwitchReq,
            N2SmInfoType::PduResSetupReq,
        ];
        body.n2_sm_info_type = choices.pick(&kinds).cloned();
        let octets = choices.pick(&TRANSFERS).map(|seed| seed.octets.clone()).unwrap_or_default();
        let octets = match choices.below(3) {
            0 => Mutator::new(Shape::Octets, &TRANSFERS).mutate(&octets, &mut choices.random()),
            _ => octets,
        };
        body.n2_sm_info = Some(octets.into());
    }
    let states = [UpCnxState::Activating, UpCnxState::Deactivated, UpCnxState::Activated];
    body.up_cnx_state = choices.pick(&states).filter(|_| choices.below(3) == 0).cloned();
    Some(UpdateSmContext { sm_context_ref: reference, body }.into())
}

fn upf_answers(stage: &mut Stage<Smf>, seids: &mut Vec<Seid>, choices: &mut Choices<'_>) {
    let Some(open) = stage.n4.as_mut().filter(|open| !open.is_empty()) else { return };
    let (tag, request) = open.remove(choices.below(open.len()));
    if let Message::SessionEstablishmentRequest(request) = &request {
        seids.push(Seid(request.cp_f_seid.seid));
    }
    let result = match choices.below(10) {
        0 => Err(N4Error::NoAnswer),
        1 => Err(N4Error::NoAssociation),
        2 => any_message(choices).ok_or(N4Error::NoAnswer),
        3 => Ok(answer(&request, Cause::from(choices.octet()))),
        _ => Ok(answer(&request, Cause::RequestAccepted)),
    };
    stage.n4_input(N4Input::Response { tag, result });
}

/// A Session Report Request or another message, about an existing or unknown session.
fn report(stage: &mut Stage<Smf>, seids: &[Seid], choices: &mut Choices<'_>) {
    let seid = choices.pick(seids).copied().unwrap_or(Seid(choices.octet().into()));
    let from = ([127, 0, 0, 8], 8805).into();
    let transaction = N4Transaction { upf: UPF, from, sequence: choices.octet().into() };
    if let Some(message) = any_message(choices) {
        stage.n4_input(N4Input::Request { transaction, seid, message });
    }
}

fn any_message(choices: &mut Choices<'_>) -> Option<Message> {
    let seed = choices.pick(&PFCP)?;
    let octets = match choices.below(2) {
        0 => seed.octets.clone(),
        _ => Mutator::new(Shape::Octets, &PFCP).mutate(&seed.octets, &mut choices.random()),
    };
    Message::decode(&octets).ok().map(|(_, message)| message)
}

/// A UPF's response.
fn answer(request: &Message, cause: Cause) -> Message {
    match request {
        Message::SessionEstablishmentRequest(_) => {
            let address = IpAddr::V4(UPF_ADDRESS);
            let mut response = SessionEstablishmentResponse::new(NodeId::from(address), cause);
            let mut pdr = CreatedPdr::new(PdrId(1));
            pdr.local_f_teids = vec![FTeid::Allocated { teid: 0x1001, ipv4: Some(UPF_ADDRESS), ipv6: None }];
            response.up_f_seid = Some(FSeid::new(0x77, address));
            response.created_pdrs = vec![pdr];
            response.into()
        }
        Message::SessionModificationRequest(_) => SessionModificationResponse::new(cause).into(),
        _ => SessionDeletionResponse::new(cause).into(),
    }
}
