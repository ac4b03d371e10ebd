//! `pith session list|branch|unbranch`.

use crate::args::{Cli, SessionCommand};
use crate::list::{self, SESSIONS};
use crate::operator::ManagementClient;
use anyhow::{Context, Result, bail};
use pith_types::Supi;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time for a session to change its path, which involves gNB and UPFs.
const PATIENCE: Duration = Duration::from_secs(15);

/// Interval of queries during that time.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a command on PDU sessions.
pub fn run(command: &SessionCommand, cli: &Cli) -> Result<()> {
    match command {
        SessionCommand::List => list::run(&SESSIONS, cli),
        SessionCommand::Branch { supi, id, upf, to } => {
            let client = ManagementClient::of_running_core(cli, Some("smf"))?;
            let destinations: Vec<String> = to.iter().map(ToString::to_string).collect();
            let body = json!({ "upf": upf, "destinations": destinations }).to_string();
            client.put(&path(&supi.0, *id), "application/json", body.into())?;
            let session = settled(&client, &supi.0, *id)?;
            if session["frontUpf"] != json!(upf) {
                bail!("the session is unchanged: see the log of the SMF for the reason");
            }
            print_result(
                cli,
                &session,
                &format!("packets to {} leave at UPF {upf}", destinations.join(", ")),
            );
            Ok(())
        }
        SessionCommand::Unbranch { supi, id } => {
            let client = ManagementClient::of_running_core(cli, Some("smf"))?;
            client.delete(&path(&supi.0, *id))?;
            let session = settled(&client, &supi.0, *id)?;
            let said = match (session["frontUpf"].is_null(), session["userPlane"] == json!("active")) {
                (true, _) => "all packets use the anchor",
                (false, false) => "all packets will use the anchor once the UE is connected again",
                (false, true) => bail!("the session is unchanged: see the log of the SMF for the reason"),
            };
            print_result(cli, &session, said);
            Ok(())
        }
    }
}

fn path(supi: &Supi, id: u8) -> String {
    format!("/v1/sessions/{supi}/{id}/breakout")
}

/// Waits until the session's path is stable, and returns the session.
fn settled(client: &ManagementClient, supi: &Supi, id: u8) -> Result<Value> {
    let until = Instant::now() + PATIENCE;
    loop {
        let sessions = client.list(&format!("/v1/sessions?supi={supi}"))?;
        let is_it = |session: &&Value| {
            session["supi"] == json!(supi.to_string()) && session["pduSessionId"] == json!(id)
        };
        let session = sessions.iter().find(is_it);
        let session = session.context("the session has ended")?;
        if session["state"] != json!("branching") {
            return Ok(session.clone());
        }
        if Instant::now() > until {
            bail!("the session has not completed its change: a gNB or UPF does not answer");
        }
        sleep(LOOK);
    }
}

fn print_result(cli: &Cli, session: &Value, text: &str) {
    if cli.json {
        println!("{session}");
    } else {
        println!("{text}");
    }
}
