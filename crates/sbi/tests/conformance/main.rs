//! Tests of every operation: conversion to HTTP and back, hostile input, privacy of logs, and validation
//! against the OpenAPI files.

mod examples;
mod hostile;
mod openapi;
mod privacy;
mod round_trip;
#[path = "../../../../tests/skipped.rs"]
mod skipped;
