//! Gives packets of tunnels to all CPUs by TEID (`bpf/spread.h`).

use super::XdpError;
use super::program::Program;
use libbpf_rs::{MapCore, MapFlags, OpenObject};
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd};

/// The program on a CPU that another one gives packets.
const PROGRAM: &str = "pith_upf_spread";
const TABLE: &str = "spread";
/// Packets that wait for a CPU.
const QUEUE: u32 = 2048;

/// Leaves the second program out, whose check takes the kernel as long as that of the first, unless packets are spread over
/// several CPUs.
pub fn prepare(open: &mut OpenObject, cpus: u32) {
    if let Some(mut program) = open.progs_mut().find(|program| program.name() == OsStr::new(PROGRAM)) {
        program.set_autoload(cpus > 1);
    }
}

/// Starts the queue of each CPU below `cpus`. A CPU without one handles no other CPU's packets.
pub fn start(program: &Program, cpus: u32) -> Result<(), XdpError> {
    if cpus < 2 {
        return Ok(());
    }
    let table = program.table(TABLE)?;
    let spread = program.program(PROGRAM)?;
    // struct bpf_cpumap_val
    let value = [QUEUE.to_ne_bytes(), spread.as_fd().as_raw_fd().to_ne_bytes()].concat();
    for cpu in 0..cpus {
        if let Err(error) = table.update(&cpu.to_ne_bytes(), &value, MapFlags::ANY) {
            tracing::warn!(cpu, %error, "packets of tunnels are not given to this CPU");
        }
    }
    Ok(())
}
