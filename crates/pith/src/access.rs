//! `pith api token` and `pith audit`.

use crate::args::{Cli, TokenCommand};
use crate::operator::ManagementClient;
use crate::table;
use anyhow::Result;
use serde_json::json;

/// Runs a command on API tokens.
pub fn tokens(command: &TokenCommand, cli: &Cli) -> Result<()> {
    let client = ManagementClient::of_subscribers(cli)?;
    match command {
        TokenCommand::Add { name, role } => {
            let body = json!({ "name": name, "role": role }).to_string();
            let issued = client.post("/v1/tokens", "application/json", body.into())?;
            if cli.json {
                println!("{issued}");
            } else {
                println!("{}", table::cell(&issued["token"]));
                eprintln!(
                    "token {} with role {role}; the token is shown only once",
                    table::cell(&issued["id"])
                );
            }
        }
        TokenCommand::List => {
            let columns = [("ID", "/id"), ("NAME", "/name"), ("ROLE", "/role"), ("CREATED", "/created")];
            list(&client, "/v1/tokens", &columns, ["token", "tokens"], cli.json)?;
        }
        TokenCommand::Revoke { id } => {
            client.delete(&format!("/v1/tokens/{id}"))?;
            if !cli.json {
                println!("token {id} is revoked");
            }
        }
    }
    Ok(())
}

/// Prints the audit log.
pub fn audit(limit: u32, denied: Option<bool>, cli: &Cli) -> Result<()> {
    let columns = [
        ("TIME", "/time"),
        ("WHO", "/who"),
        ("FROM", "/from"),
        ("OPERATION", "/operation"),
        ("TARGET", "/target"),
        ("STATE", "/state"),
        ("STATUS", "/status"),
    ];
    let denied = denied.map(|denied| format!("&denied={denied}")).unwrap_or_default();
    let path = format!("/v1/audit?limit={limit}{denied}");
    list(&ManagementClient::of_subscribers(cli)?, &path, &columns, ["entry", "entries"], cli.json)
}

fn list(
    client: &ManagementClient,
    path: &str,
    columns: &[(&str, &str)],
    what: [&str; 2],
    json: bool,
) -> Result<()> {
    let answer = client.get(path)?;
    if json {
        println!("{answer}");
        return Ok(());
    }
    let entries = answer.as_array().cloned().unwrap_or_default();
    if !entries.is_empty() {
        print!("{}", table::of_objects(columns, &entries));
    }
    println!("{} {}", entries.len(), what[usize::from(entries.len() != 1)]);
    Ok(())
}
