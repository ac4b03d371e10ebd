//! All responses of the SBI as one enum with a variant for each outcome.

use crate::common::PatchResult;
use crate::http::{Body, HttpResponse};
use crate::namf_communication::{
    N1N2MessageTransferRspData, N2InfoNotificationRspData, UeContextCreatedData, UeContextTransferRspData,
    UeRegStatusUpdateRspData,
};
use crate::nausf_ueauthentication::{ConfirmationDataResponse, EapSession, UeAuthenticationCtx};
use crate::nnrf_accesstoken::AccessTokenRsp;
use crate::nnrf_nfdiscovery::SearchResult;
use crate::nnrf_nfmanagement::{NfProfile, SubscriptionData, UriList};
use crate::nnssf_nsselection::AuthorizedNetworkSliceInfo;
use crate::npcf_ampolicycontrol::{AmRequestedValueRep, PolicyAssociation, PolicyUpdate};
use crate::npcf_policyauthorization::{AppSessionContext, EventsSubscReqData};
use crate::npcf_smpolicycontrol::{SmPolicyControl, SmPolicyDecision, SmPolicyUpdateNotifyResult};
use crate::nsmf_pdusession::{
    SmContextCreatedData, SmContextReleasedData, SmContextRetrievedData, SmContextUpdatedData,
};
use crate::nudm_sdm::{
    AccessAndMobilitySubscriptionData, Nssai, SdmSubscription, SmSubsData, SmfSelectionSubscriptionData,
    SubscriptionDataSets, UeContextInSmfData,
};
use crate::nudm_ueau::{AuthEvent, AuthenticationInfoResult};
use crate::nudm_uecm::{Amf3GppAccessRegistration, SmfRegistration, SmfRegistrationInfo};
use crate::nudr_dr::{AmPolicyData, AuthenticationSubscription, SmPolicyData};
use crate::problem::{Cause, Problem};
use crate::request::Operation;
use crate::uri::{ApiRoot, Uri};
use crate::{Reply, Result};
use std::sync::Arc;

/// A created resource and its URI.
#[derive(Debug, Clone, PartialEq)]
pub struct Created<T> {
    /// The URI of the resource (`Location`).
    pub location: Uri,
    /// The resource.
    pub body: T,
}

/// Defines the two enums and their matches over all outcomes.
macro_rules! responses {
    ($($(#[$meta:meta])* $outcome:ident $status:literal $($body:ident: $payload:ty)?;)+) => {
        /// A successful response.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Response {
            $($(#[$meta])* #[doc = concat!("Status ", $status, ".")] $outcome $((Box<$payload>))?,)+
        }

        /// A successful outcome: the kind of a [`Response`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Outcome {
            $($(#[$meta])* #[doc = concat!("Status ", $status, ".")] $outcome,)+
        }

        impl Outcome {
            /// All outcomes.
            pub const ALL: &'static [Self] = &[$(Self::$outcome),+];

            /// HTTP status.
            pub const fn status(self) -> u16 {
                match self {
                    $(Self::$outcome => $status,)+
                }
            }

            fn read(self, http: &HttpResponse, root: &Arc<ApiRoot>) -> Result<Response> {
                Ok(match self {
                    $(Self::$outcome => {
                        Response::$outcome $((Box::new(<$payload as Payload>::read(http, root)?)))?
                    })+
                })
            }
        }

        impl Response {
            /// The outcome of the response.
            pub const fn outcome(&self) -> Outcome {
                match self {
                    $(responses!(@any $outcome $($body)?) => Outcome::$outcome,)+
                }
            }

            /// The response in HTTP.
            pub fn to_http(&self) -> HttpResponse {
                let mut http = HttpResponse::new(self.outcome().status());
                match self {
                    $(Self::$outcome $(($body))? => { $(Payload::write(&**$body, &mut http);)? })+
                }
                if matches!(self, Self::AccessTokenRsp(_)) {
                    http.headers.forbid_storing();
                }
                http
            }
        }
    };
    (@any $outcome:ident) => { Self::$outcome };
    (@any $outcome:ident $body:ident) => { Self::$outcome(_) };
}

responses! {
    /// Success without a body.
    NoContent 204;

    /// A started authentication, with its challenge.
    UeAuthenticationCtxCreated 201 body: Created<UeAuthenticationCtx>;
    /// The result of 5G-AKA.
    ConfirmationDataResponse 200 body: ConfirmationDataResponse;
    /// The next EAP packet, or the result of EAP authentication.
    EapSession 200 body: EapSession;

    /// An authentication vector.
    AuthenticationInfoResult 200 body: AuthenticationInfoResult;
    /// A created authentication event.
    AuthEventCreated 201 body: Created<AuthEvent>;
    /// An authentication event.
    AuthEvent 200 body: AuthEvent;

    /// A created AMF registration; the UE had none.
    Amf3GppAccessRegistrationCreated 201 body: Created<Amf3GppAccessRegistration>;
    /// The registration of the AMF that serves the UE.
    Amf3GppAccessRegistration 200 body: Amf3GppAccessRegistration;
    /// A created SMF registration; the session had none.
    SmfRegistrationCreated 201 body: Created<SmfRegistration>;
    /// The registration of the SMF that serves the session.
    SmfRegistration 200 body: SmfRegistration;
    /// The registrations of the SMFs that serve the UE, from the UDM.
    SmfRegistrationInfo 200 body: SmfRegistrationInfo;
    /// The registrations of the SMFs that serve the UE, from the UDR.
    SmfRegList 200 body: Vec<SmfRegistration>;
    /// A patch that was applied only in part.
    PatchResult 200 body: PatchResult;

    /// Several data sets.
    SubscriptionDataSets 200 body: SubscriptionDataSets;
    /// Subscribed slices.
    Nssai 200 body: Nssai;
    /// Access and mobility subscription data.
    AmData 200 body: AccessAndMobilitySubscriptionData;
    /// SMF selection data.
    SmfSelData 200 body: SmfSelectionSubscriptionData;
    /// Session management subscription data.
    SmData 200 body: SmSubsData;
    /// PDU sessions and their SMFs.
    UeContextInSmfData 200 body: UeContextInSmfData;
    /// A created subscription to changes.
    SdmSubscriptionCreated 201 body: Created<SdmSubscription>;
    /// A changed subscription to changes.
    SdmSubscription 200 body: SdmSubscription;
    /// Subscriptions to changes, from the UDR.
    SdmSubscriptions 200 body: Vec<SdmSubscription>;

    /// Authentication data.
    AuthenticationSubscription 200 body: AuthenticationSubscription;
    /// Access and mobility policy data.
    AmPolicyData 200 body: AmPolicyData;
    /// Session management policy data.
    SmPolicyData 200 body: SmPolicyData;

    /// A created SM context.
    SmContextCreated 201 body: Created<SmContextCreatedData>;
    /// An updated SM context.
    SmContextUpdated 200 body: SmContextUpdatedData;
    /// A released SM context.
    SmContextReleased 200 body: SmContextReleasedData;
    /// An SM context.
    SmContextRetrieved 200 body: SmContextRetrievedData;

    /// The transfer was initiated, or the N1 message was not transferred: see the cause.
    N1N2MessageTransferInitiated 200 body: N1N2MessageTransferRspData;
    /// The AMF attempts to reach the UE. The location is the `n1n2MsgDataUri` of a later failure notification.
    N1N2MessageTransferAccepted 202 body: Created<N1N2MessageTransferRspData>;
    /// A UE context.
    UeContextTransferred 200 body: UeContextTransferRspData;
    /// The old AMF has received the status of the UE context transfer.
    RegistrationStatusUpdated 200 body: UeRegStatusUpdateRspData;
    /// The target AMF has prepared the handover.
    UeContextCreated 201 body: Created<UeContextCreatedData>;
    /// The source AMF has received the completion of the handover.
    N2InfoNotified 200 body: N2InfoNotificationRspData;

    /// A created AM policy association.
    PolicyAssociationCreated 201 body: Created<PolicyAssociation>;
    /// An AM policy association.
    PolicyAssociation 200 body: PolicyAssociation;
    /// Changes of an AM policy.
    PolicyUpdate 200 body: PolicyUpdate;
    /// Values that the PCF requested.
    AmRequestedValueRep 200 body: AmRequestedValueRep;

    /// A created application session.
    AppSessionCreated 201 body: Created<AppSessionContext>;
    /// An application session.
    AppSessionContext 200 body: AppSessionContext;
    /// A created subscription to events of an application session.
    EventsSubscCreated 201 body: Created<EventsSubscReqData>;
    /// A changed subscription to events of an application session.
    EventsSubsc 200 body: EventsSubscReqData;

    /// A created SM policy association.
    SmPolicyDecisionCreated 201 body: Created<SmPolicyDecision>;
    /// Changes of an SM policy.
    SmPolicyDecision 200 body: SmPolicyDecision;
    /// An SM policy association with its context.
    SmPolicyControl 200 body: SmPolicyControl;
    /// Parts of a policy that could not be enforced.
    SmPolicyUpdateNotifyResult 200 body: SmPolicyUpdateNotifyResult;

    /// A registered NF instance.
    NfProfileCreated 201 body: Created<NfProfile>;
    /// An NF profile.
    NfProfile 200 body: NfProfile;
    /// URIs of NF instances.
    UriList 200 body: UriList;
    /// A created subscription to status changes of NF instances.
    SubscriptionDataCreated 201 body: Created<SubscriptionData>;
    /// An updated subscription.
    SubscriptionData 200 body: SubscriptionData;
    /// Discovered NF instances.
    SearchResult 200 body: SearchResult;
    /// An access token.
    AccessTokenRsp 200 body: AccessTokenRsp;

    /// Selected slices.
    AuthorizedNetworkSliceInfo 200 body: AuthorizedNetworkSliceInfo;
}

impl Response {
    /// Parses the response to a request of an operation. A relative `Location` is resolved against `root`, the apiRoot of the
    /// request.
    pub fn from_http(operation: Operation, root: &Arc<ApiRoot>, http: &HttpResponse) -> Reply {
        if !(200..300).contains(&http.status) {
            return Err(Problem::from_http(operation, root, http).into());
        }
        let mut outcomes = operation.info().outcomes.iter();
        let outcome = outcomes.find(|outcome| outcome.status() == http.status);
        let outcome = outcome.ok_or_else(|| {
            invalid_response(&format!("status {} is not defined for {}", http.status, operation.name()))
        })?;
        outcome.read(http, root).map_err(|problem| invalid_response(&problem.to_string()))
    }
}

/// The peer's response is invalid, which counts as a failure of the peer.
fn invalid_response(why: &str) -> Box<Problem> {
    let problem = Problem::new(Cause::UnspecifiedNfFailure);
    problem.detail(format_args!("invalid response: {why}")).into()
}

/// The content of an outcome: a body, or a body and a location.
trait Payload: Sized {
    fn write(&self, http: &mut HttpResponse);
    fn read(http: &HttpResponse, root: &Arc<ApiRoot>) -> Result<Self>;
}

impl<T: Body> Payload for T {
    fn write(&self, http: &mut HttpResponse) {
        http.content(self.encode());
    }

    fn read(http: &HttpResponse, _: &Arc<ApiRoot>) -> Result<Self> {
        http.read()
    }
}

impl<T: Body> Payload for Created<T> {
    fn write(&self, http: &mut HttpResponse) {
        http.headers.push("location", self.location.to_string());
        http.content(self.body.encode());
    }

    fn read(http: &HttpResponse, root: &Arc<ApiRoot>) -> Result<Self> {
        let location = http.headers.get("location");
        let location = location.ok_or_else(|| Problem::mandatory_ie_missing("header Location"))?;
        let location = Uri::resolve(root, location)
            .map_err(|error| Problem::mandatory_ie_incorrect("header Location", error))?;
        Ok(Self { location, body: http.read()? })
    }
}
