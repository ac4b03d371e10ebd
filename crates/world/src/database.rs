//! The UDR's database: a map.

use pith_nf::kit::{StoreRequest, StoreResponse, Subscriber, collection_of, has_room};
use pith_types::Supi;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Subscribers and documents; survives faults of processes.
#[derive(Debug, Default)]
pub struct Database {
    subscribers: BTreeMap<String, Arc<Subscriber>>,
    documents: BTreeMap<(String, String), String>,
    /// Changed subscribers by the numbers of their rows, until NFs were notified.
    changed: BTreeMap<u64, Supi>,
    /// The number of the last row.
    last_change: u64,
}

impl Database {
    /// Provisions a subscriber.
    pub fn add(&mut self, subscriber: Subscriber) {
        self.subscribers.insert(subscriber.supi.to_string(), Arc::new(subscriber));
    }

    /// Changes a subscription; the NFs that serve the UE are to be notified.
    pub fn change_subscriber(&mut self, supi: &Supi, change: impl FnOnce(&mut Subscriber)) {
        if let Some(subscriber) = self.subscribers.get_mut(supi.as_str()) {
            change(Arc::make_mut(subscriber));
        }
        self.changed.retain(|_, changed| changed != supi);
        self.last_change += 1;
        if !self.list(supi, "").is_empty() {
            self.changed.insert(self.last_change, supi.clone());
        }
    }

    /// The subscriber.
    pub fn subscriber(&self, supi: &Supi) -> Option<&Subscriber> {
        self.subscribers.get(supi.as_str()).map(|subscriber| &**subscriber)
    }

    /// Whether NFs are still to be notified of changes.
    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The resources that NFs have stored: SUPI and path.
    pub fn resources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.documents.keys().map(|(supi, path)| (supi.as_str(), path.as_str()))
    }

    /// Sets a subscriber's sequence number, as an operator's mistake would.
    pub fn put_sequence_number(&mut self, supi: &Supi, sqn: u64) -> bool {
        match self.subscribers.get_mut(supi.as_str()) {
            Some(subscriber) => {
                Arc::make_mut(subscriber).authentication.sqn = sqn;
                true
            }
            None => false,
        }
    }

    /// Sets the sequence number only if the current one is as expected.
    fn keep_sequence_number(&mut self, supi: &Supi, sqn: u64, expected: Option<u64>) -> bool {
        let known = self.subscribers.get(supi.as_str()).map(|subscriber| subscriber.authentication.sqn);
        expected.is_none_or(|expected| known == Some(expected)) && self.put_sequence_number(supi, sqn)
    }

    /// Handles a request.
    pub fn handle(&mut self, request: StoreRequest) -> StoreResponse {
        let done = |created_or_found| StoreResponse::Done { created_or_found };
        match request {
            StoreRequest::Subscriber(supi) => {
                StoreResponse::Subscriber(self.subscribers.get(supi.as_str()).cloned())
            }
            StoreRequest::PutSequenceNumber { supi, sqn, expected } => {
                done(self.keep_sequence_number(&supi, sqn, expected))
            }
            StoreRequest::Document { supi, resource } => {
                StoreResponse::Document(self.documents.get(&(supi.to_string(), resource)).cloned())
            }
            StoreRequest::Documents { supi, prefix } => StoreResponse::Documents(self.list(&supi, &prefix)),
            StoreRequest::PutDocument { supi, resource, body } => self.put_document(&supi, resource, body),
            StoreRequest::ReplaceDocument { supi, resource, expected, body } => {
                let known = self.documents.get_mut(&(supi.to_string(), resource));
                let known = known.filter(|known| **known == expected);
                done(known.map(|known| *known = body).is_some())
            }
            StoreRequest::DeleteDocument { supi, resource } => {
                done(self.documents.remove(&(supi.to_string(), resource)).is_some())
            }
            StoreRequest::Changed { after, limit } => {
                let rows = self.changed.range(after + 1..).take(limit as usize);
                StoreResponse::Changed(rows.map(|(number, supi)| (*number, supi.clone())).collect())
            }
            StoreRequest::ForgetChanged { numbers } => {
                let forgotten = numbers.iter().filter_map(|number| self.changed.remove(number)).count();
                done(forgotten > 0)
            }
        }
    }

    fn put_document(&mut self, supi: &Supi, resource: String, body: String) -> StoreResponse {
        let key = (supi.to_string(), resource);
        if let Some(document) = self.documents.get_mut(&key) {
            *document = body;
            return StoreResponse::Done { created_or_found: false };
        }
        if !self.subscribers.contains_key(supi.as_str()) {
            return StoreResponse::NoSubscriber;
        }
        let siblings = self.list(supi, collection_of(&key.1));
        if !has_room(&key.1, siblings.iter().map(|(path, _)| path.as_str())) {
            return StoreResponse::Full;
        }
        self.documents.insert(key, body);
        StoreResponse::Done { created_or_found: true }
    }

    fn list(&self, supi: &Supi, prefix: &str) -> Vec<(String, String)> {
        let all = self.documents.iter();
        let fits = all.filter(|((of, path), _)| of == supi.as_str() && path.starts_with(prefix));
        fits.map(|((_, path), body)| (path.clone(), body.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_sqn_is_stored_only_if_the_expected_one_is_current() {
        let supi: Supi = "imsi-999700000000001".parse().unwrap();
        let mut database = Database::default();
        let put = |database: &mut Database, sqn, expected| {
            let supi = supi.clone();
            database.handle(StoreRequest::PutSequenceNumber { supi, sqn, expected })
                == StoreResponse::Done { created_or_found: true }
        };
        assert!(!put(&mut database, 33, Some(0)), "there is nobody");
        database.add(Subscriber::with_defaults(supi.clone(), [1; 16], [2; 16]));
        assert!(put(&mut database, 33, Some(0)));
        assert!(!put(&mut database, 34, Some(0)), "the second of two that read 0");
        assert!(put(&mut database, 5, None));
    }
}
