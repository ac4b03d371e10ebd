//! `pith session list|branch|unbranch`.

use crate::args::{Cli, SessionCommand};
use crate::list::{self, SESSIONS};
use crate::operator::Operator;
use anyhow::{Context, Result, bail};
use pith_types::Supi;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a session may take to change its path: gNB and UPFs have a say.
const PATIENCE: Duration = Duration::from_secs(15);

/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// Does what the command line says.
pub fn run(command: &SessionCommand, cli: &Cli) -> Result<()> {
    match command {
        SessionCommand::List => list::run(&SESSIONS, cli),
        SessionCommand::Branch { supi, id, upf, to } => {
            let operator = Operator::of_running_core(cli, Some("smf"))?;
            let destinations: Vec<String> = to.iter().map(ToString::to_string).collect();
            let body = json!({ "upf": upf, "destinations": destinations }).to_string();
            operator.put(&path(&supi.0, *id), "application/json", body.into())?;
            let session = settled(&operator, &supi.0, *id)?;
            if session["frontUpf"] != json!(upf) {
                bail!("the session stays as it was: the log of the SMF says why");
            }
            tell(cli, &session, &format!("packets for {} leave at {upf}", destinations.join(", ")));
            Ok(())
        }
        SessionCommand::Unbranch { supi, id } => {
            let operator = Operator::of_running_core(cli, Some("smf"))?;
            operator.delete(&path(&supi.0, *id))?;
            let session = settled(&operator, &supi.0, *id)?;
            let said = match (session["frontUpf"].is_null(), session["userPlane"] == json!("active")) {
                (true, _) => "all packets go by the anchor",
                (false, false) => "all packets will go by the anchor when the UE is connected next",
                (false, true) => bail!("the session stays as it was: the log of the SMF says why"),
            };
            tell(cli, &session, said);
            Ok(())
        }
    }
}

fn path(supi: &Supi, id: u8) -> String {
    format!("/v1/sessions/{supi}/{id}/breakout")
}

/// The session, when its path does not change any more.
fn settled(operator: &Operator, supi: &Supi, id: u8) -> Result<Value> {
    let until = Instant::now() + PATIENCE;
    loop {
        let sessions = operator.get("/v1/sessions")?;
        let is_it = |session: &&Value| {
            session["supi"] == json!(supi.to_string()) && session["pduSessionId"] == json!(id)
        };
        let session = sessions.as_array().into_iter().flatten().find(is_it);
        let session = session.context("the session has ended")?;
        if session["state"] != json!("branching") {
            return Ok(session.clone());
        }
        if Instant::now() > until {
            bail!("the session is still changing: gNB or UPF do not answer");
        }
        sleep(LOOK);
    }
}

fn tell(cli: &Cli, session: &Value, said: &str) {
    match cli.json {
        true => println!("{session}"),
        false => println!("{said}"),
    }
}
