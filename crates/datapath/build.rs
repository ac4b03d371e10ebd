//! Compiles the BPF programs with clang. Without clang, Pith is built with empty programs, which the
//! datapath detects at its start (docs/adr/0011).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The fast path without and with NAT, the choice of TUN's queue, and the programs of the benchmarks.
const PROGRAMS: [&str; 4] = ["upf", "upf_nat", "steer", "bench"];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let target = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for program in PROGRAMS {
        let object = target.join(format!("{program}.o"));
        if let Err(reason) = compile(program, &object) {
            println!("cargo:warning=no XDP path in this build: {reason}");
            fs::write(&object, []).expect("OUT_DIR is writable");
        }
    }
}

fn compile(program: &str, object: &Path) -> Result<(), String> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let headers = env::var("DEP_BPF_INCLUDE").map_err(|_| "libbpf-sys provides no headers".to_owned())?;
    let machine = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    // The name in libbpf's headers.
    let define = if machine == "x86_64" { "-D__TARGET_ARCH_x86" } else { "-D__TARGET_ARCH_other" };
    let status = Command::new(&clang)
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror", define, "-I", &headers])
        // The path of <asm/types.h> in Debian and Ubuntu.
        .args(["-idirafter", &format!("/usr/include/{machine}-linux-gnu")])
        .args(["-c", &format!("bpf/{program}.bpf.c"), "-o"])
        .arg(object)
        .status()
        .map_err(|error| format!("{clang}: {error}"))?;
    status.success().then_some(()).ok_or(format!("{clang} failed"))
}
