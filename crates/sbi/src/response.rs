//! All answers of the SBI as one closed type: a variant an outcome.

use crate::common::PatchResult;
use crate::http::{Body, HttpResponse};
use crate::namf_communication::{
    N1N2MessageTransferRspData, UeContextTransferRspData, UeRegStatusUpdateRspData,
};
use crate::nausf_ueauthentication::{ConfirmationDataResponse, EapSession, UeAuthenticationCtx};
use crate::nnrf_accesstoken::AccessTokenRsp;
use crate::nnrf_nfdiscovery::SearchResult;
use crate::nnrf_nfmanagement::{NfProfile, SubscriptionData, UriList};
use crate::nnssf_nsselection::AuthorizedNetworkSliceInfo;
use crate::npcf_ampolicycontrol::{AmRequestedValueRep, PolicyAssociation, PolicyUpdate};
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

/// A resource that was made, and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Created<T> {
    /// The URI of the resource (`Location`).
    pub location: Uri,
    /// The resource.
    pub body: T,
}

/// Makes the two enums, and what takes a match over all outcomes.
macro_rules! responses {
    ($($(#[$meta:meta])* $outcome:ident $status:literal $($body:ident: $payload:ty)?;)+) => {
        /// A successful answer.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Response {
            $($(#[$meta])* #[doc = concat!("Status ", $status, ".")] $outcome $((Box<$payload>))?,)+
        }

        /// How an operation may succeed: which variant of [`Response`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Outcome {
            $($(#[$meta])* #[doc = concat!("Status ", $status, ".")] $outcome,)+
        }

        impl Outcome {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$outcome),+];

            /// Its HTTP status.
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
            /// How the operation succeeded.
            pub const fn outcome(&self) -> Outcome {
                match self {
                    $(responses!(@any $outcome $($body)?) => Outcome::$outcome,)+
                }
            }

            /// The answer as HTTP has it.
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
    /// Done.
    NoContent 204;

    /// The UE's challenge.
    UeAuthenticationCtxCreated 201 body: Created<UeAuthenticationCtx>;
    /// How 5G-AKA ended.
    ConfirmationDataResponse 200 body: ConfirmationDataResponse;
    /// The next step of EAP.
    EapSession 200 body: EapSession;

    /// A vector.
    AuthenticationInfoResult 200 body: AuthenticationInfoResult;
    /// The result of an authentication is kept.
    AuthEventCreated 201 body: Created<AuthEvent>;
    /// The result of an authentication.
    AuthEvent 200 body: AuthEvent;

    /// The AMF is the first to register.
    Amf3GppAccessRegistrationCreated 201 body: Created<Amf3GppAccessRegistration>;
    /// The AMF that serves the UE.
    Amf3GppAccessRegistration 200 body: Amf3GppAccessRegistration;
    /// The SMF is the first to register for the session.
    SmfRegistrationCreated 201 body: Created<SmfRegistration>;
    /// The SMF that serves the session.
    SmfRegistration 200 body: SmfRegistration;
    /// The SMFs that serve the UE, from the UDM.
    SmfRegistrationInfo 200 body: SmfRegistrationInfo;
    /// The SMFs that serve the UE, from the UDR.
    SmfRegList 200 body: Vec<SmfRegistration>;
    /// Not all of a patch was done.
    PatchResult 200 body: PatchResult;

    /// Several data sets.
    SubscriptionDataSets 200 body: SubscriptionDataSets;
    /// Slices.
    Nssai 200 body: Nssai;
    /// Access and mobility subscription data.
    AmData 200 body: AccessAndMobilitySubscriptionData;
    /// Data networks by slice.
    SmfSelData 200 body: SmfSelectionSubscriptionData;
    /// Session management subscription data.
    SmData 200 body: SmSubsData;
    /// PDU sessions and their SMFs.
    UeContextInSmfData 200 body: UeContextInSmfData;
    /// A subscription to changes.
    SdmSubscriptionCreated 201 body: Created<SdmSubscription>;
    /// Subscriptions to changes, from the UDR.
    SdmSubscriptions 200 body: Vec<SdmSubscription>;

    /// Credentials.
    AuthenticationSubscription 200 body: AuthenticationSubscription;
    /// Access and mobility policy data.
    AmPolicyData 200 body: AmPolicyData;
    /// Session management policy data.
    SmPolicyData 200 body: SmPolicyData;

    /// A PDU session in the making.
    SmContextCreated 201 body: Created<SmContextCreatedData>;
    /// What has changed of a PDU session.
    SmContextUpdated 200 body: SmContextUpdatedData;
    /// A PDU session has ended, and this is left.
    SmContextReleased 200 body: SmContextReleasedData;
    /// An SM context.
    SmContextRetrieved 200 body: SmContextRetrievedData;

    /// The message is on its way.
    N1N2MessageTransferInitiated 200 body: N1N2MessageTransferRspData;
    /// The UE is being paged; the location names the message if it fails.
    N1N2MessageTransferAccepted 202 body: Created<N1N2MessageTransferRspData>;
    /// A UE context.
    UeContextTransferred 200 body: UeContextTransferRspData;
    /// The old AMF has let the UE go.
    RegistrationStatusUpdated 200 body: UeRegStatusUpdateRspData;

    /// An AM policy.
    PolicyAssociationCreated 201 body: Created<PolicyAssociation>;
    /// An AM policy.
    PolicyAssociation 200 body: PolicyAssociation;
    /// What changes of an AM policy.
    PolicyUpdate 200 body: PolicyUpdate;
    /// What the PCF asked to be told.
    AmRequestedValueRep 200 body: AmRequestedValueRep;

    /// An SM policy.
    SmPolicyDecisionCreated 201 body: Created<SmPolicyDecision>;
    /// What changes of an SM policy.
    SmPolicyDecision 200 body: SmPolicyDecision;
    /// An SM policy and what it was made for.
    SmPolicyControl 200 body: SmPolicyControl;
    /// What could not be carried out.
    SmPolicyUpdateNotifyResult 200 body: SmPolicyUpdateNotifyResult;

    /// An NF instance is registered.
    NfProfileCreated 201 body: Created<NfProfile>;
    /// An NF instance.
    NfProfile 200 body: NfProfile;
    /// NF instances by URI.
    UriList 200 body: UriList;
    /// A subscription to what becomes of NF instances.
    SubscriptionDataCreated 201 body: Created<SubscriptionData>;
    /// The same, changed.
    SubscriptionData 200 body: SubscriptionData;
    /// NF instances that offer what was asked for.
    SearchResult 200 body: SearchResult;
    /// A token.
    AccessTokenRsp 200 body: AccessTokenRsp;

    /// Slices that the UE gets.
    AuthorizedNetworkSliceInfo 200 body: AuthorizedNetworkSliceInfo;
}

impl Response {
    /// Reads the answer to a request of that operation; `root` is where it was sent, for a
    /// `Location` that is relative.
    pub fn from_http(operation: Operation, root: &Arc<ApiRoot>, http: &HttpResponse) -> Reply {
        if !(200..300).contains(&http.status) {
            return Err(Problem::from_http(operation, root, http).into());
        }
        let mut outcomes = operation.info().outcomes.iter();
        let outcome = outcomes.find(|outcome| outcome.status() == http.status);
        let outcome = outcome.ok_or_else(|| unreadable("a status that the operation has not"))?;
        outcome.read(http, root).map_err(|problem| unreadable(&problem.to_string()))
    }
}

/// The peer's answer cannot be read; for whoever asked, the peer has failed.
fn unreadable(why: &str) -> Box<Problem> {
    let problem = Problem::new(Cause::UnspecifiedNfFailure);
    problem.detail(format_args!("unreadable answer: {why}")).into()
}

/// What an outcome brings: a body, or a body and a location.
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
