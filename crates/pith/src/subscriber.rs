//! `pith subscriber`: adds, lists, shows, deletes, imports and exports subscribers by the operator API.

use crate::args::{AddArgs, Cli, Key, KeyArg, SubscriberCommand};
use crate::operator::ManagementClient;
use crate::{config_file, import, table};
use anyhow::{Context, Result, bail};
use pith_crypto::milenage;
use pith_nf::kit::{SubscribedDnn, SubscribedSlice, Subscriber};
use pith_runtime::privileges;
use pith_runtime::signals::Signals;
use pith_runtime::store::Added;
use pith_types::{Ambr, Supi};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufWriter, IsTerminal, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Once;
use zeroize::Zeroizing;

/// Number of subscribers that an export requests at once.
const PAGE: u32 = 5000;

/// Octets of a line with a key at most.
const MAX_LINE: u64 = 1024;

/// Runs a `pith subscriber` command.
pub fn run(command: &SubscriberCommand, cli: &Cli) -> Result<()> {
    privileges::hide_memory().context("cannot forbid core files")?;
    let client = ManagementClient::of_subscribers(cli)?;
    match command {
        SubscriberCommand::Add(args) => add(&client, args, cli),
        SubscriberCommand::List { after, limit } => {
            list(&client, after.as_ref().map(|supi| &supi.0), *limit, cli.json)
        }
        SubscriberCommand::Show { supi, keys } => show(&client, &supi.0, *keys, cli.json),
        SubscriberCommand::Delete { supi, count } => delete(&client, &supi.0, *count, cli.json),
        SubscriberCommand::Import { file, existing } => {
            let subscribers = import::read(file)?;
            warn_of_unknown_references(&subscribers, cli)?;
            let path = format!("/v1/subscribers?existing={existing}");
            let answer = client.post(&path, "application/json", serde_json::to_vec(&subscribers)?.into())?;
            print_added(&client, &answer, cli.json)
        }
        SubscriberCommand::Export { file, lines } => export(&client, file, *lines),
    }
}

fn add(client: &ManagementClient, args: &AddArgs, cli: &Cli) -> Result<()> {
    let mut path = format!("/v1/subscribers?existing={}", args.existing);
    let subscribers = if args.random_keys {
        with_random_keys(args)?
    } else {
        path.push_str(&format!("&count={}", args.count));
        let (k, opc) = given_keys(args, &mut read_key_line)?;
        vec![subscriber(args, args.supi.0.clone(), k, opc)]
    };
    warn_of_unknown_references(&subscribers, cli)?;
    let body = serde_json::to_vec(&subscribers)?;
    print_added(client, &client.post(&path, "application/json", body.into())?, cli.json)
}

/// Warns about slices and data networks of the subscribers that this configuration does not have.
fn warn_of_unknown_references(subscribers: &[Subscriber], cli: &Cli) -> Result<()> {
    for warning in import::unknown_references(subscribers, &config_file::config(cli)?) {
        eprintln!("warning: {warning}");
    }
    Ok(())
}

/// K and OPc from the arguments; OPc is derived from OP if that is given.
fn given_keys(args: &AddArgs, read_line: &mut ReadLine<'_>) -> Result<([u8; 16], [u8; 16])> {
    let k = key(args.k.as_ref().context("'--k' is missing")?, "K", read_line)?;
    let opc = match (&args.opc, &args.op) {
        (Some(opc), _) => key(opc, "OPc", read_line)?,
        (None, Some(op)) => *milenage::opc_from_op(&k.into(), &key(op, "OP", read_line)?.into()).as_bytes(),
        (None, None) => bail!("'--opc' or '--op' is missing"),
    };
    Ok((k, opc))
}

/// Reads the line with the key of that name.
type ReadLine<'a> = dyn FnMut(&str) -> io::Result<String> + 'a;

/// A key of the arguments, or of the next line. An error does not show the line.
fn key(argument: &KeyArg, name: &str, read_line: &mut ReadLine<'_>) -> Result<[u8; 16]> {
    if let KeyArg::Given(key) = argument {
        return Ok(key.0.0);
    }
    let line = Zeroizing::new(read_line(name).context("cannot read standard input")?);
    let key = line.trim().parse::<Key>();
    Ok(key.ok().with_context(|| format!("standard input has no {name} of 32 hexadecimal digits"))?.0.0)
}

/// The next line of standard input. A terminal does not show what is typed.
fn read_key_line(name: &str) -> io::Result<String> {
    if io::stdin().is_terminal() {
        restore_terminal_at_end()?;
        return rpassword::prompt_password(format!("{name}, 32 hexadecimal digits (not shown): "));
    }
    let mut line = String::new();
    io::stdin().lock().take(MAX_LINE).read_line(&mut line)?;
    Ok(line)
}

/// Ends the process at SIGINT, SIGTERM or SIGHUP, with the terminal as it is now: a prompt without echo would leave it without.
fn restore_terminal_at_end() -> io::Result<()> {
    static ONCE: Once = Once::new();
    let before = tcgetattr(io::stdin())?;
    let mut result = Ok(());
    ONCE.call_once(|| {
        result = Signals::hold().and_then(|signals| {
            let wait = move || {
                signals.wait();
                let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
                eprintln!();
                std::process::exit(130);
            };
            std::thread::Builder::new().name("terminal".into()).spawn(wait).map(drop)
        });
    });
    result
}

/// Consecutive subscribers, each with its own random K and OPc.
fn with_random_keys(args: &AddArgs) -> Result<Vec<Subscriber>> {
    let supis = args.supi.0.consecutive(args.count);
    let supis =
        supis.with_context(|| format!("there are no {} SUPIs starting from {}", args.count, args.supi.0))?;
    let with_keys = |supi| Ok(subscriber(args, supi, random_key()?, random_key()?));
    supis.into_iter().map(with_keys).collect()
}

fn random_key() -> Result<[u8; 16]> {
    let mut octets = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut octets))
        .context("cannot read /dev/urandom")?;
    Ok(octets)
}

/// A subscriber with the slices, DNNs, rates and method of the arguments.
fn subscriber(args: &AddArgs, supi: Supi, k: [u8; 16], opc: [u8; 16]) -> Subscriber {
    let ambr = Ambr { uplink: args.uplink, downlink: args.downlink };
    let mut subscriber = Subscriber::with_defaults(supi, k, opc);
    let subscribed_dnn = |dnn: &pith_types::Dnn| SubscribedDnn::new(dnn.clone(), Some(ambr));
    let subscribed_slice = |(index, snssai): (usize, &pith_types::Snssai)| SubscribedSlice {
        snssai: *snssai,
        // The first slice is the default.
        default: index == 0,
        dnns: args.dnns.iter().map(subscribed_dnn).collect(),
    };
    subscriber.slices = args.slices.iter().enumerate().map(subscribed_slice).collect();
    subscriber.ambr = ambr;
    subscriber.authentication.method = args.method.into();
    subscriber
}

/// Prints how many subscribers were added, replaced and kept.
fn print_added(client: &ManagementClient, answer: &Value, json: bool) -> Result<()> {
    eprintln!("{}", client.target());
    if json {
        println!("{answer}");
        return Ok(());
    }
    let Added { added, replaced, kept } = serde_json::from_value(answer.clone())?;
    let counts = [(added, "added"), (replaced, "replaced"), (kept, "kept")];
    let shown = counts.iter().filter(|(count, what)| *count > 0 || *what == "added");
    println!("{}", shown.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", "));
    Ok(())
}

fn list(client: &ManagementClient, after: Option<&Supi>, limit: u32, json: bool) -> Result<()> {
    let mut path = format!("/v1/subscribers?limit={limit}");
    if let Some(after) = after {
        path.push_str(&format!("&after={after}"));
    }
    let page = client.get(&path)?;
    if json {
        println!("{page}");
        return Ok(());
    }
    let rows: Vec<_> = page["subscribers"].as_array().into_iter().flatten().map(row).collect();
    let headings = ["SUPI", "METHOD", "SLICES", "DNNS", "UPLINK", "DOWNLINK"].map(String::from);
    if !rows.is_empty() {
        print!("{}", table::render(&headings, &rows));
    }
    println!("{} of {} subscribers", rows.len(), page["total"]);
    if let Some(next) = page["next"].as_str() {
        println!("more: pith subscriber list --after {next}");
    }
    Ok(())
}

/// The table row of a subscriber.
fn row(subscriber: &Value) -> Vec<String> {
    let slices: Vec<_> = subscriber["slices"].as_array().into_iter().flatten().collect();
    let text = |value: &Value| table::cell(value);
    let snssai = |slice: &&Value| match &slice["snssai"]["sd"] {
        Value::String(sd) => format!("{}-{sd}", slice["snssai"]["sst"]),
        _ => slice["snssai"]["sst"].to_string(),
    };
    let mut dnns = Vec::new();
    for dnn in slices.iter().filter_map(|slice| slice["dnns"].as_array()).flatten() {
        let name = text(&dnn["dnn"]);
        if !dnns.contains(&name) {
            dnns.push(name);
        }
    }
    vec![
        text(&subscriber["supi"]),
        text(&subscriber["authentication"]["method"]),
        slices.iter().map(snssai).collect::<Vec<_>>().join(", "),
        dnns.join(", "),
        text(&subscriber["ambr"]["uplink"]),
        text(&subscriber["ambr"]["downlink"]),
    ]
}

fn show(client: &ManagementClient, supi: &Supi, keys: bool, json: bool) -> Result<()> {
    let subscriber = client.get(&format!("/v1/subscribers/{supi}?keys={keys}"))?;
    if json {
        println!("{subscriber}");
    } else {
        println!("{subscriber:#}");
    }
    Ok(())
}

fn delete(client: &ManagementClient, supi: &Supi, count: Option<u64>, json: bool) -> Result<()> {
    let answer = match count {
        Some(count) => client.delete(&format!("/v1/subscribers/{supi}?count={count}"))?,
        None => client.delete(&format!("/v1/subscribers/{supi}")).map(|_| json!({ "deleted": 1 }))?,
    };
    if json {
        println!("{answer}");
    } else {
        println!("{} deleted", answer["deleted"]);
    }
    Ok(())
}

fn export(client: &ManagementClient, path: &Path, lines: bool) -> Result<()> {
    if path == Path::new("-") {
        return write_all(client, lines, &mut BufWriter::new(io::stdout().lock())).map(|_| ());
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    let file = file.with_context(|| format!("cannot write {}", path.display()))?;
    // `mode` applies only to a new file; an existing file keeps its mode when it is opened.
    file.set_permissions(Permissions::from_mode(0o600))?;
    let mut file = BufWriter::new(file);
    let count = write_all(client, lines, &mut file)?;
    eprintln!("exported {count} subscribers, with secret keys, to {}", path.display());
    Ok(())
}

/// Writes all subscribers with their keys, as a JSON array or, with `lines`, as one JSON object a line. Returns their number.
fn write_all(client: &ManagementClient, lines: bool, out: &mut impl Write) -> Result<u64> {
    let (open, separator, close) = if lines { ("", "\n", "\n") } else { ("[\n", ",\n", "\n]\n") };
    let mut count = 0;
    let mut after = String::new();
    write!(out, "{open}")?;
    loop {
        let page = client.get(&format!("/v1/subscribers?keys=true&limit={PAGE}{after}"))?;
        for subscriber in page["subscribers"].as_array().into_iter().flatten() {
            let separator = if count == 0 { "" } else { separator };
            write!(out, "{separator}{subscriber}")?;
            count += 1;
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    write!(out, "{}", if count == 0 && lines { "" } else { close })?;
    out.flush()?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn keys_come_from_standard_input_in_their_order() {
        let line = "pith subscriber add 999700000000001 --k - --opc -";
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        let crate::args::Command::Subscriber(SubscriberCommand::Add(args)) = &cli.command else { panic!() };
        let (k, opc) = ("465B5CE8B199B49FAA5F0A2EE238A6BC", "E8ED289DEBA952E4283B54E88E6183CA");
        let read = |text: &str| {
            let mut lines = text.lines();
            given_keys(args, &mut |_| Ok(lines.next().unwrap_or_default().to_owned()))
        };
        let keys = read(&format!("{k}\n{opc}\n")).unwrap();
        assert_eq!((keys.0[0], keys.1[0]), (0x46, 0xe8));
        let error = read(&format!("{k}\n")).unwrap_err().to_string();
        assert!(error.contains("OPc") && !error.contains("465B"), "{error}");
        let error = read("465B5CE8B199B49FAA5F0A2EE238A6B\n").unwrap_err().to_string();
        assert!(!error.contains("465B"), "{error}");
    }
}
