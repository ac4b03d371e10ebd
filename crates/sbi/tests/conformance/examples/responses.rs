//! An example of every response.

use super::bodies::*;
use super::{read, uri, with};
use bytes::Bytes;
use pith_sbi::{Created, Outcome, Response, namf_communication as amf, nsmf_pdusession as smf};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const NGAP: &[u8] = &[0, 0, 4, 0, 0x82];

fn body<T: DeserializeOwned + Serialize>(json: Value) -> Box<T> {
    Box::new(read(json))
}

fn created<T: DeserializeOwned + Serialize>(path: &str, json: Value) -> Box<Created<T>> {
    Box::new(Created { location: uri(path), body: read(json) })
}

/// An example of an outcome. A new outcome does not compile without one.
#[rustfmt::skip]
pub fn response(outcome: Outcome) -> Response {
    use Outcome as O;
    match outcome {
        O::NoContent => Response::NoContent,
        O::UeAuthenticationCtxCreated | O::ConfirmationDataResponse | O::EapSession
        | O::AuthenticationInfoResult | O::AuthEventCreated | O::AuthEvent
        | O::AuthenticationSubscription => authentication(outcome),
        O::Amf3GppAccessRegistrationCreated | O::Amf3GppAccessRegistration
        | O::SmfRegistrationCreated | O::SmfRegistration | O::SmfRegistrationInfo
        | O::SmfRegList | O::PatchResult => registration(outcome),
        O::SubscriptionDataSets | O::Nssai | O::AmData | O::SmfSelData | O::SmData
        | O::UeContextInSmfData | O::SdmSubscriptionCreated | O::SdmSubscription | O::SdmSubscriptions
        | O::AmPolicyData | O::SmPolicyData => subscription(outcome),
        O::SmContextCreated | O::SmContextUpdated | O::SmContextReleased
        | O::SmContextRetrieved => session(outcome),
        O::N1N2MessageTransferInitiated | O::N1N2MessageTransferAccepted
        | O::UeContextTransferred | O::RegistrationStatusUpdated
        | O::UeContextCreated | O::N2InfoNotified => communication(outcome),
        O::PolicyAssociationCreated | O::PolicyAssociation | O::PolicyUpdate
        | O::AmRequestedValueRep | O::SmPolicyDecisionCreated | O::SmPolicyDecision
        | O::SmPolicyControl | O::SmPolicyUpdateNotifyResult
        | O::AppSessionCreated | O::AppSessionContext | O::EventsSubscCreated
        | O::EventsSubsc => policy(outcome),
        O::NfProfileCreated | O::NfProfile | O::UriList | O::SubscriptionDataCreated
        | O::SubscriptionData | O::SearchResult | O::AccessTokenRsp => repository(outcome),
        O::AuthorizedNetworkSliceInfo => slices(),
    }
}

fn authentication(outcome: Outcome) -> Response {
    let link = "http://127.0.0.1:7777/s1/nausf-auth/v1/ue-authentications/7/5g-aka-confirmation";
    match outcome {
        Outcome::UeAuthenticationCtxCreated => Response::UeAuthenticationCtxCreated(created(
            "/nausf-auth/v1/ue-authentications/7",
            json!({
                "authType": "5G_AKA", "servingNetworkName": NETWORK,
                "5gAuthData": {"rand": RAND, "hxresStar": RAND, "autn": RAND},
                "_links": {"5g-aka": {"href": link}}
            }),
        )),
        Outcome::ConfirmationDataResponse => Response::ConfirmationDataResponse(body(json!({
            "authResult": "AUTHENTICATION_SUCCESS", "supi": SUPI, "kseaf": KEY
        }))),
        Outcome::EapSession => Response::EapSession(body(json!({
            "eapPayload": "AwEABA==", "kSeaf": KEY, "authResult": "AUTHENTICATION_SUCCESS",
            "supi": SUPI, "_links": {"eap-session": [{"href": link}]}
        }))),
        Outcome::AuthenticationInfoResult => Response::AuthenticationInfoResult(body(json!({
            "authType": "5G_AKA", "supi": SUPI, "authenticationVector": {"avType": "5G_HE_AKA",
                "rand": RAND, "xresStar": SECRET, "autn": RAND, "kausf": KEY}
        }))),
        Outcome::AuthEventCreated => Response::AuthEventCreated(created(
            "/nudm-ueau/v1/imsi-999700000000001/auth-events/3",
            auth_event(),
        )),
        Outcome::AuthEvent => Response::AuthEvent(body(auth_event())),
        _ => Response::AuthenticationSubscription(body(json!({
            "authenticationMethod": "5G_AKA", "encPermanentKey": SECRET, "encOpcKey": SECRET,
            "protectionParameterId": "none", "authenticationManagementField": "8000",
            "algorithmId": "milenage", "supi": SUPI,
            "sequenceNumber": {"sqnScheme": "NON_TIME_BASED", "sqn": "000000000020",
                "indLength": 5, "difSign": "POSITIVE", "lastIndexes": {"ausf": 1}}
        }))),
    }
}

fn registration(outcome: Outcome) -> Response {
    let path = "/nudm-uecm/v1/imsi-999700000000001/registrations";
    match outcome {
        Outcome::Amf3GppAccessRegistrationCreated => {
            let path = format!("{path}/amf-3gpp-access");
            Response::Amf3GppAccessRegistrationCreated(created(&path, amf_registration()))
        }
        Outcome::Amf3GppAccessRegistration => Response::Amf3GppAccessRegistration(body(amf_registration())),
        Outcome::SmfRegistrationCreated => {
            let path = format!("{path}/smf-registrations/1");
            Response::SmfRegistrationCreated(created(&path, smf_registration()))
        }
        Outcome::SmfRegistration => Response::SmfRegistration(body(smf_registration())),
        Outcome::SmfRegistrationInfo => Response::SmfRegistrationInfo(body(json!({
            "smfRegistrationList": [smf_registration()]
        }))),
        Outcome::SmfRegList => Response::SmfRegList(body(json!([smf_registration()]))),
        _ => Response::PatchResult(body(json!({
            "report": [{"path": "/imsVoPs", "reason": "not kept"}]
        }))),
    }
}

fn subscription(outcome: Outcome) -> Response {
    match outcome {
        Outcome::SubscriptionDataSets => Response::SubscriptionDataSets(body(json!({
            "amData": am_data(), "smfSelData": smf_sel_data(), "smData": sm_data(),
            "uecSmfData": ue_context_in_smf()
        }))),
        Outcome::Nssai => Response::Nssai(body(json!({"defaultSingleNssais": [{"sst": 1}]}))),
        Outcome::AmData => Response::AmData(body(am_data())),
        Outcome::SmfSelData => Response::SmfSelData(body(smf_sel_data())),
        Outcome::SmData => Response::SmData(body(sm_data())),
        Outcome::UeContextInSmfData => Response::UeContextInSmfData(body(ue_context_in_smf())),
        Outcome::SdmSubscriptionCreated => Response::SdmSubscriptionCreated(created(
            "/nudm-sdm/v2/imsi-999700000000001/sdm-subscriptions/5",
            sdm_subscription(),
        )),
        Outcome::SdmSubscription => Response::SdmSubscription(body(sdm_subscription())),
        Outcome::SdmSubscriptions => Response::SdmSubscriptions(body(json!([sdm_subscription()]))),
        Outcome::AmPolicyData => Response::AmPolicyData(body(json!({
            "subscCats": ["gold"], "praInfos": {"p1": {"praId": "p1"}}
        }))),
        _ => Response::SmPolicyData(body(json!({"smPolicySnssaiData": {"1": {
            "snssai": {"sst": 1}, "ueSliceMbr": ambr(), "smPolicyDnnData": {"internet": {
                "dnn": "internet", "allowedServices": ["web"], "subscCats": ["gold"],
                "gbrUl": "10 Mbps", "gbrDl": "10 Mbps", "online": false, "offline": false
            }}
        }}}))),
    }
}

fn ue_context_in_smf() -> Value {
    json!({
        "pduSessions": {"1": {"dnn": "internet", "smfInstanceId": SMF, "plmnId": plmn(),
            "singleNssai": {"sst": 1}}},
        "pgwInfo": [{"dnn": "ims", "pgwFqdn": "pgw.example.org", "plmnId": plmn()}]
    })
}

fn session(outcome: Outcome) -> Response {
    match outcome {
        Outcome::SmContextCreated => Response::SmContextCreated(created(
            "/nsmf-pdusession/v1/sm-contexts/72057594037927937",
            json!({"pduSessionId": 1, "sNssai": {"sst": 1}, "upCnxState": "ACTIVATING",
                "recoveryTime": "2026-01-31T00:00:00Z",
                "allocatedEbiList": [{"epsBearerId": 5, "arp": arp()}]}),
        )),
        Outcome::SmContextUpdated => {
            let json = json!({
                "upCnxState": "ACTIVATING", "hoState": "PREPARED", "cause": "HO_FAILURE",
                "n1SmMsg": {"contentId": "n1SmMsg"}, "n2SmInfo": {"contentId": "n2SmInfo"},
                "n2SmInfoType": "PDU_RES_SETUP_REQ", "releaseEbiList": [5]
            });
            Response::SmContextUpdated(with(body(json), |data: &mut Box<smf::SmContextUpdatedData>| {
                data.n1_sm_msg = Some(Bytes::from_static(b"\x2e\x01\x01\xd4").into());
                data.n2_sm_info = Some(Bytes::from_static(NGAP).into());
            }))
        }
        Outcome::SmContextReleased => Response::SmContextReleased(body(json!({
            "smallDataRateStatus": {"remainPacketsUl": 3}
        }))),
        _ => Response::SmContextRetrieved(body(json!({
            "ueEpsPdnConnection": "", "smContext": {
                "pduSessionId": 1, "dnn": "internet", "sNssai": {"sst": 1},
                "pduSessionType": "IPV4", "sessionAmbr": ambr(), "ueIpv4Address": "10.45.0.2",
                "qosFlowsList": [{"qfi": 1, "qosRules": "AQAG"}], "smfInstanceId": SMF
            }
        }))),
    }
}

fn communication(outcome: Outcome) -> Response {
    match outcome {
        Outcome::N1N2MessageTransferInitiated => Response::N1N2MessageTransferInitiated(body(
            json!({"cause": "N1_N2_TRANSFER_INITIATED", "supportedFeatures": "0"}),
        )),
        Outcome::N1N2MessageTransferAccepted => Response::N1N2MessageTransferAccepted(created(
            "/namf-comm/v1/ue-contexts/imsi-999700000000001/n1-n2-messages/2",
            json!({"cause": "ATTEMPTING_TO_REACH_UE"}),
        )),
        Outcome::UeContextTransferred => {
            let json = json!({
                "ueContext": ue_context(),
                "ueRadioCapability": {"ngapIeType": "UE_RADIO_CAPABILITY",
                    "ngapData": {"contentId": "ueRadioCapability"}, "ngapMessageType": 44},
                "ueRadioCapabilityForPaging": {
                    "ngapData": {"contentId": "ueRadioCapabilityForPaging"}}
            });
            let fill = |data: &mut Box<amf::UeContextTransferRspData>| {
                let capability = data.ue_radio_capability.as_mut().expect("one");
                capability.ngap_data = Bytes::from_static(NGAP).into();
                let capability = data.ue_radio_capability_for_paging.as_mut().expect("one");
                capability.ngap_data = Bytes::from_static(b"\r\n--").into();
            };
            Response::UeContextTransferred(with(body(json), fill))
        }
        Outcome::UeContextCreated => {
            let n2 = |id: u8, kind: &str, content_id: &str| {
                json!({"pduSessionId": id, "n2InfoContent": {
                    "ngapIeType": kind, "ngapData": {"contentId": content_id}}})
            };
            let json = json!({
                "ueContext": {"supi": SUPI},
                "targetToSourceData": {"ngapIeType": "TAR_TO_SRC_CONTAINER",
                    "ngapData": {"contentId": "n2Information"}},
                "pduSessionList": [n2(1, "HANDOVER_CMD", "n2InformationExt1")],
                "failedSessionList": [n2(2, "HANDOVER_PREP_FAIL", "n2InformationExt2")],
                "pcfReselectedInd": false
            });
            let fill = |created: &mut Box<Created<amf::UeContextCreatedData>>| {
                let data = &mut created.body;
                data.target_to_source_data.ngap_data = Bytes::from_static(NGAP).into();
                for list in [&mut data.pdu_session_list, &mut data.failed_session_list] {
                    let content = list[0].n2_info_content.as_mut().expect("one");
                    content.ngap_data = Bytes::from_static(b"\r\n--").into();
                }
            };
            Response::UeContextCreated(with(
                created("/namf-comm/v1/ue-contexts/imsi-999700000000001", json),
                fill,
            ))
        }
        Outcome::N2InfoNotified => {
            let json = json!({"secRatDataUsageList": [{"pduSessionId": 1, "n2InfoContent": {
                "ngapIeType": "SECONDARY_RAT_USAGE", "ngapData": {"contentId": "n2Information"}}}]});
            Response::N2InfoNotified(with(body(json), |data: &mut Box<amf::N2InfoNotificationRspData>| {
                let content = data.sec_rat_data_usage_list[0].n2_info_content.as_mut().expect("one");
                content.ngap_data = Bytes::from_static(NGAP).into();
            }))
        }
        _ => Response::RegistrationStatusUpdated(body(json!({"regStatusTransferComplete": true}))),
    }
}

fn policy(outcome: Outcome) -> Response {
    match outcome {
        Outcome::PolicyAssociationCreated => {
            Response::PolicyAssociationCreated(created("/npcf-am-policy-control/v1/policies/9", am_policy()))
        }
        Outcome::PolicyAssociation => {
            let mut policy = am_policy();
            policy["request"] = policy_request();
            Response::PolicyAssociation(body(policy))
        }
        Outcome::PolicyUpdate => Response::PolicyUpdate(body(json!({
            "resourceUri": "http://127.0.0.1:7777/npcf-am-policy-control/v1/policies/9",
            "ueAmbr": ambr(), "triggers": ["LOC_CH"]
        }))),
        Outcome::AmRequestedValueRep => Response::AmRequestedValueRep(body(json!({
            "userLoc": location(), "accessTypes": ["3GPP_ACCESS"], "ratTypes": ["NR"],
            "allowedSnssais": [{"sst": 1}]
        }))),
        Outcome::AppSessionCreated => {
            Response::AppSessionCreated(created("/npcf-policyauthorization/v1/app-sessions/4", app_session()))
        }
        Outcome::EventsSubscCreated => Response::EventsSubscCreated(created(
            "/npcf-policyauthorization/v1/app-sessions/4/events-subscription",
            json!({"events": [{"event": "FAILED_RESOURCES_ALLOCATION"}]}),
        )),
        Outcome::EventsSubsc => Response::EventsSubsc(body(json!({
            "events": [{"event": "FAILED_RESOURCES_ALLOCATION"}]
        }))),
        Outcome::AppSessionContext => Response::AppSessionContext(body(app_session())),
        Outcome::SmPolicyDecisionCreated => Response::SmPolicyDecisionCreated(created(
            "/npcf-smpolicycontrol/v1/sm-policies/4",
            sm_policy_decision(),
        )),
        Outcome::SmPolicyDecision => Response::SmPolicyDecision(body(sm_policy_decision())),
        Outcome::SmPolicyControl => Response::SmPolicyControl(body(json!({
            "context": sm_policy_context(), "policy": sm_policy_decision()
        }))),
        _ => Response::SmPolicyUpdateNotifyResult(body(json!([{
            "failureCause": "RULE_TEMPORARY_ERROR", "policyDecFailureReports": ["QOS_DECS_ERR"],
            "ruleReports": [{"pccRuleIds": ["r1"], "ruleStatus": "INACTIVE"}],
            "ueCampingRep": {"accessType": "3GPP_ACCESS", "servingNetwork": plmn()}
        }]))),
    }
}

fn repository(outcome: Outcome) -> Response {
    let path = format!("/nnrf-nfm/v1/nf-instances/{AMF}");
    let mut subscription = nf_subscription();
    subscription["subscriptionId"] = json!("12");
    match outcome {
        Outcome::NfProfileCreated => Response::NfProfileCreated(created(&path, profile())),
        Outcome::NfProfile => Response::NfProfile(body(profile())),
        Outcome::UriList => Response::UriList(body(json!({
            "_links": {"self": {"href": "http://127.0.0.1:7777/nnrf-nfm/v1/nf-instances"},
                "item": [{"href": format!("http://127.0.0.1:7777{path}")}]},
            "totalItemCount": 1
        }))),
        Outcome::SubscriptionDataCreated => {
            Response::SubscriptionDataCreated(created("/nnrf-nfm/v1/subscriptions/12", subscription))
        }
        Outcome::SubscriptionData => Response::SubscriptionData(body(subscription)),
        Outcome::SearchResult => Response::SearchResult(body(json!({
            "validityPeriod": 60, "nfInstances": other_profiles(), "numNfInstComplete": 6
        }))),
        _ => Response::AccessTokenRsp(body(json!({
            "access_token": "e30.e30.", "token_type": "Bearer", "expires_in": 3600,
            "scope": "nsmf-pdusession"
        }))),
    }
}

fn slices() -> Response {
    Response::AuthorizedNetworkSliceInfo(body(json!({
        "allowedNssaiList": [{"accessType": "3GPP_ACCESS", "allowedSnssaiList": [{
            "allowedSnssai": {"sst": 1}, "mappedHomeSnssai": {"sst": 1},
            "nsiInformationList": [{"nrfId": "http://127.0.0.1:7777/nnrf-disc/v1", "nsiId": "1"}]
        }]}],
        "configuredNssai": [{"configuredSnssai": {"sst": 1}, "mappedHomeSnssai": {"sst": 1}}],
        "targetAmfSet": "999-70-02-001", "candidateAmfList": [AMF],
        "rejectedNssaiInPlmn": [{"sst": 3}], "rejectedNssaiInTa": [{"sst": 4, "sd": "000001"}],
        "nsiInformation": {"nrfId": "http://127.0.0.1:7777/nnrf-disc/v1", "nsiId": "1"},
        "supportedFeatures": "0", "nrfAmfSet": "http://127.0.0.1:7777/nnrf-disc/v1/nf-instances"
    })))
}
