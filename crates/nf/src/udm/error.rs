//! Why there is no vector, and what the AUSF is told (TS 29.503 6.3.7.3).

use pith_crypto::suci::SuciError;
use pith_sbi::{Cause, Problem};

/// Why there is no authentication vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum AuthenticationError {
    /// The SUCI names a key that is not configured.
    #[error("no home network key with the identifier of the SUCI: add it to 'home_network_keys'")]
    UnknownHomeNetworkKey,
    /// The SUCI is of a scheme that the key is not for, or that nobody knows.
    #[error("the protection scheme of the SUCI is not supported")]
    UnsupportedScheme,
    /// The SUCI can't be uncovered.
    #[error("the SUCI can't be uncovered: {0}")]
    Suci(#[from] SuciError),
    /// The SUCI uncovers to something that is no IMSI.
    #[error("the SUCI hides no IMSI")]
    NoImsi,
    /// The subscriber's keys are not whole.
    #[error("the authentication subscription lacks {0}")]
    IncompleteSubscription(&'static str),
    /// AUTS does not verify.
    #[error("AUTS does not verify")]
    WrongAuts,
    /// Others took each SQN before it could be kept.
    #[error("too many vectors are being made for the subscriber at once")]
    SequenceNumberTaken,
    /// The database does not answer as it should.
    #[error("the UDR gave an answer that was not asked for")]
    UnexpectedAnswer,
}

impl From<AuthenticationError> for Box<Problem> {
    fn from(error: AuthenticationError) -> Self {
        let cause = match error {
            AuthenticationError::UnknownHomeNetworkKey => Cause::InvalidHnPublicKeyIdentifier,
            AuthenticationError::UnsupportedScheme => Cause::UnsupportedProtectionScheme,
            AuthenticationError::Suci(_) | AuthenticationError::NoImsi => Cause::InvalidSchemeOutput,
            AuthenticationError::WrongAuts => Cause::AuthenticationRejected,
            AuthenticationError::IncompleteSubscription(_) | AuthenticationError::SequenceNumberTaken => {
                Cause::AvGenerationProblem
            }
            AuthenticationError::UnexpectedAnswer => Cause::SystemFailure,
        };
        Box::new(Problem::new(cause).detail(error))
    }
}
