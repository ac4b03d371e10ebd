//! The AF_XDP sockets to which the program redirects frames: one for each queue of its interfaces, each
//! served by a worker. Frames of a device queue without a socket take the kernel's network stack to the portable path.

use super::XdpError;
use super::program::{Device, Program};
use crate::portable::{MAX_PORTS, Port, PortableDatapath};
use crate::sys::{Losses, Xsk};
use libbpf_rs::{MapCore, MapFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Number of entries of the socket table: `SOCKETS` in `bpf/tables.h`.
const MAX_SOCKETS: usize = 256;

/// The counters of the sockets, for the control thread. The sockets themselves belong to workers.
#[derive(Debug, Default)]
pub struct XskSockets {
    losses: Vec<Losses>,
}

impl XskSockets {
    /// Opens sockets on the queues of all devices and distributes them over the workers round robin. Logs
    /// devices without sockets.
    pub fn start(program: &Program, workers: &PortableDatapath, devices: &[Device]) -> Self {
        let mut xsk_sockets = Self::default();
        let each = (MAX_PORTS * workers.workers()).min(MAX_SOCKETS) / devices.len().max(1);
        for device in devices {
            if let Err(error) = xsk_sockets.open(program, workers, device, each as u32) {
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
        most: u32,
    ) -> Result<(), XdpError> {
        for queue in 0..most {
            let xsk = match Xsk::open(device.index, queue) {
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
