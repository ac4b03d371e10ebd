//! NAT44: packets of UEs to other networks take the address of the interface that they leave by.
//!
//! By nftables in a table of its own, named after the TUN interface; where there is no `nft`, by a rule
//! of iptables for each pool.

use crate::config::StartError;
use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

/// Masquerading; dropping it takes the rules away.
#[derive(Debug)]
pub struct Nat {
    undo: Vec<Vec<String>>,
}

impl Nat {
    /// Masquerades packets from `pools` (`10.45.0.0/16`) that leave by another interface than `tun`.
    pub fn set_up(tun: &str, pools: &[String]) -> Result<Self, StartError> {
        let result = match nftables(tun, pools) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => iptables(tun, pools),
            result => result,
        };
        result.map_err(StartError::setup("setting up NAT (nftables, or iptables where nft is missing)"))
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        for command in &self.undo {
            if let Err(error) = run(command, "") {
                tracing::warn!(command = command.join(" "), %error, "a NAT rule stays");
            }
        }
    }
}

fn nftables(tun: &str, pools: &[String]) -> io::Result<Nat> {
    run(&words("nft -f -"), &ruleset(tun, pools))?;
    Ok(Nat { undo: vec![words(&format!("nft delete table ip {}", table(tun)))] })
}

/// What an unclean end left behind is replaced: a table of that name is ours.
fn ruleset(tun: &str, pools: &[String]) -> String {
    let (table, pools) = (table(tun), pools.join(", "));
    format!(
        "table ip {table}\n\
         delete table ip {table}\n\
         table ip {table} {{\n\
         \tchain postrouting {{\n\
         \t\ttype nat hook postrouting priority 100;\n\
         \t\tip saddr {{ {pools} }} oifname != \"{tun}\" masquerade\n\
         \t}}\n\
         }}\n"
    )
}

/// Letters, digits and underscores are what nftables takes as a name.
fn table(tun: &str) -> String {
    let safe = tun.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    format!("pith_{}", safe.collect::<String>())
}

fn iptables(tun: &str, pools: &[String]) -> io::Result<Nat> {
    let mut nat = Nat { undo: Vec::new() };
    for pool in pools {
        let rule = format!("POSTROUTING -s {pool} ! -o {tun} -j MASQUERADE");
        run(&words(&format!("iptables -w -t nat -A {rule}")), "")?;
        nat.undo.push(words(&format!("iptables -w -t nat -D {rule}")));
    }
    Ok(nat)
}

fn words(command: &str) -> Vec<String> {
    command.split(' ').map(str::to_owned).collect()
}

fn run(command: &[String], input: &str) -> io::Result<()> {
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
    Err(io::Error::other(format!("{program}: {}", String::from_utf8_lossy(&stderr).trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ruleset_replaces_its_own_table_only() {
        let ruleset = ruleset("upf-0", &["10.45.0.1/16".into(), "10.46.0.1/16".into()]);
        assert_eq!(ruleset.matches("table ip pith_upf_0").count(), 3);
        assert!(ruleset.contains("ip saddr { 10.45.0.1/16, 10.46.0.1/16 } oifname != \"upf-0\" masquerade"));
        assert!(!ruleset.contains("flush"));
    }

    #[test]
    fn a_missing_program_and_a_failing_one_are_told_apart() {
        assert_eq!(run(&words("no-such-program"), "").unwrap_err().kind(), io::ErrorKind::NotFound);
        let error = run(&words("ls /no/such/file"), "").unwrap_err();
        assert!(error.to_string().starts_with("ls: "), "{error}");
    }
}
