//! Rules for the kernel's packet filter, by `nft`: Pith's own tables, named after the TUN interface, are
//! added and deleted as a whole.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// Existing tables; dropping this deletes them.
#[derive(Debug, Default)]
pub struct Tables {
    names: Vec<String>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// `ip`, `ip6` or `inet`.
    pub family: &'static str,
    /// Its chains, maps and sets.
    pub body: String,
}

impl Tables {
    /// Adds tables, and in the same transaction deletes those of that name that a killed process left.
    /// [`NotFound`](io::ErrorKind::NotFound): there is no `nft`.
    pub fn put_in(tun: &str, tables: &[Table]) -> io::Result<Self> {
        let script = script(tun, &left_behind(tun)?, tables);
        if !script.is_empty() {
            run(&words("nft -f -"), &script)?;
        }
        let name = |table: &Table| format!("{} {}", table.family, table_name(tun));
        Ok(Self { names: tables.iter().map(name).collect() })
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        for name in &self.names {
            if let Err(error) = run(&words(&format!("nft delete table {name}")), "") {
                tracing::warn!(table = name, %error, "an nftables table could not be removed");
            }
        }
    }
}

/// The families with a table of Pith. If the kernel cannot list tables, there is none.
fn left_behind(tun: &str) -> io::Result<Vec<String>> {
    let all = match run(&words("nft list tables"), "") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::debug!(%error, "nftables tables cannot be listed");
            String::new()
        }
        listed => listed?,
    };
    let family = |line: &str| match words(line).as_slice() {
        [table, family, name] if table == "table" && *name == table_name(tun) => Some(family.clone()),
        _ => None,
    };
    Ok(all.lines().filter_map(family).collect())
}

fn script(tun: &str, left_behind: &[String], tables: &[Table]) -> String {
    let name = table_name(tun);
    let deletions = left_behind.iter().map(|family| format!("delete table {family} {name}\n"));
    let additions =
        tables.iter().map(|Table { family, body }| format!("table {family} {name} {{\n{body}}}\n"));
    deletions.chain(additions).collect()
}

/// Replaces characters that nftables does not accept in names.
pub fn table_name(tun: &str) -> String {
    let safe = tun.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    format!("pith_{}", safe.collect::<String>())
}

/// Splits a command at spaces.
pub fn words(command: &str) -> Vec<String> {
    command.split(' ').map(str::to_owned).collect()
}

/// Runs a command with that input and returns its output.
pub fn run(command: &[String], input: &str) -> io::Result<String> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let Output { status, stdout, stderr } = child.wait_with_output()?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    // nft may quote all addresses of a network.
    let said: String = String::from_utf8_lossy(&stderr).trim().chars().take(500).collect();
    Err(io::Error::other(format!("{program}: {said}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_replaces_its_own_tables_only() {
        let table = |family| Table { family, body: "\tchain c {\n\t}\n".into() };
        let left_behind = ["ip6".into(), "inet".into()];
        let script = script("upf-0", &left_behind, &[table("ip"), table("inet")]);
        let (deletions, additions) = script.split_at(script.find("table ip pith").unwrap());
        assert_eq!(deletions, "delete table ip6 pith_upf_0\ndelete table inet pith_upf_0\n");
        assert_eq!(additions.matches("\tchain c {\n").count(), 2);
    }

    #[test]
    fn a_missing_program_and_a_failing_one_are_told_apart() {
        assert_eq!(run(&words("no-such-program"), "").unwrap_err().kind(), io::ErrorKind::NotFound);
        let error = run(&words("ls /no/such/file"), "").unwrap_err();
        assert!(error.to_string().starts_with("ls: "), "{error}");
    }
}
