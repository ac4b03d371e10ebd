//! All requests of the SBI as one enum with a variant for each operation.

use crate::common::{NfType, ServiceName, UeContextId};
use crate::http::{HttpRequest, Incoming};
use crate::operation::{Exchange, OperationInfo};
use crate::problem::{Cause, Problem};
use crate::uri::{ApiRoot, Uri};
use crate::{
    Result, namf_communication, nausf_ueauthentication, nnrf_accesstoken, nnrf_nfdiscovery,
    nnrf_nfmanagement, nnssf_nsselection, npcf_ampolicycontrol, npcf_policyauthorization,
    npcf_smpolicycontrol, nsmf_pdusession, nudm_sdm, nudm_ueau, nudm_uecm, nudr_dr,
};
use pith_types::Supi;
use std::sync::Arc;

/// Defines the two enums and their matches over all operations.
macro_rules! requests {
    ($($module:ident { $($op:ident),+ $(,)? })+) => {
        /// A request of any operation.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Request {
            $($(
                #[doc = concat!("[`", stringify!($module), "::", stringify!($op), "`].")]
                $op(Box<$module::$op>),
            )+)+
        }

        /// An operation: the kind of a [`Request`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Operation {
            $($(
                #[doc = concat!("[`", stringify!($module), "::", stringify!($op), "`].")]
                $op,
            )+)+
        }

        impl Operation {
            /// All operations.
            pub const ALL: &'static [Self] = &[$($(Self::$op),+),+];

            /// Static properties of the operation.
            pub const fn info(self) -> &'static OperationInfo {
                match self {
                    $($(Self::$op => <$module::$op as Exchange>::INFO,)+)+
                }
            }
        }

        impl Request {
            /// The operation of the request.
            pub const fn operation(&self) -> Operation {
                match self {
                    $($(Self::$op(_) => Operation::$op,)+)+
                }
            }

            /// The request in HTTP. A notification is sent to [`Self::target_uri`], other requests to an
            /// apiRoot selected by the sender.
            pub fn to_http(&self) -> HttpRequest {
                match self {
                    $($(Self::$op(request) => request.to_http(),)+)+
                }
            }
        }

        $($(
            impl From<$module::$op> for Request {
                fn from(request: $module::$op) -> Self {
                    Self::$op(Box::new(request))
                }
            }
        )+)+
    };
}

requests! {
    nausf_ueauthentication {
        Authenticate, FiveGAkaConfirmation, DeleteFiveGAkaAuthenticationResult, EapAuthMethod,
        DeleteEapAuthenticationResult,
    }
    nudm_ueau { GenerateAuthData, ConfirmAuth, DeleteAuth }
    nudm_uecm {
        ThreeGppRegistration, UpdateThreeGppRegistration, GetThreeGppRegistration,
        GetSmfRegistration, RegisterSmf, SmfDeregistration, RetrieveSmfRegistration,
        DeregistrationNotification,
    }
    nudm_sdm {
        GetDataSets, GetNssai, GetAmData, GetSmfSelData, GetUeCtxInSmfData, GetSmData,
        SdmSubscribe, SdmUnsubscribe, SdmModifySubscription, SdmChangeNotification,
    }
    nudr_dr {
        QueryAuthSubsData, ModifyAuthenticationSubscription, CreateAuthenticationStatus,
        QueryAuthenticationStatus, DeleteAuthenticationStatus, QueryProvisionedData, QueryAmData, QuerySmfSelectData,
        QuerySmData, CreateAmfContextThreeGpp, ModifyAmfContextThreeGpp, QueryAmfContextThreeGpp,
        QuerySmfRegList, CreateOrUpdateSmfRegistration, DeleteSmfRegistration,
        QuerySmfRegistration, CreateSdmSubscriptions, QuerySdmSubscriptions,
        UpdateSdmSubscriptions, ModifySdmSubscription, RemoveSdmSubscriptions,
        ReadAccessAndMobilityPolicyData, ReadSessionManagementPolicyData, DataChangeNotification,
    }
    nsmf_pdusession {
        PostSmContexts, UpdateSmContext, ReleaseSmContext, RetrieveSmContext,
        SmContextStatusNotify,
    }
    namf_communication {
        N1N2MessageTransfer, UeContextTransfer, RegistrationStatusUpdate, CreateUeContext, ReleaseUeContext,
        N1N2TransferFailureNotification, N2InfoNotify, N1MessageNotify,
    }
    npcf_ampolicycontrol {
        CreateAmPolicyAssociation, ReadAmPolicyAssociation, UpdateAmPolicyAssociation,
        DeleteAmPolicyAssociation, AmPolicyUpdateNotify, AmPolicyTerminateNotify,
    }
    npcf_smpolicycontrol {
        CreateSmPolicy, GetSmPolicy, UpdateSmPolicy, DeleteSmPolicy, SmPolicyUpdateNotify,
        SmPolicyTerminateNotify,
    }
    npcf_policyauthorization {
        PostAppSession, GetAppSession, ModAppSession, DeleteAppSession, AppSessionEventNotify,
        AppSessionTerminate, UpdateEventsSubsc, DeleteEventsSubsc,
    }
    nnrf_nfmanagement {
        GetNfInstances, GetNfInstance, RegisterNfInstance, UpdateNfInstance, DeregisterNfInstance,
        CreateSubscription, UpdateSubscription, RemoveSubscription, NfStatusNotify,
    }
    nnrf_nfdiscovery { SearchNfInstances }
    nnrf_accesstoken { AccessTokenRequest }
    nnssf_nsselection { NsSelectionGet }
}

impl Operation {
    /// The service of the operation.
    pub fn service(self) -> ServiceName {
        self.info().service.clone()
    }

    /// Name in stage 2, such as `Nsmf_PDUSession_CreateSMContext`, for logs and message ladders.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// `operationId` in the OpenAPI file, such as `PostSmContexts`.
    pub const fn operation_id(self) -> &'static str {
        self.info().operation_id
    }
}

impl Request {
    /// The service of the operation.
    pub fn service(&self) -> ServiceName {
        self.operation().service()
    }

    /// The NF type of the receiver: the producer of the service, or the NF that provided the callback URI of
    /// a notification.
    pub fn target_nf(&self) -> Option<NfType> {
        match self.target_uri() {
            Some(uri) => uri.callback_consumer(),
            None => self.service().producer(),
        }
    }

    /// The callback URI of a notification; `None` for a request to a service.
    pub const fn target_uri(&self) -> Option<&Uri> {
        Some(match self {
            Self::DeregistrationNotification(notification) => &notification.uri,
            Self::SdmChangeNotification(notification) => &notification.uri,
            Self::DataChangeNotification(notification) => &notification.uri,
            Self::SmContextStatusNotify(notification) => &notification.uri,
            Self::N1N2TransferFailureNotification(notification) => &notification.uri,
            Self::N2InfoNotify(notification) => &notification.uri,
            Self::N1MessageNotify(notification) => &notification.uri,
            Self::AmPolicyUpdateNotify(notification) => &notification.uri,
            Self::AmPolicyTerminateNotify(notification) => &notification.uri,
            Self::SmPolicyUpdateNotify(notification) => &notification.uri,
            Self::SmPolicyTerminateNotify(notification) => &notification.uri,
            Self::AppSessionEventNotify(notification) => &notification.uri,
            Self::AppSessionTerminate(notification) => &notification.uri,
            Self::NfStatusNotify(notification) => &notification.uri,
            _ => return None,
        })
    }

    /// The subscriber concerned, if the request contains a SUPI.
    pub fn supi(&self) -> Option<Supi> {
        let supi = match self {
            Self::Authenticate(r) => return r.body.supi_or_suci.supi(),
            Self::GenerateAuthData(r) => return r.supi_or_suci.supi(),
            Self::N1N2MessageTransfer(r) => return supi_of(&r.ue_context_id),
            Self::UeContextTransfer(r) => return supi_of(&r.ue_context_id),
            Self::RegistrationStatusUpdate(r) => return supi_of(&r.ue_context_id),
            Self::CreateUeContext(r) => {
                return r.body.ue_context.supi.clone().or_else(|| supi_of(&r.ue_context_id));
            }
            Self::ReleaseUeContext(r) => return supi_of(&r.ue_context_id),
            Self::N1MessageNotify(r) => {
                return r.body.registration_ctxt_container.as_ref()?.ue_context.supi.clone();
            }
            Self::PostSmContexts(r) => return r.body.supi.clone(),
            Self::SearchNfInstances(r) => return r.supi.clone(),
            Self::CreateAmPolicyAssociation(r) => &r.body.supi,
            Self::CreateSmPolicy(r) => &r.body.supi,
            Self::ConfirmAuth(r) => &r.supi,
            Self::DeleteAuth(r) => &r.supi,
            Self::ThreeGppRegistration(r) => &r.ue_id,
            Self::UpdateThreeGppRegistration(r) => &r.ue_id,
            Self::GetThreeGppRegistration(r) => &r.ue_id,
            Self::GetSmfRegistration(r) => &r.ue_id,
            Self::RegisterSmf(r) => &r.ue_id,
            Self::SmfDeregistration(r) => &r.ue_id,
            Self::RetrieveSmfRegistration(r) => &r.ue_id,
            Self::GetDataSets(r) => &r.supi,
            Self::GetNssai(r) => &r.supi,
            Self::GetAmData(r) => &r.supi,
            Self::GetSmfSelData(r) => &r.supi,
            Self::GetUeCtxInSmfData(r) => &r.supi,
            Self::GetSmData(r) => &r.supi,
            Self::SdmSubscribe(r) => &r.ue_id,
            Self::SdmUnsubscribe(r) => &r.ue_id,
            Self::SdmModifySubscription(r) => &r.ue_id,
            other => return other.supi_of_data(),
        };
        Some(supi.clone())
    }

    /// The SUPI in a request of Nudr_DataRepository.
    fn supi_of_data(&self) -> Option<Supi> {
        let supi = match self {
            Self::QueryAuthSubsData(r) => &r.ue_id,
            Self::ModifyAuthenticationSubscription(r) => &r.ue_id,
            Self::CreateAuthenticationStatus(r) => &r.ue_id,
            Self::QueryAuthenticationStatus(r) => &r.ue_id,
            Self::DeleteAuthenticationStatus(r) => &r.ue_id,
            Self::QueryProvisionedData(r) => &r.ue_id,
            Self::QueryAmData(r) => &r.ue_id,
            Self::QuerySmfSelectData(r) => &r.ue_id,
            Self::QuerySmData(r) => &r.ue_id,
            Self::CreateAmfContextThreeGpp(r) => &r.ue_id,
            Self::ModifyAmfContextThreeGpp(r) => &r.ue_id,
            Self::QueryAmfContextThreeGpp(r) => &r.ue_id,
            Self::QuerySmfRegList(r) => &r.ue_id,
            Self::CreateOrUpdateSmfRegistration(r) => &r.ue_id,
            Self::DeleteSmfRegistration(r) => &r.ue_id,
            Self::QuerySmfRegistration(r) => &r.ue_id,
            Self::CreateSdmSubscriptions(r) => &r.ue_id,
            Self::QuerySdmSubscriptions(r) => &r.ue_id,
            Self::UpdateSdmSubscriptions(r) => &r.ue_id,
            Self::ModifySdmSubscription(r) => &r.ue_id,
            Self::RemoveSdmSubscriptions(r) => &r.ue_id,
            Self::ReadAccessAndMobilityPolicyData(r) => &r.ue_id,
            Self::ReadSessionManagementPolicyData(r) => &r.ue_id,
            Self::DataChangeNotification(r) => return r.body.ue_id.clone(),
            _ => return None,
        };
        Some(supi.clone())
    }

    /// Parses a request to the services at `root`; the path in `http` is relative to it.
    pub fn from_http(root: &Arc<ApiRoot>, http: &HttpRequest) -> Result<Self> {
        let incoming = Incoming::new(root, http)?;
        let route = match incoming.segments.as_slice() {
            ["nausf-auth", "v1", ..] => nausf_ueauthentication::route,
            ["nudm-ueau", "v1", ..] => nudm_ueau::route,
            ["nudm-uecm", "v1", ..] => nudm_uecm::route,
            ["nudm-sdm", "v2", ..] => nudm_sdm::route,
            ["nudr-dr", "v2", ..] => nudr_dr::route,
            ["nsmf-pdusession", "v1", ..] => nsmf_pdusession::route,
            ["namf-comm", "v1", ..] => namf_communication::route,
            ["npcf-am-policy-control", "v1", ..] => npcf_ampolicycontrol::route,
            ["npcf-smpolicycontrol", "v1", ..] => npcf_smpolicycontrol::route,
            ["npcf-policyauthorization", "v1", ..] => npcf_policyauthorization::route,
            ["nnrf-nfm", "v1", ..] => nnrf_nfmanagement::route,
            ["nnrf-disc", "v1", ..] => nnrf_nfdiscovery::route,
            ["nnssf-nsselection", "v2", ..] => nnssf_nsselection::route,
            ["oauth2", rest @ ..] => return nnrf_accesstoken::route(&incoming, rest),
            [api, "v1", rest @ ..] if api.ends_with("-callback") => {
                return route_callback(&incoming, rest);
            }
            _ => return Err(Cause::InvalidApi.into()),
        };
        route(&incoming, incoming.segments.get(2..).unwrap_or_default())
    }
}

fn supi_of(ue: &UeContextId) -> Option<Supi> {
    match ue {
        UeContextId::Supi(supi) => Some(supi.clone()),
        _ => None,
    }
}

/// Callback paths are `{nf}-callback/v1/{callback}/{reference}`, in some notifications followed by a suffix.
fn route_callback(incoming: &Incoming<'_>, segments: &[&str]) -> Result<Request> {
    let (callback, suffix) = match segments {
        [callback, _reference] => (*callback, ""),
        [callback, _reference, "update"] => (*callback, "/update"),
        [callback, _reference, "terminate"] => (*callback, "/terminate"),
        [callback, _reference, "notify"] => (*callback, "/notify"),
        _ => return Err(Cause::ResourceUriStructureNotFound.into()),
    };
    [
        nudm_uecm::route_callback,
        nudm_sdm::route_callback,
        nudr_dr::route_callback,
        nsmf_pdusession::route_callback,
        namf_communication::route_callback,
        npcf_ampolicycontrol::route_callback,
        npcf_smpolicycontrol::route_callback,
        npcf_policyauthorization::route_callback,
        nnrf_nfmanagement::route_callback,
    ]
    .into_iter()
    .find_map(|route| route(incoming, callback, suffix))
    .unwrap_or_else(|| Err(Problem::new(Cause::ResourceUriStructureNotFound).into()))
}
