//! Decoders: no panic, limited cost, and a decoded value is the same after encoding and decoding it again.

mod dhcpv6;
pub mod document;
mod document_log;
mod embedded;
mod identity;
mod json;
mod nas;
mod ngap;
mod operator;
mod packet;
mod pfcp;
pub mod sbi;
mod token;

use crate::target::{Bounds, Target};

/// All decoder targets.
pub const TARGETS: &[Target] = &[
    Target::codec("nas-gmm", "5GMM messages: the same after encoding and decoding again", nas::gmm),
    Target::codec("nas-gsm", "5GSM messages: the same after encoding and decoding again", nas::gsm),
    Target::codec(
        "nas-security",
        "NAS security: only messages that the peer protected are accepted, once",
        nas::security,
    ),
    Target::codec(
        "ngap",
        "NGAP PDUs: the same again, and a peek returns the ids that decoding returns",
        ngap::pdu,
    ),
    Target::codec("ngap-transfer", "transfers between SMF and gNB: the same again", ngap::transfer),
    Target::codec("pfcp", "PFCP messages, bundled ones too: the same again", pfcp::message),
    Target::codec("pfcp-ie", "values of PFCP IEs, decoded as each type: the same again", pfcp::ie),
    Target::codec(
        "gtpu",
        "GTP-U with extension headers and signalling: ranges within the datagram",
        pfcp::gtpu,
    ),
    Target::codec(
        "embedded",
        "documents in SBI requests: only sealed ones, and the same again when they are sent on",
        embedded::embedded,
    ),
    Target::text(
        "sbi-request",
        "requests of all operations: refused with 4xx, or the same again",
        sbi::request,
    ),
    Target::text(
        "sbi-response",
        "responses of all operations: an outcome that is the same again, or a problem",
        sbi::response,
    ),
    Target::text(
        "access-token",
        "access tokens: only what the NRF signed, understood the same again",
        token::access_token,
    ),
    Target::text("token-keys", "keys of NRFs, as JWK Sets and as PEM", token::token_keys),
    Target::text("json", "JSON of peers: accepted documents are within the limits", json::document),
    // A small patch may add 4,096 values to a document.
    Target {
        bounds: Bounds { memory: 4 << 20, ..Bounds::TEXT },
        ..Target::text(
            "json-patch",
            "a document and its patch: the result is within the limits",
            json::patched,
        )
    },
    Target::codec(
        "packet",
        "users' packets behind a virtio-net header: segments and frames add up",
        packet::packet,
    ),
    Target::codec(
        "dhcpv6",
        "messages of UEs to the DHCPv6 server of their link: discarded, or one short answer with the session's prefix",
        dhcpv6::message,
    ),
    Target::codec(
        "suci",
        "scheme outputs of both profiles: only concealed identities are de-concealed",
        identity::suci,
    ),
    Target::codec(
        "document-log",
        "the log of documents: items are adjacent, and the same after a torn tail is cut",
        document_log::segment,
    ),
    Target::text(
        "identity",
        "identities and text values: the same after formatting and parsing again",
        identity::text,
    ),
    Target::codec(
        "document",
        "stored contexts of AMF, SMF, AUSF and PCF: refused, or the same again",
        document::unpack,
    ),
    Target::text("config", "the configuration: accepted, or refused with reason and line", operator::config),
    Target::text(
        "subscriber",
        "subscribers to import: the same when exported and imported again",
        operator::subscriber,
    ),
    Target {
        bounds: Bounds::API,
        ..Target::text(
            "api",
            "the operator API: each request is answered, none with an internal error",
            operator::request,
        )
    },
];
