//! Documents: the resources of Nudr_DataRepository that NFs store for a UE.

use super::{Database, DatabaseError};
use pith_nf::kit::{MAX_DOCUMENTS, StoreRequest, StoreResponse, collection_of};
use pith_types::Supi;
use rusqlite::{OptionalExtension, params};

impl Database {
    /// Executes a request of the UDR.
    pub(super) fn handle(&mut self, request: &StoreRequest) -> Result<StoreResponse, DatabaseError> {
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
                StoreResponse::Documents(self.documents(supi, prefix)?)
            }
            StoreRequest::PutDocument { supi, resource, body } => self.put_document(supi, resource, body)?,
            StoreRequest::ReplaceDocument { supi, resource, expected, body } => {
                done(self.replace_document(supi, resource, (expected, body))?)
            }
            StoreRequest::DeleteDocument { supi, resource } => done(self.delete_document(supi, resource)?),
        })
    }

    fn document(&mut self, supi: &Supi, resource: &str) -> Result<Option<String>, DatabaseError> {
        let sql = "SELECT body FROM document WHERE supi = ?1 AND resource = ?2";
        let mut select = self.connection.prepare_cached(sql)?;
        Ok(select.query_row([supi.as_str(), resource], |row| row.get(0)).optional()?)
    }

    fn documents(&mut self, supi: &Supi, prefix: &str) -> Result<Vec<(String, String)>, DatabaseError> {
        let sql = "SELECT resource, body FROM document
                   WHERE supi = ?1 AND resource >= ?2 AND substr(resource, 1, length(?2)) = ?2";
        let mut select = self.connection.prepare_cached(sql)?;
        let rows = select.query_map([supi.as_str(), prefix], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Creates or replaces a document.
    fn put_document(
        &mut self,
        supi: &Supi,
        resource: &str,
        body: &str,
    ) -> Result<StoreResponse, DatabaseError> {
        let sql = "UPDATE document SET body = ?3 WHERE supi = ?1 AND resource = ?2";
        let columns = params![supi.as_str(), resource, body];
        if self.connection.prepare_cached(sql)?.execute(columns)? == 1 {
            return Ok(StoreResponse::Done { created_or_found: false });
        }
        let sql = "INSERT INTO document SELECT ?1, ?2, ?3
                   WHERE EXISTS (SELECT 1 FROM subscriber WHERE supi = ?1)
                     AND (SELECT count(*) FROM document WHERE supi = ?1 AND substr(resource, 1, length(?4)) = ?4
                          AND instr(substr(resource, length(?4) + 1), '/') = 0) < ?5";
        let columns = params![supi.as_str(), resource, body, collection_of(resource), MAX_DOCUMENTS as i64];
        if self.connection.prepare_cached(sql)?.execute(columns)? == 1 {
            return Ok(StoreResponse::Done { created_or_found: true });
        }
        let sql = "SELECT EXISTS (SELECT 1 FROM subscriber WHERE supi = ?1)";
        let known = self.connection.prepare_cached(sql)?.query_row([supi.as_str()], |row| row.get(0))?;
        Ok(if known { StoreResponse::Full } else { StoreResponse::NoSubscriber })
    }

    /// Replaces a document that is as expected; returns whether it was.
    fn replace_document(
        &mut self,
        supi: &Supi,
        resource: &str,
        (expected, body): (&str, &str),
    ) -> Result<bool, DatabaseError> {
        let sql = "UPDATE document SET body = ?4 WHERE supi = ?1 AND resource = ?2 AND body = ?3";
        let mut update = self.connection.prepare_cached(sql)?;
        Ok(update.execute([supi.as_str(), resource, expected, body])? == 1)
    }

    /// Deletes a document; returns whether it existed.
    fn delete_document(&mut self, supi: &Supi, resource: &str) -> Result<bool, DatabaseError> {
        let sql = "DELETE FROM document WHERE supi = ?1 AND resource = ?2";
        let mut delete = self.connection.prepare_cached(sql)?;
        Ok(delete.execute([supi.as_str(), resource])? == 1)
    }

    pub(super) fn delete_documents_of(&mut self, supi: &Supi) -> Result<(), DatabaseError> {
        let mut delete = self.connection.prepare_cached("DELETE FROM document WHERE supi = ?1")?;
        delete.execute([supi.as_str()])?;
        Ok(())
    }

    /// Deletes all documents: contexts of an earlier core whose memory is lost.
    pub fn forget_documents(&mut self) -> Result<(), DatabaseError> {
        Ok(self.connection.execute_batch("DELETE FROM document")?)
    }
}

/// Whether the request only reads.
pub(super) const fn reads(request: &StoreRequest) -> bool {
    match request {
        StoreRequest::Subscriber(_) | StoreRequest::Document { .. } | StoreRequest::Documents { .. } => true,
        StoreRequest::PutSequenceNumber { .. }
        | StoreRequest::PutDocument { .. }
        | StoreRequest::ReplaceDocument { .. }
        | StoreRequest::DeleteDocument { .. } => false,
    }
}
