//! Builds gNBs, UEs and their plan from the options.

use super::cli::RunOptions;
use anyhow::{Context, Result, bail, ensure};
use pith_crypto::Algorithm;
use pith_crypto::algorithm::ResLength;
use pith_crypto::keys::{Opc, SubscriberKey};
use pith_crypto::milenage::{Milenage, opc_from_op};
use pith_crypto::sqn::UsimSequence;
use pith_crypto::suci::{HomeNetworkPublicKey, Profile};
use pith_crypto::tuak::{Tuak, TuakKey};
use pith_nas::ie::{PduSessionType, UeSecurityCapability};
use pith_ran::journey::{Arrivals, Packets, PingPlan, Plan, Step, TrafficPlan};
use pith_ran::ran::UeSetup;
use pith_ran::ue::{Concealment, RequestedReachability, Service, SessionRequest, Settings, Subscription};
use pith_ran::{Ran, gnb};
use pith_types::{Pei, Snssai, Supi, Tac};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

const TEST_K: &str = "465B5CE8B199B49FAA5F0A2EE238A6BC";
const TEST_OPC: &str = "E8ED289DEBA952E4283B54E88E6183CA";

/// TEIDs reserved for each gNB.
const TEIDS: u32 = 1 << 20;

/// The PDU session identity of a UE's first session; those of further sessions are consecutive.
const SESSION: u8 = 1;

/// Maximum round-trip time of a packet.
const PACKET_TIMEOUT: Duration = Duration::from_secs(1);

/// The radio network that the options describe.
pub fn ran(options: &RunOptions, n3: IpAddr) -> Result<Ran> {
    let endpoints = (0..options.endpoints()).map(|endpoint| gnb(options, n3, endpoint));
    let has_ipv6 = options.pdu_type != PduSessionType::Ipv4;
    let has_ipv4 = options.pdu_type != PduSessionType::Ipv6;
    let is_reached = options.ping.is_none_or(|target| if target.is_ipv4() { has_ipv4 } else { has_ipv6 });
    ensure!(is_reached, "--ping has an address of another IP version than --pdu-type");
    ensure!(has_ipv6 || !options.delegate_prefix, "--delegate-prefix needs --pdu-type ipv6 or ipv4v6");
    ensure!(
        has_ipv4 || options.traffic.is_none(),
        "--traffic is over IPv4, which --pdu-type ipv6 does not have"
    );
    let last = options.tac as usize + options.amf.len() - 1;
    ensure!(!options.areas || last <= 0xff_fffe, "--areas needs a TAC for each AMF: --tac is too high");
    let plan = plan(options);
    let steps = || plan.steps.iter().chain(&options.then);
    ensure!(
        has_ipv4 || !steps().any(|step| *step == Step::Page),
        "packets that page UEs are of IPv4, which --pdu-type ipv6 does not have"
    );
    ensure!(
        options.gnbs > 1
            || !steps().any(|step| matches!(step, Step::Handover(..) | Step::Reselect | Step::MoveFlows(_))),
        "a handover, another cell, or a secondary gNB, needs two gNBs: --gnbs 2"
    );
    let mut ran = Ran::new(endpoints.collect(), plan);
    ran.connect_to_amfs(options.amfs_of_gnb() as usize);
    for endpoint in 0..options.endpoints() {
        for association in 0..options.associations {
            ran.note_endpoint(endpoint as usize, association, options.amf_of(endpoint));
        }
    }
    let settings = Arc::new(ue_settings(options));
    let subscriptions = Subscriptions::new(options)?;
    let begins = arrivals(options).times(options.ues as usize, options.seed);
    for (index, begins) in begins.into_iter().enumerate() {
        let setup = UeSetup {
            subscription: subscriptions.of(index as u64)?,
            imeisv: imeisv(index)?,
            gnb: index % options.gnbs as usize * options.amfs_of_gnb() as usize,
            sessions: sessions(options),
            begins,
        };
        ran.add_ue(Arc::clone(&settings), setup).context("a UE without gNB")?;
    }
    if options.reconnect {
        ran.bar_cells_without_amf();
    }
    if options.timeline.is_some() {
        ran.record_timeline();
    }
    if let Some(most) = options.in_flight {
        ran.limit_in_flight(most as usize);
    }
    Ok(ran)
}

/// A session in the first slice, or in each.
fn sessions(options: &RunOptions) -> Vec<SessionRequest> {
    let most = if options.each_slice { options.slice.len() } else { 1 };
    // The network selects data network and slice of an emergency session (TS 24.501 5.4.5.2.2).
    let is_normal = options.emergency.is_none();
    let request = |(id, snssai): (u8, &Snssai)| SessionRequest {
        id,
        dnn: is_normal.then(|| options.dnn.clone()),
        snssai: is_normal.then_some(*snssai),
        session_type: options.pdu_type,
        reflective_qos: options.reflective_qos,
        is_emergency: !is_normal,
    };
    (SESSION..).zip(options.slice.iter().take(most)).map(request).collect()
}

fn plan(options: &RunOptions) -> Plan {
    let ping = options.ping.map(|target| PingPlan {
        target,
        count: options.count,
        interval: Duration::from_millis(options.interval),
        size: options.size.into(),
        timeout: PACKET_TIMEOUT,
    });
    let traffic = options.traffic.map(|target| TrafficPlan {
        target,
        bits_per_second: (options.mbps * 1e6) as u64,
        size: options.packet.into(),
        duration: Duration::from_millis((options.seconds * 1000.0) as u64),
        timeout: PACKET_TIMEOUT,
    });
    let packets = Packets { ping, traffic };
    let pause = Duration::from_millis(options.pause);
    let rounds = if options.duration.is_some() { u32::MAX } else { options.rounds };
    Plan {
        persistent: options.persistent,
        survives_loss: options.reconnect,
        duration: options.duration.map(Duration::from_secs),
        requests_prefix: options.delegate_prefix,
        framed: options.framed.clone(),
        ..Plan::new(options.profile, packets, pause, rounds)
    }
    .with_sessions(sessions(options).len())
}

fn arrivals(options: &RunOptions) -> Arrivals {
    match (options.rate, options.poisson) {
        (Some(rate), _) => Arrivals::Rate(rate),
        (_, Some(rate)) => Arrivals::Poisson(rate),
        (None, None) => Arrivals::AtOnce,
    }
}

/// An endpoint of a gNB: each gNB has one for each of its AMFs.
fn gnb(options: &RunOptions, n3: IpAddr, endpoint: u32) -> gnb::Settings {
    let index = endpoint / options.amfs_of_gnb();
    let area = if options.areas { endpoint % options.amf.len() as u32 } else { 0 };
    gnb::Settings {
        name: format!("pith-ran-{}", index + 1),
        plmn: options.plmn,
        id: options.gnb_id.wrapping_add(index),
        tac: Tac::new(options.tac + area),
        slices: options.slice.clone(),
        n3,
        first_teid: endpoint.wrapping_mul(TEIDS) + 1,
        retains_ues: options.retain_ues,
        joins_by_ng_setup: options.join_by_setup,
    }
}

fn ue_settings(options: &RunOptions) -> Settings {
    let bits = |numbers: &[u8]| numbers.iter().fold(0, |bits, number| bits | 0x80 >> number);
    let (ea, ia) = (bits(&options.nea), bits(&options.nia));
    Settings {
        plmn: options.plmn,
        security_capability: UeSecurityCapability::of_5gs_and_eps(ea, ia, ea, ia),
        requested_nssai: options.slice.clone(),
        follow_on_request: true,
        service: options.emergency.map_or(Service::Normal, Into::into),
        reachability: RequestedReachability {
            drx: options.drx.map(Into::into),
            edrx: options.edrx,
            mico: options.mico,
            active_time: options.active_time.map(Duration::from_secs),
        },
    }
}

/// An IMEISV with a type allocation code that does not exist; each UE has its own serial number (TS
/// 23.003 6.2.2).
fn imeisv(index: usize) -> Result<Pei> {
    format!("imeisv-35693803{:06}01", index % 1_000_000).parse().context("IMEISV")
}

/// The parameters that all subscriptions of a run share.
struct Subscriptions<'a> {
    options: &'a RunOptions,
    first: u64,
    digits: usize,
    algorithm: Arc<Algorithm>,
    concealment: Concealment,
    routing_indicator: Arc<str>,
    seed: [u8; 32],
}

impl<'a> Subscriptions<'a> {
    fn new(options: &'a RunOptions) -> Result<Self> {
        let imsi = options.supi.imsi();
        let home = format!("{}{}", options.plmn.mcc(), options.plmn.mnc());
        ensure!(
            imsi.starts_with(&home),
            "--supi {} does not start with the digits of --plmn {}",
            options.supi,
            options.plmn
        );
        let routing = &options.routing_indicator;
        let is_routing =
            (1..=4).contains(&routing.len()) && routing.bytes().all(|digit| digit.is_ascii_digit());
        ensure!(is_routing, "--routing-indicator '{routing}': 1 to 4 digits");
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| anyhow::anyhow!("random numbers: {error}"))?;
        Ok(Self {
            options,
            first: imsi.parse()?,
            digits: imsi.len(),
            algorithm: algorithm(options)?.into(),
            concealment: concealment(&options.suci)?,
            routing_indicator: routing.as_str().into(),
            seed,
        })
    }

    fn of(&self, index: u64) -> Result<Subscription> {
        let imsi = format!("{:0width$}", self.first + index, width = self.digits);
        let supi = Supi::from_imsi(&imsi).ok().filter(|supi| supi.imsi().len() == self.digits);
        let mut seed = self.seed;
        for (place, octet) in seed.iter_mut().zip(index.to_be_bytes()) {
            *place ^= octet;
        }
        Ok(Subscription {
            supi: supi
                .with_context(|| format!("no SUPI {index} after {}: too many UEs", self.options.supi))?,
            home: self.options.plmn,
            routing_indicator: Arc::clone(&self.routing_indicator),
            concealment: self.concealment.clone(),
            algorithm: Arc::clone(&self.algorithm),
            sequence: UsimSequence::default(),
            seed,
        })
    }
}

fn algorithm(options: &RunOptions) -> Result<Algorithm> {
    let test = |value: &'static str| options.test_network.then_some(value);
    let k = options.k.as_deref().or(test(TEST_K)).context("--k is missing")?;
    let k: SubscriberKey = k.parse().context("--k")?;
    if let Some(topc) = &options.topc {
        let tuak = Tuak::new(TuakKey::Bits128(k), topc.parse().context("--topc")?, 1);
        return Ok(Algorithm::Tuak(tuak, ResLength::Bits64));
    }
    let opc: Opc = match (&options.opc, &options.op) {
        (Some(opc), _) => opc.parse().context("--opc")?,
        (None, Some(op)) => opc_from_op(&k, &op.parse().context("--op")?),
        (None, None) => test(TEST_OPC).context("one of --opc, --op and --topc is required")?.parse()?,
    };
    Ok(Algorithm::Milenage(Milenage::new(&k, &opc)))
}

/// `null`, `a:KEYID:PUBLICKEY` or `b:KEYID:PUBLICKEY`.
fn concealment(text: &str) -> Result<Concealment> {
    if text == "null" {
        return Ok(Concealment::Null);
    }
    let parts: Vec<&str> = text.split(':').collect();
    let &[profile, key_id, key] = &parts[..] else {
        bail!("--suci '{text}': use null, a:KEYID:PUBLICKEY or b:KEYID:PUBLICKEY");
    };
    let profile = match profile {
        "a" => Profile::A,
        "b" => Profile::B,
        _ => bail!("--suci '{text}': the profile must be a or b"),
    };
    let key_id =
        key_id.parse().with_context(|| format!("--suci '{text}': the key identifier must be 1 to 255"))?;
    let octets =
        hex::decode(key).with_context(|| format!("--suci '{text}': the key must be hexadecimal digits"))?;
    Ok(Concealment::Ecies { key_id, key: HomeNetworkPublicKey::new(profile, &octets).context("--suci")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_read_with_key_and_identifier() {
        let key = "5a8d38864820197c3394b92613b20b91633cbd897119273bf8e4a6f4eec0a650";
        assert_eq!(concealment("null").unwrap(), Concealment::Null);
        let Concealment::Ecies { key_id, key } = concealment(&format!("a:27:{key}")).unwrap() else {
            panic!("ECIES")
        };
        assert_eq!((key_id, key.profile()), (27, Profile::A));
        for bad in ["", "a", "a:27", "c:1:00", "a:256:00", "a:1:0g", "b:1:00"] {
            assert!(concealment(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn equipment_differs_from_ue_to_ue() {
        assert_ne!(imeisv(0).unwrap(), imeisv(1).unwrap());
    }
}
