//! Records exchanges as JSON lines, so that a test can hold them against the OpenAPI files.
//!
//! One file a process, one object a line:
//!
//! ```json
//! {"request":{"method":"POST","path":"/nudm-ueau/v1/…","query":"","contentType":"application/json","body":"…"},
//!  "response":{"status":200,"contentType":"application/json","body":"…"}}
//! ```
//!
//! Bodies are hexadecimal, for a part of a multipart body may be binary. The path is that behind the
//! apiRoot. Records hold keys: this is for tests.

use bytes::Bytes;
use pith_sbi::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
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

    /// Notes a request, to be written with its answer.
    pub(super) fn request(&self, http: &HttpRequest) -> Value {
        json!({
            "method": http.method.as_str(),
            "path": http.path,
            "query": http.query,
            "contentType": http.content_type,
            "body": text(&http.body),
        })
    }

    /// Writes an exchange.
    pub(super) fn write(&self, request: &Value, http: &HttpResponse) {
        let response = json!({
            "status": http.status,
            "contentType": http.content_type,
            "location": http.headers.get("location"),
            "body": text(&http.body),
        });
        let line = json!({ "request": request, "response": response });
        let mut file = self.0.borrow_mut();
        if let Err(error) = writeln!(file, "{line}").and_then(|()| file.flush()) {
            tracing::warn!("can't record an exchange: {error}");
        }
    }
}

fn text(body: &Bytes) -> String {
    hex::encode(body)
}
