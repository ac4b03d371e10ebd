//! `pith ue|gnb|session|instance|upf list` and `pith status`.

use crate::args::Cli;
use crate::operator::Operator;
use crate::table;
use anyhow::Result;
use serde_json::Value;

/// Something that lives in the core, and how its table looks.
pub struct List {
    path: &'static str,
    /// What one of them is called, and many.
    what: [&'static str; 2],
    /// Members whose columns come first.
    first: &'static [&'static str],
}

/// UEs.
pub const UES: List = List {
    path: "/v1/ues",
    what: ["UE", "UEs"],
    first: &["supi", "state", "connection", "gnb", "tai", "guti", "amfUeNgapId", "ranUeNgapId"],
};
/// gNBs.
pub const GNBS: List =
    List { path: "/v1/gnbs", what: ["gNB", "gNBs"], first: &["name", "globalId", "peer", "tais", "slices"] };
/// PDU sessions.
pub const SESSIONS: List = List {
    path: "/v1/sessions",
    what: ["session", "sessions"],
    first: &["supi", "id", "dnn", "snssai", "address", "state", "upf"],
};
/// NF instances.
pub const NFS: List = List {
    path: "/v1/nfs",
    what: ["NF instance", "NF instances"],
    first: &["nfType", "nfInstanceId", "nfStatus", "apiRoot", "load"],
};
/// UPFs.
pub const UPFS: List = List { path: "/v1/upfs", what: ["UPF", "UPFs"], first: &["name", "address"] };

/// Prints a list.
pub fn run(list: &List, cli: &Cli) -> Result<()> {
    let answer = Operator::of_running_core(cli)?.get(list.path)?;
    if cli.json {
        println!("{answer}");
        return Ok(());
    }
    let entries = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    if !entries.is_empty() {
        print!("{}", table::of_objects(list.first, entries));
    }
    println!("{} {}", entries.len(), list.what[usize::from(entries.len() != 1)]);
    Ok(())
}

/// Prints what the core is and does.
pub fn status(cli: &Cli) -> Result<()> {
    let answer = Operator::of_running_core(cli)?.get("/v1/status")?;
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
    Ok(())
}

fn number(value: &Value) -> String {
    value.as_u64().map_or_else(|| "?".into(), |number| number.to_string())
}
