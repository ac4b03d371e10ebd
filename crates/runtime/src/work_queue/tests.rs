use super::*;
use std::sync::mpsc;
use std::thread::ThreadId;

/// Records each item and the thread that processed it.
struct Recorder {
    record: mpsc::Sender<(u32, ThreadId)>,
    due: Option<Duration>,
}

impl Work<u32> for Recorder {
    fn process(&mut self, item: u32) {
        assert_ne!(item, u32::MAX, "intended panic");
        let _ = self.record.send((item, thread::current().id()));
    }

    fn end_turn(&mut self) -> Option<Duration> {
        self.due.take()
    }
}

fn recording_queue(
    due: Option<Duration>,
) -> (WorkQueue<u32>, mpsc::Receiver<(u32, ThreadId)>, QueueThread<u32>) {
    let (record, records) = mpsc::channel();
    let (queue, unstarted) = work_queue("recording", 8);
    let thread = unstarted.start(16, Recorder { record, due }).unwrap();
    (queue, records, thread)
}

/// Waits until the worker has had its first turn.
fn wait_for_worker(queue: &WorkQueue<u32>) {
    while queue.shared.thread.get().is_none() || queue.shared.try_worker().is_none() {
        thread::yield_now();
    }
}

#[test]
fn small_batches_run_on_the_submitting_thread() {
    let (queue, records, worker) = recording_queue(None);
    wait_for_worker(&queue);
    let mut by_self = 0;
    for item in 0..100 {
        queue.send(item);
        queue.process_or_wake();
        let (done, by) = records.recv().unwrap();
        assert_eq!(done, item);
        by_self += u32::from(by == thread::current().id());
    }
    assert!(by_self > 90, "{by_self}: the worker may process only the first items");
    worker.close();
}

/// Reports a due time that moves a little earlier at each turn, and records the thread of each turn.
struct Punctual {
    due: Instant,
    turns: mpsc::Sender<ThreadId>,
}

impl Work<u32> for Punctual {
    fn process(&mut self, _: u32) {}

    fn end_turn(&mut self) -> Option<Duration> {
        self.due -= Duration::from_micros(5);
        let _ = self.turns.send(thread::current().id());
        self.due.checked_duration_since(Instant::now())
    }
}

#[test]
fn a_nearly_unchanged_due_time_does_not_wake_the_worker() {
    let (turns, records) = mpsc::channel();
    let (queue, unstarted) = work_queue("punctual", 8);
    let worker =
        unstarted.start(16, Punctual { due: Instant::now() + Duration::from_secs(60), turns }).unwrap();
    wait_for_worker(&queue);
    for item in 0..100 {
        queue.send(item);
        queue.process_or_wake();
        thread::sleep(Duration::from_micros(200));
    }
    worker.close();
    let by_worker = records.try_iter().filter(|thread| *thread != thread::current().id()).count();
    assert!(
        by_worker < 10,
        "{by_worker}: the first turn, the last, and those while a submitter held the lock"
    );
}

#[test]
fn the_worker_processes_large_and_reserved_batches() {
    let (queue, records, worker) = recording_queue(None);
    let reserved = queue.reserve();
    queue.send(1);
    queue.process_or_wake();
    assert_ne!(records.recv().unwrap().1, thread::current().id());
    drop(reserved);
    let guard = queue.shared.worker();
    (0..=INLINE_LIMIT as u32).for_each(|item| queue.send(item));
    assert!(!queue.is_full());
    (0..3).for_each(|item| queue.send(item));
    assert!(queue.is_full());
    drop(guard);
    for _ in 0..8 {
        assert_ne!(records.recv().unwrap().1, thread::current().id());
    }
    worker.close();
}

#[test]
fn concurrent_submitters_lose_duplicate_and_reorder_nothing() {
    let (queue, records, worker) = recording_queue(None);
    const EACH: u32 = 20_000;
    thread::scope(|scope| {
        for from in 0..4 {
            let queue = queue.clone();
            scope.spawn(move || {
                for at in 0..EACH {
                    queue.send(from * EACH + at);
                    if at % (from + 1) == 0 {
                        queue.process_or_wake();
                    }
                }
                queue.process_or_wake();
            });
        }
    });
    worker.close();
    let mut next = [0; 4];
    while let Ok((item, _)) = records.try_recv() {
        let (from, at) = ((item / EACH) as usize, item % EACH);
        assert_eq!(at, next[from]);
        next[from] += 1;
    }
    assert_eq!(next, [EACH; 4]);
}

/// Sends each number less one to the other queue, until it is zero.
struct Countdown {
    other: WorkQueue<u32>,
    done: mpsc::Sender<()>,
}

impl Work<u32> for Countdown {
    fn process(&mut self, item: u32) {
        match item.checked_sub(1) {
            Some(rest) => self.other.send(rest),
            None => self.done.send(()).unwrap(),
        }
    }

    fn end_turn(&mut self) -> Option<Duration> {
        self.other.process_or_wake();
        None
    }
}

#[test]
fn queues_that_attend_each_other_neither_block_nor_lose_items() {
    let (done, all_done) = mpsc::channel();
    let ((left, left_unstarted), (right, right_unstarted)) = (work_queue("left", 1), work_queue("right", 1));
    let worker = [
        left_unstarted.start(16, Countdown { other: right.clone(), done: done.clone() }).unwrap(),
        right_unstarted.start(16, Countdown { other: left.clone(), done }).unwrap(),
    ];
    for item in 0..500 {
        left.send(item);
        right.send(item);
        left.process_or_wake();
        right.process_or_wake();
    }
    for _ in 0..1000 {
        all_done.recv().unwrap();
    }
    worker.into_iter().for_each(QueueThread::close);
}

/// Is due a given time after an item, and records when it was called.
struct Late {
    due: Option<Instant>,
    record: mpsc::Sender<Instant>,
}

impl Work<Duration> for Late {
    fn process(&mut self, after: Duration) {
        self.due = Some(Instant::now() + after);
    }

    fn end_turn(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            let _ = self.record.send(now);
        }
        self.due.map(|due| due - now)
    }
}

#[test]
fn the_worker_keeps_deadlines_set_on_a_submitting_thread() {
    let (record, records) = mpsc::channel();
    let (queue, unstarted) = work_queue("late", 1);
    let worker = unstarted.start(16, Late { due: None, record }).unwrap();
    queue.send(Duration::from_secs(3600));
    queue.process_or_wake();
    queue.send(Duration::from_millis(5));
    queue.process_or_wake();
    let due = Instant::now() + Duration::from_millis(4);
    assert!(records.recv_timeout(Duration::from_secs(60)).unwrap() >= due - Duration::from_millis(4));
    worker.close();
}

#[test]
fn a_panic_ends_the_queue_and_not_the_submitting_thread() {
    let (queue, records, worker) = recording_queue(None);
    queue.send(u32::MAX);
    queue.process_or_wake();
    worker.close();
    assert!(records.recv().is_err());
    queue.send(1);
    queue.process_or_wake();
    assert_eq!(queue.pending(), 0);
}

#[test]
fn items_sent_before_the_end_are_processed_and_later_ones_dropped() {
    let (queue, records, worker) = recording_queue(Some(Duration::ZERO));
    (0..1000).for_each(|item| queue.send(item));
    worker.close();
    assert_eq!(records.iter().map(|(item, _)| item).collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
    queue.send(1);
    assert_eq!(queue.pending(), 0);
}
