//! All timers of the core, with their names in the specifications.

/// A timer's name. Its duration is configuration of the NF that starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// Paging of the UE (TS 24.501 table 10.2.2).
    T3513,
    /// DEREGISTRATION REQUEST sent, network's (TS 24.501 table 10.2.2).
    T3522,
    /// REGISTRATION ACCEPT sent (TS 24.501 table 10.2.2).
    T3550,
    /// CONFIGURATION UPDATE COMMAND sent (TS 24.501 table 10.2.2).
    T3555,
    /// AUTHENTICATION REQUEST or SECURITY MODE COMMAND sent (TS 24.501 table 10.2.2).
    T3560,
    /// NOTIFICATION sent (TS 24.501 table 10.2.2).
    T3565,
    /// IDENTITY REQUEST sent (TS 24.501 table 10.2.2).
    T3570,
    /// PDU SESSION AUTHENTICATION COMMAND sent (TS 24.501 table 10.3.2).
    T3590,
    /// PDU SESSION MODIFICATION COMMAND sent (TS 24.501 table 10.3.2).
    T3591,
    /// PDU SESSION RELEASE COMMAND sent (TS 24.501 table 10.3.2).
    T3592,
    /// The UE's periodic update is overdue: T3512 plus 4 minutes (TS 24.501 5.3.7).
    MobileReachable,
    /// The UE is deregistered implicitly (TS 24.501 5.3.7).
    ImplicitDeregistration,
    /// The next batch of lost connections is closed.
    LostConnections,
    /// A gNB of a former run has not returned: its connections are lost.
    AbsentGnbs,
    /// The next batch of sessions of lost UPFs is ended.
    LostSessions,
    /// The next batch of contexts of a former run is resumed.
    RestoredContexts,
    /// The target gNB's answer to HANDOVER REQUEST, or HANDOVER NOTIFY, is overdue.
    Handover,
    /// SMFs that do not answer are to be requested again to switch the paths of an N2 handover.
    HandoverCompletion,
    /// The report that a UE has arrived at another AMF, from a handover that was withdrawn, is no longer valid.
    WithdrawnHandover,
    /// The report of the AMF to which a UE's context was transferred, and which serves the UE, is overdue.
    TransferredContext,
    /// No AMF has requested the context of a UE with the message that the gNB has rerouted.
    ReroutedMessage,
    /// An answer of the gNB to a UE-associated NGAP procedure is overdue.
    NgapGuard,
    /// A reply of another NF to a procedure's SBI request is overdue.
    SbiGuard,
    /// Transactions of a block that is to pass to another shard are not over.
    BlockMove,
    /// The retransmission of a call that ends a resource and got no reply.
    SbiRetransmission,
    /// Heart-beat of an NF instance to the NRF (TS 29.510 5.2.2.3.2).
    NrfHeartBeat,
    /// The NRF suspends instances without a heart-beat (TS 29.510 5.2.2.3.2).
    NrfSweep,
    /// A discovery result expires (TS 29.510 6.2.6.2.2 `validityPeriod`).
    DiscoveryValidity,
    /// Packets may still be in transit through a UPF that was removed from a session (TS 23.502 4.3.5.5).
    PathGrace,
    /// The SMF is to register a session again with a UDM that has not answered.
    Reregistration,
    /// The SMF is to check whether the UDM still has the registration of a session, which has replaced another one.
    RegistrationCheck,
    /// The AMF is to request changed subscription data again, which the UDM has not given.
    SubscriptionData,
    /// PFCP request sent, no response yet (TS 29.244 6.4).
    PfcpT1,
    /// Next PFCP Heartbeat Request (TS 29.244 6.2.2).
    PfcpHeartbeat,
    /// A UPF's overload control information expires (TS 29.244 6.2.4).
    PfcpOverload,
    /// A UPF's Graceful Release Period (TS 29.244 8.2.78).
    PfcpGracefulRelease,
    /// The counter of PFCP from unknown peers is reset.
    PfcpUnknownPeers,
    /// Next attempt of a PFCP association (TS 29.244 6.2.6).
    PfcpAssociationRetry,
    /// The next notification of a changed subscriber.
    ChangedSubscribers,
    /// The state of a short-lived transaction is deleted.
    Expiry,
}

/// One running timer: its name and its owner.
///
/// The NF chooses `owner`: the [`crate::kit::Key`] of a UE or a session as a number. Starting a
/// running timer restarts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct TimerKey {
    pub owner: u64,
    pub timer: Timer,
}
