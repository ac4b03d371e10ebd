//! Rules for the kernel's packet filter, by `nft`: tables of our own, named after the TUN interface, put in
//! whole and taken away whole.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// Tables that are there; dropping it takes them away.
#[derive(Debug, Default)]
pub struct Tables {
    names: Vec<String>,
}

/// A table: its family, and what stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// `ip`, `ip6` or `inet`.
    pub family: &'static str,
    /// Chains and maps.
    pub body: String,
}

impl Tables {
    /// Puts tables in, in one step. What an unclean end left behind is replaced: tables of that name are ours.
    pub fn put_in(tun: &str, tables: &[Table]) -> io::Result<Self> {
        if tables.is_empty() {
            return Ok(Self::default());
        }
        run(&words("nft -f -"), &script(tun, tables))?;
        let name = |table: &Table| format!("{} {}", table.family, table_name(tun));
        Ok(Self { names: tables.iter().map(name).collect() })
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        for name in &self.names {
            if let Err(error) = run(&words(&format!("nft delete table {name}")), "") {
                tracing::warn!(table = name, %error, "a table of nftables stays");
            }
        }
    }
}

fn script(tun: &str, tables: &[Table]) -> String {
    let name = table_name(tun);
    let one = |Table { family, body }: &Table| {
        format!("table {family} {name}\ndelete table {family} {name}\ntable {family} {name} {{\n{body}}}\n")
    };
    tables.iter().map(one).collect()
}

/// Letters, digits and underscores are what nftables takes as a name.
fn table_name(tun: &str) -> String {
    let safe = tun.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    format!("pith_{}", safe.collect::<String>())
}

/// The words of a command.
pub fn words(command: &str) -> Vec<String> {
    command.split(' ').map(str::to_owned).collect()
}

/// Runs a command with that input.
pub fn run(command: &[String], input: &str) -> io::Result<()> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let Output { status, stderr, .. } = child.wait_with_output()?;
    if status.success() {
        return Ok(());
    }
    // What nft quotes may be all addresses of a network.
    let said: String = String::from_utf8_lossy(&stderr).trim().chars().take(500).collect();
    Err(io::Error::other(format!("{program}: {said}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_replaces_its_own_tables_only() {
        let table = |family| Table { family, body: "\tchain c {\n\t}\n".into() };
        let script = script("upf-0", &[table("ip"), table("inet")]);
        assert_eq!(script.matches("table ip pith_upf_0").count(), 3);
        assert_eq!(script.matches("delete table inet pith_upf_0\n").count(), 1);
        assert!(!script.contains("flush"));
    }

    #[test]
    fn a_missing_program_and_a_failing_one_are_told_apart() {
        assert_eq!(run(&words("no-such-program"), "").unwrap_err().kind(), io::ErrorKind::NotFound);
        let error = run(&words("ls /no/such/file"), "").unwrap_err();
        assert!(error.to_string().starts_with("ls: "), "{error}");
    }
}
