//! Identities and other text values (TS 23.003, TS 29.571), and the concealment of SUPIs (TS 33.501 Annex C).

use crate::target::{CheckFailed, ensure, same};
use pith_crypto::suci::{HomeNetworkPrivateKey, HomeNetworkPublicKey, Profile, decode_msin, encode_msin};
use pith_sbi::ApiRoot;
use pith_sbi::common::{DateTime, NfInstanceId, ServingPlmnId, SupiOrSuci, SupportedFeatures, UeContextId};
use pith_types::{AmfId, BitRate, Dnn, FiveGGuti, NrCellIdentity, Pei, Plmn, Snssai, Suci, Supi, Tac};
use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::sync::LazyLock;

fn one<T: FromStr<Err: Debug> + Display + PartialEq + Debug>(
    name: &str,
    text: &str,
) -> Result<(), CheckFailed> {
    let Ok(value) = text.parse::<T>() else { return Ok(()) };
    same(&value, value.to_string().parse::<T>())
        .map_err(|CheckFailed(what)| CheckFailed(format!("{name}: {what}")))
}

macro_rules! all {
    ($text:expr, $($value:ty)*) => { $(one::<$value>(stringify!($value), $text)?;)* };
}

/// A text, parsed as each of the values.
pub fn text(input: &[u8]) -> Result<(), CheckFailed> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    all!(text,
        Supi Suci Pei Plmn Snssai Dnn Tac NrCellIdentity AmfId FiveGGuti BitRate ApiRoot NfInstanceId SupportedFeatures
        ServingPlmnId SupiOrSuci UeContextId DateTime
    );
    if let Ok(suci) = text.parse::<Suci>() {
        let _ = (suci.scheme(), suci.null_scheme_supi(), suci.supi_of("0000000001"));
    }
    if let Ok(supi) = text.parse::<Supi>() {
        // Masking shows the five digits of the PLMN and two more.
        let hides = supi.imsi().len() <= 7 || !supi.masked().contains(supi.as_str());
        ensure(hides, || format!("{supi} is not masked"))?;
        let more = supi.consecutive(3);
        ensure(more.is_none_or(|more| more.len() == 3), || "other than 3 SUPIs".into())?;
    }
    Ok(())
}

/// A key pair of each profile.
static KEYS: LazyLock<Vec<(HomeNetworkPrivateKey, HomeNetworkPublicKey)>> = LazyLock::new(|| {
    let pair = |profile| {
        let private = HomeNetworkPrivateKey::new(profile, &[0x27; 32]).expect("32 octets are a key");
        let public = private.public_key().expect("a private key has a public one");
        (private, public)
    };
    vec![pair(Profile::A), pair(Profile::B)]
});

/// Scheme output: the first octet selects the profile, and whether the rest is scheme output or
/// plain text to be concealed.
pub fn suci(input: &[u8]) -> Result<(), CheckFailed> {
    let Some((&choice, octets)) = input.split_first() else { return Ok(()) };
    let _ = decode_msin(octets).map(|digits| encode_msin(&digits));
    let (private, public) = &KEYS[usize::from(choice & 1)];
    if choice & 2 == 0 {
        let _ = private.deconceal(octets);
        let _ = HomeNetworkPublicKey::new(public.profile(), octets);
        return Ok(());
    }
    let Ok(mut output) = public.conceal(&[choice | 1; 32], octets) else { return Ok(()) };
    let plain = private.deconceal(&output);
    ensure(plain.as_deref() == Ok(octets), || format!("{} came back as {plain:?}", hex::encode(octets)))?;
    let at = usize::from(choice >> 2) % output.len();
    output[at] ^= 1;
    ensure(private.deconceal(&output).is_err(), || format!("octet {at} can be changed"))
}
