//! Attaches the program to its interfaces. With `upf.pin` attachments are pinned in that directory: they
//! outlive the process, and packets of existing sessions are still forwarded. The next process replaces the
//! program between two packets and registers the old one as predecessor for packets of sessions that it does
//! not know, until the predecessor is dismissed (docs/adr/0015).
//!
//! In an upgrade the next process gets the attachments themselves, and has all sessions before it replaces the program
//! (docs/adr/0028).

use super::program::PROGRAM;
use super::{XdpError, folder};
use crate::handover::LinkHandle;
use crate::sys::{
    Hook, attach_xdp, detach_link, is_bpf_fs, link_target, pin_link, pinned_link, replace_program,
    xdp_program_name,
};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The only entry of the table `predecessor`.
const FIRST: [u8; 4] = [0; 4];

/// The program's attachments; dropping this detaches them.
#[derive(Debug)]
pub struct Attached {
    links: Vec<Link>,
    /// Dropped after the pins in it.
    _folder: Option<OpenFolder>,
    pub hook: Hook,
    /// Whether a predecessor was found, which handles the packets of sessions unknown to this program.
    pub succeeds: bool,
}

#[derive(Debug)]
struct Link {
    device: u32,
    descriptor: OwnedFd,
    pin: Option<PathBuf>,
}

impl Attached {
    /// No attachment yet, at this hook later.
    pub fn none(hook: Hook) -> Self {
        Self { links: Vec::new(), _folder: None, hook, succeeds: false }
    }

    /// The attachments, for another process.
    pub fn handles(&self) -> io::Result<Vec<LinkHandle>> {
        let generic = self.hook == Hook::Generic;
        let handle =
            |link: &Link| Ok(LinkHandle { device: link.device, generic, link: link.descriptor.try_clone()? });
        self.links.iter().map(handle).collect()
    }

    /// Attaches this program again, after another process has perhaps replaced it.
    pub fn reclaim(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        self.links.iter().try_for_each(|link| replace_program(link.descriptor.as_fd(), program))
    }

    /// Leaves the attachments and their pins to another process.
    pub fn leave(mut self) {
        self.links.iter_mut().for_each(|link| link.pin = None);
        std::mem::forget(self._folder.take());
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.pin.as_ref().map(std::fs::remove_file) {
            tracing::warn!(%error, "a pinned XDP program could not be detached and may outlive this process");
        }
    }
}

/// The directory of pins; dropping it unmounts a file system that Pith mounted for it.
#[derive(Debug)]
struct OpenFolder(PathBuf);

impl Drop for OpenFolder {
    fn drop(&mut self) {
        folder::close(&self.0);
    }
}

/// The parameters of an attachment.
#[derive(Debug)]
pub struct Attachment<'a> {
    pub program: BorrowedFd<'a>,
    /// The program's table for its predecessor.
    pub predecessor: &'a MapHandle,
    pub devices: BTreeSet<u32>,
    /// The directory for pins.
    pub folder: Option<&'a Path>,
}

impl Attachment<'_> {
    /// Attaches the program; it succeeds a program that is pinned in the directory.
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
                Some(descriptor) => Link { device, descriptor, pin },
                None => self.attach(device, hook, pin)?,
            };
            attached.links.push(link);
        }
        Ok(attached)
    }

    /// Replaces the program of a running process, whose attachments these are, between two packets. An error leaves some perhaps
    /// replaced; that process then attaches its own again.
    pub fn succeed(&self, links: Vec<LinkHandle>, hook: Hook) -> Result<Attached, XdpError> {
        for LinkHandle { device, link, .. } in &links {
            let failed = |source| XdpError::Attach { device: *device, source };
            replace_program(link.as_fd(), self.program).map_err(failed)?;
        }
        // Only now: until all are replaced, pins and file system are the other process's.
        let of =
            |LinkHandle { device, link, .. }| Link { device, descriptor: link, pin: self.pin(hook, device) };
        let folder = self.folder.map(|folder| OpenFolder(folder.to_owned()));
        Ok(Attached { links: links.into_iter().map(of).collect(), _folder: folder, hook, succeeds: false })
    }

    /// Whether a previous process left a pin for this hook.
    pub fn is_pinned(&self, hook: Hook) -> bool {
        self.devices.iter().filter_map(|device| self.pin(hook, *device)).any(|pin| pin.exists())
    }

    fn pin(&self, hook: Hook, device: u32) -> Option<PathBuf> {
        self.folder.map(|folder| folder.join(name(hook, device)))
    }

    fn attach(&self, device: u32, hook: Hook, pin: Option<PathBuf>) -> Result<Link, XdpError> {
        let descriptor = attach_xdp(self.program, device, hook).map_err(|source| {
            if is_occupied(device) {
                XdpError::Occupied { device }
            } else {
                XdpError::Attach { device, source }
            }
        })?;
        if let Some(pin) = &pin {
            pin_link(descriptor.as_fd(), pin).map_err(|source| XdpError::pin(pin, source))?;
        }
        Ok(Link { device, descriptor, pin })
    }

    /// Opens the pinned attachment of a device and replaces its program, which becomes the predecessor.
    fn take_over(&self, device: u32, pin: &Path) -> Result<Option<OwnedFd>, XdpError> {
        let failed = |source| XdpError::pin(pin, source);
        if !pin.exists() {
            return Ok(None);
        }
        let link = pinned_link(pin).map_err(failed)?;
        let (attached_to, before) = link_target(link.as_fd()).map_err(failed)?;
        if attached_to != device {
            // The interface index was reused: the pin's own device is gone.
            std::fs::remove_file(pin).map_err(failed)?;
            return Ok(None);
        }
        self.predecessor.update(&FIRST, &before.as_raw_fd().to_ne_bytes(), MapFlags::ANY)?;
        replace_program(link.as_fd(), self.program).map_err(failed)?;
        Ok(Some(link))
    }
}

/// The file name of a device's pin.
fn name(hook: Hook, device: u32) -> String {
    match hook {
        Hook::Native => format!("native-{device}"),
        Hook::Generic => format!("generic-{device}"),
    }
}

/// Creates the directory and removes pins that the configuration no longer names.
fn open_folder(folder: &Path, devices: &BTreeSet<u32>, hook: Hook) -> io::Result<OpenFolder> {
    folder::open(folder)?;
    let open = OpenFolder(folder.to_owned());
    clear(folder, &devices.iter().map(|device| name(hook, *device)).collect())?;
    Ok(open)
}

/// Detaches what is pinned in a directory, except `wanted`.
fn clear(folder: &Path, wanted: &BTreeSet<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let found = entry?;
        let name = found.file_name().to_string_lossy().into_owned();
        let is_pin = name.starts_with("native-") || name.starts_with("generic-");
        if is_pin && !wanted.contains(&name) {
            // Removing the pin alone would detach it later, not at once.
            detach_link(pinned_link(&found.path())?.as_fd())?;
            std::fs::remove_file(found.path())?;
        }
    }
    Ok(())
}

/// Detaches what a killed process left pinned. An error if a Pith program is still attached to one of these
/// devices.
pub fn retire(folder: Option<&Path>, mut devices: impl Iterator<Item = u32>) -> Result<(), XdpError> {
    if let Some(folder) = folder.filter(|folder| is_bpf_fs(folder).unwrap_or(false)) {
        clear(folder, &BTreeSet::new()).map_err(|source| XdpError::pin(folder, source))?;
        folder::close(folder);
    }
    devices.find(|device| is_occupied(*device)).map_or(Ok(()), |device| Err(XdpError::Occupied { device }))
}

/// Whether a Pith program is attached to a device.
fn is_occupied(device: u32) -> bool {
    xdp_program_name(device).is_some_and(|name| name == PROGRAM)
}

/// Releases the predecessor and its tables.
pub fn dismiss(predecessor: &MapHandle) -> Result<(), XdpError> {
    Ok(predecessor.delete(&FIRST)?)
}
