//! The associations of gNBs in a file, for the next process.
//!
//! A process that is killed sends no ABORT if SCTP is in user space: its gNBs would notice only that a HEARTBEAT is not answered, after
//! half a minute, and no UE that they serve could be paged meanwhile. So the next process aborts the associations of the file, and the
//! gNBs connect again at once. A thread of its own writes, since a write can wait for the disk.
//!
//! The file has a line of fixed width for each association, at the place of its slot in the transport's table.

use crate::private_file;
use crate::sctp::FormerPeer;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::{self, JoinHandle};

/// Octets of a line: two IPv6 addresses with ports, a UDP port and a tag are at most 112.
const WIDTH: usize = 128;
/// Longest file that is read: more than the associations that a transport can have.
const LONGEST: u64 = 8 << 20;
/// Changes that may wait for the disk. Further ones are lost: their gNBs notice a kill by a HEARTBEAT.
const WAITING: usize = 4096;
/// Stack size of the thread in octets: it only formats lines.
const STACK: usize = 256 << 10;

/// Writes the associations of this process; the file is empty after an orderly end.
pub(crate) struct FormerPeers {
    changes: Option<Sender<Change>>,
    thread: Option<JoinHandle<()>>,
}

/// The association in a slot, or that there is none.
type Change = (u32, Option<FormerPeer>);

impl FormerPeers {
    /// Opens the file, or creates it, and returns the associations of the process that wrote it.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, read or emptied, or another process writes it.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<FormerPeer>)> {
        let mut file = private_file::open_or_create(path)?;
        file.try_lock()?;
        let mut text = Vec::new();
        Read::by_ref(&mut file).take(LONGEST).read_to_end(&mut text)?;
        let former = text.chunks(WIDTH).filter_map(read_line).collect();
        file.set_len(0)?;
        let (changes, due) = bounded(WAITING);
        let writer = thread::Builder::new().name("n2-record".into()).stack_size(STACK);
        let thread = writer.spawn(move || write(&file, &due))?;
        Ok((Self { changes: Some(changes), thread: Some(thread) }, former))
    }

    /// Records the association in a slot, or its end.
    pub fn note(&self, slot: u32, peer: Option<FormerPeer>) {
        if let Some(changes) = &self.changes {
            let _ = changes.try_send((slot, peer));
        }
    }
}

impl Drop for FormerPeers {
    fn drop(&mut self) {
        drop(self.changes.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread n2-record panicked: this is a bug in Pith, please report it");
        }
    }
}

fn write(file: &File, due: &Receiver<Change>) {
    let mut has_failed = false;
    for (slot, peer) in due {
        let line = line(peer.as_ref());
        if let Err(error) = file.write_all_at(&line, u64::from(slot) * WIDTH as u64)
            && !std::mem::replace(&mut has_failed, true)
        {
            tracing::warn!(
                "gNBs would notice a kill of this process late: their associations cannot be recorded: {error}"
            );
        }
    }
    if let Err(error) = file.set_len(0) {
        tracing::debug!(%error, "cannot empty the record of associations");
    }
}

fn line(peer: Option<&FormerPeer>) -> [u8; WIDTH] {
    let mut line = [b' '; WIDTH];
    line[WIDTH - 1] = b'\n';
    let text = peer.map(FormerPeer::to_string).unwrap_or_default();
    // A text that is too long for the line cannot be read back, and its association is not aborted.
    for (place, octet) in line[..WIDTH - 1].iter_mut().zip(text.bytes()) {
        *place = octet;
    }
    line
}

fn read_line(line: &[u8]) -> Option<FormerPeer> {
    std::str::from_utf8(line).ok()?.trim_end_matches(['\n', ' ']).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A directory of a test, removed at its end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("pith-former-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn peer(port: u16) -> FormerPeer {
        let ip = std::net::Ipv6Addr::from([0x20ff_u16; 8]);
        FormerPeer { local: (ip, 38412).into(), peer: (ip, port).into(), udp_port: 65_535, tag: u32::MAX }
    }

    /// What the next process finds of a process that was killed after these changes.
    fn found_after_a_kill(changes: &[Change]) -> Vec<FormerPeer> {
        let directory = Directory::new("kill");
        let path = directory.file("state/n2-associations");
        let (record, former) = FormerPeers::open(&path).unwrap();
        assert_eq!(former, []);
        for &(slot, peer) in changes {
            record.note(slot, peer);
        }
        let copy = directory.file("copy");
        let killed_at = std::time::Instant::now();
        loop {
            std::fs::copy(&path, &copy).unwrap();
            let (_copied, found) = FormerPeers::open(&copy).unwrap();
            let last = changes.last().and_then(|(_, peer)| *peer);
            if last.is_none_or(|last| found.contains(&last)) || killed_at.elapsed().as_secs() > 10 {
                return found;
            }
        }
    }

    #[test]
    fn the_associations_that_were_up_are_found_by_the_next_process() {
        let changes =
            [(0, Some(peer(1))), (2, Some(peer(2))), (0, None), (5, Some(peer(3))), (2, Some(peer(4)))];
        assert_eq!(found_after_a_kill(&changes), [peer(4), peer(3)]);
    }

    #[test]
    fn after_an_orderly_end_there_is_nothing_to_abort() {
        let directory = Directory::new("end");
        let path = directory.file("n2-associations");
        let (record, _) = FormerPeers::open(&path).unwrap();
        record.note(0, Some(peer(1)));
        drop(record);
        assert_eq!(FormerPeers::open(&path).unwrap().1, []);
    }

    #[test]
    fn lines_that_cannot_be_read_are_skipped() {
        let directory = Directory::new("lines");
        let path = directory.file("n2-associations");
        let mut content = [vec![0xff; WIDTH], line(Some(&peer(7))).to_vec(), vec![b'x'; 3 * WIDTH]].concat();
        content.extend_from_slice(&line(Some(&peer(8)))[..50]);
        std::fs::write(&path, content).unwrap();
        assert_eq!(FormerPeers::open(&path).unwrap().1, [peer(7)]);
    }

    #[test]
    fn a_file_that_another_process_writes_is_left_to_it() {
        let directory = Directory::new("other");
        let path = directory.file("n2-associations");
        let _writer = FormerPeers::open(&path).unwrap();
        assert!(FormerPeers::open(&path).is_err());
    }
}
