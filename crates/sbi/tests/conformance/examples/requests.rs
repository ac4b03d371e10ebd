//! An example of every request.

use super::bodies::*;
use super::{read, root, text, with};
use bytes::Bytes;
use pith_sbi::common::*;
use pith_sbi::{
    NfType, Operation, Request, namf_communication as amf, nausf_ueauthentication as ausf,
    nnrf_accesstoken as token, nnrf_nfdiscovery as disc, nnrf_nfmanagement as nrf, nnssf_nsselection as nssf,
    npcf_ampolicycontrol as am_policy, npcf_policyauthorization as application,
    npcf_smpolicycontrol as sm_policy, nsmf_pdusession as smf, nudm_sdm as sdm, nudm_ueau as ueau,
    nudm_uecm as uecm, nudr_dr as udr,
};
use pith_types::{Snssai, Supi};
use serde_json::json;

const NAS: &[u8] = &[0x2e, 1, 1, 0xc1, b'\r', b'\n', b'-', b'-', 0xff];
const NGAP: &[u8] = &[0, 0, 4, 0, 0x82];

fn supi() -> Supi {
    text(SUPI)
}

fn id() -> String {
    "7-a/b".to_owned()
}

/// An example of an operation's request. A new operation does not compile without one.
#[rustfmt::skip]
pub fn request(operation: Operation) -> Request {
    use Operation as Op;
    match operation {
        Op::Authenticate | Op::FiveGAkaConfirmation | Op::DeleteFiveGAkaAuthenticationResult
        | Op::EapAuthMethod | Op::DeleteEapAuthenticationResult => nausf(operation),
        Op::GenerateAuthData | Op::ConfirmAuth | Op::DeleteAuth => nudm_ueau(operation),
        Op::ThreeGppRegistration | Op::UpdateThreeGppRegistration | Op::GetThreeGppRegistration
        | Op::GetSmfRegistration | Op::RegisterSmf | Op::SmfDeregistration
        | Op::RetrieveSmfRegistration | Op::DeregistrationNotification => nudm_uecm(operation),
        Op::GetDataSets | Op::GetNssai | Op::GetAmData | Op::GetSmfSelData
        | Op::GetUeCtxInSmfData | Op::GetSmData | Op::SdmSubscribe | Op::SdmUnsubscribe
        | Op::SdmModifySubscription | Op::SdmChangeNotification => nudm_sdm(operation),
        Op::QueryAuthSubsData | Op::ModifyAuthenticationSubscription
        | Op::CreateAuthenticationStatus | Op::QueryAuthenticationStatus
        | Op::DeleteAuthenticationStatus | Op::QueryProvisionedData | Op::QueryAmData | Op::QuerySmfSelectData
        | Op::QuerySmData | Op::ReadAccessAndMobilityPolicyData
        | Op::ReadSessionManagementPolicyData | Op::DataChangeNotification => nudr_subscription(operation),
        Op::CreateAmfContextThreeGpp | Op::ModifyAmfContextThreeGpp | Op::QueryAmfContextThreeGpp
        | Op::QuerySmfRegList | Op::CreateOrUpdateSmfRegistration | Op::DeleteSmfRegistration
        | Op::QuerySmfRegistration | Op::CreateSdmSubscriptions | Op::QuerySdmSubscriptions
        | Op::UpdateSdmSubscriptions | Op::ModifySdmSubscription
        | Op::RemoveSdmSubscriptions => nudr_context(operation),
        Op::PostSmContexts | Op::UpdateSmContext | Op::ReleaseSmContext | Op::RetrieveSmContext
        | Op::SmContextStatusNotify => nsmf(operation),
        Op::N1N2MessageTransfer | Op::UeContextTransfer | Op::RegistrationStatusUpdate
        | Op::CreateUeContext | Op::ReleaseUeContext | Op::N2InfoNotify | Op::N1MessageNotify
        | Op::N1N2TransferFailureNotification => namf(operation),
        Op::CreateAmPolicyAssociation | Op::ReadAmPolicyAssociation
        | Op::UpdateAmPolicyAssociation | Op::DeleteAmPolicyAssociation
        | Op::AmPolicyUpdateNotify | Op::AmPolicyTerminateNotify => npcf_am(operation),
        Op::CreateSmPolicy | Op::GetSmPolicy | Op::UpdateSmPolicy | Op::DeleteSmPolicy
        | Op::SmPolicyUpdateNotify | Op::SmPolicyTerminateNotify => npcf_sm(operation),
        Op::PostAppSession | Op::GetAppSession | Op::ModAppSession | Op::DeleteAppSession
        | Op::AppSessionEventNotify | Op::AppSessionTerminate
        | Op::UpdateEventsSubsc | Op::DeleteEventsSubsc => npcf_app(operation),
        Op::GetNfInstances | Op::GetNfInstance | Op::RegisterNfInstance | Op::UpdateNfInstance
        | Op::DeregisterNfInstance | Op::CreateSubscription | Op::UpdateSubscription
        | Op::RemoveSubscription | Op::NfStatusNotify => nnrf(operation),
        Op::SearchNfInstances => search(),
        Op::AccessTokenRequest => access_token(),
        Op::NsSelectionGet => slices(),
    }
}

fn nausf(operation: Operation) -> Request {
    let auth_ctx_id = id();
    match operation {
        Operation::Authenticate => ausf::Authenticate {
            body: read(json!({
                "supiOrSuci": "suci-0-999-70-0-1-27-5c1d5c1d", "servingNetworkName": NETWORK,
                "resynchronizationInfo": {"rand": RAND, "auts": "000102030405060708090a0b0c0d"},
                "pei": "imei-353490069873319", "routingIndicator": "0"
            })),
        }
        .into(),
        Operation::FiveGAkaConfirmation => {
            let body = read(json!({"resStar": SECRET}));
            ausf::FiveGAkaConfirmation { auth_ctx_id, body }.into()
        }
        Operation::DeleteFiveGAkaAuthenticationResult => {
            ausf::DeleteFiveGAkaAuthenticationResult { auth_ctx_id }.into()
        }
        Operation::EapAuthMethod => {
            let body = read(json!({"eapPayload": "AgEACDIBAAA="}));
            ausf::EapAuthMethod { auth_ctx_id, body }.into()
        }
        _ => ausf::DeleteEapAuthenticationResult { auth_ctx_id }.into(),
    }
}

fn nudm_ueau(operation: Operation) -> Request {
    match operation {
        Operation::GenerateAuthData => ueau::GenerateAuthData {
            supi_or_suci: text("suci-0-999-70-0-0-0-0000000001"),
            body: read(json!({
                "servingNetworkName": NETWORK, "ausfInstanceId": AUSF, "supportedFeatures": "0",
                "resynchronizationInfo": {"rand": RAND, "auts": "000102030405060708090a0b0c0d"}
            })),
        }
        .into(),
        Operation::ConfirmAuth => ueau::ConfirmAuth { supi: supi(), body: read(auth_event()) }.into(),
        _ => {
            let mut event: ueau::AuthEvent = read(auth_event());
            event.auth_removal_ind = Some(true);
            ueau::DeleteAuth { supi: supi(), auth_event_id: id(), body: event }.into()
        }
    }
}

fn nudm_uecm(operation: Operation) -> Request {
    let ue_id = supi();
    let pdu_session_id = 1;
    match operation {
        Operation::ThreeGppRegistration => {
            uecm::ThreeGppRegistration { ue_id, body: read(amf_registration()) }.into()
        }
        Operation::UpdateThreeGppRegistration => uecm::UpdateThreeGppRegistration {
            ue_id,
            body: read(json!({"guami": guami(), "purgeFlag": true})),
        }
        .into(),
        Operation::GetThreeGppRegistration => uecm::GetThreeGppRegistration { ue_id }.into(),
        Operation::GetSmfRegistration => {
            let single_nssai = Some(text("1-010203"));
            uecm::GetSmfRegistration { ue_id, single_nssai, dnn: Some(text("internet")) }.into()
        }
        Operation::RegisterSmf => {
            uecm::RegisterSmf { ue_id, pdu_session_id, body: read(smf_registration()) }.into()
        }
        Operation::SmfDeregistration => {
            let smf_instance_id = Some(text(SMF));
            uecm::SmfDeregistration { ue_id, pdu_session_id, smf_instance_id }.into()
        }
        Operation::RetrieveSmfRegistration => uecm::RetrieveSmfRegistration { ue_id, pdu_session_id }.into(),
        _ => uecm::DeregistrationNotification {
            uri: uecm::DeregistrationNotification::callback_uri(&root(), &NfType::Amf, SUPI),
            body: read(json!({
                "deregReason": "UE_INITIAL_REGISTRATION", "accessType": "3GPP_ACCESS"
            })),
        }
        .into(),
    }
}

fn nudm_sdm(operation: Operation) -> Request {
    let supi = supi();
    let plmn_id: Option<PlmnIdNid> = Some(read(json!({"mcc": "999", "mnc": "70"})));
    match operation {
        Operation::GetDataSets => {
            let dataset_names = vec![sdm::DataSetName::Am, sdm::DataSetName::SmfSel];
            sdm::GetDataSets { supi, dataset_names, plmn_id }.into()
        }
        Operation::GetNssai => sdm::GetNssai { supi, plmn_id }.into(),
        Operation::GetAmData => sdm::GetAmData { supi, supported_features: Some(text("a")), plmn_id }.into(),
        Operation::GetSmfSelData => sdm::GetSmfSelData { supi, plmn_id: None }.into(),
        Operation::GetUeCtxInSmfData => sdm::GetUeCtxInSmfData { supi }.into(),
        Operation::GetSmData => sdm::GetSmData {
            supi,
            single_nssai: Some(text("1")),
            dnn: Some(text("internet")),
            plmn_id: Some(text("999/70")),
        }
        .into(),
        Operation::SdmSubscribe => sdm::SdmSubscribe { ue_id: supi, body: read(sdm_subscription()) }.into(),
        Operation::SdmUnsubscribe => sdm::SdmUnsubscribe { ue_id: supi, subscription_id: id() }.into(),
        Operation::SdmModifySubscription => sdm::SdmModifySubscription {
            ue_id: supi,
            subscription_id: id(),
            body: read(json!({
                "expires": "2026-03-31T00:00:00Z",
                "monitoredResourceUris": [format!("/nudm-sdm/v2/{SUPI}/sm-data")]
            })),
        }
        .into(),
        _ => sdm::SdmChangeNotification {
            uri: sdm::SdmChangeNotification::callback_uri(&root(), &NfType::Smf, "9"),
            body: read(json!({"notifyItems": [{"resourceId": format!("{SUPI}/sm-data"), "changes": [
                {"op": "REPLACE", "path": "/subscribedUeAmbr", "newValue": ambr()}
            ]}]})),
        }
        .into(),
    }
}

fn nudr_subscription(operation: Operation) -> Request {
    let ue_id = supi();
    let serving_plmn_id = text("99970");
    match operation {
        Operation::QueryAuthSubsData => udr::QueryAuthSubsData { ue_id }.into(),
        Operation::ModifyAuthenticationSubscription => udr::ModifyAuthenticationSubscription {
            ue_id,
            body: vec![
                PatchItem::test("/sequenceNumber/sqn", "000000000000"),
                PatchItem::replace("/sequenceNumber/sqn", "000000000021"),
            ],
        }
        .into(),
        Operation::CreateAuthenticationStatus => {
            udr::CreateAuthenticationStatus { ue_id, body: read(auth_event()) }.into()
        }
        Operation::QueryAuthenticationStatus => udr::QueryAuthenticationStatus { ue_id }.into(),
        Operation::DeleteAuthenticationStatus => udr::DeleteAuthenticationStatus { ue_id }.into(),
        Operation::QueryProvisionedData => udr::QueryProvisionedData {
            ue_id,
            serving_plmn_id,
            dataset_names: Some(vec![sdm::DataSetName::Am, sdm::DataSetName::SmfSel]),
        }
        .into(),
        Operation::QueryAmData => udr::QueryAmData { ue_id, serving_plmn_id }.into(),
        Operation::QuerySmfSelectData => udr::QuerySmfSelectData { ue_id, serving_plmn_id }.into(),
        Operation::QuerySmData => udr::QuerySmData {
            ue_id,
            serving_plmn_id,
            single_nssai: Some(text("1-00000a")),
            dnn: Some(text("internet")),
        }
        .into(),
        Operation::ReadAccessAndMobilityPolicyData => udr::ReadAccessAndMobilityPolicyData { ue_id }.into(),
        Operation::DataChangeNotification => udr::DataChangeNotification {
            uri: udr::DataChangeNotification::callback_uri(&root(), &NfType::Udm, SUPI),
            body: read(json!({
                "originalCallbackReference": ["http://127.0.0.1:7000/namf-callback/v1/sdm-change/9"],
                "ueId": SUPI,
                "notifyItems": [{"resourceId": format!("{SUPI}/provisioned-data/am-data"), "changes": [
                    {"op": "REPLACE", "path": "/subscribedUeAmbr", "newValue": ambr()}
                ]}],
            })),
        }
        .into(),
        _ => udr::ReadSessionManagementPolicyData {
            ue_id,
            snssai: Some(text("1")),
            dnn: Some(text("internet")),
        }
        .into(),
    }
}

fn nudr_context(operation: Operation) -> Request {
    let ue_id = supi();
    let pdu_session_id = 255;
    match operation {
        Operation::CreateAmfContextThreeGpp => {
            udr::CreateAmfContextThreeGpp { ue_id, body: read(amf_registration()) }.into()
        }
        Operation::ModifyAmfContextThreeGpp => udr::ModifyAmfContextThreeGpp {
            ue_id,
            body: vec![PatchItem::add("/purgeFlag", true), PatchItem::remove("/pei")],
        }
        .into(),
        Operation::QueryAmfContextThreeGpp => udr::QueryAmfContextThreeGpp { ue_id }.into(),
        Operation::QuerySmfRegList => udr::QuerySmfRegList { ue_id }.into(),
        Operation::CreateOrUpdateSmfRegistration => {
            let body = read(smf_registration());
            udr::CreateOrUpdateSmfRegistration { ue_id, pdu_session_id, body }.into()
        }
        Operation::DeleteSmfRegistration => udr::DeleteSmfRegistration { ue_id, pdu_session_id }.into(),
        Operation::QuerySmfRegistration => udr::QuerySmfRegistration { ue_id, pdu_session_id }.into(),
        Operation::CreateSdmSubscriptions => {
            udr::CreateSdmSubscriptions { ue_id, body: read(sdm_subscription()) }.into()
        }
        Operation::QuerySdmSubscriptions => udr::QuerySdmSubscriptions { ue_id }.into(),
        Operation::UpdateSdmSubscriptions => {
            let body = read(sdm_subscription());
            udr::UpdateSdmSubscriptions { ue_id, subs_id: id(), body }.into()
        }
        Operation::ModifySdmSubscription => {
            let body = vec![PatchItem::add("/expires", "2026-03-31T00:00:00Z")];
            udr::ModifySdmSubscription { ue_id, subs_id: id(), body }.into()
        }
        _ => udr::RemoveSdmSubscriptions { ue_id, subs_id: id() }.into(),
    }
}

fn nsmf(operation: Operation) -> Request {
    let sm_context_ref = id();
    match operation {
        Operation::PostSmContexts => smf::PostSmContexts {
            body: with(read(sm_context_create()), |body: &mut smf::SmContextCreateData| {
                body.n1_sm_msg = Some(Bytes::from_static(NAS).into());
            }),
        }
        .into(),
        Operation::UpdateSmContext => smf::UpdateSmContext {
            sm_context_ref,
            body: with(read(sm_context_update()), |body: &mut smf::SmContextUpdateData| {
                body.n1_sm_msg = Some(Bytes::from_static(NAS).into());
                body.n2_sm_info = Some(Bytes::from_static(NGAP).into());
                body.n2_sm_info_ext1 = Some(Bytes::new().into());
            }),
        }
        .into(),
        Operation::ReleaseSmContext => smf::ReleaseSmContext {
            sm_context_ref,
            body: read(json!({
                "cause": "REL_DUE_TO_HO", "ngApCause": {"group": 2, "value": 1},
                "5gMmCauseValue": 9, "ueLocation": location(), "vsmfReleaseOnly": false
            })),
        }
        .into(),
        Operation::RetrieveSmContext => smf::RetrieveSmContext {
            sm_context_ref,
            body: read(json!({"smContextType": "SM_CONTEXT", "servingNetwork": plmn()})),
        }
        .into(),
        _ => smf::SmContextStatusNotify {
            uri: smf::SmContextStatusNotify::callback_uri(&root(), &NfType::Amf, "77.5"),
            body: read(json!({"statusInfo": {
                "resourceStatus": "RELEASED", "cause": "REL_DUE_TO_DUPLICATE_SESSION_ID"
            }})),
        }
        .into(),
    }
}

fn sm_context_create() -> serde_json::Value {
    json!({
        "servingNfId": AMF, "servingNetwork": plmn(), "anType": "3GPP_ACCESS",
        "smContextStatusUri": "http://127.0.0.1:7777/namf-callback/v1/sm-context-status/77.5",
        "supi": SUPI, "pei": "imei-353490069873319", "pduSessionId": 1, "dnn": "internet",
        "sNssai": {"sst": 1}, "guami": guami(), "requestType": "INITIAL_REQUEST",
        "n1SmMsg": {"contentId": "n1SmMsg"}, "ratType": "NR", "ueLocation": location(),
        "ueTimeZone": "+01:00", "selMode": "VERIFIED", "pcfId": AUSF,
        "serviceName": "namf-comm", "backupAmfInfo": [{"backupAmf": "amf2.example.org",
            "guamiList": [guami()]}]
    })
}

fn sm_context_update() -> serde_json::Value {
    json!({
        "upCnxState": "ACTIVATING", "anType": "3GPP_ACCESS", "ratType": "NR",
        "ueLocation": location(), "hoState": "PREPARING", "release": false, "dataForwarding": true,
        "n1SmMsg": {"contentId": "n1SmMsg"}, "n2SmInfo": {"contentId": "n2SmInfo"},
        "n2SmInfoType": "PDU_RES_SETUP_RSP", "n2SmInfoExt1": {"contentId": "n2SmInfoExt1"},
        "n2SmInfoTypeExt1": "SECONDARY_RAT_USAGE", "cause": "HO_FAILURE",
        "targetId": {"ranNodeId": {"plmnId": plmn(), "gNbId": {
            "bitLength": 24, "gNBValue": "00000a"}}, "tai": tai()}
    })
}

fn namf(operation: Operation) -> Request {
    match operation {
        Operation::N1N2MessageTransfer => amf::N1N2MessageTransfer {
            ue_context_id: text(SUPI),
            body: with(read(n1_n2()), |body: &mut amf::N1N2MessageTransferReqData| {
                let n1 = body.n1_message_container.as_mut().expect("N1");
                n1.n1_message_content = Bytes::from_static(NAS).into();
                let n2 = body.n2_info_container.as_mut().and_then(|n2| n2.sm_info.as_mut());
                let n2 = n2.and_then(|n2| n2.n2_info_content.as_mut()).expect("N2");
                n2.ngap_data = Bytes::from_static(NGAP).into();
            }),
        }
        .into(),
        Operation::UeContextTransfer => amf::UeContextTransfer {
            ue_context_id: text("5g-guti-99970020040abcdef01"),
            body: with(
                read(json!({
                    "reason": "MOBI_REG", "accessType": "3GPP_ACCESS", "plmnId": plmn(),
                    "regRequest": {"n1MessageClass": "5GMM",
                        "n1MessageContent": {"contentId": "n1Message"}}
                })),
                |body: &mut amf::UeContextTransferReqData| {
                    let n1 = body.reg_request.as_mut().expect("N1");
                    n1.n1_message_content = Bytes::from_static(NAS).into();
                },
            ),
        }
        .into(),
        Operation::RegistrationStatusUpdate => amf::RegistrationStatusUpdate {
            ue_context_id: text("5g-guti-99970020040abcdef01"),
            body: read(json!({
                "transferStatus": "TRANSFERRED", "toReleaseSessionList": [5],
                "pcfReselectedInd": false
            })),
        }
        .into(),
        Operation::CreateUeContext => amf::CreateUeContext {
            ue_context_id: text(SUPI),
            body: with(read(ue_context_create()), |body: &mut amf::UeContextCreateData| {
                let session = body.pdu_session_list[0].n2_info_content.as_mut().expect("N2");
                session.ngap_data = Bytes::from_static(NGAP).into();
                body.source_to_target_data.ngap_data = Bytes::from_static(b"\r\n--").into();
                let capability = body.ue_radio_capability.as_mut().expect("one");
                capability.ngap_data = Bytes::from_static(&[7]).into();
                let capability = body.ue_radio_capability_for_paging.as_mut().expect("one");
                capability.ngap_data = Bytes::from_static(&[8]).into();
            }),
        }
        .into(),
        Operation::ReleaseUeContext => amf::ReleaseUeContext {
            ue_context_id: text(SUPI),
            body: read(json!({"supi": SUPI, "unauthenticatedSupi": false,
                "ngapCause": {"group": 0, "value": 5}})),
        }
        .into(),
        Operation::N2InfoNotify => amf::N2InfoNotify {
            uri: amf::N2InfoNotify::callback_uri(&root(), &NfType::Amf, "8"),
            body: read(json!({
                "n2NotifySubscriptionId": "8", "notifyReason": "HANDOVER_COMPLETED",
                "toReleaseSessionList": [2], "guami": guami()
            })),
        }
        .into(),
        Operation::N1MessageNotify => amf::N1MessageNotify {
            uri: amf::N1MessageNotify::callback_uri(&root(), &NfType::Amf, "default"),
            body: with(read(rerouted_registration()), |body: &mut amf::N1MessageNotification| {
                body.n1_message_container.n1_message_content = Bytes::from_static(NAS).into();
            }),
        }
        .into(),
        _ => amf::N1N2TransferFailureNotification {
            uri: amf::N1N2TransferFailureNotification::callback_uri(&root(), &NfType::Smf, "8"),
            body: read(json!({
                "cause": "UE_NOT_RESPONDING",
                "n1n2MsgDataUri": "http://127.0.0.1:7777/namf-comm/v1/ue-contexts/1/n1-n2-messages/2"
            })),
        }
        .into(),
    }
}

fn rerouted_registration() -> serde_json::Value {
    json!({
        "n1MessageContainer": {"n1MessageClass": "5GMM", "n1MessageContent": {"contentId": "n1Message"}},
        "registrationCtxtContainer": {
            "ueContext": ue_context(), "anType": "3GPP_ACCESS", "anN2ApId": 17,
            "ranNodeId": {"plmnId": plmn(), "gNbId": {"bitLength": 24, "gNBValue": "00000a"}},
            "initialAmfName": "amf1.example.org", "userLocation": location(), "rrcEstCause": "3",
            "ueContextRequest": true, "initialAmfN2ApId": 4711,
            "allowedNssai": {"allowedSnssaiList": [{"allowedSnssai": {"sst": 2}}],
                "accessType": "3GPP_ACCESS"},
            "configuredNssai": [{"configuredSnssai": {"sst": 2}}],
            "rejectedNssaiInPlmn": [{"sst": 7}], "rejectedNssaiInTa": [{"sst": 8}]
        },
        "guami": guami()
    })
}

fn ue_context_create() -> serde_json::Value {
    json!({
        "ueContext": ue_context(),
        "targetId": {"ranNodeId": {"plmnId": plmn(), "gNbId": {
            "bitLength": 24, "gNBValue": "00000a"}}, "tai": tai()},
        "sourceToTargetData": {"ngapIeType": "SRC_TO_TAR_CONTAINER",
            "ngapData": {"contentId": "n2Information"}},
        "pduSessionList": [{"pduSessionId": 1, "sNssai": {"sst": 1}, "n2InfoContent": {
            "ngapIeType": "HANDOVER_REQUIRED", "ngapData": {"contentId": "n2InformationExt1"}}}],
        "n2NotifyUri": "http://127.0.0.1:7777/namf-callback/v1/n2-info/8",
        "ueRadioCapability": {"ngapIeType": "UE_RADIO_CAPABILITY",
            "ngapData": {"contentId": "n2InformationExt2"}},
        "ueRadioCapabilityForPaging": {"ngapData": {"contentId": "n2InformationExt3"}},
        "ngapCause": {"group": 0, "value": 16}, "servingNetwork": plmn()
    })
}

fn n1_n2() -> serde_json::Value {
    json!({
        "n1MessageContainer": {"n1MessageClass": "SM",
            "n1MessageContent": {"contentId": "n1Message"}, "nfId": SMF},
        "n2InfoContainer": {"n2InformationClass": "SM", "smInfo": {"pduSessionId": 1,
            "n2InfoContent": {"ngapIeType": "PDU_RES_SETUP_REQ",
                "ngapData": {"contentId": "n2Information"}}, "sNssai": {"sst": 1}}},
        "pduSessionId": 1, "arp": arp(), "5qi": 9, "ppi": 1, "skipInd": false,
        "n1n2FailureTxfNotifURI": "http://127.0.0.1:7777/nsmf-callback/v1/n1n2-failure/8",
        "targetAccess": "3GPP_ACCESS"
    })
}

fn npcf_am(operation: Operation) -> Request {
    let pol_asso_id = id();
    let resource = "http://127.0.0.1:7777/npcf-am-policy-control/v1/policies/9";
    match operation {
        Operation::CreateAmPolicyAssociation => {
            am_policy::CreateAmPolicyAssociation { body: read(policy_request()) }.into()
        }
        Operation::ReadAmPolicyAssociation => am_policy::ReadAmPolicyAssociation { pol_asso_id }.into(),
        Operation::UpdateAmPolicyAssociation => am_policy::UpdateAmPolicyAssociation {
            pol_asso_id,
            body: read(json!({"triggers": ["LOC_CH"], "userLoc": location(),
                "praStatuses": {"p1": {"praId": "p1", "presenceState": "OUT_OF_AREA"}}})),
        }
        .into(),
        Operation::DeleteAmPolicyAssociation => am_policy::DeleteAmPolicyAssociation { pol_asso_id }.into(),
        Operation::AmPolicyUpdateNotify => am_policy::AmPolicyUpdateNotify {
            uri: am_policy::AmPolicyUpdateNotify::callback_uri(&root(), &NfType::Amf, "9"),
            body: read(json!({"resourceUri": resource, "rfsp": 2, "triggers": ["RFSP_CH"]})),
        }
        .into(),
        _ => am_policy::AmPolicyTerminateNotify {
            uri: am_policy::AmPolicyTerminateNotify::callback_uri(&root(), &NfType::Amf, "9"),
            body: read(json!({"resourceUri": resource, "cause": "UE_SUBSCRIPTION"})),
        }
        .into(),
    }
}

fn npcf_app(operation: Operation) -> Request {
    let app_session_id = id();
    let resource = "http://127.0.0.1:7777/npcf-policyauthorization/v1/app-sessions/4";
    match operation {
        Operation::PostAppSession => application::PostAppSession { body: read(app_session()) }.into(),
        Operation::GetAppSession => application::GetAppSession { app_session_id }.into(),
        Operation::ModAppSession => application::ModAppSession {
            app_session_id,
            body: read(json!({"ascReqData": {
                "resPrio": "PRIO_2",
                "medComponents": {"1": null, "2": {"medCompN": 2, "medType": "VIDEO", "marBwDl": "2 Mbps"}}
            }})),
        }
        .into(),
        Operation::DeleteAppSession => application::DeleteAppSession { app_session_id }.into(),
        Operation::UpdateEventsSubsc => application::UpdateEventsSubsc {
            app_session_id,
            body: read(json!({"events": [{"event": "FAILED_RESOURCES_ALLOCATION"}]})),
        }
        .into(),
        Operation::DeleteEventsSubsc => application::DeleteEventsSubsc { app_session_id }.into(),
        Operation::AppSessionEventNotify => application::AppSessionEventNotify {
            uri: application::AppSessionEventNotify::callback_uri(&root(), &NfType::Af, "4"),
            body: read(json!({
                "evSubsUri": format!("{resource}/events-subscription"),
                "evNotifs": [{"event": "FAILED_RESOURCES_ALLOCATION", "flows": [{"medCompN": 1, "fNums": [2]}]}],
                "failedResourcAllocReports": [{"mcResourcStatus": "INACTIVE", "flows": [{"medCompN": 1}]}]
            })),
        }
        .into(),
        _ => application::AppSessionTerminate {
            uri: application::AppSessionTerminate::callback_uri(&root(), &NfType::Af, "4"),
            body: read(json!({"termCause": "PDU_SESSION_TERMINATION", "resUri": resource})),
        }
        .into(),
    }
}

fn npcf_sm(operation: Operation) -> Request {
    let sm_policy_id = id();
    let resource = "http://127.0.0.1:7777/npcf-smpolicycontrol/v1/sm-policies/4";
    match operation {
        Operation::CreateSmPolicy => sm_policy::CreateSmPolicy { body: read(sm_policy_context()) }.into(),
        Operation::GetSmPolicy => sm_policy::GetSmPolicy { sm_policy_id }.into(),
        Operation::UpdateSmPolicy => sm_policy::UpdateSmPolicy {
            sm_policy_id,
            body: read(json!({
                "repPolicyCtrlReqTriggers": ["US_RE"], "accessType": "3GPP_ACCESS",
                "accuUsageReports": [{"refUmIds": "u1", "volUsage": 5_000_000_001_u64}],
                "ruleReports": [{"pccRuleIds": ["r1"], "ruleStatus": "INACTIVE",
                    "failureCode": "RES_ALLO_FAIL"}],
                "sessRuleReports": [{"ruleIds": ["s1"], "ruleStatus": "ACTIVE"}],
                "qncReports": [{"refPccRuleIds": ["r1"], "notifType": "NOT_GUARANTEED"}]
            })),
        }
        .into(),
        Operation::DeleteSmPolicy => sm_policy::DeleteSmPolicy {
            sm_policy_id,
            body: read(json!({
                "userLocationInfo": location(), "servingNetwork": plmn(),
                "userLocationInfoTime": "2026-01-31T12:00:00Z", "pduSessRelCause": "RULE_ERROR"
            })),
        }
        .into(),
        Operation::SmPolicyUpdateNotify => sm_policy::SmPolicyUpdateNotify {
            uri: sm_policy::SmPolicyUpdateNotify::callback_uri(&root(), &NfType::Smf, "4"),
            body: read(json!({
                "resourceUri": resource, "smPolicyDecision": sm_policy_decision()
            })),
        }
        .into(),
        _ => sm_policy::SmPolicyTerminateNotify {
            uri: sm_policy::SmPolicyTerminateNotify::callback_uri(&root(), &NfType::Smf, "4"),
            body: read(json!({"resourceUri": resource, "cause": "INSUFFICIENT_RES"})),
        }
        .into(),
    }
}

fn nnrf(operation: Operation) -> Request {
    let nf_instance_id = text(AMF);
    let subscription_id = "12".to_owned();
    match operation {
        Operation::GetNfInstances => {
            nrf::GetNfInstances { nf_type: Some(NfType::Smf), limit: Some(10) }.into()
        }
        Operation::GetNfInstance => nrf::GetNfInstance { nf_instance_id, requester_features: None }.into(),
        Operation::RegisterNfInstance => {
            nrf::RegisterNfInstance { nf_instance_id, body: read(profile()) }.into()
        }
        Operation::UpdateNfInstance => nrf::UpdateNfInstance {
            nf_instance_id,
            body: vec![PatchItem::replace("/nfStatus", "REGISTERED"), PatchItem::replace("/load", 50)],
        }
        .into(),
        Operation::DeregisterNfInstance => nrf::DeregisterNfInstance { nf_instance_id }.into(),
        Operation::CreateSubscription => nrf::CreateSubscription { body: read(nf_subscription()) }.into(),
        Operation::UpdateSubscription => nrf::UpdateSubscription {
            subscription_id,
            body: vec![PatchItem::replace("/validityTime", "2026-02-02T00:00:00Z")],
        }
        .into(),
        Operation::RemoveSubscription => nrf::RemoveSubscription { subscription_id }.into(),
        _ => nrf::NfStatusNotify {
            uri: nrf::NfStatusNotify::callback_uri(&root(), &NfType::Amf, "1"),
            body: read(json!({
                "event": "NF_PROFILE_CHANGED",
                "nfInstanceUri": format!("http://127.0.0.1:7777/nnrf-nfm/v1/nf-instances/{AMF}"),
                "profileChanges": [{"op": "REPLACE", "path": "/load", "newValue": 50}]
            })),
        }
        .into(),
    }
}

fn search() -> Request {
    disc::SearchNfInstances {
        requester_nf_instance_id: Some(text(AMF)),
        service_names: Some(vec![ServiceName::NsmfPdusession, ServiceName::NsmfEventExposure]),
        target_plmn_list: Some(vec![text("999/70")]),
        requester_plmn_list: Some(vec![text("999/70"), text("310/410")]),
        target_nf_instance_id: Some(text(SMF)),
        snssais: Some(vec![text("1"), text("1-010203")]),
        dnn: Some(text("internet")),
        tai: Some(read(tai())),
        amf_region_id: Some("02".into()),
        amf_set_id: Some("001".into()),
        guami: Some(read(guami())),
        supi: Some(supi()),
        routing_indicator: Some("0000".into()),
        access_type: Some(AccessType::ThreeGppAccess),
        target_nf_set_id: Some("set1.smfset.5gc.mnc070.mcc999".into()),
        preferred_locality: Some("rack 1 & 2 = 50% + x".into()),
        limit: Some(3),
        requester_features: Some(text("0")),
        ..disc::SearchNfInstances::new(NfType::Smf, NfType::Amf)
    }
    .into()
}

fn access_token() -> Request {
    token::AccessTokenRequest {
        body: token::AccessTokenReq {
            nf_instance_id: text(AMF),
            scope: "nsmf-pdusession nudm-sdm".into(),
            nf_type: Some(NfType::Amf),
            target_nf_type: Some(NfType::Smf),
            target_nf_instance_id: Some(text(SMF)),
            requester_plmn: Some(text("999/70")),
            target_plmn: Some(text("999/70")),
            requester_snssais: Some(vec![Snssai::of_sst(1)]),
            requester_fqdn: Some("amf1.5gc.example".into()),
            target_snssais: Some(vec![Snssai::of_sst(1)]),
            target_nf_set_id: Some("set1.smfset.5gc.mnc070.mcc999".into()),
        },
    }
    .into()
}

fn slices() -> Request {
    nssf::NsSelectionGet {
        nf_type: NfType::Amf,
        nf_id: text(AMF),
        slice_info_request_for_registration: Some(read(json!({
            "subscribedNssai": [{"subscribedSnssai": {"sst": 1}, "defaultIndication": true}],
            "requestedNssai": [{"sst": 1, "sd": "010203"}], "sNssaiForMapping": [{"sst": 1}],
            "mappingOfNssai": [{"servingSnssai": {"sst": 1}, "homeSnssai": {"sst": 1}}],
            "requestMapping": false, "allowedNssaiCurrentAccess": {
                "allowedSnssaiList": [{"allowedSnssai": {"sst": 1}}], "accessType": "3GPP_ACCESS"}
        }))),
        slice_info_request_for_pdu_session: Some(read(json!({
            "sNssai": {"sst": 1}, "roamingIndication": "NON_ROAMING", "homeSnssai": {"sst": 1}
        }))),
        slice_info_request_for_ue_cu: Some(read(json!({
            "subscribedNssai": [{"subscribedSnssai": {"sst": 1}, "defaultIndication": true}],
            "requestedNssai": [{"sst": 1, "sd": "010203"}], "defaultConfiguredSnssaiInd": true,
            "mappingOfNssai": [{"servingSnssai": {"sst": 1}, "homeSnssai": {"sst": 1}}],
            "allowedNssaiCurrentAccess": {
                "allowedSnssaiList": [{"allowedSnssai": {"sst": 1}}], "accessType": "3GPP_ACCESS"},
            "allowedNssaiOtherAccess": {
                "allowedSnssaiList": [{"allowedSnssai": {"sst": 1}}], "accessType": "NON_3GPP_ACCESS"}
        }))),
        home_plmn_id: Some(text("999/70")),
        tai: Some(read(tai())),
        supported_features: Some(text("1")),
    }
    .into()
}
