//! `pith qos list|add|remove`: PCC rules of an operator.

use crate::args::{Cli, QosCommand};
use crate::operator::ManagementClient;
use crate::table;
use anyhow::{Context, Result, bail};
use pith_types::{BitRate, Supi};
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time for PCF, SMF and UPF to change a session.
const PATIENCE: Duration = Duration::from_secs(5);

/// Interval of queries during that time.
const LOOK: Duration = Duration::from_millis(20);

/// Columns of the list.
const COLUMNS: &[(&str, &str)] = &[
    ("SUPI", "/supi"),
    ("ID", "/pduSessionId"),
    ("QFI", "/qfi"),
    ("5QI", "/fiveQi"),
    ("ARP", "/arp"),
    ("GUARANTEED UP", "/guaranteedUplink"),
    ("DOWN", "/guaranteedDownlink"),
    ("REFLECTIVE", "/reflective"),
    ("RULES", "/rules"),
];

/// Runs a command on QoS flows.
pub fn run(command: &QosCommand, cli: &Cli) -> Result<()> {
    match command {
        QosCommand::List => list(cli),
        QosCommand::Add {
            supi,
            id,
            name,
            five_qi,
            guaranteed,
            maximum,
            priority,
            precedence,
            flow,
            reflective,
        } => {
            let rates = |rate: Option<BitRate>| rate.map(|rate| json!({ "uplink": rate, "downlink": rate }));
            let body = json!({
                "fiveQi": five_qi,
                "priorityLevel": priority,
                "precedence": precedence,
                "guaranteed": rates(*guaranteed),
                "maximum": rates(*maximum),
                "flows": flow,
                "reflective": reflective,
            });
            let pcf = ManagementClient::of_running_core(cli, Some("pcf"))?;
            pcf.put(&path(&supi.0, *id, name), "application/json", body.to_string().into())?;
            let Settled::Done(flow) = settled(cli, &supi.0, *id, name, true)? else {
                return print_pending(cli, name);
            };
            let qfi = flow.as_ref().map_or(Value::Null, |flow| flow["qfi"].clone());
            print_result(cli, flow, &format!("the packets of rule {name} use QoS flow {qfi}"));
            Ok(())
        }
        QosCommand::Remove { supi, id, name } => {
            let pcf = ManagementClient::of_running_core(cli, Some("pcf"))?;
            pcf.delete(&path(&supi.0, *id, name))?;
            match settled(cli, &supi.0, *id, name, false)? {
                Settled::Pending => print_pending(cli, name),
                Settled::Done(_) => {
                    print_result(cli, None, &format!("rule {name} is removed"));
                    Ok(())
                }
            }
        }
    }
}

fn path(supi: &Supi, id: u8, name: &str) -> String {
    format!("/v1/sessions/{supi}/{id}/rules/{name}")
}

/// Prints the flows of all sessions.
fn list(cli: &Cli) -> Result<()> {
    let sessions = ManagementClient::of_running_core(cli, Some("smf"))?.list("/v1/sessions")?;
    let flows_of = |session: &Value| {
        let (supi, id) = (session["supi"].clone(), session["pduSessionId"].clone());
        let flows = session["qosFlows"].as_array().cloned().unwrap_or_default();
        flows.into_iter().map(move |mut flow| {
            flow["supi"] = supi.clone();
            flow["pduSessionId"] = id.clone();
            flow
        })
    };
    let flows: Vec<Value> = sessions.iter().flat_map(flows_of).collect();
    if cli.json {
        println!("{}", Value::Array(flows));
        return Ok(());
    }
    if !flows.is_empty() {
        print!("{}", table::of_objects(COLUMNS, &flows));
    }
    println!("{} QoS {}", flows.len(), if flows.len() == 1 { "flow" } else { "flows" });
    Ok(())
}

/// What has become of a rule.
enum Settled {
    /// The session has it, with this flow, or no longer has it.
    Done(Option<Value>),
    /// The SMF has the decision, and another modification of the session is in progress.
    Pending,
}

/// Waits until the SMF has the rule, or no longer has it.
fn settled(cli: &Cli, supi: &Supi, id: u8, name: &str, is_wanted: bool) -> Result<Settled> {
    let smf = ManagementClient::of_running_core(cli, Some("smf"))?;
    let until = Instant::now() + PATIENCE;
    let rule = json!(format!("operator-{name}"));
    loop {
        let sessions = smf.list(&format!("/v1/sessions?supi={supi}"))?;
        let session = sessions.iter().find(|session| session["pduSessionId"] == json!(id));
        let session = session.context("the session has ended")?;
        let flows = session["qosFlows"].as_array();
        let mut bound = flows.into_iter().flatten();
        let flow = bound.find(|flow| flow["rules"].as_array().is_some_and(|rules| rules.contains(&rule)));
        if flow.is_some() == is_wanted {
            return Ok(Settled::Done(flow.cloned()));
        }
        if Instant::now() > until {
            if session["pendingRules"].as_array().is_some_and(|pending| pending.contains(&rule)) {
                return Ok(Settled::Pending);
            }
            bail!("the session is unchanged: see the log of PCF and SMF for the reason");
        }
        sleep(LOOK);
    }
}

/// The PCF keeps the rule; the SMF changes the session when the UE has answered, or does not answer, the command before.
fn print_pending(cli: &Cli, name: &str) -> Result<()> {
    if cli.json {
        println!("{}", json!({ "pending": true }));
    } else {
        println!(
            "rule {name} is accepted and pending: the UE has not answered another change of the session; 'pith qos list' shows the result"
        );
    }
    Ok(())
}

fn print_result(cli: &Cli, flow: Option<Value>, text: &str) {
    match flow {
        Some(flow) if cli.json => println!("{flow}"),
        _ if cli.json => println!("null"),
        _ => println!("{text}"),
    }
}
