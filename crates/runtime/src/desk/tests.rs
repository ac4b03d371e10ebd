use super::*;
use std::sync::mpsc;
use std::thread::ThreadId;

/// Records each item and the thread that processed it.
struct Teller {
    told: mpsc::Sender<(u32, ThreadId)>,
    due: Option<Duration>,
}

impl Work<u32> for Teller {
    fn take(&mut self, thing: u32) {
        assert_ne!(thing, u32::MAX, "a panic, as asked for");
        let _ = self.told.send((thing, thread::current().id()));
    }

    fn finish(&mut self) -> Option<Duration> {
        self.due.take()
    }
}

fn teller(due: Option<Duration>) -> (Desk<u32>, mpsc::Receiver<(u32, ThreadId)>, DeskThread<u32>) {
    let (told, heard) = mpsc::channel();
    let (desk, vacancy) = desk("teller", 8);
    let thread = vacancy.fill(16, Teller { told, due }).unwrap();
    (desk, heard, thread)
}

/// Waits until the worker has had its first turn.
fn settled(desk: &Desk<u32>) {
    while desk.shared.thread.get().is_none() || desk.shared.try_place().is_none() {
        thread::yield_now();
    }
}

#[test]
fn small_batches_run_on_the_submitting_thread() {
    let (desk, heard, own) = teller(None);
    settled(&desk);
    let mut by_self = 0;
    for thing in 0..100 {
        desk.send(thing);
        desk.attend();
        let (done, by) = heard.recv().unwrap();
        assert_eq!(done, thing);
        by_self += u32::from(by == thread::current().id());
    }
    assert!(by_self > 90, "{by_self}: the worker may process only the first items");
    own.close();
}

/// Reports a due time that moves a little earlier at each turn, and records the thread of each turn.
struct Punctual {
    due: Instant,
    turns: mpsc::Sender<ThreadId>,
}

impl Work<u32> for Punctual {
    fn take(&mut self, _: u32) {}

    fn finish(&mut self) -> Option<Duration> {
        self.due -= Duration::from_micros(5);
        let _ = self.turns.send(thread::current().id());
        self.due.checked_duration_since(Instant::now())
    }
}

#[test]
fn a_nearly_unchanged_due_time_does_not_wake_the_worker() {
    let (turns, heard) = mpsc::channel();
    let (desk, vacancy) = desk("punctual", 8);
    let own = vacancy.fill(16, Punctual { due: Instant::now() + Duration::from_secs(60), turns }).unwrap();
    settled(&desk);
    for thing in 0..100 {
        desk.send(thing);
        desk.attend();
        thread::sleep(Duration::from_micros(200));
    }
    own.close();
    let by_own = heard.try_iter().filter(|thread| *thread != thread::current().id()).count();
    assert!(by_own < 10, "{by_own}: the first turn, the last, and those while a submitter held the lock");
}

#[test]
fn the_worker_processes_large_and_reserved_batches() {
    let (desk, heard, own) = teller(None);
    let reserved = desk.reserve();
    desk.send(1);
    desk.attend();
    assert_ne!(heard.recv().unwrap().1, thread::current().id());
    drop(reserved);
    let place = desk.shared.place();
    (0..=FEW as u32).for_each(|thing| desk.send(thing));
    assert!(!desk.is_full());
    (0..3).for_each(|thing| desk.send(thing));
    assert!(desk.is_full());
    drop(place);
    for _ in 0..8 {
        assert_ne!(heard.recv().unwrap().1, thread::current().id());
    }
    own.close();
}

#[test]
fn concurrent_submitters_lose_duplicate_and_reorder_nothing() {
    let (desk, heard, own) = teller(None);
    const EACH: u32 = 20_000;
    thread::scope(|scope| {
        for from in 0..4 {
            let desk = desk.clone();
            scope.spawn(move || {
                for at in 0..EACH {
                    desk.send(from * EACH + at);
                    if at % (from + 1) == 0 {
                        desk.attend();
                    }
                }
                desk.attend();
            });
        }
    });
    own.close();
    let mut next = [0; 4];
    while let Ok((thing, _)) = heard.try_recv() {
        let (from, at) = ((thing / EACH) as usize, thing % EACH);
        assert_eq!(at, next[from]);
        next[from] += 1;
    }
    assert_eq!(next, [EACH; 4]);
}

/// Sends each number less one to the other queue, until it is zero.
struct Juggler {
    other: Desk<u32>,
    done: mpsc::Sender<()>,
}

impl Work<u32> for Juggler {
    fn take(&mut self, thing: u32) {
        match thing.checked_sub(1) {
            Some(rest) => self.other.send(rest),
            None => self.done.send(()).unwrap(),
        }
    }

    fn finish(&mut self) -> Option<Duration> {
        self.other.attend();
        None
    }
}

#[test]
fn queues_that_attend_each_other_neither_block_nor_lose_items() {
    let (done, all_done) = mpsc::channel();
    let ((left, left_vacancy), (right, right_vacancy)) = (desk("left", 1), desk("right", 1));
    let own = [
        left_vacancy.fill(16, Juggler { other: right.clone(), done: done.clone() }).unwrap(),
        right_vacancy.fill(16, Juggler { other: left.clone(), done }).unwrap(),
    ];
    for thing in 0..500 {
        left.send(thing);
        right.send(thing);
        left.attend();
        right.attend();
    }
    for _ in 0..1000 {
        all_done.recv().unwrap();
    }
    own.into_iter().for_each(DeskThread::close);
}

/// Is due a given time after an item, and records when it was called.
struct Late {
    due: Option<Instant>,
    told: mpsc::Sender<Instant>,
}

impl Work<Duration> for Late {
    fn take(&mut self, after: Duration) {
        self.due = Some(Instant::now() + after);
    }

    fn finish(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            let _ = self.told.send(now);
        }
        self.due.map(|due| due - now)
    }
}

#[test]
fn the_worker_keeps_deadlines_set_on_a_submitting_thread() {
    let (told, heard) = mpsc::channel();
    let (desk, vacancy) = desk("late", 1);
    let own = vacancy.fill(16, Late { due: None, told }).unwrap();
    desk.send(Duration::from_secs(3600));
    desk.attend();
    desk.send(Duration::from_millis(5));
    desk.attend();
    let due = Instant::now() + Duration::from_millis(4);
    assert!(heard.recv_timeout(Duration::from_secs(60)).unwrap() >= due - Duration::from_millis(4));
    own.close();
}

#[test]
fn a_panic_ends_the_queue_and_not_the_submitting_thread() {
    let (desk, heard, own) = teller(None);
    desk.send(u32::MAX);
    desk.attend();
    own.close();
    assert!(heard.recv().is_err());
    desk.send(1);
    desk.attend();
    assert_eq!(desk.held(), 0);
}

#[test]
fn items_sent_before_the_end_are_processed_and_later_ones_dropped() {
    let (desk, heard, own) = teller(Some(Duration::ZERO));
    (0..1000).for_each(|thing| desk.send(thing));
    own.close();
    assert_eq!(heard.iter().map(|(thing, _)| thing).collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
    desk.send(1);
    assert_eq!(desk.held(), 0);
}
