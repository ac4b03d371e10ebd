//! Bodies that occur in requests and responses, and parts of bodies.

use serde_json::{Value, json};

pub const AMF: &str = "4ad8a1f0-5b0e-4b5c-9d1e-0123456789ab";
pub const SMF: &str = "0b3c8a52-3d3f-4f5e-8e6a-d1b9c7a0f001";
pub const AUSF: &str = "9a3f1c88-0a55-4c3e-b7d2-3c6f1a2b4d5e";
pub const SUPI: &str = "imsi-999700000000001";
pub const NETWORK: &str = "5G:mnc070.mcc999.3gppnetwork.org";
pub const RAND: &str = "000102030405060708090a0b0c0d0e0f";
pub const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Keys and expected responses of 16 octets.
pub const SECRET: &str = "5ec2e75ec2e75ec2e75ec2e75ec2e75e";

pub fn plmn() -> Value {
    json!({"mcc": "999", "mnc": "70"})
}

pub fn guami() -> Value {
    json!({"plmnId": plmn(), "amfId": "020040"})
}

pub fn ambr() -> Value {
    json!({"uplink": "500 Mbps", "downlink": "1 Gbps"})
}

pub fn arp() -> Value {
    json!({"priorityLevel": 8, "preemptCap": "NOT_PREEMPT", "preemptVuln": "NOT_PREEMPTABLE"})
}

pub fn tai() -> Value {
    json!({"plmnId": plmn(), "tac": "000001"})
}

pub fn location() -> Value {
    json!({"nrLocation": {
        "tai": tai(),
        "ncgi": {"plmnId": plmn(), "nrCellId": "000000010"},
        "ueLocationTimestamp": "2026-01-31T12:00:00Z",
        "globalGnbId": {"plmnId": plmn(), "gNbId": {"bitLength": 32, "gNBValue": "00000001"}}
    }})
}

pub fn area() -> Value {
    json!({"restrictionType": "ALLOWED_AREAS", "areas": [{"tacs": ["000001"]}]})
}

pub fn auth_event() -> Value {
    json!({
        "nfInstanceId": AUSF, "success": true, "timeStamp": "2026-01-31T12:00:00.500Z",
        "authType": "5G_AKA", "servingNetworkName": NETWORK
    })
}

pub fn amf_registration() -> Value {
    json!({
        "amfInstanceId": AMF,
        "deregCallbackUri": "http://127.0.0.1:7777/s0/namf-callback/v1/dereg-notify/imsi-1",
        "guami": guami(), "ratType": "NR", "initialRegistrationInd": true,
        "pei": "imeisv-4370816125816151", "imsVoPs": "HOMOGENEOUS_NON_SUPPORT",
        "backupAmfInfo": [{"backupAmf": "amf2.5gc.mnc070.mcc999.3gppnetwork.org"}],
        "registrationTime": "2026-01-31T12:00:00Z", "supi": SUPI
    })
}

pub fn smf_registration() -> Value {
    json!({
        "smfInstanceId": SMF, "pduSessionId": 1, "singleNssai": {"sst": 1, "sd": "010203"},
        "plmnId": plmn(), "dnn": "internet",
        "deregCallbackUri": "http://127.0.0.1:7777/nsmf-callback/v1/dereg-notify/7",
        "registrationTime": "2026-01-31T12:00:00Z"
    })
}

pub fn sdm_subscription() -> Value {
    json!({
        "nfInstanceId": AMF,
        "callbackReference": "http://127.0.0.1:7777/namf-callback/v1/sdm-change/3",
        "monitoredResourceUris": ["http://127.0.0.1:7777/nudm-sdm/v2/imsi-999700000000001/am-data"],
        "implicitUnsubscribe": true, "expires": "2026-02-28T00:00:00Z", "plmnId": plmn()
    })
}

fn trace_data() -> Value {
    json!({
        "traceRef": "99970-00000a", "traceDepth": "MEDIUM_WO_VENDOR_EXTENSION", "neTypeList": "0040",
        "eventList": "01", "collectionEntityIpv4Addr": "192.0.2.9",
        "collectionEntityIpv6Addr": "2001:db8::9", "interfaceList": "f8"
    })
}

pub fn am_data() -> Value {
    json!({
        "gpsis": ["msisdn-491701234567"], "subscribedUeAmbr": ambr(),
        "nssai": {"defaultSingleNssais": [{"sst": 1}], "singleNssais": [{"sst": 2, "sd": "00000a"}]},
        "ratRestrictions": ["WLAN"], "forbiddenAreas": [{"tacs": ["00000f"]}],
        "serviceAreaRestriction": area(), "coreNetworkTypeRestrictions": ["EPC"],
        "rfspIndex": 1, "subsRegTimer": 3600, "micoAllowed": false, "traceData": trace_data(),
        "subscribedDnnList": ["internet", "*"]
    })
}

pub fn smf_sel_data() -> Value {
    json!({"subscribedSnssaiInfos": {"1": {"dnnInfos": [
        {"dnn": "internet", "defaultDnnIndicator": true, "lboRoamingAllowed": false}
    ]}}})
}

pub fn sm_data() -> Value {
    json!([{"singleNssai": {"sst": 1}, "dnnConfigurations": {"internet": {
        "pduSessionTypes": {"defaultSessionType": "IPV4", "allowedSessionTypes": ["IPV4", "IPV6"]},
        "sscModes": {"defaultSscMode": "SSC_MODE_1", "allowedSscModes": ["SSC_MODE_2"]},
        "5gQosProfile": {"5qi": 9, "arp": arp(), "priorityLevel": 90},
        "sessionAmbr": ambr(), "3gppChargingCharacteristics": "0800",
        "staticIpAddress": [{"ipv4Addr": "10.45.0.2"}],
        "upSecurity": {"upIntegr": "NOT_NEEDED", "upConfid": "PREFERRED"}
    }}}])
}

pub fn policy_request() -> Value {
    json!({
        "notificationUri": "http://127.0.0.1:7777/namf-callback/v1/am-policy/9", "supi": SUPI,
        "suppFeat": "1", "accessType": "3GPP_ACCESS", "pei": "imei-353490069873319",
        "userLoc": location(), "timeZone": "+01:00", "servingPlmn": plmn(), "ratType": "NR",
        "servAreaRes": area(), "rfsp": 1, "ueAmbr": ambr(), "allowedSnssais": [{"sst": 1}],
        "guami": guami(), "serviveName": "namf-comm"
    })
}

pub fn am_policy() -> Value {
    json!({
        "suppFeat": "0", "triggers": ["LOC_CH", "PRA_CH"], "servAreaRes": area(), "rfsp": 5,
        "ueAmbr": ambr(),
        "pras": {"p1": {"praId": "p1", "presenceState": "IN_AREA", "trackingAreaList": [tai()]}}
    })
}

pub fn sm_policy_context() -> Value {
    json!({
        "supi": SUPI, "pduSessionId": 1, "pduSessionType": "IPV4", "dnn": "internet",
        "notificationUri": "http://127.0.0.1:7777/nsmf-callback/v1/sm-policy/4",
        "sliceInfo": {"sst": 1}, "accessType": "3GPP_ACCESS", "ratType": "NR",
        "servingNetwork": plmn(), "userLocationInfo": location(), "ueTimeZone": "+01:00",
        "ipv4Address": "10.45.0.2", "subsSessAmbr": ambr(),
        "subsDefQos": {"5qi": 9, "arp": arp()}, "online": false, "offline": false,
        "servNfId": {"servNfInstId": AMF, "guami": guami()}, "suppFeat": "4", "smfId": SMF
    })
}

pub fn sm_policy_decision() -> Value {
    json!({
        "sessRules": {"s1": {"sessRuleId": "s1", "authSessAmbr": ambr(),
            "authDefQos": {"5qi": 9, "arp": arp(), "priorityLevel": 8}}},
        "pccRules": {
            "r1": {"pccRuleId": "r1", "precedence": 10, "refQosData": ["q1"], "refTcData": ["t1"],
                "refChgData": ["c1"], "refUmData": ["u1"], "flowInfos": [{
                    "flowDescription": "permit out ip from 198.51.100.0/24 to assigned",
                    "packFiltId": "1", "packetFilterUsage": true, "flowDirection": "BIDIRECTIONAL"
                }]},
            "gone": null
        },
        "qosDecs": {"q1": {"qosId": "q1", "5qi": 1, "maxbrUl": "7 Mbps", "maxbrDl": "7 Mbps",
            "gbrUl": "4 Mbps", "gbrDl": "4 Mbps", "arp": arp(), "qnc": true}},
        "chgDecs": {"c1": {"chgId": "c1", "meteringMethod": "VOLUME", "offline": true,
            "ratingGroup": 1, "reportingLevel": "RAT_GR_LEVEL", "serviceId": 2}},
        "traffContDecs": {"t1": {"tcId": "t1", "flowStatus": "ENABLED"}},
        "umDecs": {"u1": {"umId": "u1", "volumeThreshold": 5_000_000_000_u64, "timeThreshold": 60,
            "exUsagePccRuleIds": ["r2"]}},
        "qosChars": {"130": {"5qi": 130, "resourceType": "NON_GBR", "priorityLevel": 20,
            "packetDelayBudget": 50, "packetErrorRate": "1E-6"}},
        "conds": {"k1": {"condId": "k1", "activationTime": "2026-01-31T12:00:00Z"}},
        "policyCtrlReqTriggers": ["SE_AMBR_CH", "US_RE"], "qosFlowUsage": "GENERAL",
        "revalidationTime": "2026-01-31T13:00:00Z", "suppFeat": "0"
    })
}

pub fn profile() -> Value {
    json!({
        "nfInstanceId": AMF, "nfType": "AMF", "nfStatus": "REGISTERED", "heartBeatTimer": 10,
        "plmnList": [plmn()], "sNssais": [{"sst": 1, "sd": "010203", "sdRanges": [
            {"start": "000001", "end": "0000ff"}]}, {"sst": 2, "wildcardSd": true}],
        "ipv4Addresses": ["127.0.0.1"], "priority": 1, "capacity": 100, "load": 3,
        "loadTimeStamp": "2026-01-31T12:00:00Z", "locality": "rack 1",
        "amfInfo": {"amfSetId": "001", "amfRegionId": "02", "guamiList": [guami()],
            "taiList": [tai()], "taiRangeList": [{"plmnId": plmn(), "tacRangeList": [
                {"start": "000100", "end": "0001ff"}]}]},
        "nfServices": [service()],
        "nfServiceList": {"sm": service()},
        "customInfo": {"shard": 3}, "nfSetIdList": ["set1.amfset.5gc.mnc070.mcc999"],
        "defaultNotificationSubscriptions": [{"notificationType": "N1_MESSAGES",
            "callbackUri": "http://127.0.0.1:7777/namf-callback/v1/n1-message/default",
            "n1MessageClass": "5GMM"}]
    })
}

fn service() -> Value {
    json!({
        "serviceInstanceId": "comm-0", "serviceName": "namf-comm",
        "versions": [{"apiVersionInUri": "v1", "apiFullVersion": "1.2.3"}], "scheme": "http",
        "nfServiceStatus": "REGISTERED", "apiPrefix": "s0", "priority": 1, "capacity": 100,
        "ipEndPoints": [{"ipv4Address": "127.0.0.1", "transport": "TCP", "port": 7777}],
        "oauth2Required": false, "vendorId": "000001"
    })
}

/// Profiles of an SMF and of other NFs with their specific data.
pub fn other_profiles() -> Vec<Value> {
    let of = |nf_type: &str, info: &str, value: Value| {
        json!({"nfInstanceId": SMF, "nfType": nf_type, "nfStatus": "REGISTERED",
            "ipv6Addresses": ["::1"], info: value})
    };
    let imsis = json!([{"start": "999700000000000", "end": "999709999999999"}]);
    vec![
        of(
            "SMF",
            "smfInfo",
            json!({"sNssaiSmfInfoList": [{"sNssai": {"sst": 1},
            "dnnSmfInfoList": [{"dnn": "internet"}, {"dnn": "*", "dnaiList": ["edge"]}]}],
            "taiList": [tai()], "accessType": ["3GPP_ACCESS"], "priority": 2}),
        ),
        of(
            "UPF",
            "upfInfo",
            json!({"sNssaiUpfInfoList": [{"sNssai": {"sst": 1},
            "dnnUpfInfoList": [{"dnn": "internet", "pduSessionTypes": ["IPV4"]}]}],
            "smfServingArea": ["north"]}),
        ),
        of(
            "UDM",
            "udmInfo",
            json!({"groupId": "g", "supiRanges": imsis.clone(),
            "routingIndicators": ["0000"],
            "suciInfos": [{"routingInds": ["0"], "hNwPubKeyIds": [1]}]}),
        ),
        of("AUSF", "ausfInfo", json!({"supiRanges": imsis.clone()})),
        of(
            "UDR",
            "udrInfo",
            json!({"supiRanges": imsis.clone(),
            "supportedDataSets": ["SUBSCRIPTION"]}),
        ),
        of("PCF", "pcfInfo", json!({"dnnList": ["internet"], "supiRanges": imsis})),
    ]
}

pub fn nf_subscription() -> Value {
    json!({
        "nfStatusNotificationUri": "http://127.0.0.1:7777/namf-callback/v1/nf-status/1",
        "reqNfInstanceId": AMF, "subscrCond": {"nfType": "SMF"},
        "validityTime": "2026-02-01T00:00:00Z", "reqNfType": "AMF", "plmnId": plmn(),
        "reqNotifEvents": ["NF_REGISTERED", "NF_DEREGISTERED", "NF_PROFILE_CHANGED"]
    })
}

pub fn ue_context() -> Value {
    json!({
        "supi": SUPI, "pei": "imei-353490069873319", "gpsiList": ["msisdn-491701234567"],
        "routingIndicator": "0000", "drxParameter": "BQ==", "subRfsp": 1, "usedRfsp": 5,
        "subUeAmbr": ambr(), "traceData": trace_data(),
        "seafData": {"ngKsi": {"tsc": "NATIVE", "ksi": 1},
            "keyAmf": {"keyType": "KAMF", "keyVal": KEY}, "nh": KEY, "ncc": 2,
            "keyAmfChangeInd": false},
        "5gMmCapability": "AQ==", "pcfId": AUSF,
        "pcfAmPolicyUri": "http://127.0.0.1:7777/npcf-am-policy-control/v1/policies/9",
        "amPolicyReqTriggerList": ["PRA_CHANGE"], "serviceAreaRestriction": area(),
        "forbiddenAreaList": [{"areaCode": "x"}], "restrictedRatList": ["WLAN"],
        "restrictedCoreNwTypeList": ["EPC"],
        "mmContextList": [{"accessType": "3GPP_ACCESS",
            "nasSecurityMode": {"integrityAlgorithm": "NIA2", "cipheringAlgorithm": "NEA0"},
            "nasDownlinkCount": 3, "nasUplinkCount": 4, "ueSecurityCapability": "8HDwcA==",
            "allowedNssai": [{"sst": 1}],
            "nssaiMappingList": [{"mappedSnssai": {"sst": 1}, "hSnssai": {"sst": 1}}]}],
        "sessionContextList": [{"pduSessionId": 1,
            "smContextRef": "http://127.0.0.1:7777/nsmf-pdusession/v1/sm-contexts/7",
            "sNssai": {"sst": 1}, "dnn": "internet", "accessType": "3GPP_ACCESS",
            "hsmfId": SMF}]
    })
}

pub fn app_session() -> Value {
    json!({
        "ascReqData": {
            "notifUri": "http://127.0.0.1:7778/naf-callback/v1/app-session/4", "suppFeat": "0",
            "afAppId": "ims", "dnn": "ims", "sliceInfo": {"sst": 1}, "supi": SUPI, "ueIpv4": "10.45.0.2",
            "resPrio": "PRIO_1",
            "evSubsc": {"events": [{"event": "FAILED_RESOURCES_ALLOCATION", "notifMethod": "EVENT_DETECTION"}]},
            "medComponents": {"1": {
                "medCompN": 1, "medType": "AUDIO", "fStatus": "ENABLED", "marBwUl": "64 Kbps",
                "marBwDl": "64 Kbps", "mirBwUl": "32 Kbps", "preemptCap": "NOT_PREEMPT",
                "medSubComps": {"1": {
                    "fNum": 1, "flowUsage": "NO_INFO", "tosTrCl": "B8FC",
                    "fDescs": [
                        "permit out 17 from 192.0.2.9 5004 to 10.45.0.2 4000",
                        "permit in 17 from 10.45.0.2 4000 to 192.0.2.9 5004"
                    ]
                }}
            }}
        },
        "ascRespData": {"suppFeat": "0"}
    })
}
