//! The service-based interface (TS 29.500, 29.5xx): a module per service with its types and typed
//! operations, and their mapping to HTTP.
//!
//! ```text
//!  Request ──(Local: the value moves)──────────────────────────────> Request
//!     └─ to_http ─> HttpRequest  ──(HTTP/2)──> HttpRequest ─ from_http ─┘
//!  Reply <────────────────────────────────────────────────────────── Reply
//!     └─ from_http ─ HttpResponse <──(HTTP/2)── HttpResponse <─ to_http ┘
//! ```
//!
//! Start at [`Request`]: its variants are the operations, in the order of the services.

pub mod common;
pub mod embedded;
pub mod http;
pub mod json;
pub mod namf_communication;
pub mod nausf_ueauthentication;
pub mod nnrf_accesstoken;
pub mod nnrf_nfdiscovery;
pub mod nnrf_nfmanagement;
pub mod nnssf_nsselection;
pub mod npcf_ampolicycontrol;
pub mod npcf_policyauthorization;
pub mod npcf_smpolicycontrol;
pub mod nsmf_pdusession;
pub mod nudm_sdm;
pub mod nudm_ueau;
pub mod nudm_uecm;
pub mod nudr_dr;

mod mask;
mod octets;
mod operation;
pub mod patch;
mod problem;
mod record;
mod request;
mod response;
pub mod token;
mod uri;

pub use common::{NfInstanceId, NfType, ServiceName};
pub use http::{HttpRequest, HttpResponse, Method};
pub use mask::masked;
pub use octets::{Base64, Hex, OctetsError, Secret, SecretText};
pub use operation::OperationInfo;
pub use problem::{Cause, Challenge, ChallengeError, InvalidParam, Problem, ProblemDetails, ProblemMore};
pub use request::{Operation, Request};
pub use response::{Created, Outcome, Response};
pub use uri::{ApiRoot, ResourceUri, Scheme, Uri, UriError};

/// The result of an operation.
pub type Reply = Result<Response>;

/// The result of reading a message.
pub type Result<T, E = Box<Problem>> = std::result::Result<T, E>;
