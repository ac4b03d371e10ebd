//! Every operation, out to HTTP and back; hostile input; and the OpenAPI files as witness.

mod examples;
mod hostile;
mod openapi;
mod round_trip;
