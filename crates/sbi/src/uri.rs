//! URIs of the SBI (TS 29.501 4.4): an apiRoot, which identifies the NF instance, and a path.

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

/// The root of an NF instance's services: scheme, authority and, if several instances share an authority, a
/// path prefix (TS 29.501 4.4.1 `apiRoot`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiRoot {
    /// URI scheme.
    pub scheme: Scheme,
    /// Host and port, such as `127.0.0.1:7777`.
    pub authority: Arc<str>,
    /// Path prefix: empty, or with a leading slash, such as `/amf/s3`.
    pub prefix: Arc<str>,
}

impl ApiRoot {
    /// An apiRoot without a prefix.
    pub fn new(scheme: Scheme, authority: &str) -> Self {
        Self { scheme, authority: authority.into(), prefix: "".into() }
    }

    /// The same apiRoot with a prefix, which is empty or has a leading slash.
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.into();
        self
    }
}

impl fmt::Display for ApiRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.authority, self.prefix)
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

/// A text is not a valid URI of an NF.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a URI such as http://127.0.0.1:7777/namf-comm/v1/ue-contexts")]
pub struct UriError(String);

/// Scheme, authority, and path with query.
fn split(text: &str) -> Result<(Scheme, &str, &str), UriError> {
    let error = || UriError(text.chars().take(128).collect());
    let visible = text.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&b));
    let (scheme, rest) = text.split_once("://").filter(|_| visible).ok_or_else(error)?;
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Err(error()),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let named = !authority.is_empty() && !authority.contains('@');
    if named { Ok((scheme, authority, path)) } else { Err(error()) }
}

/// A resource or a callback of an NF instance.
///
/// Parsing splits the path at the start of the API, which is the segment before the first version
/// (`…/namf-comm/v1/…`): the part before it is the apiRoot's prefix. A path without a version does not belong
/// to a known API and has no prefix. `Debug` hides identities.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uri {
    /// The apiRoot.
    pub root: Arc<ApiRoot>,
    /// Path: empty, or with a leading slash; includes the query, if any.
    pub path: Arc<str>,
}

serde_as_text!(Uri);

impl Uri {
    /// The URI of a path, which has a leading slash, at a root.
    pub fn new(root: &Arc<ApiRoot>, path: &str) -> Self {
        Self { root: Arc::clone(root), path: path.into() }
    }

    /// The URI of an NF's callback: `{apiRoot}/{nf}-callback/v1/{name}/{reference}`.
    pub fn callback(root: &Arc<ApiRoot>, consumer: &NfType, name: &str, reference: &str) -> Self {
        let nf = consumer.as_str().to_ascii_lowercase();
        let reference = crate::http::percent::segment(reference);
        Self::new(root, &format!("/n{nf}-callback/v1/{name}/{reference}"))
    }

    /// Resolves a relative or absolute reference (RFC 3986 4.2).
    pub fn resolve(root: &Arc<ApiRoot>, reference: &str) -> Result<Self, UriError> {
        if !reference.starts_with('/') {
            return reference.parse();
        }
        let absolute = format!("{}://{}{reference}", root.scheme.as_str(), root.authority);
        absolute.parse()
    }

    /// The last segment of the path: the id of the resource, or a callback's reference.
    pub fn id(&self) -> &str {
        let path = self.path.split('?').next().unwrap_or_default();
        path.rsplit('/').next().unwrap_or_default()
    }

    /// The URI with a suffix appended to its path.
    pub fn join(&self, suffix: &str) -> Self {
        Self::new(&self.root, &format!("{}{suffix}", self.path))
    }

    /// The NF that provided this callback, if it has the form of [`Uri::callback`].
    pub fn callback_consumer(&self) -> Option<NfType> {
        let api = self.path.strip_prefix("/n")?.split('/').next()?;
        let nf = api.strip_suffix("-callback")?;
        Some(NfType::from(nf.to_ascii_uppercase().as_str()))
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.root, self.path)
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

/// A resource by its URI, absolute or relative, as received; `Debug` hides identities.
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

/// Position of `/{apiName}/v{number}` in a path; 0 if there is none.
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
    fn a_uri_is_split_at_the_api_name() {
        let text = "http://127.0.0.1:7777/smf/s3/nsmf-pdusession/v1/sm-contexts/12";
        let uri: Uri = text.parse().unwrap();
        assert_eq!(&*uri.root.prefix, "/smf/s3");
        assert_eq!(&*uri.path, "/nsmf-pdusession/v1/sm-contexts/12");
        assert_eq!((uri.id(), uri.to_string()), ("12", text.into()));
    }

    #[test]
    fn a_foreign_callback_keeps_its_path_and_query() {
        let uri: Uri = "https://[::1]:8000/notify/a?x=1/v1".parse().unwrap();
        assert_eq!((&*uri.root.prefix, &*uri.path), ("", "/notify/a?x=1/v1"));
        assert_eq!((uri.id(), uri.callback_consumer()), ("a", None));
        let bare: Uri = "http://amf".parse().unwrap();
        assert_eq!((&*bare.path, bare.id()), ("", ""));
    }

    #[test]
    fn a_callback_uri_names_its_consumer_and_reference() {
        let root = Arc::new(ApiRoot::new(Scheme::Http, "h:1").with_prefix("/s0"));
        let uri = Uri::callback(&root, &NfType::Amf, "sm-context-status", "77-5");
        assert_eq!(uri.to_string(), "http://h:1/s0/namf-callback/v1/sm-context-status/77-5");
        assert_eq!(uri.to_string().parse(), Ok(uri.clone()));
        assert_eq!((uri.callback_consumer(), uri.id()), (Some(NfType::Amf), "77-5"));
    }

    #[test]
    fn a_relative_reference_is_resolved_at_the_authority() {
        let root = Arc::new(ApiRoot::new(Scheme::Http, "h:1").with_prefix("/s0"));
        let uri = Uri::resolve(&root, "/s0/nudm-sdm/v2/imsi-1/sdm-subscriptions/9").unwrap();
        assert_eq!((&*uri.root, uri.id()), (&*root, "9"));
    }

    #[test]
    fn uris_that_no_nf_can_have_are_refused() {
        for bad in ["", "http://", "ftp://a/b", "http://u@h/", "http://h/a b", "h/x", "http://h/#f"] {
            assert!(bad.parse::<Uri>().is_err(), "{bad}");
        }
    }
}
