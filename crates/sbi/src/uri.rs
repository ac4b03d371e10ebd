//! URIs of the SBI (TS 29.501 4.4): an apiRoot and a path.
//!
//! Each shard of a process has its own apiRoot, which the NFs of that shard share: `http://10.0.0.1:7777/s3` is
//! shard 3 of the process at 10.0.0.1:7777. An apiRoot does not identify an NF instance.

use crate::NfType;
use crate::mask::masked;
use crate::record::serde_as_text;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The URI scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// Cleartext.
    Http,
    /// With TLS.
    Https,
}

impl Scheme {
    /// The scheme's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// The apiRoot of a shard's NFs (TS 29.501 4.4.1): scheme, authority and a path prefix that names the shard. Another
/// vendor's apiRoot has any prefix, or none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiRoot {
    /// URI scheme.
    pub scheme: Scheme,
    /// Host and port, such as `127.0.0.1:7777`.
    pub authority: Arc<str>,
    /// Path prefix: empty, or with a leading slash, such as `/s3`.
    pub prefix: Arc<str>,
}

impl ApiRoot {
    /// An apiRoot without a prefix.
    pub fn new(scheme: Scheme, authority: &str) -> Self {
        Self { scheme, authority: authority.into(), prefix: "".into() }
    }

    /// The host of its authority: without port, and an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        match self.authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => self.authority.split_once(':').map_or(&*self.authority, |(host, _)| host),
        }
    }

    /// The same apiRoot with a prefix, which is empty or has a leading slash.
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.into();
        self
    }
}

impl fmt::Display for ApiRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        [self.scheme.as_str(), "://", &self.authority, &self.prefix]
            .iter()
            .try_for_each(|part| f.write_str(part))
    }
}

impl FromStr for ApiRoot {
    type Err = UriError;
    /// Uses the whole path as the prefix, without a trailing slash.
    fn from_str(text: &str) -> Result<Self, UriError> {
        let (scheme, authority, path) = split(text)?;
        let prefix = path.trim_end_matches('/');
        Ok(Self { scheme, authority: authority.into(), prefix: prefix.into() })
    }
}

serde_as_text!(ApiRoot);

/// The text is not an absolute `http` or `https` URI that an NF can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a valid http or https URI; an example is http://127.0.0.1:7777/namf-comm/v1/ue-contexts"
)]
pub struct UriError(String);

/// Splits an absolute URI into scheme, authority, and path with query. Rejects user information and fragments, which
/// SBI URIs do not have.
fn split(text: &str) -> Result<(Scheme, &str, &str), UriError> {
    let error = || UriError(text.chars().take(128).collect());
    let has_only_uri_characters = text.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&b));
    let (scheme, rest) = text.split_once("://").filter(|_| has_only_uri_characters).ok_or_else(error)?;
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Err(error()),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let has_valid_authority = !authority.is_empty() && !authority.contains('@');
    if has_valid_authority { Ok((scheme, authority, path)) } else { Err(error()) }
}

/// The URI of a resource or of a callback.
///
/// Parsing splits the URI's path into the apiRoot's prefix and the path of the API. The path of the API starts with
/// the API name, which is the segment before the first version segment (`v1`, `v2`, …): `/s3/namf-comm/v1/ue-contexts`
/// has the prefix `/s3`. A path without a version segment, such as that of another vendor's callback, has no prefix.
/// `Debug` masks subscriber identities.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uri {
    /// The apiRoot.
    pub root: Arc<ApiRoot>,
    /// Path and query: empty, or starts with a slash, or with `?` if the URI has only a query.
    pub path: Arc<str>,
}

serde_as_text!(Uri);

impl Uri {
    /// Joins an apiRoot and a path that starts with a slash.
    pub fn new(root: &Arc<ApiRoot>, path: &str) -> Self {
        Self { root: Arc::clone(root), path: path.into() }
    }

    /// The URI of a service consumer's callback: `{apiRoot}/n{nf}-callback/v1/{name}/{reference}`, with the NF type in lower
    /// case (`namf-callback`). The form is Pith's own: a producer uses a callback URI as received.
    pub fn callback(root: &Arc<ApiRoot>, consumer: &NfType, name: &str, reference: &str) -> Self {
        let nf = consumer.as_str().to_ascii_lowercase();
        let reference = crate::http::percent::segment(reference);
        Self::new(root, &format!("/n{nf}-callback/v1/{name}/{reference}"))
    }

    /// Resolves an absolute URI, or an absolute-path reference (RFC 3986 4.2: one leading slash) against the root's scheme
    /// and authority. Other relative references are rejected.
    pub fn resolve(root: &Arc<ApiRoot>, reference: &str) -> Result<Self, UriError> {
        if !reference.starts_with('/') {
            return reference.parse();
        }
        let absolute = format!("{}://{}{reference}", root.scheme.as_str(), root.authority);
        absolute.parse()
    }

    /// The last segment of the path without the query: the id of the resource, or a callback's reference.
    pub fn id(&self) -> &str {
        let path = self.path.split('?').next().unwrap_or_default();
        path.rsplit('/').next().unwrap_or_default()
    }

    /// The URI with a suffix appended to its path.
    pub fn join(&self, suffix: &str) -> Self {
        Self::new(&self.root, &format!("{}{suffix}", self.path))
    }

    /// NF type of the service consumer that provided this callback URI; `None` if the URI does not have the form of
    /// [`Uri::callback`].
    pub fn callback_consumer(&self) -> Option<NfType> {
        let api = self.path.strip_prefix("/n")?.split('/').next()?;
        let nf = api.strip_suffix("-callback")?;
        Some(NfType::from(nf.to_ascii_uppercase().as_str()))
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)?;
        f.write_str(&self.path)
    }
}

impl fmt::Debug for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked(&self.to_string()))
    }
}

impl FromStr for Uri {
    type Err = UriError;
    fn from_str(text: &str) -> Result<Self, UriError> {
        let (scheme, authority, path) = split(text)?;
        let (prefix, path) = path.split_at(api_start(path));
        let root = ApiRoot { scheme, authority: authority.into(), prefix: prefix.into() };
        Ok(Self { root: Arc::new(root), path: path.into() })
    }
}

/// The URI of a resource, or a relative reference to it, as received: not parsed and not resolved. `Debug` masks
/// subscriber identities.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ResourceUri(pub Arc<str>);

impl From<&str> for ResourceUri {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<Uri> for ResourceUri {
    fn from(uri: Uri) -> Self {
        Self(uri.to_string().into())
    }
}

impl fmt::Debug for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&masked(&self.0))
    }
}

/// Offset of `/{apiName}/v{number}` in a path; 0 if there is none.
pub(crate) fn api_start(path: &str) -> usize {
    let (path, _) = path.split_once('?').unwrap_or((path, ""));
    let slashes = path.match_indices('/').map(|(at, _)| at);
    let mut before = None;
    for slash in slashes {
        let segment = path[slash + 1..].split('/').next().unwrap_or_default();
        if let Some(start) = before.filter(|_| is_version(segment)) {
            return start;
        }
        before = Some(slash);
    }
    0
}

fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_splits_the_prefix_from_the_path_of_the_api() {
        let text = "http://127.0.0.1:7777/core/s3/nsmf-pdusession/v1/sm-contexts/12";
        let uri: Uri = text.parse().unwrap();
        assert_eq!(&*uri.root.prefix, "/core/s3");
        assert_eq!(&*uri.path, "/nsmf-pdusession/v1/sm-contexts/12");
        assert_eq!((uri.id(), uri.to_string()), ("12", text.into()));
    }

    #[test]
    fn a_callback_of_another_vendor_has_no_prefix_and_keeps_its_query() {
        let uri: Uri = "https://[::1]:8000/notify/a?x=1/v1".parse().unwrap();
        assert_eq!((&*uri.root.prefix, &*uri.path), ("", "/notify/a?x=1/v1"));
        assert_eq!((uri.id(), uri.callback_consumer()), ("a", None));
        let bare: Uri = "http://amf".parse().unwrap();
        assert_eq!((&*bare.path, bare.id()), ("", ""));
    }

    #[test]
    fn a_callback_uri_contains_the_consumers_nf_type_and_the_reference() {
        let root = Arc::new(ApiRoot::new(Scheme::Http, "h:1").with_prefix("/s0"));
        let uri = Uri::callback(&root, &NfType::Amf, "sm-context-status", "77-5");
        assert_eq!(uri.to_string(), "http://h:1/s0/namf-callback/v1/sm-context-status/77-5");
        assert_eq!(uri.to_string().parse(), Ok(uri.clone()));
        assert_eq!((uri.callback_consumer(), uri.id()), (Some(NfType::Amf), "77-5"));
    }

    #[test]
    fn an_absolute_path_reference_is_resolved_against_the_authority() {
        let root = Arc::new(ApiRoot::new(Scheme::Http, "h:1").with_prefix("/s0"));
        let uri = Uri::resolve(&root, "/s0/nudm-sdm/v2/imsi-1/sdm-subscriptions/9").unwrap();
        assert_eq!((&*uri.root, uri.id()), (&*root, "9"));
    }

    #[test]
    fn invalid_uris_are_rejected() {
        for bad in ["", "http://", "ftp://a/b", "http://u@h/", "http://h/a b", "h/x", "http://h/#f"] {
            assert!(bad.parse::<Uri>().is_err(), "{bad}");
        }
    }
}
