//! The interface between the UDR and its database.

use super::Subscriber;
use pith_types::Supi;
use std::sync::Arc;

/// A database request of the UDR.
///
/// Requests of one shard are executed in their order. Writes of many requests share one commit, and
/// each is answered after that commit.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum StoreRequest {
    /// Read one subscriber.
    Subscriber(Supi),
    /// Replace the sequence number (48 bits) of a subscriber's authentication subscription, if the
    /// current one is as expected.
    PutSequenceNumber {
        supi: Supi,
        /// SQN, the highest used.
        sqn: u64,
        /// The expected current SQN; `None` to skip the comparison.
        expected: Option<u64>,
    },
    /// Read one document of a UE: a resource of Nudr_DataRepository that NFs write.
    Document {
        supi: Supi,
        /// Its path below the UE, `context-data/amf-3gpp-access`.
        resource: String,
    },
    /// Read all documents of a UE whose path has the prefix.
    Documents {
        supi: Supi,
        /// For example `context-data/smf-registrations/`.
        prefix: String,
    },
    /// Create or replace a document. A new one needs a subscriber, and room among its siblings
    /// ([`has_room`]).
    PutDocument {
        supi: Supi,
        /// Its path below the UE.
        resource: String,
        /// JSON.
        body: String,
    },
    /// Replace a document, if it is as expected. Otherwise nothing is written, and `created_or_found` is `false`.
    ReplaceDocument {
        supi: Supi,
        /// Its path below the UE.
        resource: String,
        /// The expected document.
        expected: String,
        /// JSON.
        body: String,
    },
    /// Delete a document.
    DeleteDocument {
        supi: Supi,
        /// Its path below the UE.
        resource: String,
    },
    /// Read rows of changed subscribers, in the order of their numbers.
    Changed {
        /// Those with higher numbers.
        after: u64,
        limit: u32,
    },
    /// Delete these rows. A subscriber that has changed again has another row.
    ForgetChanged { numbers: Vec<u64> },
}

/// The result of a database request.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreResponse {
    /// The subscriber, if there is one.
    Subscriber(Option<Arc<Subscriber>>),
    /// The document, if it exists.
    Document(Option<String>),
    /// Paths and bodies.
    Documents(Vec<(String, String)>),
    /// Written.
    Done {
        /// For [`StoreRequest::PutDocument`] whether the document is new; for others whether it existed.
        created_or_found: bool,
    },
    /// Changed subscribers, each with the number of its row.
    Changed(Vec<(u64, Supi)>),
    /// The document is new, and there is no such subscriber: nothing is written.
    NoSubscriber,
    /// The document is new, and its collection is full: nothing is written.
    Full,
}

/// Documents in one collection of a subscriber: a UE has 15 PDU sessions (TS 24.501 9.4), and 32 ids are for sessions that the core network numbers
/// (TS 29.571 5.4.2), each with one registration of an SMF.
const MAX_DOCUMENTS: usize = 48;

/// The collection of the subscriptions to a subscriber's data.
pub(crate) const SDM_SUBSCRIPTIONS: &str = "context-data/sdm-subscriptions/";

/// Subscriptions to a subscriber's data.
const MAX_SUBSCRIPTIONS: usize = 96;

/// Subscriptions of one NF to a subscriber's data: an SMF that serves all 15 PDU sessions of a UE has one for each, and some of lost contexts.
const MAX_SUBSCRIPTIONS_OF_NF: usize = 24;

/// Whether a new document has room among a subscriber's others. An NF can't keep the others out of the changes of a subscriber's data: it has at
/// most 24 subscriptions, and no more than are left for others.
pub fn has_room<'a>(resource: &str, documents: impl Iterator<Item = &'a str>) -> bool {
    let collection = collection_of(resource);
    let nf = nf_in(resource);
    let (mut all, mut own) = (0_usize, 0_usize);
    for sibling in documents.filter(|document| collection_of(document) == collection) {
        all += 1;
        own += usize::from(nf.is_some() && nf_in(sibling) == nf);
    }
    if collection != SDM_SUBSCRIPTIONS {
        return all < MAX_DOCUMENTS;
    }
    let left = MAX_SUBSCRIPTIONS.saturating_sub(all);
    own < left.min(MAX_SUBSCRIPTIONS_OF_NF)
}

/// The NF instance at the end of a subscription's id, as the UDM makes it. Ids that other UDMs make may name none.
pub(crate) fn nf_in(resource: &str) -> Option<&str> {
    const UUID: usize = 36;
    let (rest, nf) = resource.split_at_checked(resource.len().checked_sub(UUID)?)?;
    rest.ends_with('-').then_some(nf)
}

/// The path of the collection that a document is in, with a slash at its end.
pub fn collection_of(resource: &str) -> &str {
    resource.rsplit_once('/').map_or("", |(parent, _)| resource.get(..=parent.len()).unwrap_or_default())
}

/// The database failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the database failed: {0}")]
pub struct StoreError(pub String);

#[cfg(test)]
mod tests {
    use super::*;
    use pith_sbi::NfInstanceId;

    /// Subscriptions of that NF that are stored one after the other until there is no room.
    fn fill(documents: &mut Vec<String>, nf: u128) -> usize {
        let before = documents.len();
        loop {
            let resource = format!("{SDM_SUBSCRIPTIONS}{:x}-{}", documents.len(), NfInstanceId(nf));
            if !has_room(&resource, documents.iter().map(String::as_str)) {
                return documents.len() - before;
            }
            documents.push(resource);
        }
    }

    #[test]
    fn an_nf_leaves_room_for_the_subscriptions_of_others() {
        let mut documents = vec!["context-data/amf-3gpp-access".to_owned()];
        let shares: Vec<_> = (1..=8).map(|nf| fill(&mut documents, nf)).collect();
        assert_eq!(shares, [24, 24, 24, 12, 6, 3, 2, 1]);
        assert_eq!(fill(&mut documents, 9), 0, "96 in all");
        // One of another NF has ended: NF 1 does not take its place.
        documents.pop();
        assert_eq!((fill(&mut documents, 1), fill(&mut documents, 9)), (0, 1));
    }

    /// TS 24.501 9.4: PDU session identities 1 to 15.
    #[test]
    fn an_smf_with_all_sessions_of_a_ue_has_room_beside_two_nfs_that_take_all_they_can() {
        let mut documents = Vec::new();
        let _ = (fill(&mut documents, 1), fill(&mut documents, 2));
        assert!(fill(&mut documents, 3) >= 15);
    }

    #[test]
    fn ids_without_an_nf_have_the_room_of_all() {
        let mut documents: Vec<String> = Vec::new();
        loop {
            let resource = format!("{SDM_SUBSCRIPTIONS}é{:035}", documents.len());
            if !has_room(&resource, documents.iter().map(String::as_str)) {
                break;
            }
            documents.push(resource);
        }
        assert_eq!(documents.len(), MAX_SUBSCRIPTIONS);
        assert_eq!(nf_in("context-data/smf-registrations/1"), None);
    }
}
