//! Tests of gNBs that do not read and of shards that are full.

use super::backlog::LOW_MARK;
use super::*;
use crate::sctp::SctpError;
use crate::shard::shard_queue;
use crate::work_queue::UnstartedQueue;
use pith_nf::gateway::n2::N2Config;
use pith_nf::kit::TnlaBinding;
use pith_types::{BlockOwner, Guami, InstanceId, OwnerMap, Plmn, Snssai};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// NG SETUP REQUEST of "gnb-1", gNB ID 123456 (hexadecimal), 999/70, tracking area 1, slice 1.
const NG_SETUP_REQUEST: &str = "00150035000004001b00080099f90710123456005240070200676e622d310066001200000000010099f9070001000880800a0b0c0015400140";

/// UPLINK NAS TRANSPORT with AMF-UE-NGAP-ID 1, which no shard of this AMF has assigned.
const UPLINK_NAS_TRANSPORT: &str = "002e4031000004000a000200010055000200010026000b0a7e02a4fdb2190182bd0f0079400f4002f839000008000002f839000001";

/// Bound of a shard's queue.
const BOUND: usize = 4;

/// More messages than any test sends.
const PLENTY: usize = 1_000_000;

/// Records calls of the transport.
#[derive(Default)]
struct Wire {
    /// Number of further messages that fit into the send buffers.
    room: usize,
    outbound_streams: u16,
    /// Streams of the accepted messages.
    taken: Vec<u16>,
    unread: BTreeSet<AssociationId>,
    /// Number of calls that paused or resumed reading: one system call each.
    switched: usize,
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

    fn listen_on(&mut self, _local: &[SocketAddr]) -> Result<(), SctpError> {
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
        let mut wire = self.wire();
        wire.unread.insert(association);
        wire.switched += 1;
    }

    fn resume_reading(&mut self, association: AssociationId) {
        let mut wire = self.wire();
        wire.unread.remove(&association);
        wire.switched += 1;
    }

    fn shutdown(&mut self, _association: AssociationId) {}

    fn abort(&mut self, association: AssociationId) {
        self.wire().aborted.push(association);
    }

    fn process(&mut self, _now: Instant, _events: &mut Vec<SctpEvent>) {}
}

/// An edge whose two shards have no worker, with gNBs that complete NG setup and then stop reading.
struct Scene {
    edge: Edge,
    wire: Arc<Mutex<Wire>>,
    /// Queue of the first shard.
    queue: ShardQueue,
    shards: Vec<UnstartedQueue<ShardInput>>,
}

impl Scene {
    fn new(gnbs: &[u64]) -> Self {
        let wire = Arc::new(Mutex::new(Wire { room: PLENTY, outbound_streams: 4, ..Wire::default() }));
        let side =
            N2Side { transport: Box::new(Transport(Arc::clone(&wire))), gateway: gateway(), former: None };
        let (queues, shards): (Vec<_>, Vec<_>) = (0..2).map(|number| shard_queue(number, BOUND)).unzip();
        let queue = queues[0].clone();
        let edge = Edge::new(Clock::start(), Some(side), None, queues, Box::new(|_, _| {}));
        let mut scene = Self { edge, wire, queue, shards };
        for gnb in gnbs {
            scene.set_up(AssociationId::from_u64(*gnb));
        }
        scene.shards.iter().for_each(|shard| drop(shard.take_all()));
        scene.wire().taken.clear();
        scene.wire().room = 0;
        scene
    }

    fn set_up(&mut self, association: AssociationId) {
        self.associate(association);
        // Each gNB has its own Global gNB ID.
        let request = NG_SETUP_REQUEST.replace("123456", &format!("{:06x}", association.to_u64()));
        self.receive(association, &request);
    }

    /// A further association of a gNB.
    fn join(&mut self, association: AssociationId, gnb: u64) {
        self.associate(association);
        let plmn = "999/70".parse().unwrap();
        let update = pith_ngap::RanConfigurationUpdate {
            ran_node_name: None,
            supported_tas: None,
            default_paging_drx: None,
            global_ran_node_id: Some(pith_ngap::GlobalRanNodeId::Gnb { plmn, id: gnb as u32, bits: 24 }),
            tnla_to_remove: None,
        };
        self.receive(association, &hex::encode(update.encode().unwrap()));
    }

    fn associate(&mut self, association: AssociationId) {
        let address = SocketAddr::from(([192, 0, 2, 1], 38412));
        let alternatives = Vec::new();
        let (inbound_streams, outbound_streams) = (4, 4);
        let (peer, local) = (address, address);
        self.edge.sctp(SctpEvent::Up {
            association,
            peer,
            alternatives,
            local,
            inbound_streams,
            outbound_streams,
        });
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A gNB sends a PDU.
    fn receive(&mut self, association: AssociationId, pdu: &str) {
        let payload = hex::decode(pdu).unwrap();
        self.edge.sctp(SctpEvent::Message { association, stream: 0, ppid: NGAP_PPID, payload });
    }

    /// An AMF sends a PDU of 100 octets to a gNB.
    fn send(&mut self, association: AssociationId, stream: u16) {
        let (gnb, pdu) = (GnbHandle(association.to_u64()), Bytes::from_static(&[0; 100]));
        self.edge.message(EdgeMessage::N2(N2Effect::Send {
            gnb,
            binding: TnlaBinding::unbound(stream),
            pdu,
        }));
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
        owners: owners().into(),
        shards: 2,
        permitted_gnbs: Vec::new(),
        associations_per_address: 1024,
        endpoints: Vec::new(),
        setup_wait: Duration::ZERO,
    })
}

/// One block for each of the two shards; the others are another instance's.
fn owners() -> OwnerMap {
    OwnerMap::new(1, |block| match block.number() {
        512 => BlockOwner { instance: InstanceId(5), shard: ShardId(0) },
        513 => BlockOwner { instance: InstanceId(5), shard: ShardId(1) },
        _ => BlockOwner::default(),
    })
}

const ONE: u64 = 1;
const OTHER: u64 = 2;

fn association(gnb: u64) -> AssociationId {
    AssociationId::from_u64(gnb)
}

#[test]
fn a_gnb_that_provokes_errors_without_reading_is_paused() {
    let mut scene = Scene::new(&[ONE, OTHER]);
    let one = association(ONE);
    let provoked = (1..20_000).find(|_| {
        scene.receive(one, UPLINK_NAS_TRANSPORT);
        !scene.wire().unread.is_empty()
    });
    let provoked = provoked.expect("20000 errors wait for a gNB that is still read");
    assert_eq!(scene.wire().unread, BTreeSet::from([one]), "only the gNB that does not read is paused");

    scene.take(one);
    assert_eq!(scene.wire().taken, vec![0; provoked], "nothing is lost");
    assert_eq!(scene.wire().unread, BTreeSet::new());
}

#[test]
fn a_gnb_with_too_many_queued_messages_is_aborted() {
    let mut scene = Scene::new(&[ONE, OTHER]);
    let one = association(ONE);
    let sent = (1..100_000).find(|_| {
        scene.send(one, 1);
        !scene.wire().aborted.is_empty()
    });
    sent.expect("10 MB are queued for a gNB that does not read");
    assert_eq!(scene.wire().aborted, [one]);
    assert_eq!(scene.edge.gnbs().len(), 1, "the other gNB stays");
    assert_eq!(scene.queue.pending(), 1, "the shard gets GnbDown");

    scene.send(one, 1);
    scene.take(one);
    assert_eq!(scene.wire().taken, Vec::<u16>::new(), "nothing is kept");
    assert_eq!(scene.wire().aborted, [one]);
}

#[test]
fn queued_messages_for_a_missing_stream_use_stream_0() {
    let mut scene = Scene::new(&[ONE]);
    scene.wire().outbound_streams = 1;
    scene.send(association(ONE), 3);
    scene.send(association(ONE), 0);
    scene.take(association(ONE));
    assert_eq!(scene.wire().taken, [0, 0]);
}

#[test]
fn a_paused_gnb_that_accepts_nothing_is_aborted() {
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
    assert_eq!(scene.wire().aborted, [one], "the other gNB has a short queue and is read");
    assert_eq!(scene.edge.n2.as_ref().and_then(N2State::next_deadline), None);
}

#[test]
fn accepting_a_message_restarts_the_stall_timer() {
    let mut scene = Scene::new(&[ONE]);
    let one = association(ONE);
    for _ in 0..LOW_MARK / 100 {
        scene.send(one, 1);
    }
    let stalled = Instant::now() + MAX_STALL;
    thread::sleep(Duration::from_millis(1));
    scene.wire().room = 1;
    scene.edge.sctp(SctpEvent::SendReady { association: one });
    assert_eq!(scene.wire().unread, BTreeSet::from([one]), "many messages are still queued");
    scene.edge.give_up_stalled(stalled);
    assert_eq!(scene.wire().aborted, Vec::new());
    scene.edge.give_up_stalled(Instant::now() + MAX_STALL);
    assert_eq!(scene.wire().aborted, [one]);
}

/// An UPLINK NAS TRANSPORT for a UE of a shard, with this RAN-UE-NGAP-ID.
fn uplink(shard: u8, ran: u32) -> String {
    let owner = BlockOwner { instance: InstanceId(5), shard: ShardId(shard) };
    let block = owners().blocks_of(owner).next().unwrap();
    let message = pith_ngap::UplinkNasTransport {
        amf_ue_ngap_id: pith_types::AmfUeNgapId::new(block, 1),
        ran_ue_ngap_id: pith_types::RanUeNgapId(ran),
        nas_pdu: vec![0; 100],
        location: None,
    };
    hex::encode(message.encode().unwrap())
}

impl Scene {
    /// The gNBs whose messages a shard receives, in order.
    fn worked_off(&self, shard: usize) -> Vec<u64> {
        let gnb = |input| match input {
            ShardInput::N2(N2Input::Pdu { gnb, .. }) => Some(gnb.0),
            _ => None,
        };
        self.shards[shard].take_all().into_iter().filter_map(gnb).collect()
    }

    fn release(&mut self) {
        let Edge { n2, shards, .. } = &mut self.edge;
        n2.as_mut().unwrap().release_held(shards);
    }

    /// A gNB sends messages to a shard until the edge stops reading from it; returns their number.
    fn flood(&mut self, gnb: AssociationId, shard: u8) -> usize {
        let until = (1..100_000).find(|ran| {
            self.receive(gnb, &uplink(shard, *ran));
            self.wire().unread.contains(&gnb)
        });
        until.expect("a gNB that floods a full shard is still read") as usize
    }
}

#[test]
fn a_full_shard_pauses_only_the_gnb_that_floods_it() {
    let mut scene = Scene::new(&[ONE, OTHER]);
    let (one, other) = (association(ONE), association(OTHER));
    let sent = scene.flood(one, 0);
    assert_eq!(scene.queue.pending(), BOUND, "the queue's bound holds");
    assert!(sent < BOUND + 2 * held::SHARE / 100, "{sent} messages are held of one gNB");

    scene.receive(other, &uplink(1, 1));
    scene.receive(other, &uplink(0, 2));
    scene.receive(other, &uplink(1, 3));
    assert_eq!(scene.worked_off(1), [OTHER, OTHER], "the other shard gets its messages");
    assert_eq!(scene.wire().unread, BTreeSet::from([one]));
    assert_eq!(scene.wire().switched, 1, "one system call, for the gNB that floods");

    assert_eq!(scene.worked_off(0), [ONE; BOUND]);
    scene.release();
    assert_eq!(scene.worked_off(0), [ONE, OTHER, ONE, ONE], "gNBs take turns");
    assert_eq!(scene.wire().unread, BTreeSet::from([one]), "most messages are still held");
    let mut rest = 0;
    while scene.edge.n2.as_ref().is_some_and(|n2| !n2.held.is_empty()) {
        scene.release();
        rest += scene.worked_off(0).len();
    }
    assert_eq!(BOUND + 3 + rest, sent, "nothing is lost");
    assert_eq!(scene.wire().unread, BTreeSet::new());
    assert_eq!(scene.wire().switched, 2);
}

#[test]
fn a_gnb_that_floods_a_full_shard_is_read_over_none_of_its_associations() {
    let mut scene = Scene::new(&[ONE]);
    let (one, further, late) = (association(ONE), association(OTHER), association(3));
    scene.wire().room = PLENTY;
    scene.join(further, ONE);
    scene.shards.iter().for_each(|shard| drop(shard.take_all()));
    scene.flood(one, 0);
    assert_eq!(scene.wire().unread, BTreeSet::from([one, further]));
    scene.join(late, ONE);
    assert_eq!(scene.wire().unread, BTreeSet::from([one, further, late]));
    while scene.edge.n2.as_ref().is_some_and(|n2| !n2.held.is_empty()) {
        scene.worked_off(0);
        scene.release();
    }
    assert_eq!(scene.wire().unread, BTreeSet::new());
    scene.edge.sctp(SctpEvent::Down { association: one, reason: crate::sctp::DownReason::Aborted });
    assert_eq!(scene.edge.gnbs().len(), 1);
    scene.wire().taken.clear();
    scene.send(one, 1);
    assert_eq!(scene.wire().taken, [1], "the gNB gets its messages over the others");
}

#[test]
fn held_messages_keep_their_order_and_are_dropped_with_the_gnb() {
    let mut scene = Scene::new(&[ONE, OTHER]);
    let one = association(ONE);
    for ran in 0..BOUND as u32 + 3 {
        scene.receive(one, &uplink(0, ran));
    }
    scene.shards[0].take_all();
    // The queue has room now, but held messages are sent first.
    scene.receive(one, &uplink(0, 99));
    assert_eq!(scene.queue.pending(), 0);
    scene.release();
    let rans = scene.shards[0].take_all().into_iter().filter_map(|input| match input {
        ShardInput::N2(N2Input::Pdu { pdu, .. }) => pith_ngap::peek(&pdu)?.ran_ue_ngap_id.map(|id| id.0),
        _ => None,
    });
    assert_eq!(rans.collect::<Vec<_>>(), [4, 5, 6, 99]);

    scene.flood(one, 0);
    scene.edge.sctp(SctpEvent::Down { association: one, reason: crate::sctp::DownReason::Aborted });
    assert!(
        scene.edge.n2.as_ref().is_some_and(|n2| n2.held.is_empty()),
        "nothing is held of a disconnected gNB"
    );
}

#[test]
fn a_gnb_is_read_again_when_both_its_queues_are_short() {
    let mut scene = Scene::new(&[ONE]);
    let one = association(ONE);
    for _ in 0..LOW_MARK / 100 {
        scene.send(one, 1);
    }
    assert_eq!(scene.wire().unread, BTreeSet::from([one]));
    for ran in 0..100_000 {
        scene.receive(one, &uplink(0, ran));
        if scene.edge.n2.as_ref().is_some_and(|n2| n2.held.keeps_unread(GnbHandle(ONE))) {
            break;
        }
    }
    scene.take(one);
    assert_eq!(scene.wire().unread, BTreeSet::from([one]), "its shard has no room");
    while scene.edge.n2.as_ref().is_some_and(|n2| !n2.held.is_empty()) {
        scene.worked_off(0);
        scene.release();
    }
    assert_eq!(scene.wire().unread, BTreeSet::new());
}
