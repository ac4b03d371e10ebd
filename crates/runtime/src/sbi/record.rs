//! Records exchanges as JSON lines, so that a test can hold them against the OpenAPI files.
//!
//! One file a process; a line for each request and one for its answer, in the form that
//! `tests/openapi/README.md` describes. Records hold keys: this is for tests.

use pith_sbi::{HttpRequest, HttpResponse};
use std::cell::RefCell;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Names the directory to record in, where the configuration names none.
pub const RECORD_VARIABLE: &str = "PITH_SBI_RECORD";

/// Writes what a server was asked and answered.
pub struct Recorder(RefCell<BufWriter<File>>);

impl Recorder {
    /// One that writes to a new file of that directory.
    pub fn new(directory: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = directory.join(format!("sbi-{}.jsonl", std::process::id()));
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        Ok(Self(RefCell::new(BufWriter::new(file))))
    }

    /// Writes an exchange.
    pub(super) fn write(&self, request: &HttpRequest, answer: &HttpResponse) {
        let (asked, answered) = (request.to_record(), answer.to_record(request));
        let mut file = self.0.borrow_mut();
        if let Err(error) = writeln!(file, "{asked}\n{answered}").and_then(|()| file.flush()) {
            tracing::warn!("can't record an exchange: {error}");
        }
    }
}
