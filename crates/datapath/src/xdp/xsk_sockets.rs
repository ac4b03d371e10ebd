//! The AF_XDP sockets to which the program redirects frames: one for each queue of its interfaces, each
//! served by a worker. Frames of a device queue without a socket take the kernel's network stack to the portable path.

use super::XdpError;
use super::program::{Device, Program};
use crate::portable::{MAX_PORTS, Port, PortableDatapath};
use crate::sys::{Losses, Xsk};
use libbpf_rs::{MapCore, MapFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

/// Number of entries of the socket table: `SOCKETS` in `bpf/tables.h`.
const MAX_SOCKETS: usize = 256;

/// How often, and after what pause, a socket is opened on a queue that another process has just released.
const RELEASE_TRIES: u32 = 100;
const RELEASE_PAUSE: Duration = Duration::from_millis(2);

/// The counters of the sockets, for the control thread. The sockets themselves belong to workers.
#[derive(Debug, Default)]
pub struct XskSockets {
    losses: Vec<Losses>,
}

impl XskSockets {
    /// Opens sockets on the queues of all devices and distributes them over the workers round robin. Logs
    /// devices without sockets. `inherits`: another process has just closed its sockets on these queues.
    pub fn start(program: &Program, workers: &PortableDatapath, devices: &[Device], inherits: bool) -> Self {
        let mut xsk_sockets = Self::default();
        let each = (MAX_PORTS * workers.workers()).min(MAX_SOCKETS) / devices.len().max(1);
        for device in devices {
            let open = |device, queue| {
                if inherits { open_patiently(device, queue) } else { Xsk::open(device, queue) }
            };
            if let Err(error) = xsk_sockets.open(program, workers, device, (each as u32, open)) {
                tracing::warn!(%error, device.index, "no AF_XDP socket: redirected packets of this device take the kernel's network stack to the portable path");
            }
        }
        xsk_sockets
    }

    /// Opens sockets on a device's queues, up to `MAX_SOCKETS` in all.
    fn open(
        &mut self,
        program: &Program,
        workers: &PortableDatapath,
        device: &Device,
        (most, open): (u32, impl Fn(u32, u32) -> io::Result<Xsk>),
    ) -> Result<(), XdpError> {
        for queue in 0..most {
            let xsk = match open(device.index, queue) {
                // The device has no further queue.
                Err(error) if queue > 0 && error.kind() == io::ErrorKind::InvalidInput => break,
                opened => opened.map_err(XdpError::XskSockets)?,
            };
            register(program, self.losses.len() as u32, (device.index, queue), &xsk)?;
            self.losses.push(xsk.losses()?);
            workers.serve(queue as usize % workers.workers(), Port { slots: device.slots, xsk });
        }
        Ok(())
    }

    /// Frames that a full socket dropped. The program has counted them as received; no worker received them.
    pub fn lost(&self) -> u64 {
        self.losses.iter().map(Losses::count).sum()
    }

    /// Whether there are sockets.
    pub fn is_up(&self) -> bool {
        !self.losses.is_empty()
    }
}

/// Opens a socket on a queue that the kernel releases soon: it does so after the former socket was closed.
fn open_patiently(device: u32, queue: u32) -> io::Result<Xsk> {
    for _ in 0..RELEASE_TRIES {
        match Xsk::open(device, queue) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(RELEASE_PAUSE),
            opened => return opened,
        }
    }
    Xsk::open(device, queue)
}

/// Registers a socket with the program for the frames of a queue.
fn register(
    program: &Program,
    number: u32,
    (interface, queue): (u32, u32),
    xsk: &Xsk,
) -> Result<(), XdpError> {
    let key = [interface.to_ne_bytes(), queue.to_ne_bytes()].concat();
    let (number, fd) = (number.to_ne_bytes(), xsk.as_fd().as_raw_fd().to_ne_bytes());
    program.table("sockets")?.update(&number, &fd, MapFlags::ANY)?;
    program.table("queues")?.update(&key, &number, MapFlags::ANY)?;
    Ok(())
}
