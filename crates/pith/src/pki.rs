//! `pith pki`.

use crate::args::{Cli, PkiCommand};
use crate::{config_file, table};
use anyhow::{Context, Result, bail};
use pith_nf::kit::Nf;
use pith_runtime::config::{Config, HostedNf};
use pith_runtime::node::nf_of;
use pith_runtime::pki::{Certificate, Directory, Issued, Member};
use serde_json::{Value, json};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Runs a command on the private CA.
pub fn run(command: &PkiCommand, cli: &Cli) -> Result<()> {
    let config = config_file::config(cli)?;
    let path = config.pki_directory();
    if matches!(command, PkiCommand::List | PkiCommand::Renew { .. }) && !path.exists() {
        bail!("there is no CA at {}: create one with 'pith pki init'", path.display());
    }
    let directory = Directory::open(&path)?;
    match command {
        PkiCommand::Init => {
            let (name, is_new) = directory.init()?;
            let verb = if is_new { "created" } else { "found" };
            println!("{verb} '{name}' in {}", path.display());
        }
        PkiCommand::Issue { nfs, address, names, out } => {
            let mut member = match client(nfs, *address)? {
                Some(client) => client,
                None => member(&config, nfs, *address)?,
            };
            member.names.extend(names.iter().cloned());
            let certificate = directory.issue(&member, false)?;
            print(cli, &[Issued { role: member.role.clone(), certificate }]);
            if let Some(out) = out {
                copy(&directory, &member, out)
                    .with_context(|| format!("cannot write to {}", out.display()))?;
            }
        }
        PkiCommand::List => print(cli, &directory.list()?),
        PkiCommand::Renew { roles } => {
            let list = directory.list()?;
            if let Some(unknown) = roles.iter().find(|role| list.iter().all(|issued| issued.role != **role)) {
                bail!("there is no certificate '{unknown}': 'pith pki list' shows all certificates");
            }
            let chosen = list.iter().filter(|issued| roles.is_empty() || roles.contains(&issued.role));
            let renewed = chosen.map(|issued| {
                Ok(Issued { role: issued.role.clone(), certificate: directory.renew(issued)? })
            });
            print(cli, &renewed.collect::<Result<Vec<_>>>()?);
        }
    }
    Ok(())
}

/// A client that is no NF of Pith: an AF or a NEF, which uses the PCF.
fn client(names: &[String], address: Option<SocketAddr>) -> Result<Option<Member>> {
    let [name] = names else { return Ok(None) };
    match (name.as_str(), address) {
        ("af" | "nef", None) => bail!("the address of the {name} is needed: --address ADDRESS:PORT"),
        (_, None) => Ok(None),
        (name, Some(address)) => Ok(Member::client(name, address)),
    }
}

fn member(config: &Config, names: &[String], address: Option<SocketAddr>) -> Result<Member> {
    let mut nfs = Vec::new();
    for name in names {
        match Nf::of_name(name) {
            Some(nf) if nfs.contains(&nf) => bail!("'{name}' occurs twice"),
            Some(nf) => nfs.push(nf),
            None => bail!("'{name}' is not an NF of the SBI: use nrf, udr, udm, ausf, pcf, nssf, smf, amf"),
        }
    }
    let first = HostedNf::ALL.into_iter().find(|hosted| nfs.first() == Some(&nf_of(*hosted)));
    let usual = first.map_or(config.sbi.listen(), |nf| config.sbi.address(nf));
    Ok(Member::new(&nfs, address.unwrap_or(usual)))
}

/// Copies the files that a process on another host needs.
fn copy(directory: &Directory, member: &Member, out: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(out)?;
    let file = format!("{}.pem", member.role);
    for (from, name, mode) in
        [(directory.ca_file(), "ca.crt", 0o644), (directory.role_file(&member.role), file.as_str(), 0o600)]
    {
        let to = out.join(name);
        if to.exists() {
            fs::remove_file(&to)?;
        }
        let mut new = OpenOptions::new().create_new(true).write(true).mode(mode).open(&to)?;
        new.write_all(&fs::read(from)?)?;
    }
    println!("\nConfiguration, where the files are in the working directory:");
    println!("sbi:\n  tls: {{ca: ca.crt, certificate: {file}, key: {file}}}");
    Ok(())
}

fn print(cli: &Cli, list: &[Issued]) {
    let list: Vec<_> = list.iter().map(value).collect();
    if cli.json {
        println!("{}", Value::from(list));
        return;
    }
    let columns = [
        ("CERTIFICATE", "/role"),
        ("NF TYPES", "/nfTypes"),
        ("NAMES", "/names"),
        ("INSTANCES", "/instances"),
        ("VALID UNTIL", "/validUntil"),
    ];
    print!("{}", table::of_objects(&columns, &list));
}

fn value(issued: &Issued) -> Value {
    let certificate: &Certificate = &issued.certificate;
    let identity = &certificate.identity;
    json!({
        "role": issued.role,
        "nfTypes": identity.nf_types,
        "names": certificate.names,
        "instances": identity.instances.len(),
        "nfInstanceIds": identity.instances,
        "issuer": certificate.issuer,
        "serial": certificate.serial,
        "validUntil": certificate.until(),
    })
}
