//! NAS (TS 24.501): plain messages and security protection.

use crate::target::{CheckFailed, ensure, same};
use pith_crypto::keys::{KNasEnc, KNasInt};
use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
use pith_nas::ie::MobileIdentity;
use pith_nas::security::{Algorithms, Connection, Envelope};
use pith_nas::{
    GmmMessage, GsmMessage, NasSecurity, Role, SecurityHeaderType, TemporaryIdentity, peek, peek_epd,
    peek_temporary_identity,
};

/// Plain 5GMM messages.
pub fn gmm(input: &[u8]) -> Result<(), CheckFailed> {
    let _ = (peek(input), peek_epd(input), peek_temporary_identity(input));
    let mut notes = Vec::new();
    let Ok(message) = GmmMessage::decode_with_notes(input, &mut notes) else { return Ok(()) };
    ensure(peek_temporary_identity(input) == shown(&message), || "a peek sees another identity".into())?;
    ensure(notes.iter().all(|note| note.offset < input.len()), || "a note beyond the message".into())?;
    same(&message, GmmMessage::decode(&message.encode()))
}

/// The temporary identity that a peek must return.
fn shown(message: &GmmMessage) -> Option<TemporaryIdentity> {
    let identity = match message {
        GmmMessage::RegistrationRequest(request) => &request.mobile_identity,
        GmmMessage::DeregistrationRequestUeOriginating(request) => &request.mobile_identity,
        GmmMessage::ServiceRequest(request) => &request.s_tmsi,
        _ => return None,
    };
    match identity {
        MobileIdentity::FiveGGuti(guti) => Some(TemporaryIdentity::FiveGGuti(*guti)),
        MobileIdentity::FiveGSTmsi(s_tmsi) => Some(TemporaryIdentity::FiveGSTmsi(*s_tmsi)),
        _ => None,
    }
}

/// 5GSM messages.
pub fn gsm(input: &[u8]) -> Result<(), CheckFailed> {
    let Ok(message) = GsmMessage::decode(input) else { return Ok(()) };
    same(&message, GsmMessage::decode(&message.encode()))
}

/// A UE protects a message, and the input determines what arrives: its first octet selects the algorithms,
/// the second what happens to the message (unchanged, repeated, or changed by the following octets).
pub fn security(input: &[u8]) -> Result<(), CheckFailed> {
    let (&[choice, how, ..], rest) = (match input.split_at_checked(2) {
        Some((head, rest)) => (head, rest),
        None => return Ok(()),
    }) else {
        return Ok(());
    };
    let _ = Envelope::of(rest).map(|envelope| (envelope.unverified().map(<[u8]>::len), peek(rest)));
    let (mut ue, mut network) = (context(Role::Ue, choice), context(Role::Network, choice));
    let plain = rest.get(..rest.len() / 2).unwrap_or_default();
    let header = SecurityHeaderType::from_octet(1 + how % 4);
    let Ok(sent) = ue.protect(header, plain) else { return Ok(()) };
    let arrives = mutated(&sent, how, rest.get(rest.len() / 2..).unwrap_or_default());
    match network.unprotect(&arrives) {
        Ok(received) if arrives == sent => {
            ensure(received.plain == plain, || {
                format!("{} was received as {}", hex::encode(plain), hex::encode(&received.plain))
            })?;
        }
        // The MAC does not cover the security header type (TS 24.501 9.8).
        Ok(_) if choice & 3 == 0 || arrives.get(2..) == sent.get(2..) => {}
        Ok(_) => {
            return Err(CheckFailed(format!("forged: {} for {}", hex::encode(&arrives), hex::encode(&sent))));
        }
        Err(error) if arrives == sent => {
            return Err(CheckFailed(format!("refused what the UE sent: {error}")));
        }
        Err(_) => {}
    }
    // 128-NIA0 gives no protection, also not against replays (TS 33.501 D.1).
    let taken_again = network.unprotect(&sent).is_ok() && network.unprotect(&sent).is_ok();
    let taken_again = taken_again || network.unprotect(&arrives).is_ok();
    ensure(!taken_again || choice & 3 == 0, || "a replayed message was taken".into())
}

fn context(role: Role, choice: u8) -> NasSecurity {
    let integrity = [
        IntegrityAlgorithm::Nia0,
        IntegrityAlgorithm::Nia1,
        IntegrityAlgorithm::Nia2,
        IntegrityAlgorithm::Nia3,
    ];
    let ciphering = [
        CipheringAlgorithm::Nea0,
        CipheringAlgorithm::Nea1,
        CipheringAlgorithm::Nea2,
        CipheringAlgorithm::Nea3,
    ];
    let algorithms = Algorithms {
        integrity: integrity[usize::from(choice & 3)],
        ciphering: ciphering[usize::from(choice >> 2 & 3)],
    };
    let keys = (KNasInt::new([0x49; 16]), KNasEnc::new([0x45; 16]));
    NasSecurity::new(role, Connection::ThreeGpp, algorithms, keys.0, keys.1)
}

/// Pairs of octets select position and kind of each change.
fn mutated(sent: &[u8], how: u8, changes: &[u8]) -> Vec<u8> {
    let mut spoiled = sent.to_vec();
    if how & 0x10 != 0 {
        return spoiled;
    }
    for change in changes.chunks_exact(2).take(4) {
        let at = usize::from(change[0]) % spoiled.len().max(1);
        if let Some(octet) = spoiled.get_mut(at) {
            *octet ^= change[1];
        }
    }
    if how & 0x20 != 0 {
        spoiled.truncate(spoiled.len() / 2);
    }
    spoiled
}
