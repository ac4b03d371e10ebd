//! Shards and their blocks of ids.

use super::call::{Call, json};
use super::route::Handling;
use super::{Api, ApiError, Topic};
use hyper::StatusCode;
use pith_types::{BlockId, ShardId};
use serde_json::Value;
use std::rc::Rc;

pub(super) fn list(api: Rc<Api>, _call: Call) -> Handling {
    Box::pin(async move {
        let mut shards = api.gather.inspect(Topic::Shards).await?.list;
        shards.sort_by_key(|shard| shard["shard"].as_u64());
        json(StatusCode::OK, &shards)
    })
}

/// Moves a block, and answers when its UEs are served by the other shard.
pub(super) fn move_block(api: Rc<Api>, call: Call) -> Handling {
    Box::pin(async move {
        let to = call.path.first().and_then(|shard| shard.parse().ok()).map(ShardId);
        let to = to.ok_or_else(|| ApiError::bad_request("a shard is a number, 0 to 63"))?;
        let number = call.path.get(1).and_then(|block| u16::from_str_radix(block, 16).ok());
        let block = number.and_then(BlockId::new).ok_or_else(|| {
            ApiError::bad_request("a block is a hexadecimal number, 0 to 3ff: 'pith shard list' shows them")
        })?;
        let done = api.gather.collect(Topic::Move { block, to }).await?;
        let Some(entry) = done.list.first() else {
            return Err(ApiError::not_found("this process has no shards"));
        };
        match entry.get("refusal").and_then(Value::as_str) {
            Some(why) => Err(ApiError { status: StatusCode::CONFLICT, detail: why.into() }),
            None => json(StatusCode::OK, &serde_json::json!({ "block": block.to_string(), "shard": to.0 })),
        }
    })
}
