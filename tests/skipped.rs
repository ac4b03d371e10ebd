//! A test that can't run on this machine says so: `skipped("no right to make a network namespace")`, and returns.
//!
//! Rust's test runner knows no such outcome and counts the test as passed. `scripts/test` names a file in
//! `PITH_SKIPPED`; what is written there is taken from the passed tests and reported as skipped, with its reason.

/// Reports the running test as skipped.
#[allow(dead_code)]
pub fn skipped(reason: &str) {
    report("", reason);
}

/// Reports a case of the running test as skipped; the test itself counts by its other cases.
#[allow(dead_code)]
pub fn case_skipped(reason: &str) {
    report("a case of ", reason);
}

fn report(part: &str, reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    eprintln!("skipped: {reason}");
    let Some(file) = std::env::var_os("PITH_SKIPPED") else { return };
    let line = format!("{part}{test}: {reason}\n");
    let file = std::fs::OpenOptions::new().create(true).append(true).open(file);
    if let Err(error) = file.and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes())) {
        eprintln!("can't report the skipped test: {error}");
    }
}
