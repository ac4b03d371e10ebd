//! Repository checks that rustc and clippy don't make: `cargo run -p xtask -- tidy`.
//!
//! - `tidy`: bands, purity, isolation of the NFs from each other, `unsafe`, citations, names in documents, wording.
//! - `deny`: the licences of all dependencies and the crates that this project avoids.

mod bands;
mod deny;
mod docs;
mod sources;
mod voice;

use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    match problems() {
        Ok(problems) if problems.is_empty() => {
            println!("in order");
            ExitCode::SUCCESS
        }
        Ok(problems) => {
            problems.iter().for_each(|problem| eprintln!("{problem}"));
            eprintln!("{} problems", problems.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn problems() -> Result<Vec<String>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    Ok(match std::env::args().nth(1).as_deref() {
        Some("tidy") => {
            [bands::check(&root)?, sources::check(&root)?, docs::check(&root)?, voice::check(&root)?].concat()
        }
        Some("deny") => deny::check(&root)?,
        _ => bail!(
            "say what to check: 'tidy' (bands, purity, isolation, citations, documents) or 'deny' (licences, avoided crates)"
        ),
    })
}
