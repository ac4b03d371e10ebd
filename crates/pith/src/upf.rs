//! `pith upf`: inspects the user plane.

use crate::args::{Cli, UpfCommand};
use crate::operator::ManagementClient;
use crate::{list, table};
use anyhow::Result;
use bytes::Bytes;
use serde_json::Value;
use std::time::Duration;

/// Interval of queries of a trace.
const POLL: Duration = Duration::from_millis(200);

/// Headings, and JSON pointers of their cells.
type Columns = &'static [(&'static str, &'static str)];

const SESSIONS: Columns = &[
    ("SEID", "/seid"),
    ("UE", "/ipv4"),
    ("IPV6", "/ipv6Prefix"),
    ("DNN", "/dnn"),
    ("TEID", "/teids"),
    ("PEER", "/tunnels/*/peer"),
    ("PEER TEID", "/tunnels/*/teid"),
    ("DOWNLINK", "/downlink"),
];
const PDRS: Columns = &[
    ("PDR", "/id"),
    ("PRECEDENCE", "/precedence"),
    ("DIRECTION", "/direction"),
    ("TEID", "/teid"),
    ("QFIS", "/qfis"),
    ("FAR", "/far"),
    ("QERS", "/qers"),
    ("URRS", "/urrs"),
    ("FILTERS", "/filters"),
];
const FARS: Columns = &[
    ("FAR", "/id"),
    ("ACTION", "/action"),
    ("PEER", "/tunnel/peer"),
    ("TEID", "/tunnel/teid"),
    ("DSCP", "/tunnel/dscp"),
    ("MAX BUFFERED", "/bufferedPackets"),
];
const URRS: Columns = &[
    ("URR", "/id"),
    ("UP", "/volume/uplinkBytes"),
    ("DOWN", "/volume/downlinkBytes"),
    ("PACKETS UP", "/volume/uplinkPackets"),
    ("DOWN", "/volume/downlinkPackets"),
    ("THRESHOLD", "/threshold"),
    ("QUOTA", "/quota"),
];
const FLOWS: Columns = &[
    ("DIRECTION", "/direction"),
    ("QFI", "/qfi"),
    ("QERS", "/qers"),
    ("OFFERED", "/offered/packets"),
    ("PASSED", "/passed/packets"),
    ("GREEN", "/green/packets"),
    ("YELLOW", "/yellow/packets"),
    ("RED", "/red/packets"),
    ("DROPPED", "/dropped/packets"),
    ("QUEUED", "/queued/packets"),
    ("MARKED", "/marked"),
    ("FAST", "/fast/packets"),
];

/// Runs a command on the UPF.
pub fn run(command: &UpfCommand, cli: &Cli) -> Result<()> {
    if let UpfCommand::List = command {
        return list::run(&list::UPFS, cli);
    }
    let client = ManagementClient::of_running_core(cli, Some("upf"))?;
    match command {
        UpfCommand::List => Ok(()),
        UpfCommand::Sessions { ue, teid, after, limit } => {
            let query =
                [("ue", ue.map(|ue| ue.to_string())), ("teid", teid.clone()), ("after", after.clone())];
            let query = query.into_iter().filter_map(|(name, value)| Some(format!("&{name}={}", value?)));
            let path = format!("/v1/upf/sessions?limit={limit}{}", query.collect::<String>());
            print(&client.get(&path)?, cli.json, sessions)
        }
        UpfCommand::Rules { session } => {
            print(&client.get(&format!("/v1/upf/sessions/{session}/rules"))?, cli.json, rules)
        }
        UpfCommand::Counters { session: None } => print(&client.get("/v1/upf/counters")?, cli.json, counters),
        UpfCommand::Counters { session: Some(session) } => {
            print(&client.get(&format!("/v1/upf/sessions/{session}/flows"))?, cli.json, flows)
        }
        UpfCommand::Trace { teid, packets, seconds } => {
            let path = format!("/v1/upf/traces?teid={teid}&packets={packets}&seconds={seconds}");
            trace(&client, &client.post(&path, "", Bytes::new())?, cli.json)
        }
    }
}

fn print(answer: &Value, json: bool, text: fn(&Value) -> String) -> Result<()> {
    if json {
        println!("{answer}");
    } else {
        print!("{}", text(answer));
    }
    Ok(())
}

fn list_of<'a>(answer: &'a Value, member: &str) -> &'a [Value] {
    answer[member].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Prints two tables, as one row per session would be too wide: addresses and tunnels, then rates and
/// traffic.
fn sessions(answer: &Value) -> String {
    let sessions = list_of(answer, "sessions");
    let mut text = String::new();
    if !sessions.is_empty() {
        text += &table::of_objects(SESSIONS, sessions);
        text += "\n";
        let headings = ["SEID", "AMBR UP", "DOWN", "PACKETS UP", "DOWN", "BYTES UP", "DOWN", "IDLE"];
        let rows: Vec<_> = sessions.iter().map(used).collect();
        text += &table::render(&headings.map(str::to_owned), &rows);
    }
    let (shown, total) = (sessions.len(), answer["total"].as_u64().unwrap_or(0));
    text += &format!("{shown} of {total} {}\n", if total == 1 { "session" } else { "sessions" });
    if let Some(next) = answer["next"].as_str() {
        text += &format!("more with --after {next}\n");
    }
    text
}

fn used(session: &Value) -> Vec<String> {
    let volume = &session["volume"];
    let idle = session["idleMs"]
        .as_u64()
        .map_or_else(|| "-".into(), |idle| format!("{}.{} s", idle / 1000, idle % 1000 / 100));
    vec![
        table::cell(&session["seid"]),
        rate(&session["ambr"]["uplink"]),
        rate(&session["ambr"]["downlink"]),
        table::cell(&volume["uplinkPackets"]),
        table::cell(&volume["downlinkPackets"]),
        table::cell(&volume["uplinkBytes"]),
        table::cell(&volume["downlinkBytes"]),
        idle,
    ]
}

/// A bit rate in the largest unit in which it is a whole number.
fn rate(bps: &Value) -> String {
    let Some(bps) = bps.as_u64() else { return "-".into() };
    let units = [("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1000)];
    let whole = units.into_iter().find(|(_, size)| bps >= *size && bps % size == 0);
    whole.map_or_else(|| format!("{bps} bps"), |(unit, size)| format!("{} {unit}", bps / size))
}

fn rules(answer: &Value) -> String {
    let qers = list_of(answer, "qers");
    let headings =
        ["QER", "QFI", "RQI", "GATE UP", "DOWN", "MBR UP", "DOWN", "GBR UP", "DOWN"].map(str::to_owned);
    let tables = [
        table::of_objects(PDRS, list_of(answer, "pdrs")),
        table::of_objects(FARS, list_of(answer, "fars")),
        table::render(&headings, &qers.iter().map(qer).collect::<Vec<_>>()),
        table::of_objects(URRS, list_of(answer, "urrs")),
    ];
    format!("session {}\n\n{}", table::cell(&answer["seid"]), tables.join("\n"))
}

fn qer(qer: &Value) -> Vec<String> {
    let gate = |open: &Value| if open == true { "open" } else { "closed" }.to_owned();
    vec![
        table::cell(&qer["id"]),
        table::cell(&qer["qfi"]),
        table::cell(&qer["rqi"]),
        gate(&qer["openUplink"]),
        gate(&qer["openDownlink"]),
        rate(&qer["mbr"]["uplink"]),
        rate(&qer["mbr"]["downlink"]),
        rate(&qer["gbr"]["uplink"]),
        rate(&qer["gbr"]["downlink"]),
    ]
}

fn counters(answer: &Value) -> String {
    let headings = ["", "PACKETS", "BYTES"].map(str::to_owned);
    let row = |(name, member): (&str, &str)| {
        vec![name.to_owned(), table::cell(&answer[member]["packets"]), table::cell(&answer[member]["bytes"])]
    };
    let ways = [("N3 in", "n3In"), ("N3 out", "n3Out"), ("N6 in", "n6In"), ("N6 out", "n6Out")];
    let mut text = table::render(&headings, &ways.map(row));
    let dropped = answer["dropped"].as_object().into_iter().flatten();
    let dropped: Vec<_> = dropped.map(|(reason, count)| vec![reason.clone(), table::cell(count)]).collect();
    if !dropped.is_empty() {
        text += "\n";
        text += &table::render(&["DROPPED".to_owned(), "PACKETS".to_owned()], &dropped);
    }
    text + &format!(
        "\n{} packets queued; {} sessions, {} TEIDs; guaranteed {} up, {} down\n",
        answer["waiting"],
        answer["sessions"],
        answer["teids"],
        rate(&answer["promised"]["uplink"]),
        rate(&answer["promised"]["downlink"])
    )
}

fn flows(answer: &Value) -> String {
    let flows = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    table::of_objects(FLOWS, flows)
        + "offered = passed + red + dropped + queued, in packets; fast: those of passed that XDP forwarded\n"
}

/// Prints packets as they arrive, until the trace ends.
fn trace(client: &ManagementClient, begun: &Value, json: bool) -> Result<()> {
    let id = &begun["id"];
    let mut known = 0;
    if !json {
        println!(
            "session {}; end with Ctrl-C\n{:>11}  DIRECTION  BYTES  QFI  PDR  PACKET",
            table::cell(&begun["seid"]),
            "TIME"
        );
    }
    loop {
        std::thread::sleep(POLL);
        let answer = client.get(&format!("/v1/upf/traces/{id}?after={known}"))?;
        let packets = list_of(&answer, "packets");
        known += packets.len();
        for packet in packets {
            if json {
                println!("{packet}");
            } else {
                println!("{}", line(packet));
            }
        }
        if answer["ended"] == true {
            if !json {
                println!("{known} packets, {} missed", answer["missed"]);
            }
            client.delete(&format!("/v1/upf/traces/{id}"))?;
            return Ok(());
        }
    }
}

/// The output line of a packet.
fn line(packet: &Value) -> String {
    let micros = packet["afterUs"].as_u64().unwrap_or(0);
    format!(
        "{:>4}.{:06}  {:<9}  {:>5}  {:>3}  {:>3}  {} {} > {}: {}",
        micros / 1_000_000,
        micros % 1_000_000,
        table::cell(&packet["direction"]),
        table::cell(&packet["length"]),
        table::cell(&packet["qfi"]),
        table::cell(&packet["pdr"]),
        protocol(&packet["protocol"]),
        end(&packet["source"], &packet["sourcePort"]),
        end(&packet["destination"], &packet["destinationPort"]),
        fate(packet)
    )
}

fn protocol(number: &Value) -> String {
    match number.as_u64() {
        Some(1) => "icmp".into(),
        Some(6) => "tcp".into(),
        Some(17) => "udp".into(),
        Some(58) => "icmpv6".into(),
        _ => format!("protocol {number}"),
    }
}

fn end(address: &Value, port: &Value) -> String {
    match port.as_u64() {
        Some(port) => format!("{}:{port}", table::cell(address)),
        None => table::cell(address),
    }
}

fn fate(packet: &Value) -> String {
    let name = packet["fate"].as_str().unwrap_or_default();
    match (packet["reason"].as_str(), packet["tunnel"].as_object()) {
        (Some(reason), _) => format!("dropped, {reason}"),
        (_, Some(tunnel)) => {
            format!("to {} TEID {}", table::cell(&tunnel["peer"]), table::cell(&tunnel["teid"]))
        }
        _ => name.replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_traced_packet_is_printed_on_one_line() {
        let mut packet = json!({
            "number": 1, "afterUs": 1_002_003, "direction": "uplink", "length": 84, "qfi": 9, "pdr": 1,
            "protocol": 17, "source": "10.45.0.2", "sourcePort": 5000, "destination": "192.0.2.1",
            "destinationPort": 53, "fate": "to_network", "reason": null, "tunnel": null,
        });
        let shown = "   1.002003  uplink        84    9    1  udp 10.45.0.2:5000 > 192.0.2.1:53: to network";
        assert_eq!(line(&packet), shown);
        packet["reason"] = "rate_exceeded".into();
        assert!(line(&packet).ends_with("53: dropped, rate_exceeded"));
    }

    #[test]
    fn rates_are_whole_numbers_of_their_unit() {
        for (bps, text) in
            [(1_000_000_000, "1 Gbps"), (1_500_000, "1500 kbps"), (999, "999 bps"), (0, "0 bps")]
        {
            assert_eq!(rate(&json!(bps)), text);
        }
        assert_eq!(rate(&Value::Null), "-");
    }

    #[test]
    fn sessions_show_the_start_of_the_next_page() {
        let session = json!({
            "seid": "0x1", "ipv4": "10.45.0.2", "dnn": "internet", "teids": ["0x00000010"], "downlink": "buffered",
            "tunnels": [], "ambr": { "uplink": 1_000_000, "downlink": null }, "idleMs": 1250,
            "volume": { "uplinkPackets": 1, "uplinkBytes": 84, "downlinkPackets": 2, "downlinkBytes": 168 },
        });
        let text = sessions(&json!({ "total": 2, "sessions": [session], "next": "0x1" }));
        assert!(
            text.contains("0x1   10.45.0.2  -     internet  0x00000010  -     -          buffered\n"),
            "{text}"
        );
        assert!(text.contains("0x1   1 Mbps   -     1           2     84        168   1.2 s\n"), "{text}");
        assert!(text.ends_with("1 of 2 sessions\nmore with --after 0x1\n"), "{text}");
    }
}
