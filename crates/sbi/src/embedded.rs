//! The vendor-specific member in which the stored contexts of a UE travel between instances of one operator (TS 29.500 6.6.3).
//!
//! Its content is sealed: only instances that have the key of the store read it. The member is sent only to NFs whose profile
//! announces [`FEATURE`] (TS 29.510 6.1.6.2.2 `vendorSpecificFeatures`). An NF that does not know it ignores it.

use crate::nsmf_pdusession::{SmContextReleasedData, SmContextUpdatedData};
use crate::request::{Operation, Request};
use crate::response::Response;
use bytes::Bytes;
use std::fmt;

/// The vendor in member names and profiles, as an IANA private enterprise number of six digits: the one that RFC 5612 reserves for
/// documents, as Pith has none of its own.
pub const VENDOR: &str = "032473";

/// The feature that an NF profile announces if the NF reads the member.
pub const FEATURE: &str = "pith-embedded-contexts";

/// Most octets of an embedded document: a UE with some sessions has 4 kB in all NFs. What is longer is not sent, and ignored if
/// received.
pub const MAX_EMBEDDED: usize = 24 << 10;

/// A sealed document. In JSON it is base64; anything else in its place is read as no octets, so that a member of another vendor
/// with that number does not make a request invalid.
#[derive(Clone, PartialEq, Eq)]
pub struct EmbeddedDocument(pub Bytes);

impl fmt::Debug for EmbeddedDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sealed octets", self.0.len())
    }
}

impl serde::Serialize for EmbeddedDocument {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&crate::Base64(self.0.clone()))
    }
}

impl<'de> serde::Deserialize<'de> for EmbeddedDocument {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let text = value.as_str().filter(|text| text.len() <= MAX_EMBEDDED.div_ceil(3) * 4);
        let octets = text.and_then(|text| text.parse().ok());
        Ok(Self(octets.map_or_else(Bytes::new, |crate::Base64(octets)| octets)))
    }
}

impl Request {
    /// The member, if the operation has a body for it.
    fn embedded(&mut self) -> Option<&mut Option<EmbeddedDocument>> {
        Some(match self {
            Self::PostSmContexts(request) => &mut request.body.embedded,
            Self::UpdateSmContext(request) => &mut request.body.embedded,
            Self::ReleaseSmContext(request) => &mut request.body.embedded,
            Self::CreateSmPolicy(request) => &mut request.body.embedded,
            Self::UpdateSmPolicy(request) => &mut request.body.embedded,
            Self::DeleteSmPolicy(request) => &mut request.body.embedded,
            Self::CreateAmPolicyAssociation(request) => &mut request.body.embedded,
            Self::N1N2MessageTransfer(request) => &mut request.body.embedded,
            _ => return None,
        })
    }

    /// Whether the request can have a document.
    pub fn can_embed(&mut self) -> bool {
        self.embedded().is_some()
    }

    /// Adds a document, if the operation has a place for it and the document is short enough.
    pub fn embed(&mut self, document: EmbeddedDocument) {
        if let Some(place) = self.embedded().filter(|_| document.0.len() <= MAX_EMBEDDED) {
            *place = Some(document);
        }
    }

    /// Removes the document.
    pub fn take_embedded(&mut self) -> Option<EmbeddedDocument> {
        self.embedded()?.take()
    }
}

impl Response {
    fn embedded(&mut self) -> Option<&mut Option<EmbeddedDocument>> {
        Some(match self {
            Self::SmContextCreated(created) => &mut created.body.embedded,
            Self::SmContextUpdated(body) => &mut body.embedded,
            Self::SmContextReleased(body) => &mut body.embedded,
            Self::SmPolicyDecisionCreated(created) => &mut created.body.embedded,
            Self::SmPolicyDecision(body) => &mut body.embedded,
            Self::PolicyAssociationCreated(created) => &mut created.body.embedded,
            Self::N1N2MessageTransferInitiated(body) => &mut body.embedded,
            Self::N1N2MessageTransferAccepted(created) => &mut created.body.embedded,
            Self::PolicyAssociation(body) => &mut body.embedded,
            _ => return None,
        })
    }

    /// Adds a document to the answer to a request that had one. An answer without a body gets one, where the operation permits it.
    pub fn embed(&mut self, operation: Operation, document: EmbeddedDocument) {
        if document.0.len() > MAX_EMBEDDED {
            return;
        }
        match (&*self, operation) {
            (Self::NoContent, Operation::UpdateSmContext) => {
                *self = Self::SmContextUpdated(Box::default());
            }
            (Self::NoContent, Operation::ReleaseSmContext) => {
                *self = Self::SmContextReleased(Box::default());
            }
            _ => {}
        }
        if let Some(place) = self.embedded() {
            *place = Some(document);
        }
    }

    /// Removes the document. A body that had nothing else becomes the answer without a body.
    pub fn take_embedded(&mut self) -> Option<EmbeddedDocument> {
        let document = self.embedded()?.take()?;
        let is_empty = match &*self {
            Self::SmContextUpdated(body) => **body == SmContextUpdatedData::default(),
            Self::SmContextReleased(body) => **body == SmContextReleasedData::default(),
            _ => false,
        };
        if is_empty {
            *self = Self::NoContent;
        }
        Some(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nsmf_pdusession::SmContextUpdateData;

    #[test]
    fn an_answer_without_a_body_carries_a_document_and_is_the_same_afterwards() {
        let document = EmbeddedDocument(Bytes::from_static(b"sealed"));
        for operation in [Operation::UpdateSmContext, Operation::ReleaseSmContext] {
            let mut answer = Response::NoContent;
            answer.embed(operation, document.clone());
            assert_ne!(answer, Response::NoContent);
            assert_eq!(answer.take_embedded(), Some(document.clone()));
            assert_eq!((answer.take_embedded(), answer), (None, Response::NoContent));
        }
        let mut answer = Response::NoContent;
        answer.embed(Operation::DeleteSmPolicy, document);
        assert_eq!(answer, Response::NoContent);
    }

    #[test]
    fn a_member_that_is_no_document_does_not_make_a_body_invalid() {
        let long = format!("\"{}\"", "A".repeat(MAX_EMBEDDED * 2));
        for value in ["17", "null", "{\"a\": [1]}", "\"not base64\"", long.as_str()] {
            let body: SmContextUpdateData =
                serde_json::from_str(&format!("{{\"vendorSpecific-{VENDOR}\": {value}}}")).unwrap();
            assert!(body.embedded.is_none_or(|document| document.0.is_empty()), "{value}");
        }
        let body: SmContextUpdateData =
            serde_json::from_str(&format!("{{\"vendorSpecific-{VENDOR}\": \"c2VhbGVk\"}}")).unwrap();
        assert_eq!(body.embedded, Some(EmbeddedDocument(Bytes::from_static(b"sealed"))));
    }
}
