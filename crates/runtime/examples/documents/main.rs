//! Measures engines for documents: `documents [--documents N] [--batch N] [--seconds N] [--rate BATCHES] [log|sqlite]`.
//!
//! ```text
//! cargo run --release -p pith-runtime --example documents
//! cargo run --release -p pith-runtime --example documents -- --documents 100000 --rate 10000 --seconds 60 log
//! ```

mod bench;

fn main() -> anyhow::Result<()> {
    bench::run(&[("log", bench::log), ("sqlite", bench::sqlite)])
}
