//! Operations: requests with their conversion to and from HTTP, and their possible responses.
//!
//! Each service lists its operations in a table, `operations!`, and its notifications in another,
//! `callbacks!`. A line has method and path, the operation's name in stage 2 (TS 23.502 5.2) and in the
//! OpenAPI file, the body, and the possible outcomes.

use crate::common::ServiceName;
use crate::http::{HttpRequest, Method};
use crate::response::Outcome;

/// Static properties of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationInfo {
    /// The service of the operation.
    pub service: ServiceName,
    /// Name in stage 2, such as `Nsmf_PDUSession_CreateSMContext`; several operations may share it.
    pub name: &'static str,
    /// `operationId` in the OpenAPI file, such as `PostSmContexts`, or the resource if there is none.
    pub operation_id: &'static str,
    /// HTTP method.
    pub method: Method,
    /// Possible successful outcomes.
    pub outcomes: &'static [Outcome],
}

/// The request of an operation.
pub(crate) trait Exchange {
    const INFO: &'static OperationInfo;
    fn to_http(&self) -> HttpRequest;
}

/// Defines the operations of a service: request types, their HTTP conversion, and their routing.
macro_rules! operations {
    (
        $service:ident $api:literal;
        $(
            $(#[$meta:meta])*
            $op:ident $name:literal $id:literal
            $method:ident [$($segment:tt),+]
            { $($path:ident: $path_type:ty),* }
            $(required { $($required:ident: $required_type:ty = $required_name:literal),+ $(,)? })?
            $(query { $($query:ident: $query_type:ty = $query_name:literal),+ $(,)? })?
            $(body $body:ty)?
            => [$($outcome:ident),+];
        )+
    ) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, PartialEq)]
            pub struct $op {
                $(#[doc = concat!("`", stringify!($path), "` of the path.")] pub $path: $path_type,)*
                $($(#[doc = concat!("Query parameter `", $required_name, "`.")]
                    pub $required: $required_type,)+)?
                $($(#[doc = concat!("Query parameter `", $query_name, "`.")]
                    pub $query: Option<$query_type>,)+)?
                $(#[doc = "Body."] pub body: $body,)?
            }

            impl crate::operation::Exchange for $op {
                const INFO: &'static crate::operation::OperationInfo = &crate::operation::OperationInfo {
                    service: crate::common::ServiceName::$service,
                    name: $name,
                    operation_id: $id,
                    method: crate::http::Method::$method,
                    outcomes: &[$(crate::response::Outcome::$outcome),+],
                };

                fn to_http(&self) -> crate::http::HttpRequest {
                    let mut http = crate::http::HttpRequest::new(crate::http::Method::$method, $api);
                    $(let $path = &self.$path;)*
                    $(http.segment(&$segment);)+
                    $($(http.parameter($required_name, &self.$required);)+)?
                    $($(http.optional($query_name, &self.$query);)+)?
                    $(http.content(<$body as crate::http::Body>::encode(&self.body));)?
                    http
                }
            }
        )+

        /// Parses a request to this service; `segments` follow its name and version.
        pub(crate) fn route(
            incoming: &crate::http::Incoming<'_>,
            segments: &[&str],
        ) -> crate::Result<crate::Request> {
            let mut allow = Vec::new();
            $(
                if let [$($segment),+] = segments {
                    if incoming.http.method == crate::http::Method::$method {
                        return Ok(crate::Request::from($op {
                            $($path: incoming.segment(stringify!($path), $path)?,)*
                            $($($required: incoming.query.required($required_name)?,)+)?
                            $($($query: incoming.query.optional($query_name)?,)+)?
                            $(body: incoming.body::<$body>()?,)?
                        }));
                    }
                    allow.push(crate::http::Method::$method);
                }
            )+
            Err(crate::http::no_operation(allow))
        }
    };
}
pub(crate) use operations;

/// Defines the notifications of a service, which are sent to their consumers' callback URIs.
macro_rules! callbacks {
    (
        $service:ident;
        $(
            $(#[$meta:meta])*
            $op:ident $name:literal $callback:literal $suffix:literal body $body:ty
            => [$($outcome:ident),+];
        )+
    ) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, PartialEq)]
            pub struct $op {
                /// The consumer's callback URI.
                pub uri: crate::uri::Uri,
                /// Body.
                pub body: $body,
            }

            impl $op {
                /// The URI that an NF provides for this notification. `reference` is chosen by the NF and
                /// returned by [`crate::Uri::id`].
                pub fn callback_uri(
                    root: &std::sync::Arc<crate::uri::ApiRoot>,
                    consumer: &crate::NfType,
                    reference: &str,
                ) -> crate::uri::Uri {
                    crate::uri::Uri::callback(root, consumer, $callback, reference)
                }
            }

            impl crate::operation::Exchange for $op {
                const INFO: &'static crate::operation::OperationInfo = &crate::operation::OperationInfo {
                    service: crate::common::ServiceName::$service,
                    name: $name,
                    operation_id: $callback,
                    method: crate::http::Method::Post,
                    outcomes: &[$(crate::response::Outcome::$outcome),+],
                };

                fn to_http(&self) -> crate::http::HttpRequest {
                    let (path, query) = self.uri.path.split_once('?').unwrap_or((&self.uri.path, ""));
                    let path = format!("{path}{}", $suffix);
                    let mut http = crate::http::HttpRequest::new(crate::http::Method::Post, &path);
                    http.query = query.to_owned();
                    http.content(<$body as crate::http::Body>::encode(&self.body));
                    http
                }
            }
        )+

        /// Parses a notification of this service; `None` if it has none with this name.
        pub(crate) fn route_callback(
            incoming: &crate::http::Incoming<'_>,
            callback: &str,
            suffix: &str,
        ) -> Option<crate::Result<crate::Request>> {
            $(
                if callback == $callback && suffix == $suffix {
                    return Some(incoming.callback(suffix).and_then(|uri| {
                        Ok(crate::Request::from($op { uri, body: incoming.body::<$body>()? }))
                    }));
                }
            )+
            None
        }
    };
}
pub(crate) use callbacks;
