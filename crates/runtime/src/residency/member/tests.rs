//! A member of a set with a store in memory, in a time of its own.

use super::super::{Description, OwnerMemory};
use super::*;

const LEASE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(250);

fn lease(instance: u8) -> Lease {
    let description = Description { root: format!("http://10.0.0.{instance}:80"), shards: 1, process: None };
    Lease { instance: InstanceId(instance), incarnation: u64::from(instance), lasts: LEASE, description }
}

/// The process of a member: records what its shards get.
#[derive(Default)]
struct Host {
    version: u64,
    inputs: Vec<ShardInput>,
}

impl SetHost for Host {
    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn note_version(&mut self, version: u64) {
        self.version = self.version.max(version);
    }

    fn note(&mut self, _change: BlockMove) {}

    fn to_shard(&mut self, _shard: u16, input: ShardInput) {
        self.inputs.push(input);
    }
}

impl Host {
    fn adopted(&self) -> Vec<usize> {
        let adopted = self.inputs.iter().filter_map(|input| match input {
            ShardInput::Adopt(changes) => Some(changes.len()),
            _ => None,
        });
        adopted.collect()
    }
}

/// A store, and its instance 1 with one shard.
struct Rig {
    now: Instant,
    store: OwnerMemory,
    guard: LeaseGuard,
    member: SetMember,
    host: Host,
    /// Of the processes of the other instance.
    incarnation: u64,
}

impl Rig {
    /// The store has that map, and the member has polled it for longer than a lease.
    fn new(map: SetMap) -> Self {
        let mut store = OwnerMemory::simulated();
        assert!(store.replace(0, &map).unwrap());
        let (guard, now) = (LeaseGuard::simulated(LEASE), Instant::from_micros(0));
        let root = Arc::new("http://10.0.0.1:80".parse().unwrap());
        let lease = Some((lease(1), guard.clone()));
        let mut member = SetMember::new(now, (InstanceId(1), 1), root, (map.clone(), 1), lease);
        member.serve();
        let version = map.owners.version();
        Self { now, store, guard, member, host: Host { version, inputs: Vec::new() }, incarnation: 1 }
    }

    /// Time passes, in which another instance lives or not, and the store answers or not. The member has its turns.
    fn pass(&mut self, time: Duration, other: Option<u8>, answers: bool) {
        let until = self.now + time;
        while self.now < until {
            self.now = self.now + POLL;
            self.store.set_now(self.now);
            self.guard.set_now(self.now);
            self.store.set_gone(!answers);
            if let Some(other) = other.filter(|_| answers) {
                let lease = Lease { incarnation: self.incarnation, ..lease(other) };
                self.store.poll(Some(&lease), false).unwrap();
            }
            match self.member.turn(self.now, &mut self.store, &mut self.host) {
                Ok(_) => assert!(answers),
                Err(SetError::Store(_)) => assert!(!answers),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn blocks(&mut self) -> Vec<(u8, usize)> {
        let map = self.store.read().unwrap().unwrap().map;
        map.owners.blocks_of_instances().into_iter().map(|(it, number)| (it.0, number)).collect()
    }
}

/// Instances 1 and 2 have half of the blocks each.
fn halves() -> SetMap {
    let owner = |block: BlockId| BlockOwner {
        instance: InstanceId(if block.number() < BlockId::COUNT / 2 { 1 } else { 2 }),
        shard: ShardId(0),
    };
    SetMap::at_home(OwnerMap::new(1, owner))
}

#[test]
fn a_map_that_was_deleted_is_written_again_as_the_living_know_it() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 2, Some(2), true);
    rig.store.delete_map();
    rig.pass(POLL, Some(2), true);
    assert_eq!(rig.blocks(), [(1, 512), (2, 512)]);
    rig.pass(LEASE * 2, None, true);
    assert_eq!(rig.blocks(), [(1, 1024)], "it goes on as before");
}

/// As after a failover to a replica that lacks the last changes.
#[test]
fn an_owner_map_that_was_put_back_is_corrected_by_the_living() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 4, None, true);
    assert_eq!(rig.blocks(), [(1, 1024)]);
    let (known, adopted) = (rig.member.known().clone(), rig.host.adopted());
    let revision = rig.store.read().unwrap().unwrap().revision;
    assert!(rig.store.replace(revision, &halves()).unwrap());
    assert_eq!(rig.blocks(), [(1, 512), (2, 512)]);
    rig.pass(POLL * 2, None, true);
    assert_eq!(rig.store.read().unwrap().unwrap().map, known);
    assert_eq!((rig.member.known(), rig.host.adopted()), (&known, adopted), "its shards notice nothing");
}

#[test]
fn another_map_that_has_got_the_known_revision_is_corrected() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 4, None, true);
    let known = rig.member.known().clone();
    let revision = rig.store.read().unwrap().unwrap().revision;
    // The store is put back, and others change the map before this instance polls.
    rig.store.delete_map();
    for earlier in 0..revision {
        assert!(rig.store.replace(earlier, &halves()).unwrap());
    }
    rig.pass(POLL, None, true);
    assert_eq!(rig.store.read().unwrap().unwrap().revision, revision, "it seems unchanged");
    rig.pass(CHECK, None, true);
    assert_eq!(rig.store.read().unwrap().unwrap().map, known);
}

#[test]
fn the_blocks_of_an_instance_that_is_gone_are_adopted_and_returned() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 2, Some(2), true);
    assert_eq!(rig.blocks(), [(1, 512), (2, 512)], "both live");
    rig.pass(LEASE - POLL, None, true);
    assert_eq!(rig.blocks(), [(1, 512), (2, 512)], "its lease has not ended");
    rig.pass(POLL * 2, None, true);
    assert_eq!(rig.blocks(), [(1, 1024)]);
    assert_eq!(rig.host.adopted(), [ADOPTED_AT_ONCE; 512 / ADOPTED_AT_ONCE]);
    rig.pass(LEASE, None, true);
    assert!(rig.member.releasing.is_empty());
    // It returns: its own blocks are released to it, and no others.
    rig.incarnation += 1;
    rig.pass(POLL, Some(2), true);
    assert_eq!(rig.member.releasing.len(), 1, "one for its shard, so that it can start");
    rig.pass(SETTLING, Some(2), true);
    rig.member.releasing.clear();
    rig.pass(POLL, Some(2), true);
    assert_eq!(rig.member.releasing.len(), RELEASED_AT_ONCE);
    let released: Vec<_> = rig.member.releasing.iter().copied().collect();
    assert!(released.iter().all(|block| *block >= BlockId::COUNT / 2), "{released:?}");
    for block in released {
        let to = BlockOwner { instance: InstanceId(2), shard: ShardId(0) };
        let version = rig.host.next_version();
        let change = BlockMove { block: BlockId::new(block).unwrap(), to, version };
        rig.member.moved(change);
        rig.member.move_ended(rig.now, change, true);
    }
    rig.pass(POLL, Some(2), true);
    assert_eq!(rig.blocks(), [(1, 1024 - RELEASED_AT_ONCE), (2, RELEASED_AT_ONCE)]);
    assert_eq!(rig.member.known.homes.iter().filter(|home| home.0 == 2).count(), 512);
}

#[test]
fn while_the_store_does_not_answer_and_a_lease_later_the_shards_do_not_know_who_lives() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 2, Some(2), true);
    let known = |rig: &mut Rig| {
        let instances = rig.host.inputs.drain(..).filter_map(|input| match input {
            ShardInput::Instances(instances) => Some(instances),
            _ => None,
        });
        instances.last().map(|it| (it.is_uncertain, it.may_be_gone(InstanceId(2))))
    };
    assert_eq!(known(&mut rig), Some((false, false)));
    // The other one ends meanwhile.
    rig.pass(POLL, None, false);
    assert_eq!(known(&mut rig), Some((true, true)));
    rig.pass(LEASE * 3, None, false);
    assert_eq!(known(&mut rig), None, "as before");
    rig.pass(LEASE + LONGEST_ATTEMPT, None, true);
    assert_eq!(known(&mut rig), Some((true, true)), "its lease has ended, as it would have if it lived");
    assert_eq!(rig.blocks(), [(1, 512), (2, 512)]);
    rig.pass(POLL * 2, None, true);
    assert_eq!(known(&mut rig), Some((false, true)));
    assert_eq!(rig.blocks(), [(1, 1024)]);
}

/// All leases end while the store does not answer: the first that reaches it again must not take the blocks of the others.
#[test]
fn an_outage_of_the_store_takes_no_blocks_from_an_instance_that_lives() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 2, Some(2), true);
    rig.pass(LEASE * 3, None, false);
    assert!(!rig.guard.has_ended(), "it serves its UEs without the store");
    // The other one reaches the store a second later.
    rig.pass(Duration::from_secs(1), None, true);
    rig.pass(LEASE * 3, Some(2), true);
    assert_eq!(rig.blocks(), [(1, 512), (2, 512)]);
    assert!(rig.host.adopted().is_empty());
    rig.pass(LEASE + POLL * 2, None, true);
    assert_eq!(rig.blocks(), [(1, 1024)], "it is gone");
}

/// A server that starts empty has no leases.
#[test]
fn a_store_that_has_lost_the_leases_takes_no_blocks_from_an_instance_that_lives() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 2, Some(2), true);
    rig.store.delete_leases();
    rig.pass(LEASE / 2, None, true);
    assert_eq!(rig.blocks(), [(1, 512), (2, 512)]);
    rig.pass(LEASE, Some(2), true);
    rig.store.delete_leases();
    rig.pass(LEASE + POLL, None, true);
    assert_eq!(rig.blocks(), [(1, 1024)], "it is gone");
}

#[test]
fn an_instance_that_enters_takes_no_blocks_before_a_lease_has_passed() {
    let mut store = OwnerMemory::simulated();
    assert!(store.replace(0, &halves()).unwrap());
    let guard = LeaseGuard::simulated(LEASE);
    let mut joining = Joining::new(lease(3), guard, Box::new(|_| false));
    let mut at = |millis: u64| {
        let now = Instant::from_micros(millis * 1000);
        store.set_now(now);
        let joined = joining.attempt(now, &mut store).unwrap();
        joined.map(|joined| joined.map.owners.blocks_of_instances().get(&InstanceId(3)).copied())
    };
    assert_eq!(at(0), None);
    assert_eq!(at(2900), None, "the others may be about to renew their leases");
    assert_eq!(at(3100), Some(Some(1024)));
}

/// It lost its blocks while it was cut off from the store: it must not seem to live, as it would get blocks.
#[test]
fn an_instance_that_lost_its_blocks_ends_before_it_renews_its_lease() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 2, Some(2), true);
    rig.pass(LEASE * 2, None, false);
    rig.store.set_gone(false);
    let taken = halves().taken_over_by(&BTreeMap::from([(InstanceId(2), 1)])).unwrap();
    let revision = rig.store.read().unwrap().unwrap().revision;
    assert!(rig.store.replace(revision, &taken).unwrap());
    let result = rig.member.turn(rig.now + POLL, &mut rig.store, &mut rig.host);
    assert!(matches!(result, Err(SetError::Lost(_))));
    assert!(!rig.store.poll(None, false).unwrap().instances.contains_key(&InstanceId(1)));
}

/// A second process with the number of one that runs does not take its place; with that of one that has ended it does.
#[test]
fn a_number_is_free_when_its_process_has_ended_or_its_lease() {
    let store = || {
        let mut store = OwnerMemory::simulated();
        assert!(store.replace(0, &halves()).unwrap());
        store.poll(Some(&lease(1)), false).unwrap();
        store
    };
    let second = |has_ended: bool| {
        let lease = Lease { incarnation: 77, ..lease(1) };
        Joining::new(lease, LeaseGuard::simulated(LEASE), Box::new(move |_| has_ended))
    };
    let at = |joining: &mut Joining, store: &mut OwnerMemory, millis: u64| {
        let now = Instant::from_micros(millis * 1000);
        store.set_now(now);
        joining.attempt(now, store)
    };
    assert!(at(&mut second(true), &mut store(), 10).unwrap().is_some(), "killed on the same host");

    let (mut joining, mut ended) = (second(false), store());
    assert!(at(&mut joining, &mut ended, 10).unwrap().is_none());
    assert!(at(&mut joining, &mut ended, 2990).unwrap().is_none());
    assert!(at(&mut joining, &mut ended, 3010).unwrap().is_some(), "its lease has ended");

    let (mut joining, mut renewed) = (second(false), store());
    for millis in (10..3400).step_by(250) {
        renewed.poll(Some(&lease(1)), false).unwrap();
        assert!(at(&mut joining, &mut renewed, millis).unwrap().is_none());
    }
    renewed.poll(Some(&lease(1)), false).unwrap();
    let error = at(&mut joining, &mut renewed, 3600).err().unwrap();
    assert!(matches!(error, JoinError::Occupied { instance: 1, .. }), "{error}");
    let live = renewed.poll(None, false).unwrap();
    assert_eq!(live.instances[&InstanceId(1)].incarnation, 1, "the running one goes on");
}

#[test]
fn a_map_that_cannot_be_read_is_written_again() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 2, Some(2), true);
    rig.store.garble_map();
    rig.pass(POLL, Some(2), true);
    assert_eq!(rig.blocks(), [(1, 512), (2, 512)]);
    rig.store.garble_map();
    let mut joining = Joining::new(lease(3), LeaseGuard::simulated(LEASE), Box::new(|_| false));
    assert!(joining.attempt(rig.now, &mut rig.store).unwrap().is_none(), "the others write it");
    let later = rig.now + LEASE;
    rig.store.set_now(later);
    assert!(joining.attempt(later, &mut rig.store).unwrap().is_some(), "there are no others");
}

/// A map that was changed by hand gives the instance a block of a shard that it does not have: no shard would serve it.
#[test]
fn blocks_of_shards_that_an_instance_does_not_have_are_divided_among_the_others() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 2, Some(2), true);
    let to = BlockOwner { instance: InstanceId(1), shard: ShardId(9) };
    let map = halves().moved(BlockMove { block: BlockId::new(700).unwrap(), to, version: 5 }).unwrap();
    let revision = rig.store.read().unwrap().unwrap().revision;
    assert!(rig.store.replace(revision, &map).unwrap());
    rig.pass(POLL, Some(2), true);
    let owner = rig.store.read().unwrap().unwrap().map.owners.owner(BlockId::new(700).unwrap());
    assert_eq!(owner, BlockOwner { instance: InstanceId(1), shard: ShardId(0) });
    assert_eq!(rig.host.adopted(), [1]);
}

/// Another process has claimed contexts: the shards of this one can write nothing.
#[test]
fn an_instance_whose_writes_are_refused_ends() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 2, Some(2), true);
    rig.guard.note_fenced();
    let result = rig.member.turn(rig.now, &mut rig.store, &mut rig.host);
    assert!(matches!(result, Err(SetError::Lost(_))));
}

/// It does not reach the store, and a UPF has its sessions with another instance.
#[test]
fn an_instance_that_is_cut_off_ends_when_a_upf_shows_that_another_one_serves() {
    let mut rig = Rig::new(halves());
    rig.pass(LEASE * 2, Some(2), true);
    rig.pass(LEASE * 2, None, false);
    rig.guard.note_fenced();
    rig.store.set_gone(true);
    let result = rig.member.turn(rig.now, &mut rig.store, &mut rig.host);
    assert!(matches!(result, Err(SetError::Lost(_))));
}
