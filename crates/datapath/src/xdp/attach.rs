//! The program on its interfaces. Where a folder is named for it, attachments are pinned there: they outlive the
//! process, and packets of the sessions that were go on. The next process puts its program in place of the one it
//! finds, between two packets, and hands that the packets of sessions which it does not know itself, until it is told
//! that there are none any more (docs/adr/0015).

use super::program::PROGRAM;
use super::{XdpError, folder};
use crate::sys::{
    Hook, attach_xdp, detach_link, is_bpf_fs, link_target, pin_link, pinned_link, replace_program,
    xdp_program_name,
};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The only entry of the table of predecessors.
const FIRST: [u8; 4] = [0; 4];

/// Attachments of the program; dropped, they are gone.
#[derive(Debug)]
pub struct Attached {
    links: Vec<Link>,
    /// Dropped after the pins in it.
    _folder: Option<OpenFolder>,
    /// Where in the kernel.
    pub hook: Hook,
    /// Whether another was found, and has the packets of sessions that this does not know.
    pub succeeds: bool,
}

/// One attachment.
#[derive(Debug)]
struct Link {
    _descriptor: OwnedFd,
    pin: Option<PathBuf>,
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.pin.as_ref().map(std::fs::remove_file) {
            tracing::warn!(%error, "a pinned XDP program can't be taken off: it may stay after the end");
        }
    }
}

/// The folder of pins; what Pith has mounted for it goes with it.
#[derive(Debug)]
struct OpenFolder(PathBuf);

impl Drop for OpenFolder {
    fn drop(&mut self) {
        folder::close(&self.0);
    }
}

/// What is attached where.
#[derive(Debug)]
pub struct Attachment<'a> {
    /// The program.
    pub program: BorrowedFd<'a>,
    /// Its table for the program that was there before.
    pub predecessor: &'a MapHandle,
    /// To which devices.
    pub devices: BTreeSet<u32>,
    /// Where attachments are pinned.
    pub folder: Option<&'a Path>,
}

impl Attachment<'_> {
    /// Attaches it, in place of what the folder holds.
    pub fn start(&self, hook: Hook) -> Result<Attached, XdpError> {
        let open = |folder: &Path| {
            open_folder(folder, &self.devices, hook).map_err(|source| XdpError::pin(folder, source))
        };
        let folder = self.folder.map(open).transpose()?;
        let mut attached = Attached { links: Vec::new(), _folder: folder, hook, succeeds: false };
        for device in self.devices.iter().copied() {
            let pin = self.pin(hook, device);
            let found = pin.as_deref().map_or(Ok(None), |pin| self.take_over(device, pin))?;
            attached.succeeds |= found.is_some();
            let link = match found {
                Some(descriptor) => Link { _descriptor: descriptor, pin },
                None => self.attach(device, hook, pin)?,
            };
            attached.links.push(link);
        }
        Ok(attached)
    }

    /// Whether a process before left it there.
    pub fn is_pinned(&self, hook: Hook) -> bool {
        self.devices.iter().filter_map(|device| self.pin(hook, *device)).any(|pin| pin.exists())
    }

    fn pin(&self, hook: Hook, device: u32) -> Option<PathBuf> {
        self.folder.map(|folder| folder.join(name(hook, device)))
    }

    fn attach(&self, device: u32, hook: Hook, pin: Option<PathBuf>) -> Result<Link, XdpError> {
        let descriptor =
            attach_xdp(self.program, device, hook).map_err(|source| match is_occupied(device) {
                true => XdpError::Occupied { device },
                false => XdpError::Attach { device, source },
            })?;
        if let Some(pin) = &pin {
            pin_link(descriptor.as_fd(), pin).map_err(|source| XdpError::pin(pin, source))?;
        }
        Ok(Link { _descriptor: descriptor, pin })
    }

    /// The attachment that was left behind for a device, now with this program, which has the one before to go on to.
    fn take_over(&self, device: u32, pin: &Path) -> Result<Option<OwnedFd>, XdpError> {
        let failed = |source| XdpError::pin(pin, source);
        if !pin.exists() {
            return Ok(None);
        }
        let link = pinned_link(pin).map_err(failed)?;
        let (attached_to, before) = link_target(link.as_fd()).map_err(failed)?;
        if attached_to != device {
            // Its device is gone, and another has its number.
            std::fs::remove_file(pin).map_err(failed)?;
            return Ok(None);
        }
        self.predecessor.update(&FIRST, &before.as_raw_fd().to_ne_bytes(), MapFlags::ANY)?;
        replace_program(link.as_fd(), self.program).map_err(failed)?;
        Ok(Some(link))
    }
}

/// What the pin of a device is called.
fn name(hook: Hook, device: u32) -> String {
    match hook {
        Hook::Native => format!("native-{device}"),
        Hook::Generic => format!("generic-{device}"),
    }
}

/// Makes the folder, and takes out what is pinned there and not asked for any more.
fn open_folder(folder: &Path, devices: &BTreeSet<u32>, hook: Hook) -> io::Result<OpenFolder> {
    folder::open(folder)?;
    let open = OpenFolder(folder.to_owned());
    clear(folder, &devices.iter().map(|device| name(hook, *device)).collect())?;
    Ok(open)
}

/// Ends what is pinned in a folder, but what is wanted.
fn clear(folder: &Path, wanted: &BTreeSet<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let found = entry?;
        let name = found.file_name().to_string_lossy().into_owned();
        let is_pin = name.starts_with("native-") || name.starts_with("generic-");
        if is_pin && !wanted.contains(&name) {
            // Without its name it would end as well, but later.
            detach_link(pinned_link(&found.path())?.as_fd())?;
            std::fs::remove_file(found.path())?;
        }
    }
    Ok(())
}

/// Ends what a killed process left in the folder. An error if packets of these devices still pass a program of Pith's.
pub fn retire(folder: Option<&Path>, mut devices: impl Iterator<Item = u32>) -> Result<(), XdpError> {
    if let Some(folder) = folder.filter(|folder| is_bpf_fs(folder).unwrap_or(false)) {
        clear(folder, &BTreeSet::new()).map_err(|source| XdpError::pin(folder, source))?;
        folder::close(folder);
    }
    devices.find(|device| is_occupied(*device)).map_or(Ok(()), |device| Err(XdpError::Occupied { device }))
}

/// Whether packets of a device pass a program of Pith's.
fn is_occupied(device: u32) -> bool {
    xdp_program_name(device).is_some_and(|name| name == PROGRAM)
}

/// Lets go of the program that was there before, and of all that it held.
pub fn dismiss(predecessor: &MapHandle) -> Result<(), XdpError> {
    Ok(predecessor.delete(&FIRST)?)
}
