//! `pith-world kill`: the command line of `make kill`.

use pith_world::{
    Breach, BreachKind, BrokenRun, Kill, Options, PROCEDURES, Residency, Row, Table, Victim, campaign,
};
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

/// How to use it.
pub const USAGE: &str = "usage: pith-world kill [--seeds A..B] [--procedure NAME] [--residency durable|soft|procedural|stateless|shared|embedded|all] [--victim core|shard|move|instance|split|NF] [--retain-ues] [--stride N] [--threads N] [--json FILE] [--list]
       pith-world kill NAME --residency R --victim V --seed N --point N [--retain-ues] [--ladder]";

/// Failures that are printed for each row.
const SHOWN: usize = 3;

#[derive(Debug)]
struct Arguments {
    options: Options,
    point: Option<u64>,
    ladder: bool,
    list: bool,
    json: Option<String>,
}

/// Runs the command.
pub fn run(words: impl Iterator<Item = String>) -> ExitCode {
    // Panics are failures of their run, which are listed at the end.
    std::panic::set_hook(Box::new(|_| {}));
    match parse(words) {
        Some(arguments) if arguments.list => {
            PROCEDURES.iter().for_each(|procedure| println!("{}", procedure.name));
            ExitCode::SUCCESS
        }
        Some(arguments) if arguments.point.is_some() => replay(&arguments),
        Some(arguments) => kill_all(&arguments),
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let options = Options {
        seeds: (0, 8),
        residencies: Residency::STORED.into(),
        victims: vec![Victim::Core],
        procedure: None,
        stride: 1,
        threads: 2,
        retains_ues: false,
    };
    let mut arguments = Arguments { options, point: None, ladder: false, list: false, json: None };
    while let Some(word) = words.next() {
        let Arguments { options, point, ladder, list, json } = &mut arguments;
        match word.as_str() {
            "--seeds" => options.seeds = range(&words.next()?)?,
            "--seed" => options.seeds = range(&words.next()?)?,
            "--procedure" => options.procedure = Some(words.next()?),
            "--residency" => options.residencies = residencies(&words.next()?)?,
            "--victim" => options.victims = victims(&words.next()?)?,
            "--stride" => options.stride = words.next()?.parse().ok()?,
            "--threads" => options.threads = words.next()?.parse().ok()?,
            "--point" => *point = Some(words.next()?.parse().ok()?),
            "--json" => *json = Some(words.next()?),
            "--ladder" => *ladder = true,
            "--retain-ues" => options.retains_ues = true,
            "--list" => *list = true,
            name if PROCEDURES.iter().any(|procedure| procedure.name == name) => {
                options.procedure = Some(word);
            }
            _ => return None,
        }
    }
    Some(arguments)
}

/// `A..B`, or one seed.
fn range(text: &str) -> Option<(u64, u64)> {
    match text.split_once("..") {
        Some((from, to)) => Some((from.parse().ok()?, to.parse().ok()?)),
        None => text.parse().ok().map(|seed: u64| (seed, seed.saturating_add(1))),
    }
}

fn residencies(text: &str) -> Option<Vec<Residency>> {
    match text {
        "all" => Some(Residency::STORED.into()),
        name => Residency::STORED.into_iter().find(|it| it.name() == name).map(|it| vec![it]),
    }
}

fn victims(text: &str) -> Option<Vec<Victim>> {
    let split = Victim::split();
    match text {
        "core" => Some(vec![Victim::Core]),
        "shard" => Some(vec![Victim::Shard]),
        "move" => Some(vec![Victim::Move]),
        "instance" => Some(vec![Victim::Instance]),
        "split" => Some(split),
        name => split.into_iter().find(|victim| victim.to_string() == name).map(|victim| vec![victim]),
    }
}

/// Runs one crash point again.
fn replay(arguments: &Arguments) -> ExitCode {
    let Arguments { options, point, ladder, .. } = arguments;
    let wanted = options.procedure.as_deref();
    let procedure = PROCEDURES.iter().find(|procedure| Some(procedure.name) == wanted);
    let (Some(procedure), Some(point)) = (procedure, point) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (seed, residency, victim) = (options.seeds.0, options.residencies[0], options.victims[0]);
    let kill = Kill { procedure, seed, residency, victim, retains_ues: options.retains_ues };
    let (result, world) = kill.crash_at(*point, *ladder);
    if let (Some(world), true) = (world, ladder) {
        world.ladder().iter().for_each(|entry| println!("{entry}"));
    }
    match result {
        Ok(_) => {
            println!("{kill} --point {point}: all invariants hold");
            ExitCode::SUCCESS
        }
        Err(Breach { kind, failure }) => {
            let at = failure.at.as_micros() as f64 / 1e6;
            println!("{kill} --point {point}: {kind:?} at {at:.3} s: {}", failure.what);
            ExitCode::FAILURE
        }
    }
}

fn kill_all(arguments: &Arguments) -> ExitCode {
    let started = Instant::now();
    let shown = Mutex::new(started);
    let table = campaign(&arguments.options, &|done, all, table| {
        let Ok(mut shown) = shown.lock() else { return };
        if shown.elapsed().as_secs() >= 2 || done == all {
            *shown = Instant::now();
            let (points, failures) = sums(table);
            eprint!("\r{done} of {all} worlds, {points} crash points, {failures} failures ");
            let _ = std::io::stderr().flush();
        }
    });
    eprintln!();
    print(&table);
    let (points, failures) = sums(&table);
    println!("{points} crash points, {failures} failures, {:.0} s", started.elapsed().as_secs_f64());
    if let Some(path) = &arguments.json
        && let Err(error) = std::fs::write(path, report(arguments, &table, started).to_string() + "\n")
    {
        eprintln!("{path}: {error}");
        return ExitCode::FAILURE;
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn sums(table: &Table) -> (u64, usize) {
    (table.values().map(|row| row.points).sum(), table.values().map(Row::failures).sum())
}

/// Columns of the table.
const KINDS: [(&str, BreachKind); 5] = [
    ("lost", BreachKind::Loss),
    ("reused", BreachKind::Reuse),
    ("leaked", BreachKind::Leak),
    ("disagreed", BreachKind::Disagreement),
    ("violated", BreachKind::Violation),
];

fn print(table: &Table) {
    print!("{:<36} {:<10} {:<6} {:>7}", "procedure", "residency", "victim", "points");
    KINDS.iter().for_each(|(name, _)| print!(" {name:>9}"));
    println!(" {:>9}", "failures");
    for ((at, residency, victim), row) in table {
        let (residency, victim) = (residency.name(), victim.to_string());
        print!("{:<36} {residency:<10} {victim:<6} {:>7}", PROCEDURES[*at].name, row.points);
        KINDS.iter().for_each(|(_, kind)| print!(" {:>9}", row.count(*kind)));
        println!(" {:>9}", row.failures());
    }
    for row in table.values() {
        for BrokenRun { run, what, .. } in row.broken.iter().filter(|broken| broken.is_failure).take(SHOWN) {
            println!("{run}: {what}");
        }
    }
}

fn report(arguments: &Arguments, table: &Table, started: Instant) -> Value {
    let rows: Vec<_> = table
        .iter()
        .map(|((at, residency, victim), row)| {
            let broken = row.broken.iter().map(|BrokenRun { run, kind, is_failure, what }| {
                let kind = KINDS.iter().find(|(_, of)| of == kind).map(|(name, _)| *name);
                json!({ "run": run, "kind": kind, "failure": is_failure, "what": what })
            });
            json!({
                "procedure": PROCEDURES[*at].name,
                "residency": residency.name(),
                "victim": victim.to_string(),
                "points": row.points,
                "failures": row.failures(),
                "broken": broken.collect::<Vec<_>>(),
            })
        })
        .collect();
    let (points, failures) = sums(table);
    let seeds = [arguments.options.seeds.0, arguments.options.seeds.1];
    let seconds = started.elapsed().as_secs();
    json!({ "points": points, "failures": failures, "seeds": seeds, "seconds": seconds, "rows": rows })
}
