//! Records exchanges as JSON lines, so that a test can check them against the OpenAPI files.
//!
//! Each process writes one file, with a line for each request and each response, in the format of
//! `tests/openapi/README.md`. Records contain keys: for tests only.

use crate::private_file;
use pith_sbi::{HttpRequest, HttpResponse};
use std::cell::RefCell;
use std::fs::{DirBuilder, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Environment variable with the directory for records, if the configuration has none.
pub const RECORD_VARIABLE: &str = "PITH_SBI_RECORD";

/// Writes requests and responses of a server.
pub struct Recorder(RefCell<BufWriter<File>>);

impl Recorder {
    /// Creates a file in the directory.
    pub fn new(directory: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = directory.join(format!("sbi-{}.jsonl", std::process::id()));
        let file = private_file::append(&path)?;
        Ok(Self(RefCell::new(BufWriter::new(file))))
    }

    /// Writes an exchange.
    pub(super) fn write(&self, request: &HttpRequest, answer: &HttpResponse) {
        let (asked, answered) = (request.to_record(), answer.to_record(request));
        let mut file = self.0.borrow_mut();
        if let Err(error) = writeln!(file, "{asked}\n{answered}").and_then(|()| file.flush()) {
            tracing::warn!("cannot record an exchange: {error}");
        }
    }
}
