//! The operations of Npcf_PolicyAuthorization.

use super::{
    AppSessionContext, AppSessionContextUpdateDataPatch, EventsNotification, EventsSubscReqData,
    TerminationInfo,
};
use crate::http::json_bodies;
use crate::operation::{callbacks, operations};

json_bodies! {
    JSON: AppSessionContext, EventsNotification, EventsSubscReqData, TerminationInfo;
    MERGE_PATCH: AppSessionContextUpdateDataPatch;
}

operations! {
    NpcfPolicyauthorization "/npcf-policyauthorization/v1";

    /// Creates an application session.
    PostAppSession "Npcf_PolicyAuthorization_Create" "PostAppSessions"
    Post ["app-sessions"] {}
    body AppSessionContext
    => [AppSessionCreated];

    /// Reads an application session.
    GetAppSession "Npcf_PolicyAuthorization_Get" "GetAppSession"
    Get ["app-sessions", app_session_id] { app_session_id: String }
    => [AppSessionContext];

    /// Changes the media of an application session.
    ModAppSession "Npcf_PolicyAuthorization_Update" "ModAppSession"
    Patch ["app-sessions", app_session_id] { app_session_id: String }
    body AppSessionContextUpdateDataPatch
    => [AppSessionContext];

    /// Ends an application session.
    DeleteAppSession "Npcf_PolicyAuthorization_Delete" "DeleteAppSession"
    Post ["app-sessions", app_session_id, "delete"] { app_session_id: String }
    => [NoContent];

    /// Subscribes to events of an application session, or changes the subscription.
    UpdateEventsSubsc "Npcf_PolicyAuthorization_Subscribe" "updateEventsSubsc"
    Put ["app-sessions", app_session_id, "events-subscription"] { app_session_id: String }
    body EventsSubscReqData
    => [EventsSubscCreated, EventsSubsc, NoContent];

    /// Ends the subscription to events of an application session.
    DeleteEventsSubsc "Npcf_PolicyAuthorization_Unsubscribe" "DeleteEventsSubsc"
    Delete ["app-sessions", app_session_id, "events-subscription"] { app_session_id: String }
    => [NoContent];
}

callbacks! {
    NpcfPolicyauthorization;

    /// Notifies an application of events.
    AppSessionEventNotify "Npcf_PolicyAuthorization_Notify" "app-session" "/notify"
    body EventsNotification
    => [NoContent];

    /// Requests an application to end its session.
    AppSessionTerminate "Npcf_PolicyAuthorization_Notify" "app-session" "/terminate"
    body TerminationInfo
    => [NoContent];
}
