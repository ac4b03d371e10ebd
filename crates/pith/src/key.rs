//! `pith key`.

use crate::args::KeyCommand;
use anyhow::Result;
use pith_runtime::keys;
use serde_json::json;

/// Runs a command on home network keys.
pub fn run(command: &KeyCommand, json: bool) -> Result<()> {
    let KeyCommand::New { profile, file } = command;
    let public = keys::generate(file, *profile)?;
    let public: String = public.as_bytes().iter().map(|octet| format!("{octet:02x}")).collect();
    if json {
        println!(
            "{}",
            json!({ "profile": profile.to_string(), "privateKeyFile": file, "publicKey": public })
        );
    } else {
        println!("private key  {} (keep it secret)", file.display());
        println!("public key   {public}");
        println!("\nConfiguration:\nhome_network_keys:");
        println!("  - {{id: 1, profile: {profile}, private_key_file: {}}}", file.display());
    }
    Ok(())
}
