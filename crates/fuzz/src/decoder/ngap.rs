//! NGAP (TS 38.413): PDUs, the peek, and the transfers between SMF and gNB.

use crate::target::{CheckFailed, ensure, same};
use pith_ngap::transfer::*;
use pith_ngap::{Message, peek, unknown_procedure};

/// PDUs, decoded and peeked.
pub fn pdu(input: &[u8]) -> Result<(), CheckFailed> {
    let seen = peek(input);
    let _ = unknown_procedure(input);
    let message = match Message::decode(input) {
        Ok(message) => message,
        Err(error) => {
            let _ = (error.cause(), error.diagnostics(), error.to_string());
            return Ok(());
        }
    };
    if matches!(message, Message::Other(_)) {
        return Ok(());
    }
    ensure(seen.is_some(), || format!("a peek sees nothing of {}", message.name()))?;
    let octets = message.encode().map_err(|error| CheckFailed(error.to_string()))?;
    same(&message, Message::decode(&octets))
}

macro_rules! transfers {
    ($input:expr, $($transfer:ident)*) => {
        $(
            if let Ok(transfer) = $transfer::decode($input) {
                same(&transfer, $transfer::decode(&transfer.encode()))?;
            }
        )*
    };
}

/// The octets of an item, decoded as each of the transfers.
pub fn transfer(input: &[u8]) -> Result<(), CheckFailed> {
    transfers!(input,
        SetupRequestTransfer SetupResponseTransfer SetupUnsuccessfulTransfer
        ModifyRequestTransfer ModifyResponseTransfer ModifyUnsuccessfulTransfer
        ModifyIndicationTransfer ModifyConfirmTransfer ModifyIndicationUnsuccessfulTransfer
        NotifyTransfer NotifyReleasedTransfer SecondaryRatUsageTransfer
        ReleaseCommandTransfer ReleaseResponseTransfer
        PathSwitchRequestTransfer PathSwitchRequestAcknowledgeTransfer
        PathSwitchRequestSetupFailedTransfer PathSwitchRequestUnsuccessfulTransfer
        HandoverRequiredTransfer HandoverCommandTransfer HandoverPreparationUnsuccessfulTransfer
        HandoverRequestAcknowledgeTransfer HandoverResourceAllocationUnsuccessfulTransfer
    );
    Ok(())
}
