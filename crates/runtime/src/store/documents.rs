//! Documents: the resources of Nudr_DataRepository that NFs store for a UE.
//!
//! A UE's documents are in memory from the first request for one of them. Those of a database file are written to the file as
//! well, in the transaction of their batch.

use super::{Database, DatabaseError};
use pith_nf::kit::{StoreRequest, StoreResponse, has_room};
use pith_types::Supi;
use rusqlite::{Connection, params};
use std::collections::HashMap;

/// Largest number of UEs whose documents are in memory as well as in the file.
const CACHED_UES: usize = 1 << 16;

/// The documents of UEs.
#[derive(Debug)]
pub(super) struct Documents {
    of: HashMap<Supi, Vec<Document>>,
    /// Whether the database has them too: `of` is a cache. Otherwise they are nowhere else.
    are_in_file: bool,
}

#[derive(Debug)]
struct Document {
    /// Its path below the UE.
    resource: Box<str>,
    /// JSON.
    body: Box<str>,
}

impl Documents {
    pub(super) fn new(are_in_file: bool) -> Self {
        Self { of: HashMap::new(), are_in_file }
    }

    /// Drops copies that the file may contradict.
    pub(super) fn roll_back(&mut self) {
        if self.are_in_file {
            self.of.clear();
        }
    }

    /// The UE's documents, ordered by resource, for reading.
    fn of(&mut self, connection: &Connection, supi: &Supi) -> Result<&[Document], DatabaseError> {
        if !self.are_in_file {
            return Ok(self.of.get(supi).map_or(&[], Vec::as_slice));
        }
        Ok(self.of_mut(connection, supi)?)
    }

    /// The UE's documents, ordered by resource, for writing.
    fn of_mut(&mut self, connection: &Connection, supi: &Supi) -> Result<&mut Vec<Document>, DatabaseError> {
        if self.are_in_file && !self.of.contains_key(supi) {
            let sql = "SELECT resource, body FROM document WHERE supi = ?1 ORDER BY resource";
            let mut select = connection.prepare_cached(sql)?;
            let rows = select.query_map([supi.as_str()], |row| {
                let (resource, body): (String, String) = (row.get(0)?, row.get(1)?);
                Ok(Document { resource: resource.into(), body: body.into() })
            })?;
            let documents = rows.collect::<Result<_, _>>()?;
            if self.of.len() >= CACHED_UES {
                self.of.clear();
            }
            self.of.insert(supi.clone(), documents);
        }
        Ok(self.of.entry(supi.clone()).or_default())
    }
}

/// The place of a document, or where it would be.
fn place(documents: &[Document], resource: &str) -> Result<usize, usize> {
    documents.binary_search_by(|document| (*document.resource).cmp(resource))
}

impl Database {
    /// Executes a request of the UDR.
    pub(crate) fn handle(&mut self, request: &StoreRequest) -> Result<StoreResponse, DatabaseError> {
        let done = |created_or_found| StoreResponse::Done { created_or_found };
        Ok(match request {
            StoreRequest::Subscriber(supi) => StoreResponse::Subscriber(self.subscriber(supi)?),
            StoreRequest::PutSequenceNumber { supi, sqn, expected } => {
                done(self.put_sequence_number(supi, *sqn, *expected)?)
            }
            StoreRequest::Document { supi, resource } => {
                StoreResponse::Document(self.document(supi, resource)?)
            }
            StoreRequest::Documents { supi, prefix } => {
                StoreResponse::Documents(self.documents_below(supi, prefix)?)
            }
            StoreRequest::PutDocument { supi, resource, body } => self.put_document(supi, resource, body)?,
            StoreRequest::ReplaceDocument { supi, resource, expected, body } => {
                done(self.replace_document(supi, resource, (expected, body))?)
            }
            StoreRequest::DeleteDocument { supi, resource } => done(self.delete_document(supi, resource)?),
            StoreRequest::Changed { after, limit } => StoreResponse::Changed(self.changed(*after, *limit)?),
            StoreRequest::ForgetChanged { numbers } => done(self.forget_changed(numbers)?),
        })
    }

    fn document(&mut self, supi: &Supi, resource: &str) -> Result<Option<String>, DatabaseError> {
        let documents = self.documents.of(&self.connection, supi)?;
        let found = place(documents, resource).ok().and_then(|at| documents.get(at));
        Ok(found.map(|document| document.body.to_string()))
    }

    fn documents_below(&mut self, supi: &Supi, prefix: &str) -> Result<Vec<(String, String)>, DatabaseError> {
        let documents = self.documents.of(&self.connection, supi)?;
        let below = documents.iter().filter(|document| document.resource.starts_with(prefix));
        Ok(below.map(|document| (document.resource.to_string(), document.body.to_string())).collect())
    }

    /// Creates or replaces a document.
    fn put_document(
        &mut self,
        supi: &Supi,
        resource: &str,
        body: &str,
    ) -> Result<StoreResponse, DatabaseError> {
        let documents = self.documents.of(&self.connection, supi)?;
        let place = place(documents, resource);
        if place.is_err() && !has_room(resource, documents.iter().map(|document| &*document.resource)) {
            return Ok(StoreResponse::Full);
        }
        // Documents of a deleted subscriber stay until AMF and SMFs were notified: some two hours if the AMF does not answer, or beyond that until the
        // UDR has started again. They change no more, except that NFs delete them or mark them as purged.
        if !self.is_subscriber(supi)? {
            return Ok(StoreResponse::NoSubscriber);
        }
        self.write(supi, resource, body)?;
        let documents = self.documents.of_mut(&self.connection, supi)?;
        match place {
            Ok(at) => {
                if let Some(document) = documents.get_mut(at) {
                    document.body = body.into();
                }
            }
            Err(at) => documents.insert(at, Document { resource: resource.into(), body: body.into() }),
        }
        Ok(StoreResponse::Done { created_or_found: place.is_err() })
    }

    /// Replaces a document that is as expected; returns whether it was.
    fn replace_document(
        &mut self,
        supi: &Supi,
        resource: &str,
        (expected, body): (&str, &str),
    ) -> Result<bool, DatabaseError> {
        let documents = self.documents.of(&self.connection, supi)?;
        let Ok(at) = place(documents, resource) else { return Ok(false) };
        if documents.get(at).is_none_or(|document| *document.body != *expected) {
            return Ok(false);
        }
        self.write(supi, resource, body)?;
        if let Some(document) = self.documents.of_mut(&self.connection, supi)?.get_mut(at) {
            document.body = body.into();
        }
        Ok(true)
    }

    /// Writes a document to the file.
    fn write(&self, supi: &Supi, resource: &str, body: &str) -> Result<(), DatabaseError> {
        if self.documents.are_in_file {
            let sql = "INSERT OR REPLACE INTO document VALUES (?1, ?2, ?3)";
            self.connection.prepare_cached(sql)?.execute(params![supi.as_str(), resource, body])?;
        }
        Ok(())
    }

    /// Deletes a document; returns whether it existed.
    fn delete_document(&mut self, supi: &Supi, resource: &str) -> Result<bool, DatabaseError> {
        let documents = self.documents.of(&self.connection, supi)?;
        let Ok(at) = place(documents, resource) else { return Ok(false) };
        if self.documents.are_in_file {
            let sql = "DELETE FROM document WHERE supi = ?1 AND resource = ?2";
            self.connection.prepare_cached(sql)?.execute([supi.as_str(), resource])?;
        }
        let documents = self.documents.of_mut(&self.connection, supi)?;
        documents.remove(at);
        if documents.is_empty() {
            self.documents.of.remove(supi);
        }
        Ok(true)
    }

    /// Whether NFs have stored documents for the UE.
    pub(super) fn has_documents(&mut self, supi: &Supi) -> Result<bool, DatabaseError> {
        Ok(!self.documents.of(&self.connection, supi)?.is_empty())
    }

    /// Deletes a UE's documents.
    pub(super) fn delete_documents_of(&mut self, supi: &Supi) -> Result<(), DatabaseError> {
        if self.documents.are_in_file {
            let mut delete = self.connection.prepare_cached("DELETE FROM document WHERE supi = ?1")?;
            delete.execute([supi.as_str()])?;
        }
        self.documents.of.remove(supi);
        Ok(())
    }

    /// Whether the request changes the database, and needs a transaction.
    pub(super) const fn needs_transaction(&self, request: &StoreRequest) -> bool {
        match request {
            StoreRequest::Subscriber(_)
            | StoreRequest::Document { .. }
            | StoreRequest::Documents { .. }
            | StoreRequest::Changed { .. } => false,
            StoreRequest::PutSequenceNumber { .. } | StoreRequest::ForgetChanged { .. } => true,
            StoreRequest::PutDocument { .. }
            | StoreRequest::ReplaceDocument { .. }
            | StoreRequest::DeleteDocument { .. } => self.documents.are_in_file,
        }
    }
}
