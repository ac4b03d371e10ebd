//! Threads that send in bursts until they are paused, and threads that receive.

use super::support::random::Random;
use super::support::*;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub struct Senders {
    pause: Arc<AtomicBool>,
    end: Arc<AtomicBool>,
    /// Number of active senders.
    busy: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Senders {
    /// None yet, paused.
    pub fn new() -> Self {
        let pause = Arc::new(AtomicBool::new(true));
        Self { pause, end: Arc::default(), busy: Arc::default(), threads: Vec::new() }
    }

    /// Sends in bursts, with pauses in which most queued packets can be sent.
    pub fn send(&mut self, seed: u64, mut one: impl FnMut(&mut Random) + Send + 'static) {
        let (pause, end, busy) = (Arc::clone(&self.pause), Arc::clone(&self.end), Arc::clone(&self.busy));
        self.threads.push(thread::spawn(move || {
            let mut noise = Random::of(seed);
            while !end.load(SeqCst) {
                busy.fetch_add(1, SeqCst);
                if !pause.load(SeqCst) {
                    (0..noise.below(300)).for_each(|_| one(&mut noise));
                }
                busy.fetch_sub(1, SeqCst);
                thread::sleep(Duration::from_micros(500 + noise.below(20_000) as u64));
            }
        }));
    }

    pub fn receive(&mut self, socket: UdpSocket, mut take: impl FnMut(&[u8]) + Send + 'static) {
        let end = Arc::clone(&self.end);
        receive_much(&socket);
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        self.threads.push(thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !end.load(SeqCst) {
                if let Ok(length) = socket.recv(&mut buffer) {
                    take(&buffer[..length]);
                }
            }
        }));
    }

    pub fn resume(&self) {
        self.pause.store(false, SeqCst);
    }

    pub fn stop_for_a_while(&self) {
        self.pause.store(true, SeqCst);
        wait_for("the senders", || self.busy.load(SeqCst) == 0);
        // Packets in the kernel's queues and in short queues of sessions.
        thread::sleep(Duration::from_millis(100));
    }

    /// Ends all threads; panics if one has.
    pub fn end(&mut self) {
        self.end.store(true, SeqCst);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}
