//! `pith shard list|move`.

use crate::args::{BlockRange, Cli, ShardCommand};
use crate::list::{self, SHARDS};
use crate::operator::ManagementClient;
use anyhow::{Result, bail};
use serde_json::json;

/// Runs a command on shards.
pub fn run(command: &ShardCommand, cli: &Cli) -> Result<()> {
    match command {
        ShardCommand::List { nf } => list::run_at(&SHARDS, nf, cli),
        ShardCommand::Move { blocks, to, nf } => move_blocks(*blocks, *to, nf, cli),
    }
}

/// Moves blocks, one after another. A block that stays where it is does not keep the others.
fn move_blocks(blocks: BlockRange, to: u8, nf: &str, cli: &Cli) -> Result<()> {
    let client = ManagementClient::of_running_core(cli, Some(nf))?;
    let (mut moved, mut stayed) = (Vec::new(), Vec::new());
    for block in blocks.first..=blocks.last {
        let block = format!("{block:x}");
        match client.put(&format!("/v1/shards/{to}/blocks/{block}"), "application/json", Default::default()) {
            Ok(_) => moved.push(block),
            Err(error) => stayed.push((block, format!("{error:#}"))),
        }
    }
    if cli.json {
        let list: Vec<_> = stayed.iter().map(|(block, why)| json!({ "block": block, "why": why })).collect();
        println!("{}", json!({ "shard": to, "moved": moved, "stayed": list }));
    } else {
        let noun = if moved.len() == 1 { "block is" } else { "blocks are" };
        println!("{} {noun} on shard {to} now", moved.len());
        stayed.iter().for_each(|(block, why)| println!("block {block} stays: {why}"));
    }
    if moved.is_empty() {
        bail!("no block was moved");
    }
    Ok(())
}
