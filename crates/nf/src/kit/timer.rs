//! Every timer of the core by its name in the specifications.

/// A timer's name. Its length is configuration of the NF that starts it.
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
    /// The UE should have been heard from by now: T3512 plus 4 minutes (TS 24.501 5.3.7).
    MobileReachable,
    /// The UE is taken to be gone (TS 24.501 5.3.7).
    ImplicitDeregistration,
    /// Further connections of gNBs that are gone are given up.
    LostConnections,
    /// The gNB owes an answer to an NGAP procedure of one UE.
    NgapGuard,
    /// Another NF owes an answer to an SBI request of one procedure.
    SbiGuard,
    /// A call that ends something got no answer: it is sent again.
    SbiRepetition,
    /// An NF instance tells the NRF that it lives (TS 29.510 5.2.2.3.2).
    NrfHeartBeat,
    /// The NRF suspends instances that fell silent (TS 29.510 5.2.2.3.2).
    NrfSweep,
    /// A discovery result is no longer valid (TS 29.510 6.2.6.2.2 `validityPeriod`).
    DiscoveryValidity,
    /// Packets may still be on their way by a UPF that a session has left (TS 23.502 4.3.5.5).
    PathGrace,
    /// PFCP request sent, no response yet (TS 29.244 6.4).
    PfcpT1,
    /// Next PFCP Heartbeat Request (TS 29.244 6.2.2).
    PfcpHeartbeat,
    /// A UPF's wish for fewer requests holds (TS 29.244 6.2.4).
    PfcpOverload,
    /// A UPF's Graceful Release Period (TS 29.244 8.2.78).
    PfcpGracefulRelease,
    /// PFCP of peers that are not configured is counted anew.
    PfcpStrangers,
    /// Next try to set up a PFCP association (TS 29.244 6.2.6).
    PfcpAssociationRetry,
    /// A short-lived transaction's state is dropped.
    Expiry,
}

/// One running timer: its name and whose it is.
///
/// `owner` is the NF's own: the [`crate::kit::Key`] of a UE or a session, as a number. Starting a timer
/// that runs restarts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerKey {
    /// Whose timer.
    pub owner: u64,
    /// Which of the owner's timers.
    pub timer: Timer,
}
