//! Debian's `libusrsctp.a` is not position independent: its references to its own data have to be bound here, not
//! left to the dynamic linker, which `-Bsymbolic` does (and `in6addr_any`, libc's, is defined in `abi.rs`).

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
