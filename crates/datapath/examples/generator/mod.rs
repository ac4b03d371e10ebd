//! The frame generator of `bpf/bench.bpf.c`: the kernel creates frames (live frames of BPF_PROG_TEST_RUN), into which the program
//! writes headers.

#![allow(dead_code)]

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, libbpf_sys};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bench.o"));
/// Bytes that are written for each packet: `FRAME` of the program.
pub const FRAME: usize = 80;
pub const ETHERNET: usize = 14;
/// IPv4, UDP, GTP-U with PDU Session Container.
pub const TUNNEL: usize = 20 + 8 + 16;

/// Generated traffic. Offsets are those of the first session's or destination's field in the frame; 0: there is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    /// Sessions, which alternate in no order.
    pub sessions: u32,
    /// Consecutive packets of a session.
    pub train: u32,
    pub teid_at: usize,
    pub address_at: usize,
    pub destinations: u32,
    pub destination_at: usize,
    /// Nanoseconds between packets, which the program keeps.
    pub interval: u64,
    /// The same for [`Call::keep_pace`], until an adaptive sink changes it.
    pub pace: u64,
    /// Offsets of the time stamps of timed programs, in the generated frame and in the forwarded one.
    pub stamp_at: usize,
    pub stamp_after: usize,
}

impl Traffic {
    /// `struct bench`.
    fn encode(&self, frame: &[u8]) -> Vec<u8> {
        let mut value = vec![0; 8];
        let words = |value: &mut Vec<u8>, words: &[u32]| {
            words.iter().for_each(|word| value.extend(word.to_ne_bytes()));
        };
        words(&mut value, &[self.sessions, self.teid_at as u32, self.address_at as u32, self.train]);
        for long in [self.interval, 0, 0, self.pace, self.pace, 0, 0] {
            value.extend(long.to_ne_bytes());
        }
        let offsets = [self.destination_at, self.stamp_at, self.stamp_after].map(|at| at as u32);
        words(&mut value, &[self.destinations]);
        words(&mut value, &offsets);
        value.extend(&frame[..FRAME]);
        value
    }
}

/// The loaded programs.
pub struct Generator {
    pub object: Object,
    frame: Vec<u8>,
}

impl Generator {
    /// Fails without the privilege, or if this build has no BPF programs.
    pub fn load() -> Result<Self, libbpf_rs::Error> {
        let object = ObjectBuilder::default().open_memory(OBJECT)?.load()?;
        Ok(Self { object, frame: Vec::new() })
    }

    pub fn map(&self, name: &str) -> impl MapCore {
        self.object.maps().find(|map| map.name() == name).expect("the program has it")
    }

    /// Attaches a program to an interface.
    pub fn attach(&self, program: &str, link: &str) -> Link {
        let program = self.object.progs_mut().find(|found| found.name() == program).expect("there is one");
        program.attach_xdp(index(link).expect(link) as i32).unwrap()
    }

    /// Sets the interface of a slot: 0 for the generator, 1 for programs that forward.
    pub fn set_device(&self, slot: u32, link: &str) -> io::Result<()> {
        let index = index(link)?;
        self.put("devices", slot, &index.to_ne_bytes());
        Ok(())
    }

    /// Sets the traffic, and clears counters.
    pub fn configure(&mut self, traffic: &Traffic, frame: Vec<u8>) {
        self.put("bench", 0, &traffic.encode(&frame));
        self.frame = frame;
    }

    pub fn put(&self, map: &str, slot: u32, value: &[u8]) {
        self.map(map).update(&slot.to_ne_bytes(), value, MapFlags::ANY).expect("the map has this entry");
    }

    /// Frames generated since `configure`.
    pub fn generated(&self) -> u64 {
        word(&self.map("bench"), 0)
    }

    /// Times that the CPU was taken away from a timed program since `configure`.
    pub fn pauses(&self) -> u64 {
        word(&self.map("bench"), PAUSES)
    }

    /// Frames that all sinks of this object received since it was loaded, and those of them with a mark.
    pub fn arrivals(&self) -> (u64, u64) {
        let of_cpus = self.map("arrivals").lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
        let of_cpus = of_cpus.ok().flatten().unwrap_or_default();
        let sum = |at: usize| {
            let words = of_cpus.iter().filter_map(|value| value.get(at..)?.first_chunk());
            words.map(|word| u64::from_ne_bytes(*word)).sum::<u64>()
        };
        (sum(0), sum(8))
    }

    /// A call that another thread may make.
    pub fn call(&self, program: &str) -> Call {
        let program = self.object.progs().find(|found| found.name() == program).expect("there is one");
        let program = program.as_fd().try_clone_to_owned().expect("a descriptor");
        let bench = self.object.maps().find(|map| map.name() == "bench").expect("the program has it");
        Call { program, frame: self.frame.clone(), bench: MapHandle::try_from(&bench).expect("a descriptor") }
    }
}

/// A call of a generator.
pub struct Call {
    program: OwnedFd,
    frame: Vec<u8>,
    bench: MapHandle,
}

/// The longest sleep that a sender makes up for.
const MAX_LATE: Duration = Duration::from_millis(4);

impl Call {
    /// Octets of a frame.
    pub fn octets(&self) -> usize {
        self.frame.len()
    }

    /// Runs the program for that time, a few frames every millisecond, so that the CPU idles between; at the pace of its settings.
    pub fn keep_pace(&mut self, time: Duration) -> io::Result<()> {
        let (begin, mut last, mut due) = (Instant::now(), Instant::now(), 0.0);
        while begin.elapsed() < time {
            thread::sleep(Duration::from_millis(1));
            let pace = word(&self.bench, PACE).max(1) as f64;
            due += last.elapsed().min(MAX_LATE).as_nanos() as f64 / pace;
            last = Instant::now();
            if due >= 1.0 {
                self.run(due as u32, 0)?;
                due = due.fract();
            }
        }
        Ok(())
    }

    /// Runs the program once for each of `frames` frames, which leave in batches of `batch`; 0: of as many as the kernel chooses.
    pub fn run(&mut self, frames: u32, batch: u32) -> io::Result<()> {
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            data_in: self.frame.as_mut_ptr().cast(),
            data_size_in: self.frame.len() as u32,
            repeat: frames as i32,
            batch_size: batch,
            flags: libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
            ..Default::default()
        };
        // SAFETY: the options say their own size; the frame lives during the call.
        let error = unsafe { libbpf_sys::bpf_prog_test_run_opts(self.program.as_raw_fd(), &raw mut options) };
        match io::Error::from_raw_os_error(-error) {
            _ if error >= 0 => Ok(()),
            // A signal ends the call early.
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }
}

// Places in `struct bench`, in words.
const PACE: usize = 6;
const PAUSES: usize = 9;

/// A word of `struct bench`.
fn word(bench: &impl MapCore, number: usize) -> u64 {
    let value = bench.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten().unwrap_or_default();
    value.get(number * 8..).and_then(<[u8]>::first_chunk::<8>).map_or(0, |word| u64::from_ne_bytes(*word))
}

/// The index of an interface.
pub fn index(link: &str) -> io::Result<u32> {
    let name = CString::new(link)?;
    // SAFETY: the name ends with a zero byte and lives during the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}
