//! Finds other cores on this machine, for the error message of a core that cannot start.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// The processes of other cores that this user can see: `process 4711 ('pith up'), for 5 min`.
pub fn other_cores() -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = std::process::id().to_string();
    let mut found: Vec<_> = entries
        .filter(|entry| entry.file_name().to_str() != Some(own.as_str()))
        .filter_map(|entry| describe(&entry.path()))
        .collect();
    found.sort();
    found
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
    fn other_programs_are_not_listed() {
        assert_eq!(describe(Path::new("/proc/self")), None);
    }
}
