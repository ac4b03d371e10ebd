//! The network of a case, in a namespace of its own.

use super::cases::{Case, Flows, TrafficDirection};
use super::frame::{FIRST_PUBLIC, FIRST_UE, PORTS, frame_of, traffic_of};
use super::upf::Setup;
use crate::conntrack::Conntrack;
use crate::cpu::{pin, put_off, used_by};
use crate::generator::{Generator, Traffic};
use crate::support::run as command;
use crate::support::{self, GNB, SERVER, UPF, UPF_N6, enter_namespace};
use libbpf_rs::Link;
use pith_datapath::UserPlane;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

/// Duration of a run.
const RUN: Duration = Duration::from_millis(100);
/// Frames of one call.
pub const FRAMES: u32 = 8192;
/// The CPU that runs everything.
pub const CPU: usize = 0;

/// Runs a job in a namespace of its own, on one CPU.
pub fn apart<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    let job = || {
        assert!(enter_namespace(), "needs root");
        pin(CPU);
        job()
    };
    thread::spawn(job).join().unwrap()
}

/// Values that must live during a measurement.
pub type Running = (Vec<Link>, Option<UserPlane>);

pub struct Bench {
    /// A generator for each CPU that forwards.
    pub generators: Vec<Generator>,
    into: &'static str,
    /// The generators attached to unused interfaces: otherwise the kernel would register one for each call, and wait
    /// milliseconds for all CPUs.
    _known: Vec<Link>,
}

impl Bench {
    pub fn set_up(direction: TrafficDirection) -> Self {
        Self::on_cores(direction, 1)
    }

    /// With a queue and a generator for each CPU.
    pub fn on_cores(direction: TrafficDirection, cores: u32) -> Self {
        let (into, out) = if direction == TrafficDirection::Up { ("n3", "n6") } else { ("n6", "n3") };
        let queues = format!("numtxqueues {cores} numrxqueues {cores}");
        for (near, far) in [("g", into), ("s", out)] {
            command(&format!("ip link add {near} {queues} type veth peer name {far} {queues}"));
        }
        command(&format!("ip addr add {UPF}/24 dev n3"));
        command(&format!("ip addr add {UPF_N6}/24 dev n6"));
        ["g", "s", "n3", "n6"].iter().for_each(|link| drop(command(&format!("ip link set {link} up"))));
        command(&format!("ip link set {into} address 02:00:00:00:00:02"));
        command(&format!("ip neigh replace {GNB} lladdr 02:00:00:00:00:03 dev n3 nud permanent"));
        command(&format!("ip neigh replace {SERVER} lladdr 02:00:00:00:00:03 dev n6 nud permanent"));
        command(&format!("ip route add 100.64.0.0/10 via {SERVER}"));
        let (mut generators, mut known) = (Vec::new(), Vec::new());
        for number in 0..cores {
            command(&format!("ip link add known{number} type veth peer name nothing{number}"));
            let generator = Generator::load().unwrap();
            known.push(generator.attach("generate", &format!("known{number}")));
            generator.set_device(0, "g").unwrap();
            generator.set_device(1, out).unwrap();
            generators.push(generator);
        }
        std::fs::write(format!("/proc/self/task/{}/comm", support::thread_id()), "bench-xdp").unwrap();
        Self { generators, into, _known: known }
    }

    pub fn generator(&self) -> &Generator {
        &self.generators[0]
    }

    /// Starts what forwards the packets.
    pub fn start(&self, case: Case, sessions: u32) -> Running {
        self.start_with(case, sessions, "sink")
    }

    /// The same, with this program in place of the sink.
    pub fn start_with(&self, case: Case, sessions: u32, sink: &str) -> Running {
        let mut links = vec![self.generator().attach(sink, "s")];
        let usual = Setup::of(sessions);
        let setup = match case {
            Case::Discard(_) => {
                links.push(self.generator().attach(sink, self.into));
                return (links, None);
            }
            Case::Kernel | Case::Masquerade => {
                self.let_kernel_forward(case == Case::Masquerade);
                return (links, None);
            }
            Case::Bare(program, _) => {
                links.push(self.generator().attach(program, self.into));
                return (links, None);
            }
            Case::Upf(_, rules) => Setup { rules, ..usual },
            Case::Nat(_) => Setup { nat: true, ..usual },
            Case::PlainOuter => Setup { marking: false, ..usual },
            Case::Shaped(rate) | Case::AtAmbr(rate, _) => Setup { rate: rate / u64::from(sessions), ..usual },
        };
        let upf = setup.start();
        if setup.nat {
            add_connections(sessions);
        }
        (links, Some(upf))
    }

    fn let_kernel_forward(&self, masquerade: bool) {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        command(&format!("ethtool -K {} gro on", self.into));
        if masquerade {
            command("nft add table ip nat");
            command("nft add chain ip nat post { type nat hook postrouting priority 100 ; }");
            command("nft add rule ip nat post oifname n6 masquerade");
        }
    }

    /// Sets the generated traffic.
    pub fn configure(&mut self, case: Case, flows: Flows, octets: usize) {
        self.configure_as(&traffic_of(case, flows), frame_of(case, flows, octets));
    }

    pub fn configure_as(&mut self, traffic: &Traffic, frame: Vec<u8>) {
        self.generators.iter_mut().for_each(|generator| generator.configure(traffic, frame.clone()));
    }

    /// Sends `frames` frames by the first generator.
    pub fn generate(&self, frames: u32) {
        self.generator().call("generate").run(frames, 0).unwrap();
    }

    /// Frames generated, and received by the sink.
    pub fn arrivals(&self) -> (u64, u64) {
        (self.generators.iter().map(Generator::generated).sum(), self.generator().arrivals().0)
    }

    /// Nanoseconds of CPU a packet, with the generator; `None` if packets were lost: another process used the CPU while a
    /// veth's ring of 256 overflowed.
    pub fn cost_of_run(&self) -> Option<f64> {
        let (before, cpu, begin) = (self.arrivals(), cpu_time(), Instant::now());
        let mut call = self.generator().call("generate");
        while begin.elapsed() < RUN {
            call.run(FRAMES, 0).unwrap();
        }
        let spent = cpu_time() - cpu;
        cost(before, self.arrivals(), spent)
    }

    /// The same with all generators, each on its own CPU.
    pub fn cost_on_all(&self) -> Option<f64> {
        let before = self.arrivals();
        let calls: Vec<_> = self.generators.iter().map(|generator| generator.call("generate")).collect();
        let threads = calls.into_iter().enumerate().map(|(cpu, mut call)| {
            thread::spawn(move || {
                pin(cpu);
                let (before, begin) = (cpu_time_of(cpu), Instant::now());
                while begin.elapsed() < RUN {
                    call.run(FRAMES, 0).unwrap();
                }
                cpu_time_of(cpu) - before
            })
        });
        let threads: Vec<_> = threads.collect();
        let spent = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        cost(before, self.arrivals(), spent)
    }
}

fn cost(before: (u64, u64), after: (u64, u64), spent: Duration) -> Option<f64> {
    let (generated, arrived) = (after.0 - before.0, after.1 - before.1);
    (arrived * 100 >= generated * 98).then(|| spent.as_nanos() as f64 / arrived as f64)
}

/// A connection of each session, so that its packets have one from the first on.
fn add_connections(sessions: u32) {
    let conntrack = Conntrack::open();
    let number = |first: Ipv4Addr, number| Ipv4Addr::from_bits(first.to_bits() + number);
    for session in 0..sessions {
        let public = (number(FIRST_PUBLIC, session), PORTS.0);
        conntrack.add((number(FIRST_UE, session), PORTS.0), (SERVER, PORTS.1), public);
    }
}

/// CPU time of this thread on the CPU of [`apart`], including the kernel's work in its name and the work that the kernel
/// deferred to its own thread of this CPU.
fn cpu_time() -> Duration {
    cpu_time_of(CPU)
}

fn cpu_time_of(cpu: usize) -> Duration {
    used_by("thread-self").expect("it lives") + put_off(cpu)
}
