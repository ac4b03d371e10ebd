//! `pith ue|gnb|session|instance|upf list`, `pith ue deregister` and `pith status`.

use crate::args::Cli;
use crate::operator::ManagementClient;
use crate::table;
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use pith_types::Supi;
use serde_json::Value;

/// A list of objects of the core, and its table.
pub struct List {
    path: &'static str,
    /// The NF with the list; if NFs are separate processes, its process is queried.
    nf: &'static str,
    /// Singular and plural of an entry's name.
    what: [&'static str; 2],
    /// Headings, and JSON pointers of their cells: the main members, within 100 columns. '--json' prints all
    /// members.
    columns: &'static [(&'static str, &'static str)],
}

/// UEs.
pub const UES: List = List {
    path: "/v1/ues",
    nf: "amf",
    what: ["UE", "UEs"],
    columns: &[
        ("SUPI", "/supi"),
        ("RM", "/rm"),
        ("CM", "/cm"),
        ("GNB", "/gnb"),
        ("SESSIONS", "/sessions/*/id"),
        ("PROCEDURE", "/procedure"),
    ],
};

/// gNBs.
pub const GNBS: List = List {
    path: "/v1/gnbs",
    nf: "amf",
    what: ["gNB", "gNBs"],
    columns: &[("NAME", "/name"), ("ID", "/globalId"), ("PEER", "/associations/*/peer"), ("TAIS", "/tais")],
};

/// PDU sessions.
pub const SESSIONS: List = List {
    path: "/v1/sessions",
    nf: "smf",
    what: ["session", "sessions"],
    columns: &[
        ("SUPI", "/supi"),
        ("ID", "/pduSessionId"),
        ("DNN", "/dnn"),
        ("S-NSSAI", "/snssai"),
        ("ADDRESS", "/ipv4"),
        ("IPV6", "/ipv6Prefix"),
        ("USER PLANE", "/userPlane"),
        ("UPF", "/upf"),
        ("FRONT", "/frontUpf"),
        ("STATE", "/state"),
    ],
};

/// NF instances.
pub const INSTANCES: List = List {
    path: "/v1/nfs",
    nf: "nrf",
    what: ["NF instance", "NF instances"],
    columns: &[
        ("NF", "/nfType"),
        ("INSTANCE", "/nfInstanceId"),
        ("STATUS", "/nfStatus"),
        ("API ROOT", "/apiRoot"),
    ],
};

/// UPFs.
pub const UPFS: List = List {
    path: "/v1/upfs",
    nf: "smf",
    what: ["UPF", "UPFs"],
    columns: &[("NAME", "/name"), ("ADDRESS", "/address"), ("LOAD %", "/load")],
};

/// Shards.
pub const SHARDS: List = List {
    path: "/v1/shards",
    nf: "amf",
    what: ["shard", "shards"],
    columns: &[
        ("SHARD", "/shard"),
        ("BLOCKS", "/blocks"),
        ("CONTEXTS", "/contexts"),
        ("INPUTS", "/inputs"),
        ("MAP VERSION", "/mapVersion"),
    ],
};

/// Prints a list.
pub fn run(list: &List, cli: &Cli) -> Result<()> {
    run_at(list, list.nf, cli)
}

/// Prints the list of the process with that NF.
pub fn run_at(list: &List, nf: &str, cli: &Cli) -> Result<()> {
    let mut entries = ManagementClient::of_running_core(cli, Some(nf))?.list(list.path)?;
    if cli.json {
        println!("{}", Value::Array(entries));
        return Ok(());
    }
    entries.sort_by_key(|entry| entry.pointer(list.columns[0].1).map(table::cell));
    if !entries.is_empty() {
        print!("{}", table::of_objects(list.columns, &entries));
    }
    println!("{} {}", entries.len(), list.what[usize::from(entries.len() != 1)]);
    Ok(())
}

/// Ends a UE's registration.
pub fn deregister(supi: &Supi, cli: &Cli) -> Result<()> {
    ManagementClient::of_running_core(cli, Some(UES.nf))?.delete(&format!("{}/{supi}", UES.path))?;
    if !cli.json {
        println!("{supi} is deregistered");
    }
    Ok(())
}

/// Requests the location of a UE.
pub fn locate(supi: &Supi, cli: &Cli) -> Result<()> {
    let path = format!("{}/{supi}/locate", UES.path);
    ManagementClient::of_running_core(cli, Some(UES.nf))?.post(&path, "", Bytes::new())?;
    if !cli.json {
        println!("the gNB of {supi} is requested to report its cell: 'pith ue list --json' shows it");
    }
    Ok(())
}

/// Resets the interface to a gNB.
pub fn reset_gnb(id: &str, cli: &Cli) -> Result<()> {
    let is_of_query = |char: char| char.is_ascii_alphanumeric() || "-/._:".contains(char);
    ensure!(id.chars().all(is_of_query), "'{id}' is no ID of a gNB: 'pith gnb list' shows the IDs");
    let path = format!("{}/reset?gnb={id}", GNBS.path);
    ManagementClient::of_running_core(cli, Some(GNBS.nf))?.post(&path, "", Bytes::new())?;
    if !cli.json {
        println!("gNB {id} is reset");
    }
    Ok(())
}

/// Changes the relative capacity of the AMF.
pub fn set_capacity(capacity: u8, cli: &Cli) -> Result<()> {
    let path = format!("/v1/amf/capacity/{capacity}");
    ManagementClient::of_running_core(cli, Some(GNBS.nf))?.put(&path, "", Bytes::new())?;
    if !cli.json {
        println!("gNBs are informed of the relative capacity {capacity}");
    }
    Ok(())
}

/// Changes the weight of an N2 endpoint, or removes it.
pub fn change_endpoint(address: std::net::IpAddr, weight: &str, cli: &Cli) -> Result<()> {
    let path = format!("/v1/amf/endpoints/{address}");
    let client = ManagementClient::of_running_core(cli, Some(GNBS.nf))?;
    if weight == "remove" {
        client.delete(&path)?;
    } else {
        let weight: u8 = weight.parse().with_context(|| format!("'{weight}': write 0 to 255, or remove"))?;
        client.put(&format!("{path}?weight={weight}"), "", Bytes::new())?;
    }
    if !cli.json {
        println!("gNBs are informed of the change of the endpoint {address}");
    }
    Ok(())
}

/// Prints the state of the core.
pub fn status(cli: &Cli) -> Result<()> {
    let answer = ManagementClient::status(cli)?;
    if cli.json {
        println!("{answer}");
        return Ok(());
    }
    let shown = [("state", "state"), ("version", "version"), ("nfs", "NFs"), ("shards", "shards")];
    for (member, name) in shown {
        println!("{name:<9} {}", table::cell(&answer[member]));
    }
    println!(
        "{:<9} {} s, ready after {} ms",
        "up",
        number(&answer["uptimeS"]),
        number(&answer["readyAfterMs"])
    );
    let user_plane = &answer["userPlane"];
    if let Some(path) = user_plane["path"].as_str() {
        println!("{:<9} {path}: {}", "packets", table::cell(&user_plane["detail"]));
        if let Some(faster) = user_plane["faster"].as_str() {
            println!("{:<9} faster: {faster}", "");
        }
    }
    show_set(&answer["set"]);
    let contexts = &answer["contexts"];
    let has_contexts = |nf: &Value| matches!(nf.as_str(), Some("amf" | "smf" | "pcf"));
    if contexts.is_object() {
        let (mode, restored) = (table::cell(&contexts["residency"]), number(&contexts["restored"]));
        println!("{:<9} {mode} in {}, {restored} restored", "contexts", table::cell(&contexts["engine"]));
        let count = |name: &str| number(&contexts["operations"][name]);
        println!(
            "{:<9} {} writes, {} reads, {} requests",
            "",
            count("writes"),
            count("reads"),
            count("requests")
        );
        let embedded = &contexts["embedded"];
        if embedded.is_object() {
            let (used, refused) = (number(&embedded["used"]), number(&embedded["refused"]));
            println!("{:<9} {used} documents came in requests, {refused} were refused", "");
        }
        if contexts["unreadable"] != 0 {
            println!("{:<9} {} could not be restored: see the log", "", number(&contexts["unreadable"]));
        }
        if let Some(error) = contexts["error"].as_str() {
            println!("{:<9} not stored at present: {error}", "");
            println!("{:<9} until then each UE gets at most its reserved messages (16), then none", "");
        }
    } else if answer["nfs"].as_array().is_some_and(|nfs| nfs.iter().any(has_contexts)) {
        println!("{:<9} not stored: they end with the process", "contexts");
    }
    Ok(())
}

/// The instances of a set, one a line.
fn show_set(set: &Value) {
    let Some(instances) = set["instances"].as_array() else { return };
    let (own, lease) = (number(&set["instance"]), number(&set["leaseMs"]));
    println!("{:<9} instance {own}, lease of {lease} ms", "set");
    for instance in instances {
        let state = if instance["lives"] == true { "lives" } else { "is gone" };
        println!(
            "{:<9} instance {} {state}, {} blocks: {}",
            "",
            number(&instance["instance"]),
            number(&instance["blocks"]),
            table::cell(&instance["root"])
        );
    }
    if let Some(error) = set["error"].as_str() {
        println!("{:<9} the owner map is unknown at present: {error}", "");
    }
}

fn number(value: &Value) -> String {
    value.as_u64().map_or_else(|| "?".into(), |number| number.to_string())
}
