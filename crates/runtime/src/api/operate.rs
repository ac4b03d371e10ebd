//! What operators do to those that live in the core.

use super::call::{Call, no_content};
use super::route::Handling;
use super::{Api, ApiError, Topic};
use pith_nf::kit::{Deregister, Order};
use pith_types::Supi;
use std::rc::Rc;

pub(super) fn deregister(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let supi: Supi = call.path_parameter()?;
        let order = Order::Deregister { supis: [supi.clone()].into(), why: Deregister::Anew };
        match api.gather.ask(Topic::Order(order)).await?.is_empty() {
            true => Err(ApiError::not_found(format!("{supi} is not registered here"))),
            false => Ok(no_content()),
        }
    })
}
