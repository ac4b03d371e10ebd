//! Every operation, out to HTTP and back; hostile input; what logs may show; and the OpenAPI files as witness.

mod examples;
mod hostile;
mod openapi;
mod privacy;
mod round_trip;
#[path = "../../../../tests/skipped.rs"]
mod skipped;
