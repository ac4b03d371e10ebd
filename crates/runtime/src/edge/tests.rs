//! gNBs that do not read what they are sent.

use super::backlog::LOW_MARK;
use super::*;
use crate::desk::Vacancy;
use crate::sctp::SctpError;
use crate::shard::shard_desk;
use pith_nf::gateway::n2::N2Config;
use pith_types::{Guami, InstanceId, Plmn, Snssai};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// NG SETUP REQUEST of "gnb-1", gNB ID 123456 (hexadecimal), 999/70, tracking area 1, slice 1.
const NG_SETUP_REQUEST: &str = "00150035000004001b00080099f90710123456005240070200676e622d310066001200000000010099f9070001000880800a0b0c0015400140";

/// UPLINK NAS TRANSPORT with AMF-UE-NGAP-ID 1, which an AMF of instance 0 has given.
const UPLINK_NAS_TRANSPORT: &str = "002e4031000004000a000200010055000200010026000b0a7e02a4fdb2190182bd0f0079400f4002f839000008000002f839000001";

/// More messages than any test sends.
const PLENTY: usize = 1_000_000;

/// What becomes of messages, and what was asked of the transport.
#[derive(Default)]
struct Wire {
    /// As many more messages fit the send buffers.
    room: usize,
    outbound_streams: u16,
    /// The streams of the messages taken.
    taken: Vec<u16>,
    unread: BTreeSet<AssociationId>,
    aborted: Vec<AssociationId>,
}

struct Transport(Arc<Mutex<Wire>>);

impl Transport {
    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SctpTransport for Transport {
    fn description(&self) -> &str {
        "made up"
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        unreachable!("these tests wait for nothing")
    }

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn listen(&mut self, _local: SocketAddr) -> Result<(), SctpError> {
        Ok(())
    }

    fn connect(&mut self, _local: Option<IpAddr>, _remote: SocketAddr) -> Result<AssociationId, SctpError> {
        Err(SctpError::NoFreePort)
    }

    fn send(&mut self, _to: AssociationId, stream: u16, _ppid: u32, _pdu: &[u8]) -> Result<(), SendError> {
        let mut wire = self.wire();
        if wire.room == 0 {
            return Err(SendError::Backpressure);
        }
        if stream >= wire.outbound_streams {
            return Err(SendError::NoSuchStream);
        }
        wire.room -= 1;
        wire.taken.push(stream);
        Ok(())
    }

    fn flush(&mut self) {}

    fn pause_reading(&mut self, association: AssociationId) {
        self.wire().unread.insert(association);
    }

    fn resume_reading(&mut self, association: AssociationId) {
        self.wire().unread.remove(&association);
    }

    fn shutdown(&mut self, _association: AssociationId) {}

    fn abort(&mut self, association: AssociationId) {
        self.wire().aborted.push(association);
    }

    fn process(&mut self, _now: Instant, _events: &mut Vec<SctpEvent>) {}
}

/// An edge whose only shard nobody works for, with gNBs that are set up and then stop reading.
struct Scene {
    edge: Edge,
    wire: Arc<Mutex<Wire>>,
    desk: ShardDesk,
    _vacancy: Vacancy<ShardInput>,
}

impl Scene {
    fn new(gnbs: &[u64]) -> Self {
        let wire = Arc::new(Mutex::new(Wire { room: PLENTY, outbound_streams: 4, ..Wire::default() }));
        let side = N2Side { transport: Box::new(Transport(Arc::clone(&wire))), gateway: gateway() };
        let (desk, vacancy) = shard_desk(0, 4);
        let edge = Edge::new(Clock::start(), Some(side), None, vec![desk.clone()], Box::new(|_, _| {}));
        let mut scene = Self { edge, wire, desk, _vacancy: vacancy };
        for gnb in gnbs {
            scene.set_up(AssociationId::from_u64(*gnb));
        }
        scene.wire().taken.clear();
        scene.wire().room = 0;
        scene
    }

    fn set_up(&mut self, association: AssociationId) {
        let address = SocketAddr::from(([192, 0, 2, 1], 38412));
        let (inbound_streams, outbound_streams) = (4, 4);
        let (peer, local) = (address, address);
        self.edge.sctp(SctpEvent::Up { association, peer, local, inbound_streams, outbound_streams });
        // Each with a Global gNB ID of its own.
        let request = NG_SETUP_REQUEST.replace("123456", &format!("{:06x}", association.to_u64()));
        self.receive(association, &request);
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A PDU comes from a gNB.
    fn receive(&mut self, association: AssociationId, pdu: &str) {
        let payload = hex::decode(pdu).unwrap();
        self.edge.sctp(SctpEvent::Message { association, stream: 0, ppid: NGAP_PPID, payload });
    }

    /// An AMF sends a gNB a PDU of 100 octets.
    fn send(&mut self, association: AssociationId, stream: u16) {
        let (gnb, pdu) = (GnbHandle(association.to_u64()), Bytes::from_static(&[0; 100]));
        self.edge.message(EdgeMessage::N2(N2Effect::Send { gnb, stream, pdu }));
    }

    /// The gNB reads again: all send buffers have room.
    fn take(&mut self, association: AssociationId) {
        self.wire().room = PLENTY;
        self.edge.sctp(SctpEvent::SendReady { association });
    }
}

fn gateway() -> N2Gateway {
    let plmn: Plmn = "999/70".parse().unwrap();
    N2Gateway::new(N2Config {
        amf_name: "pith".into(),
        guamis: vec![Guami { plmn_id: plmn, amf_id: "020040".parse().unwrap() }],
        relative_capacity: 255,
        plmns: vec![(plmn, vec![Snssai::of_sst(1)])],
        tais: Vec::new(),
        instance: InstanceId(5),
        shards: 1,
    })
}

const ONE: u64 = 1;
const OTHER: u64 = 2;

fn association(gnb: u64) -> AssociationId {
    AssociationId::from_u64(gnb)
}

#[test]
fn a_gnb_that_provokes_errors_and_does_not_read_is_not_read_either() {
    let mut scene = Scene::new(&[ONE, OTHER]);
    let one = association(ONE);
    let provoked = (1..20_000).find(|_| {
        scene.receive(one, UPLINK_NAS_TRANSPORT);
        !scene.wire().unread.is_empty()
    });
    let provoked = provoked.expect("20000 errors wait for a gNB that is still read");
    assert_eq!(scene.wire().unread, BTreeSet::from([one]), "only the one that does not read waits");

    scene.take(one);
    assert_eq!(scene.wire().taken, vec![0; provoked], "nothing is lost");
    assert_eq!(scene.wire().unread, BTreeSet::new());
}

#[test]
fn a_gnb_that_leaves_too_much_of_what_shards_send_is_given_up() {
    let mut scene = Scene::new(&[ONE, OTHER]);
    let (one, before) = (association(ONE), scene.desk.held());
    let sent = (1..100_000).find(|_| {
        scene.send(one, 1);
        !scene.wire().aborted.is_empty()
    });
    sent.expect("10 MB wait for a gNB that does not read");
    assert_eq!(scene.wire().aborted, [one]);
    assert_eq!(scene.edge.gnbs().len(), 1, "the other one stays");
    assert_eq!(scene.desk.held(), before + 1, "the shard is told that the gNB is gone");

    scene.send(one, 1);
    scene.take(one);
    assert_eq!(scene.wire().taken, Vec::<u16>::new(), "nothing is kept");
    assert_eq!(scene.wire().aborted, [one]);
}

#[test]
fn what_waited_for_a_stream_that_is_not_there_goes_on_stream_0() {
    let mut scene = Scene::new(&[ONE]);
    scene.wire().outbound_streams = 1;
    scene.send(association(ONE), 3);
    scene.send(association(ONE), 0);
    scene.take(association(ONE));
    assert_eq!(scene.wire().taken, [0, 0]);
}

#[test]
fn a_gnb_that_is_not_read_and_takes_nothing_for_long_is_given_up() {
    let mut scene = Scene::new(&[ONE, OTHER]);
    let (one, other) = (association(ONE), association(OTHER));
    for _ in 0..LOW_MARK / 100 {
        scene.send(one, 1);
    }
    scene.send(other, 1);
    let began = Instant::now();
    scene.edge.give_up_stalled(began);
    assert_eq!(scene.wire().aborted, Vec::new());
    scene.edge.give_up_stalled(began + MAX_STALL);
    assert_eq!(scene.wire().aborted, [one], "the other one has little to take, and is read");
    assert_eq!(scene.edge.n2.as_ref().and_then(N2State::next_deadline), None);
}

#[test]
fn a_gnb_that_takes_some_has_time_again() {
    let mut scene = Scene::new(&[ONE]);
    let one = association(ONE);
    for _ in 0..LOW_MARK / 100 {
        scene.send(one, 1);
    }
    let stalled = Instant::now() + MAX_STALL;
    thread::sleep(Duration::from_millis(1));
    scene.wire().room = 1;
    scene.edge.sctp(SctpEvent::SendReady { association: one });
    assert_eq!(scene.wire().unread, BTreeSet::from([one]), "much still waits");
    scene.edge.give_up_stalled(stalled);
    assert_eq!(scene.wire().aborted, Vec::new());
    scene.edge.give_up_stalled(Instant::now() + MAX_STALL);
    assert_eq!(scene.wire().aborted, [one]);
}

#[test]
fn a_gnb_is_read_again_when_neither_it_nor_a_shard_has_too_much() {
    let mut scene = Scene::new(&[ONE, OTHER]);
    let (one, other) = (association(ONE), association(OTHER));
    for _ in 0..LOW_MARK / 100 {
        scene.send(one, 1);
    }
    let n2 = scene.edge.n2.as_mut().unwrap();
    n2.pause();
    n2.resume();
    assert_eq!(scene.wire().unread, BTreeSet::from([one]), "it has not taken what waits");

    scene.edge.n2.as_mut().unwrap().pause();
    scene.take(one);
    assert_eq!(scene.wire().unread, BTreeSet::from([one, other]), "the shards have no room");
    scene.edge.n2.as_mut().unwrap().resume();
    assert_eq!(scene.wire().unread, BTreeSet::new());
}
