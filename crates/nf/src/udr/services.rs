//! Nudr_DataRepository (TS 29.504): the database requests of each operation.

use super::{Next, documents, provisioned};
use crate::kit::{SDM_SUBSCRIPTIONS, StoreRequest, StoreResponse};
use pith_sbi::common::{PatchItem, PatchOperation};
use pith_sbi::nudr_dr::{SequenceNumber, UpdateSdmSubscriptions};
use pith_sbi::{ApiRoot, Cause, Created, Hex, Problem, Reply, Request, Response, Uri};
use pith_types::Supi;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

const AMF_3GPP_ACCESS: &str = "context-data/amf-3gpp-access";
const SMF_REGISTRATIONS: &str = "context-data/smf-registrations/";
const AUTHENTICATION_STATUS: &str = "authentication-data/authentication-status";

/// Octets of a document as JSON. A registration of an AMF or SMF has one or two thousand.
const LONGEST_DOCUMENT: usize = 16_384;

/// Number of the database request with the last attempt to patch a document that other NFs change at the same time; each
/// attempt has two.
const LAST_ATTEMPT: u32 = 15;

/// The first database request.
pub(super) fn first_step(request: &Request) -> Result<StoreRequest, Box<Problem>> {
    Ok(match request {
        Request::QueryAuthSubsData(r) => StoreRequest::Subscriber(r.ue_id.clone()),
        Request::QueryProvisionedData(r) => StoreRequest::Subscriber(r.ue_id.clone()),
        Request::QueryAmData(r) => StoreRequest::Subscriber(r.ue_id.clone()),
        Request::QuerySmfSelectData(r) => StoreRequest::Subscriber(r.ue_id.clone()),
        Request::QuerySmData(r) => StoreRequest::Subscriber(r.ue_id.clone()),
        Request::ReadAccessAndMobilityPolicyData(r) => StoreRequest::Subscriber(r.ue_id.clone()),
        Request::ReadSessionManagementPolicyData(r) => StoreRequest::Subscriber(r.ue_id.clone()),
        Request::ModifyAuthenticationSubscription(r) => put_sequence_number(&r.ue_id, &r.body)?,
        Request::CreateAuthenticationStatus(r) => put(&r.ue_id, AUTHENTICATION_STATUS.into(), &r.body)?,
        Request::QueryAuthenticationStatus(r) => get(&r.ue_id, AUTHENTICATION_STATUS),
        Request::DeleteAuthenticationStatus(r) => delete(&r.ue_id, AUTHENTICATION_STATUS.into()),
        Request::CreateAmfContextThreeGpp(r) => put(&r.ue_id, AMF_3GPP_ACCESS.into(), &r.body)?,
        Request::ModifyAmfContextThreeGpp(r) => get(&r.ue_id, AMF_3GPP_ACCESS),
        Request::QueryAmfContextThreeGpp(r) => get(&r.ue_id, AMF_3GPP_ACCESS),
        Request::QuerySmfRegList(r) => {
            StoreRequest::Documents { supi: r.ue_id.clone(), prefix: SMF_REGISTRATIONS.into() }
        }
        Request::CreateOrUpdateSmfRegistration(r) => {
            put(&r.ue_id, smf_registration(r.pdu_session_id), &r.body)?
        }
        Request::DeleteSmfRegistration(r) => delete(&r.ue_id, smf_registration(r.pdu_session_id)),
        Request::QuerySmfRegistration(r) => get(&r.ue_id, &smf_registration(r.pdu_session_id)),
        Request::CreateSdmSubscriptions(r) => {
            let id = r.body.subscription_id.as_deref().unwrap_or("0");
            put(&r.ue_id, format!("{SDM_SUBSCRIPTIONS}{id}"), &r.body)?
        }
        Request::QuerySdmSubscriptions(r) => {
            StoreRequest::Documents { supi: r.ue_id.clone(), prefix: SDM_SUBSCRIPTIONS.into() }
        }
        // A subscription that has ended is not created again (404).
        Request::UpdateSdmSubscriptions(r) => get(&r.ue_id, &sdm_subscription(&r.subs_id)),
        Request::ModifySdmSubscription(r) => get(&r.ue_id, &sdm_subscription(&r.subs_id)),
        Request::RemoveSdmSubscriptions(r) => delete(&r.ue_id, sdm_subscription(&r.subs_id)),
        _ => return Err(Box::new(Problem::new(Cause::ResourceUriStructureNotFound))),
    })
}

/// The next database request, or the answer, after the result of database request number `step`.
pub(super) fn next_step(root: &Arc<ApiRoot>, request: &Request, step: u32, response: StoreResponse) -> Next {
    match (request, response) {
        (Request::ModifyAmfContextThreeGpp(r), StoreResponse::Document(Some(known))) => {
            match documents::patch(&known, &r.body).map_err(Box::new).and_then(check_length) {
                Ok(body) => Next::Store(replace(&r.ue_id, AMF_3GPP_ACCESS.into(), known, body)),
                Err(problem) => Next::Answer(Err(problem)),
            }
        }
        // Another NF has changed the document since it was read: the patch applies to what it wrote, or fails there.
        (Request::ModifyAmfContextThreeGpp(r), StoreResponse::Done { created_or_found: false }) => {
            read_again(step, &r.ue_id, AMF_3GPP_ACCESS)
        }
        (Request::UpdateSdmSubscriptions(r), StoreResponse::Document(Some(known))) => {
            replace_subscription(r, known).map_or_else(|problem| Next::Answer(Err(problem)), Next::Store)
        }
        (Request::UpdateSdmSubscriptions(r), StoreResponse::Done { created_or_found: false }) => {
            read_again(step, &r.ue_id, &sdm_subscription(&r.subs_id))
        }
        (Request::ModifySdmSubscription(r), StoreResponse::Document(Some(known))) => {
            match documents::patch_subscription(&known, &r.body).map_err(Box::new).and_then(check_length) {
                Ok(body) => Next::Store(replace(&r.ue_id, sdm_subscription(&r.subs_id), known, body)),
                Err(problem) => Next::Answer(Err(problem)),
            }
        }
        (Request::ModifySdmSubscription(r), StoreResponse::Done { created_or_found: false }) => {
            read_again(step, &r.ue_id, &sdm_subscription(&r.subs_id))
        }
        // Not written: either the subscriber does not exist, or a test in the patch failed.
        (Request::ModifyAuthenticationSubscription(r), StoreResponse::Done { created_or_found: false }) => {
            Next::Store(StoreRequest::Subscriber(r.ue_id.clone()))
        }
        (Request::ModifyAuthenticationSubscription(_), StoreResponse::Subscriber(Some(_))) => {
            Next::Answer(Err(sequence_number_taken()))
        }
        (request, StoreResponse::Subscriber(subscriber)) => {
            let view = subscriber.ok_or_else(|| Box::new(Problem::user_not_found()));
            Next::Answer(view.and_then(|subscriber| provisioned::view(&subscriber, request)))
        }
        (request, StoreResponse::Document(document)) => {
            Next::Answer(document_answer(request, document.as_deref()))
        }
        // The UDR itself asks for them.
        (_, StoreResponse::Changed(_)) => Next::Answer(Err(Box::new(Problem::data_not_found()))),
        (_, StoreResponse::NoSubscriber) => Next::Answer(Err(Box::new(Problem::user_not_found()))),
        (_, StoreResponse::Full) => Next::Answer(Err(Box::new(too_many()))),
        (request, StoreResponse::Documents(documents)) => Next::Answer(documents_answer(request, &documents)),
        (request, StoreResponse::Done { created_or_found }) => {
            Next::Answer(written_answer(root, request, created_or_found))
        }
    }
}

/// Another NF has changed the document since database request `step - 1` has read it.
fn read_again(step: u32, supi: &Supi, resource: &str) -> Next {
    if step < LAST_ATTEMPT {
        Next::Store(get(supi, resource))
    } else {
        Next::Answer(Err(Box::new(Problem::congestion(1))))
    }
}

fn document_answer(request: &Request, document: Option<&str>) -> Reply {
    let document = document.ok_or_else(|| Box::new(Problem::data_not_found()))?;
    Ok(match request {
        Request::QueryAuthenticationStatus(_) => Response::AuthEvent(Box::new(read(document)?)),
        Request::QueryAmfContextThreeGpp(_) => Response::Amf3GppAccessRegistration(Box::new(read(document)?)),
        Request::QuerySmfRegistration(_) => Response::SmfRegistration(Box::new(read(document)?)),
        _ => {
            return Err(Box::new(Problem::system_failure(
                "the database returned a document that was not requested",
            )));
        }
    })
}

fn documents_answer(request: &Request, documents: &[(String, String)]) -> Reply {
    if documents.is_empty() {
        return Err(Box::new(Problem::data_not_found()));
    }
    Ok(match request {
        Request::QuerySdmSubscriptions(_) => Response::SdmSubscriptions(Box::new(read_all(documents)?)),
        _ => Response::SmfRegList(Box::new(read_all(documents)?)),
    })
}

fn written_answer(root: &Arc<ApiRoot>, request: &Request, created_or_found: bool) -> Reply {
    match request {
        Request::DeleteSmfRegistration(_)
        | Request::DeleteAuthenticationStatus(_)
        | Request::RemoveSdmSubscriptions(_)
            if !created_or_found =>
        {
            Err(Box::new(Problem::data_not_found()))
        }
        Request::CreateAmfContextThreeGpp(r) if created_or_found => {
            let location = location(root, &r.ue_id, AMF_3GPP_ACCESS);
            Ok(Response::Amf3GppAccessRegistrationCreated(Box::new(Created {
                location,
                body: r.body.clone(),
            })))
        }
        Request::CreateOrUpdateSmfRegistration(r) if created_or_found => {
            let location = location(root, &r.ue_id, &smf_registration(r.pdu_session_id));
            Ok(Response::SmfRegistrationCreated(Box::new(Created { location, body: r.body.clone() })))
        }
        Request::CreateSdmSubscriptions(r) => {
            let id = r.body.subscription_id.as_deref().unwrap_or("0");
            let location = location(root, &r.ue_id, &format!("{SDM_SUBSCRIPTIONS}{id}"));
            Ok(Response::SdmSubscriptionCreated(Box::new(Created { location, body: r.body.clone() })))
        }
        _ => Ok(Response::NoContent),
    }
}

fn smf_registration(pdu_session_id: u8) -> String {
    format!("{SMF_REGISTRATIONS}{pdu_session_id}")
}

fn sdm_subscription(id: &str) -> String {
    format!("{SDM_SUBSCRIPTIONS}{id}")
}

fn location(root: &Arc<ApiRoot>, supi: &Supi, resource: &str) -> Uri {
    Uri::new(root, &format!("/nudr-dr/v2/subscription-data/{supi}/{resource}"))
}

fn get(supi: &Supi, resource: &str) -> StoreRequest {
    StoreRequest::Document { supi: supi.clone(), resource: resource.into() }
}

fn delete(supi: &Supi, resource: String) -> StoreRequest {
    StoreRequest::DeleteDocument { supi: supi.clone(), resource }
}

fn put(supi: &Supi, resource: String, body: &impl Serialize) -> Result<StoreRequest, Box<Problem>> {
    put_text(supi, resource, serde_json::to_string(body).map_err(Problem::system_failure)?)
}

fn put_text(supi: &Supi, resource: String, body: String) -> Result<StoreRequest, Box<Problem>> {
    let body = check_length(body)?;
    Ok(StoreRequest::PutDocument { supi: supi.clone(), resource, body })
}

fn replace(supi: &Supi, resource: String, expected: String, body: String) -> StoreRequest {
    StoreRequest::ReplaceDocument { supi: supi.clone(), resource, expected, body }
}

fn replace_subscription(
    request: &UpdateSdmSubscriptions,
    known: String,
) -> Result<StoreRequest, Box<Problem>> {
    let body = check_length(serde_json::to_string(&request.body).map_err(Problem::system_failure)?)?;
    Ok(replace(&request.ue_id, sdm_subscription(&request.subs_id), known, body))
}

/// A document that is too long is refused with 413 (RFC 9110 15.5.14).
fn check_length(body: String) -> Result<String, Box<Problem>> {
    if body.len() > LONGEST_DOCUMENT {
        let detail = format_args!("a document of {} octets; at most {LONGEST_DOCUMENT} are kept", body.len());
        return Err(Box::new(Problem::of_status(413).detail(detail)));
    }
    Ok(body)
}

/// TS 29.500 table 5.2.7.2-1.
fn too_many() -> Problem {
    let detail = "the subscriber has too many of these, or too many of this NF: delete some";
    Problem::new(Cause::InsufficientResources).detail(detail)
}

fn read<T: DeserializeOwned>(document: &str) -> Result<T, Box<Problem>> {
    serde_json::from_str(document).map_err(|error| Box::new(Problem::system_failure(error)))
}

fn read_all<T: DeserializeOwned>(documents: &[(String, String)]) -> Result<Vec<T>, Box<Problem>> {
    documents.iter().map(|(_, body)| read(body)).collect()
}

/// The database request for a patch of an authentication subscription. NFs change only its sequence number
/// (TS 29.505 5.2.2.3.2). A preceding `test` contains the expected current number (RFC 6902 4.6).
fn put_sequence_number(supi: &Supi, patch: &[PatchItem]) -> Result<StoreRequest, Box<Problem>> {
    let (mut expected, mut sqn) = (None, None);
    for item in patch {
        match item.op {
            PatchOperation::Test if expected.is_none() && sqn.is_none() => expected = Some(sqn_in(item)?),
            PatchOperation::Add | PatchOperation::Replace => sqn = Some(sqn_in(item)?),
            _ => return Err(not_allowed(item)),
        }
    }
    let sqn = sqn.ok_or_else(no_sqn)?;
    Ok(StoreRequest::PutSequenceNumber { supi: supi.clone(), sqn, expected })
}

/// The sequence number in one operation of a patch.
fn sqn_in(item: &PatchItem) -> Result<u64, Box<Problem>> {
    let value = item.value.clone().unwrap_or_default();
    let sqn = match (item.path.as_str(), &item.op) {
        ("/sequenceNumber/sqn", _) => serde_json::from_value::<Hex<6>>(value).ok(),
        // A test of the whole object is refused: the database compares only SQN.
        ("/sequenceNumber", PatchOperation::Add | PatchOperation::Replace) => {
            serde_json::from_value::<SequenceNumber>(value).ok().and_then(|number| number.sqn)
        }
        _ => return Err(not_allowed(item)),
    };
    let Hex(octets) = sqn.ok_or_else(no_sqn)?;
    Ok(octets.iter().fold(0, |sqn, octet| sqn << 8 | u64::from(*octet)))
}

fn not_allowed(item: &PatchItem) -> Box<Problem> {
    Box::new(Problem::new(Cause::ModificationNotAllowed).detail(&item.path))
}

fn no_sqn() -> Box<Problem> {
    Box::new(Problem::mandatory_ie_incorrect("sequenceNumber", "no sqn"))
}

/// The patch tests for another sequence number than the current one; nothing is changed (RFC 5789
/// 2.2, RFC 6902 5).
fn sequence_number_taken() -> Box<Problem> {
    Box::new(
        Problem::of_status(409).detail("the sequence number differs from the one that the patch tests for"),
    )
}
