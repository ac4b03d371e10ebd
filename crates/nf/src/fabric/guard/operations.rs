//! The consumers of each operation, by NF type (TS 23.502 5.2), and the scopes to which tokens are limited.

use pith_sbi::namf_communication::N1MessageClass;
use pith_sbi::nudm_sdm::DataSetName;
use pith_sbi::{NfType, Operation, Request, ResourceUri, ServiceName};

/// The NFs that may request an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consumers {
    /// Every NF.
    All,
    /// NFs of these types.
    Types(&'static [NfType]),
    /// A notification: the NF that offers the service.
    Producer,
}

/// The NFs that may send this request.
pub fn consumers(request: &Request) -> Consumers {
    match request {
        // Session management is the SMF's, whatever else the service carries (TS 29.518 5.2.2.3.1).
        Request::N1N2MessageTransfer(request) => {
            let n2 = request.body.n2_info_container.as_ref();
            let n1 = request.body.n1_message_container.as_ref();
            let is_session_management = n2.is_some_and(|n2| n2.sm_info.is_some())
                || n1.is_some_and(|n1| n1.n1_message_class == N1MessageClass::Sm);
            if is_session_management {
                Consumers::Types(&[NfType::Smf])
            } else {
                consumers_of(Operation::N1N2MessageTransfer)
            }
        }
        // Several data sets in one request are for whom each of them is.
        Request::GetDataSets(request) => {
            let names = &request.dataset_names;
            let of = (names.iter().any(is_of_amf), names.contains(&DataSetName::Sm));
            readers(of, Operation::GetDataSets)
        }
        // Notifications have the new data: an NF monitors only what it may read (TS 29.503 5.2.2.3, 5.2.2.7).
        Request::SdmSubscribe(request) => {
            monitors(&request.body.monitored_resource_uris, Operation::SdmSubscribe)
        }
        Request::SdmModifySubscription(request) => {
            monitors(&request.body.monitored_resource_uris, Operation::SdmModifySubscription)
        }
        request => consumers_of(request.operation()),
    }
}

/// Whether the AMF alone reads a data set, as with the operation for that data set.
const fn is_of_amf(name: &DataSetName) -> bool {
    matches!(name, DataSetName::Am | DataSetName::SmfSel | DataSetName::UecSmf)
}

/// The NFs that may read data sets of which some are for the AMF and some for the SMF alone; if none is, those that may request the operation.
const fn readers(of_amf_and_smf: (bool, bool), operation: Operation) -> Consumers {
    match of_amf_and_smf {
        (true, true) => Consumers::Types(&[]),
        (true, false) => Consumers::Types(&[NfType::Amf]),
        (false, true) => Consumers::Types(&[NfType::Smf]),
        (false, false) => consumers_of(operation),
    }
}

/// The NFs that may monitor these resources. The UDM ignores resources that are no data sets here, and refuses those of other subscribers.
fn monitors(resources: &[ResourceUri], operation: Operation) -> Consumers {
    let any_is = |names: &[&str]| resources.iter().any(|resource| names.contains(&data_set(resource)));
    let of_amf = any_is(&["am-data", "nssai", "smf-select-data", "ue-context-in-smf-data"]);
    readers((of_amf, any_is(&["sm-data"])), operation)
}

/// The last segment of the path: the data set, in the URI of a resource of Nudm_SDM.
fn data_set(resource: &ResourceUri) -> &str {
    let path = resource.0.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

/// The NFs that may request an operation. Each operation has its line: a new one does not compile without.
const fn consumers_of(operation: Operation) -> Consumers {
    use NfType::*;
    use Operation as O;
    Consumers::Types(match operation {
        // The AMF, as the SEAF (TS 33.501 6.1.3.2.0).
        O::Authenticate
        | O::FiveGAkaConfirmation
        | O::DeleteFiveGAkaAuthenticationResult
        | O::EapAuthMethod
        | O::DeleteEapAuthenticationResult => &[Amf],
        // TS 23.502 5.2.3.1.
        O::GenerateAuthData | O::ConfirmAuth | O::DeleteAuth => &[Ausf],
        // The AMF and the SMF that serve a UE register themselves (TS 29.503 5.3.2.1, 5.3.2.2).
        O::ThreeGppRegistration | O::UpdateThreeGppRegistration => &[Amf],
        O::RegisterSmf | O::SmfDeregistration => &[Smf],
        // Those that read registrations: NEF, NWDAF, NSSAAF, DCCF and SMF (TS 29.503 5.3.2.1), SMSF and GMLC (TS 23.502
        // 5.2.3.1). The AMF is not among them: it learns a UE's sessions by Nudm_SDM (TS 23.502 4.2.2.2.2 step 14b).
        O::GetThreeGppRegistration | O::GetSmfRegistration | O::RetrieveSmfRegistration => {
            &[Smf, Smsf, Nef, Gmlc, Nssaaf, Nwdaf, Dccf]
        }
        // TS 29.503 5.2.2.2: the AMF reads access and mobility data, the SMF session management data. Names of data sets in
        // GetDataSets are checked in `consumers`.
        O::GetNssai | O::GetAmData | O::GetSmfSelData | O::GetUeCtxInSmfData => &[Amf],
        O::GetSmData => &[Smf],
        O::GetDataSets => &[Amf, Smf],
        O::SdmSubscribe | O::SdmUnsubscribe | O::SdmModifySubscription => {
            &[Amf, Smf, Smsf, Nef, Gmlc, Nssaaf, Nwdaf]
        }
        // Subscription data, and with them keys, are the UDM's, policy data the PCF's (TS 23.502 5.2.12).
        O::QueryAuthSubsData
        | O::ModifyAuthenticationSubscription
        | O::CreateAuthenticationStatus
        | O::QueryAuthenticationStatus
        | O::DeleteAuthenticationStatus
        | O::QueryProvisionedData
        | O::QueryAmData
        | O::QuerySmfSelectData
        | O::QuerySmData
        | O::CreateAmfContextThreeGpp
        | O::ModifyAmfContextThreeGpp
        | O::QueryAmfContextThreeGpp
        | O::QuerySmfRegList
        | O::CreateOrUpdateSmfRegistration
        | O::DeleteSmfRegistration
        | O::QuerySmfRegistration
        | O::CreateSdmSubscriptions
        | O::QuerySdmSubscriptions
        | O::UpdateSdmSubscriptions
        | O::ModifySdmSubscription
        | O::RemoveSdmSubscriptions => &[Udm],
        O::ReadAccessAndMobilityPolicyData | O::ReadSessionManagementPolicyData => &[Pcf],
        O::PostSmContexts | O::UpdateSmContext | O::ReleaseSmContext => &[Amf],
        // An I-SMF, V-SMF or SMF retrieves the context of a session that it takes over (TS 29.502 table 5.2.1-1).
        O::RetrieveSmContext => &[Amf, Smf],
        // TS 29.518 5.1. UE contexts go from AMF to AMF (5.2.2.2.1 to 5.2.2.2.4).
        O::N1N2MessageTransfer => &[Amf, Smf, Smsf, Lmf, Pcf],
        O::UeContextTransfer | O::RegistrationStatusUpdate | O::CreateUeContext | O::ReleaseUeContext => {
            &[Amf]
        }
        // TS 23.502 5.2.5.1.
        O::CreateAmPolicyAssociation
        | O::ReadAmPolicyAssociation
        | O::UpdateAmPolicyAssociation
        | O::DeleteAmPolicyAssociation => &[Amf],
        // TS 23.502 5.2.5.1.
        O::CreateSmPolicy | O::GetSmPolicy | O::UpdateSmPolicy | O::DeleteSmPolicy => &[Smf],
        // TS 23.502 5.2.5.3.1.
        O::PostAppSession
        | O::GetAppSession
        | O::ModAppSession
        | O::DeleteAppSession
        | O::UpdateEventsSubsc
        | O::DeleteEventsSubsc => &[Af, Nef],
        // TS 23.502 5.2.16.1.
        O::NsSelectionGet => &[Amf, Nssf, Smf, Nwdaf],
        // The NRF serves every NF. Whose profile or subscription it is, is checked with the request.
        O::GetNfInstances
        | O::GetNfInstance
        | O::RegisterNfInstance
        | O::UpdateNfInstance
        | O::DeregisterNfInstance
        | O::CreateSubscription
        | O::UpdateSubscription
        | O::RemoveSubscription
        | O::SearchNfInstances
        | O::AccessTokenRequest => return Consumers::All,
        O::DeregistrationNotification
        | O::SdmChangeNotification
        | O::DataChangeNotification
        | O::SmContextStatusNotify
        | O::N1N2TransferFailureNotification
        | O::N2InfoNotify
        | O::N1MessageNotify
        | O::AmPolicyUpdateNotify
        | O::AmPolicyTerminateNotify
        | O::SmPolicyUpdateNotify
        | O::SmPolicyTerminateNotify
        | O::AppSessionEventNotify
        | O::AppSessionTerminate
        | O::NfStatusNotify => return Consumers::Producer,
    })
}

/// The NF types that use some operation of a service (`allowedNfTypes`); empty for a service that is open to all.
pub(in crate::fabric) fn consumers_of_service(service: &ServiceName) -> Vec<NfType> {
    let mut types = Vec::new();
    for operation in Operation::ALL.iter().filter(|operation| operation.service() == *service) {
        if let Consumers::Types(consumers) = consumers_of(*operation) {
            types.extend(
                consumers.iter().filter(|nf_type| !types.contains(*nf_type)).cloned().collect::<Vec<_>>(),
            );
        }
    }
    if *service == ServiceName::NudmSdm {
        // It uses no operation, and discovers UDMs to notify them of changed data (TS 29.504 5.2.2.8).
        types.push(NfType::Udr);
    }
    types
}

/// The additional scopes to which a token of an NF type is limited for a service
/// (`allowedOperationsPerNfType`), where the OpenAPI files of TS 29.503 and TS 29.504 have them.
pub(in crate::fabric) const fn scopes(service: &ServiceName) -> &'static [(NfType, &'static [&'static str])] {
    match service {
        // The UDM may access subscription data, the PCF policy data: a PCF can't read keys.
        ServiceName::NudrDr => &[
            (
                NfType::Udm,
                &[
                    "nudr-dr:subscription-data",
                    "nudr-dr:subscription-data:authentication-subscription:read",
                    "nudr-dr:subscription-data:authentication-subscription:modify",
                    "nudr-dr:subscription-data:registrations:write",
                ],
            ),
            (NfType::Pcf, &["nudr-dr:policy-data"]),
        ],
        // Each NF writes the registrations of its own kind.
        ServiceName::NudmUecm => &[
            (NfType::Amf, &["nudm-uecm:amf-registration:write"]),
            (NfType::Smf, &["nudm-uecm:smf-registration:write"]),
            (NfType::Smsf, &["nudm-uecm:smsf-registration:write"]),
            (NfType::Nwdaf, &["nudm-uecm:nwdaf-registration:write"]),
        ],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_sbi::NfInstanceId;
    use pith_sbi::nudm_sdm::{SdmModifySubscription, SdmSubsModification, SdmSubscribe, SdmSubscription};

    /// A token of our NRF covers what the guard permits to the NF type, and nothing else that has a scope.
    #[test]
    fn scopes_fit_the_consumers_of_operations() {
        for service in [ServiceName::NudrDr, ServiceName::NudmUecm] {
            for (nf_type, scopes) in scopes(&service) {
                let scope: Vec<_> = std::iter::once(service.as_str()).chain(scopes.iter().copied()).collect();
                let scope = scope.join(" ");
                for operation in Operation::ALL.iter().filter(|operation| operation.service() == service) {
                    let Consumers::Types(types) = consumers_of(*operation) else { continue };
                    let is_covered = pith_sbi::token::covers(&scope, *operation).is_ok();
                    let is_limited = !operation.additional_scopes().is_empty();
                    if types.contains(nf_type) {
                        assert!(is_covered, "{nf_type} {operation:?}");
                    } else {
                        assert!(!is_covered || !is_limited, "{nf_type} {operation:?}");
                    }
                }
            }
        }
    }

    /// TS 29.502 table 5.2.1-1, TS 29.503 5.3.2.1.
    #[test]
    fn smfs_retrieve_sm_contexts_and_amfs_read_no_registrations() {
        let may = |operation, nf_type| match consumers_of(operation) {
            Consumers::Types(types) => types.contains(&nf_type),
            Consumers::All | Consumers::Producer => panic!("{operation:?} is for some NF types"),
        };
        assert!(may(Operation::RetrieveSmContext, NfType::Smf));
        for operation in [Operation::PostSmContexts, Operation::UpdateSmContext, Operation::ReleaseSmContext]
        {
            assert!(!may(operation, NfType::Smf), "{operation:?}");
        }
        for operation in [Operation::GetThreeGppRegistration, Operation::RetrieveSmfRegistration] {
            assert!(!may(operation, NfType::Amf), "{operation:?}");
            assert!(may(operation, NfType::Smf) && may(operation, NfType::Dccf), "{operation:?}");
        }
    }

    /// An SMF does not read access and mobility data by naming them in a request for several data sets, nor an AMF
    /// session management data.
    #[test]
    fn data_sets_are_for_the_nfs_that_may_read_each_of_them() {
        use DataSetName::{Am, Sm, SmfSel, SmsSub, UecSmf};
        let (amf, smf) = (&[NfType::Amf][..], &[NfType::Smf][..]);
        for (names, expected) in [
            (vec![Am, SmfSel, UecSmf], amf),
            (vec![Sm], smf),
            (vec![SmsSub, Am], amf),
            (vec![Am, Sm], &[]),
            (vec![SmsSub], &[NfType::Amf, NfType::Smf]),
        ] {
            let supi = "imsi-999700000000001".parse().unwrap();
            let request =
                pith_sbi::nudm_sdm::GetDataSets { supi, dataset_names: names.clone(), plmn_id: None };
            assert_eq!(consumers(&request.into()), Consumers::Types(expected), "{names:?}");
        }
    }

    /// Notifications have the whole new value: without this, an SMF gets by a subscription what it may not read.
    #[test]
    fn resources_are_monitored_by_the_nfs_that_may_read_them() {
        let (amf, smf) = (&[NfType::Amf][..], &[NfType::Smf][..]);
        let Consumers::Types(all) = consumers_of(Operation::SdmSubscribe) else { panic!() };
        for (data, expected) in [
            (vec!["am-data", "smf-select-data"], amf),
            (vec!["am-data", "smf-select-data", "nssai", "ue-context-in-smf-data", "sms-mng-data"], amf),
            (vec!["sm-data"], smf),
            (vec!["sm-data?single-nssai={\"sst\":1}&dnn=a/b"], smf),
            (vec!["am-data?x=/sm-data"], amf),
            (vec!["am-data#/sms-data"], amf),
            (vec!["am-data", "sm-data"], &[]),
            (vec!["trace-data", "am-data/sor-ack"], all),
            (vec![], all),
        ] {
            let supi: pith_types::Supi = "imsi-999700000000001".parse().unwrap();
            for root in ["", "https://scp.example:443/udm-1"] {
                let resource =
                    |data: &&str| ResourceUri::from(format!("{root}/nudm-sdm/v2/{supi}/{data}").as_str());
                let monitored: Vec<ResourceUri> = data.iter().map(resource).collect();
                let callback: pith_sbi::Uri = "https://192.0.2.1/x".parse().unwrap();
                let body = SdmSubscription::new(NfInstanceId(1), callback, monitored.clone());
                let subscribe = SdmSubscribe { ue_id: supi.clone(), body };
                assert_eq!(consumers(&subscribe.into()), Consumers::Types(expected), "{data:?}");
                let mut body = SdmSubsModification::default();
                body.monitored_resource_uris = monitored;
                let subscription_id = "1".to_owned();
                let modify = SdmModifySubscription { ue_id: supi.clone(), subscription_id, body };
                assert_eq!(consumers(&modify.into()), Consumers::Types(expected), "{data:?}");
            }
        }
    }

    #[test]
    fn the_consumers_of_a_service_are_those_of_its_operations() {
        use NfType::{Amf, Lmf, Pcf, Smf, Smsf, Udm};
        assert_eq!(consumers_of_service(&ServiceName::NudrDr), [Udm, Pcf]);
        assert_eq!(consumers_of_service(&ServiceName::NamfComm), [Amf, Smf, Smsf, Lmf, Pcf]);
        assert_eq!(consumers_of_service(&ServiceName::NsmfPdusession), [Amf, Smf]);
        assert!(consumers_of_service(&ServiceName::NnrfNfm).is_empty());
    }
}
