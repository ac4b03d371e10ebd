//! Times as microseconds. Absurd ones are refused, so that no later sum overflows.

use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

/// 285 years.
const MOST: u64 = 1 << 53;

pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    u64::try_from(time.as_micros()).unwrap_or(MOST).min(MOST).serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let micros = u64::deserialize(deserializer)?;
    if micros > MOST {
        Err(D::Error::custom("a time out of range"))
    } else {
        Ok(Duration::from_micros(micros))
    }
}

/// The same for times that may be missing.
pub mod optional {
    use super::*;

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Micros(#[serde(with = "super")] Duration);

    pub fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(Micros).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Micros>::deserialize(deserializer)?.map(|Micros(time)| time))
    }
}
