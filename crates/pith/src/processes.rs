//! Finds the core of this machine that has what another one needs, for the error message of a core that cannot start.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A sentence about the processes of other cores that have what an error says is in use: `in use by process 4711 ('pith up'), for 5 min`.
/// `None` if the error is another one, or no core is found.
pub fn users_of(error: &str) -> Option<String> {
    let is_in_use = ["in use", "another process", "busy"].iter().any(|words| error.contains(words));
    let cores = if is_in_use { other_cores() } else { Vec::new() };
    let sockets = Sockets::read();
    let (users, others): (Vec<_>, Vec<_>) =
        cores.into_iter().partition(|(folder, _)| has_any(folder, error, &sockets));
    let names = |cores: Vec<(PathBuf, String)>| {
        cores.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(", ")
    };
    match (users.is_empty(), others.is_empty()) {
        (false, _) => Some(format!("in use by {}", names(users))),
        // Of other users' processes it is not known what they have.
        (true, false) => Some(format!("running cores, one of which may use it: {}", names(others))),
        (true, true) => None,
    }
}

/// The processes of other cores that this user can see: their directories in /proc and their descriptions.
fn other_cores() -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = std::process::id().to_string();
    let mut found: Vec<_> = entries
        .filter(|entry| entry.file_name().to_str() != Some(own.as_str()))
        .filter_map(|entry| Some((entry.path(), describe(&entry.path())?)))
        .collect();
    found.sort();
    found
}

/// Whether a process has a file or a local port that the text names.
fn has_any(folder: &Path, text: &str, sockets: &Sockets) -> bool {
    let descriptors = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
    let mut links = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.any(|link| {
        let link = link.to_string_lossy();
        match link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) {
            Some(inode) => sockets.of(inode).any(|name| names(text, name)),
            // The directory of a log is locked by a file in it.
            None => names(text, &link) || link.strip_suffix("/lock").is_some_and(|log| names(text, log)),
        }
    })
}

/// Whether a text contains a path, or a port as ':38412' or 'port 38412'.
fn names(text: &str, name: &str) -> bool {
    let is_path = name.starts_with('/');
    let ends = |rest: &str| {
        !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '/' || next == '_')
    };
    let begins = |before: &str| is_path || before.ends_with(':') || before.ends_with("port ");
    text.match_indices(name).any(|(at, _)| {
        let (before, rest) = text.split_at(at);
        begins(before) && rest.get(name.len()..).is_some_and(ends)
    })
}

/// The local ports and paths of the sockets in this network namespace, by inode.
struct Sockets(Vec<(String, String)>);

impl Sockets {
    fn read() -> Self {
        let mut found = Vec::new();
        for (file, inode, name) in
            [("tcp", 9, 1), ("tcp6", 9, 1), ("udp", 9, 1), ("udp6", 9, 1), ("sctp/eps", 7, 5), ("unix", 6, 7)]
        {
            let table = fs::read_to_string(Path::new("/proc/self/net").join(file)).unwrap_or_default();
            found.extend(table.lines().skip(1).filter_map(|line| Self::entry(line, inode, name)));
        }
        Self(found)
    }

    fn entry(line: &str, inode: usize, name: usize) -> Option<(String, String)> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = fields.get(name)?;
        // '0100007F:1F90': address and port in hexadecimal digits.
        let port = name.split_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        let name = port.map_or_else(|| (*name).to_owned(), |port| port.to_string());
        Some(((*fields.get(inode)?).to_owned(), name))
    }

    fn of<'a>(&'a self, inode: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(of, _)| of == inode).map(|(_, name)| name.as_str())
    }
}

/// The description of a process that runs NFs, from its directory in /proc.
fn describe(folder: &Path) -> Option<String> {
    let pid: u32 = folder.file_name()?.to_str()?.parse().ok()?;
    let line = fs::read(folder.join("cmdline")).ok()?;
    let mut words = line.split(|byte| *byte == 0).filter_map(|word| std::str::from_utf8(word).ok());
    let program = Path::new(words.next()?).file_name()?.to_str()?;
    let words: Vec<_> = words.collect();
    let command = words.iter().position(|word| matches!(*word, "up" | "nf")).filter(|_| program == "pith")?;
    let nf =
        words.get(command + 1).filter(|name| words.get(command) == Some(&"nf") && !name.starts_with('-'));
    let name = nf.map_or_else(|| words[command].to_owned(), |name| format!("nf {name}"));
    // The directory is as old as the process.
    let since = fs::metadata(folder).and_then(|data| data.modified()).ok();
    let age = since.and_then(|since| SystemTime::now().duration_since(since).ok());
    Some(format!("process {pid} ('pith {name}'){}", age.map(|age| ago(age.as_secs())).unwrap_or_default()))
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..120 => format!(", for {seconds} s"),
        120..7200 => format!(", for {} min", seconds / 60),
        _ => format!(", for {} h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_suitable_units() {
        assert_eq!(
            (ago(5), ago(300), ago(90_000)),
            (", for 5 s".into(), ", for 5 min".into(), ", for 25 h".into())
        );
    }

    #[test]
    fn only_what_an_error_names_counts() {
        let error = "cannot listen on 127.0.0.5:7777: Address already in use; free it or change 'sbi'";
        assert!(names(error, "7777") && !names(error, "777") && !names(error, "127"));
        assert!(names("N2 port 38412 is in use", "38412"));
        let error = "/var/lib/pith/contexts is in use by another process";
        assert!(names(error, "/var/lib/pith/contexts"));
        assert!(!names(error, "/var/lib/pith") && !names(error, "/var/lib/pith/con"));
        let line = "  0: 0100007F:1E61 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 815 1 0";
        assert_eq!(Sockets::entry(line, 9, 1), Some(("815".into(), "7777".into())));
    }

    #[test]
    fn what_this_process_has_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (folder, sockets) = (Path::new("/proc/self"), Sockets::read());
        assert!(has_any(folder, &format!("cannot listen on 127.0.0.1:{port}: in use"), &sockets));
        drop(listener);
        assert!(!has_any(folder, &format!("cannot listen on 127.0.0.1:{port}: in use"), &sockets));
        let path = std::env::temp_dir().join(format!("pith-holder-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let lock = fs::File::create(path.join("lock")).unwrap();
        let error = format!("{} is in use by another process", path.display());
        assert!(has_any(folder, &error, &sockets));
        drop(lock);
        fs::remove_dir_all(&path).unwrap();
        assert!(!has_any(folder, &error, &sockets));
        assert_eq!(users_of("'amf.n2.port' must be a number"), None, "no port is in use");
    }

    #[test]
    fn other_programs_are_not_listed() {
        assert_eq!(describe(Path::new("/proc/self")), None);
    }
}
