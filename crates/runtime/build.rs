//! Links usrsctp, the user-space SCTP stack behind `sctp::user`.
//!
//! The static library is preferred, so that the binary needs no other file on the host.
//! `PITH_USRSCTP=dynamic` selects the shared library (a `cdylib` needs it: Debian's archive is not position
//! independent), and `PITH_USRSCTP_DIR` names a directory that holds either.

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PITH_USRSCTP");
    println!("cargo:rerun-if-env-changed=PITH_USRSCTP_DIR");

    let dynamic = env::var("PITH_USRSCTP").is_ok_and(|v| v == "dynamic");
    let (file, kind) = if dynamic { ("libusrsctp.so", "dylib") } else { ("libusrsctp.a", "static") };
    match directories().into_iter().find(|d| d.join(file).exists()) {
        Some(directory) => {
            println!("cargo:rustc-link-search=native={}", directory.display());
            println!("cargo:rustc-link-lib={kind}=usrsctp");
        }
        None => panic!("{file} not found: apt-get install libusrsctp-dev, or set PITH_USRSCTP_DIR"),
    }
}

fn directories() -> Vec<PathBuf> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let multiarch = format!("/usr/lib/{arch}-linux-gnu");
    let named = env::var("PITH_USRSCTP_DIR").ok().map(PathBuf::from);
    let usual =
        [multiarch.as_str(), "/usr/local/lib", "/usr/lib64", "/usr/lib"].map(|d| Path::new(d).to_path_buf());
    named.into_iter().chain(usual).collect()
}
