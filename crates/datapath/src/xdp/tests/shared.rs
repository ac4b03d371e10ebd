//! The counters of a session, which CPUs and workers share: their memory, that none of two CPUs' packets is lost, and quotas.

use super::super::program::SESSION_BLOCK;
use super::*;
use crate::rules::{Now, UrrUse, Worker};
use crate::sys::run_program;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

/// Packets of a direction on each CPU.
const PACKETS: usize = 20_000;

/// Keeps this thread on a CPU; whether the machine has it.
fn pin(cpu: usize) -> bool {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let thread = thread.file_name().unwrap().to_str().unwrap().to_owned();
    let pinned = Command::new("taskset").args(["-pc", &cpu.to_string(), &thread]).output();
    pinned.unwrap().status.success()
}

/// Gives frames to the program on two CPUs at once, `PACKETS` of each, and a packet of its own of a worker at the same time;
/// returns how many of each frame were forwarded.
fn race(lab: &Lab, frames: &[Vec<u8>], worker: impl Fn() + Sync) -> Vec<usize> {
    let program = &lab.program.descriptor();
    let worker = &worker;
    let on = |cpu| {
        assert!(pin(cpu), "a second CPU");
        let mut forwarded = vec![0; frames.len()];
        for _ in 0..PACKETS {
            for (frame, count) in frames.iter().zip(&mut forwarded) {
                *count += usize::from(run_program(program.as_fd(), frame).unwrap() == REDIRECT);
            }
            worker();
        }
        forwarded
    };
    let [first, second] = thread::scope(|scope| {
        let on = &on;
        [0, 1].map(|cpu| scope.spawn(move || on(cpu))).map(|running| running.join().unwrap())
    });
    first.into_iter().zip(second).map(|(a, b)| a + b).collect()
}

fn has_two_cpus() -> bool {
    thread::available_parallelism().unwrap().get() > 1
}

/// The URR of a session, as workers have it.
fn urr_of(lab: &Lab) -> Arc<UrrUse> {
    let rules = lab.sessions.rules(SessionId(1)).unwrap();
    Arc::clone(&rules.iter().next().unwrap().urrs[0])
}

#[test]
fn a_session_with_two_rules_takes_512_octets_for_any_number_of_cpus() {
    assert_eq!(SESSION_BLOCK, 512);
    let Some(lab) = lab(&session()) else { return };
    let size = |table| lab.program.table(table).unwrap().value_size() as usize;
    assert_eq!(["sessions", "usage", "flows"].map(size), [512, 64, 6 * 64]);
}

/// No rate refuses a packet.
fn fast() -> Session {
    let mut session = session();
    session.qers[0].mbr = None;
    session
}

#[test]
fn packets_of_two_cpus_and_a_worker_are_counted_once_each() {
    let Some(lab) = lab(&fast()).filter(|_| has_two_cpus()) else { return };
    let frames = [tunnelled(&gpdu(TEID, &up(64))), to_ue(&down(64))];
    let urr = urr_of(&lab);
    let of_worker = || {
        urr.counter.count(Worker(0), Direction::Uplink, 7, Now(1));
        urr.counter.count(Worker(0), Direction::Downlink, 5, Now(1));
    };
    let forwarded = race(&lab, &frames, of_worker);
    assert_eq!(forwarded, [2 * PACKETS; 2]);
    let (packets, octets) = (2 * PACKETS as u64, up(64).len() as u64);
    let expected = Volume {
        uplink: packets * (octets + 7),
        downlink: packets * (octets + 5),
        uplink_packets: 2 * packets,
        downlink_packets: 2 * packets,
    };
    assert_eq!(lab.volume(), expected);
    let flows = lab.sessions.flows(SessionId(1));
    let passed: Vec<_> =
        flows.iter().map(|flow| (flow.count.yellow.packets, flow.count.yellow.bytes)).collect();
    assert_eq!(passed, [(packets, packets * octets); 2]);
}

/// Each CPU compares the quota with one number, which all add to: as many packets exceed it as CPUs forward at that moment.
#[test]
fn two_cpus_exceed_a_quota_by_one_packet_each_at_most() {
    let octets = up(64).len() as u64;
    let whole = PACKETS as u64;
    let mut limited = fast();
    limited.urrs[0].quota.total = Some(whole * octets);
    let Some(lab) = lab(&limited).filter(|_| has_two_cpus()) else { return };
    let frames = [tunnelled(&gpdu(TEID, &up(64))), to_ue(&down(64))];
    let forwarded: usize = race(&lab, &frames, || ()).iter().sum();
    assert!((PACKETS..=PACKETS + 1).contains(&forwarded), "{forwarded} of {PACKETS}");
    let Volume { uplink_packets, downlink_packets, .. } = lab.volume();
    assert_eq!(uplink_packets + downlink_packets, forwarded as u64);
    assert_eq!(lab.counters().dropped(DropReason::QuotaExhausted), (4 * PACKETS - forwarded) as u64);
}

/// A session of eight rules, six of them beside its filters: each packet is forwarded by its own, and counted in its flow.
#[test]
fn rules_beyond_the_block_are_used_and_replaced() {
    const RULES: u16 = 8;
    let eight = |marked: u8| {
        let mut session = fast();
        let general = session.pdrs[1].clone();
        let special = |number: u16| {
            let text = format!("permit out 17 from 172.17.0.0/24 {} to assigned", 7000 + number);
            let qer = QerId(10 + u32::from(number));
            let filters = text.parse::<FlowDescription>().unwrap().filters;
            Pdr { id: PdrId(10 + number), precedence: 1, filters, qers: vec![qer], ..general.clone() }
        };
        session.pdrs.extend((0..RULES - 2).map(special));
        let qers = (0..RULES - 2).map(|number| Qer {
            id: QerId(10 + u32::from(number)),
            qfi: Some(Qfi(marked + number as u8)),
            ..session.qers[0].clone()
        });
        let qers: Vec<_> = qers.collect();
        session.qers.extend(qers);
        session
    };
    let Some(mut lab) = lab(&eight(20)) else { return };
    let packet = |port| ipv4(SERVER, UE, 64, 17, &udp(port, 5000, b"hello"));
    let qfi_of = |frame: &[u8]| frame[14 + 20 + 8 + 14] & 0x3f;
    let check = |lab: &Lab, marked: u8| {
        for number in 0..RULES - 2 {
            let (verdict, frame) = lab.run(&to_ue(&packet(7000 + number)));
            assert_eq!((verdict, qfi_of(&frame)), (REDIRECT, marked + number as u8));
        }
        let (verdict, frame) = lab.run(&to_ue(&packet(7999)));
        assert_eq!((verdict, qfi_of(&frame)), (REDIRECT, 9), "the rule without filters");
        assert_eq!(lab.run(&tunnelled(&gpdu(TEID, &up(64)))).0, REDIRECT);
    };
    check(&lab, 20);
    let counts: Vec<_> =
        lab.sessions.flows(SessionId(1)).iter().map(|flow| flow.count.yellow.packets).collect();
    assert_eq!(counts, [1; 8], "eight flows");
    lab.install(&eight(40));
    check(&lab, 40);
}
