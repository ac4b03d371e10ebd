//! Query parameters: plain text, comma-separated lists, and JSON (TS 29.501).

use crate::common::{AccessType, NfInstanceId, NfType, PlmnIdNid, ServiceName, SupportedFeatures};
use crate::nnssf_nsselection::{
    SliceInfoForPduSession, SliceInfoForRegistration, SliceInfoForUeConfigurationUpdate,
};
use crate::nudm_sdm::DataSetName;
use pith_types::{Dnn, Guami, Plmn, Snssai, Supi, Tai};
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

/// A type of query parameters.
pub(crate) trait QueryValue: Sized {
    fn to_query(&self) -> String;
    fn from_query(text: &str) -> Option<Self>;
}

macro_rules! plain {
    ($($type:ty),+) => {
        $(impl QueryValue for $type {
            fn to_query(&self) -> String {
                self.to_string()
            }
            fn from_query(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        })+
    };
}

plain!(NfInstanceId, NfType, SupportedFeatures, Dnn, Supi, u32, bool);

macro_rules! list {
    ($($type:ty),+) => {
        $(impl QueryValue for Vec<$type> {
            fn to_query(&self) -> String {
                join(self)
            }
            fn from_query(text: &str) -> Option<Self> {
                part(text)
            }
        })+
    };
}

list!(ServiceName, DataSetName);

fn join<T: Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    items.join(",")
}

fn part<T: FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(',').map(|item| item.parse().ok()).collect()
}

macro_rules! json {
    ($($type:ty),+) => {
        $(impl QueryValue for $type {
            fn to_query(&self) -> String {
                serde_json::to_string(self).unwrap_or_default()
            }
            fn from_query(text: &str) -> Option<Self> {
                super::json::parse(text.as_bytes()).ok()
            }
        })+
    };
}

json!(
    Plmn,
    PlmnIdNid,
    Snssai,
    Tai,
    Guami,
    Vec<Snssai>,
    Vec<Plmn>,
    SliceInfoForRegistration,
    SliceInfoForPduSession,
    SliceInfoForUeConfigurationUpdate
);

impl QueryValue for Arc<str> {
    fn to_query(&self) -> String {
        self.as_ref().into()
    }
    fn from_query(text: &str) -> Option<Self> {
        Some(text.into())
    }
}

impl QueryValue for Vec<Arc<str>> {
    fn to_query(&self) -> String {
        join(self)
    }
    fn from_query(text: &str) -> Option<Self> {
        Some(text.split(',').map(Into::into).collect())
    }
}

impl QueryValue for AccessType {
    fn to_query(&self) -> String {
        self.as_str().into()
    }
    fn from_query(text: &str) -> Option<Self> {
        let all = [Self::ThreeGppAccess, Self::NonThreeGppAccess];
        all.into_iter().find(|access| access.as_str() == text)
    }
}
