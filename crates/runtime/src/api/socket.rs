//! The Unix socket of the API.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Listens on a socket that only its owner and a group may connect to. The socket gets its permissions before
/// it is renamed to its final path, so that no other user can connect in between.
pub fn bind(path: &Path, group: Option<&str>) -> io::Result<UnixListener> {
    let explain = |error: io::Error| {
        let text = format!("cannot listen on {}: {error}; change 'api.socket'", path.display());
        io::Error::new(error.kind(), text)
    };
    bind_there(path, group).map_err(explain)
}

fn bind_there(path: &Path, group: Option<&str>) -> io::Result<UnixListener> {
    if UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process listens there: stop it, or give this process another socket",
        ));
    }
    let (listener, unnamed) = Unnamed::bind(path, group)?;
    unnamed.publish()?;
    Ok(listener)
}

/// A socket that is not at its path yet; dropping it removes the socket.
#[derive(Debug)]
pub struct Unnamed {
    now: PathBuf,
    path: PathBuf,
}

impl Unnamed {
    /// Listens on a socket beside its path, where another process may still listen.
    pub fn bind(path: &Path, group: Option<&str>) -> io::Result<(UnixListener, Self)> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        }
        remove_stale(path);
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(name);
        let _ = fs::remove_file(&new);
        let listener = UnixListener::bind(&new)?;
        let unnamed = Self { now: new, path: path.to_owned() };
        permit(&unnamed.now, group)?;
        listener.set_nonblocking(true)?;
        Ok((listener, unnamed))
    }

    /// Gives it its path, in place of another process's socket.
    pub fn publish(self) -> io::Result<()> {
        fs::rename(&self.now, &self.path)
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.now);
    }
}

/// Removes what killed processes left beside a path.
fn remove_stale(path: &Path) {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(OsStr::to_str)) else {
        return;
    };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    for found in fs::read_dir(directory).into_iter().flatten().flatten() {
        let of_process = found.file_name().to_str().and_then(|found| {
            let number = found.strip_prefix(name)?.strip_prefix('.')?;
            number.parse::<u32>().ok()
        });
        // A process binds its socket shortly before it listens.
        let is_over = |process: u32| {
            let refuses = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
            !Path::new("/proc").join(process.to_string()).exists()
                && UnixStream::connect(found.path()).is_err_and(refuses)
        };
        if of_process.is_some_and(is_over) {
            let _ = fs::remove_file(found.path());
        }
    }
}

fn permit(socket: &Path, group: Option<&str>) -> io::Result<()> {
    if let Some(group) = group {
        chown(socket, None, Some(number(group)?))?;
    }
    fs::set_permissions(socket, Permissions::from_mode(if group.is_some() { 0o660 } else { 0o600 }))
}

/// The id of a group, given by its name in /etc/group or by its number.
fn number(group: &str) -> io::Result<u32> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let groups = fs::read_to_string("/etc/group")?;
    let line = groups.lines().find(|line| line.split(':').next() == Some(group));
    let number = line.and_then(|line| line.split(':').nth(2)?.parse().ok());
    number.ok_or_else(|| io::Error::other(format!("'api.socket_group': there is no group '{group}'")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_socket_is_private_and_replaces_a_stale_one() {
        let directory = std::env::temp_dir().join(format!("pith-socket-{}", std::process::id()));
        let path = directory.join("api.sock");
        let first = bind(&path, None).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let error = bind(&path, None).unwrap_err().to_string();
        assert!(error.contains("another process") && error.contains("'api.socket'"), "{error}");
        drop(first);
        let own = fs::metadata(&directory).unwrap().gid().to_string();
        let (_listener, unnamed) = Unnamed::bind(&path, None).unwrap();
        drop(unnamed);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "only the named one");
        // One of a killed process, and one whose process cannot be seen but listens.
        drop(UnixListener::bind(directory.join("api.sock.4194305")).unwrap());
        let _other = UnixListener::bind(directory.join("api.sock.4194306")).unwrap();
        let _again = bind(&path, Some(&own)).unwrap();
        assert!(!directory.join("api.sock.4194305").exists() && directory.join("api.sock.4194306").exists());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
        assert!(bind(&directory.join("x"), Some("no such group")).is_err());
        fs::remove_dir_all(directory).unwrap();
    }
}
