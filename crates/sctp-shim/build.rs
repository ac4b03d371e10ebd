//! Debian's `libusrsctp.a` is not position independent: `-Bsymbolic` binds its references to its own data at
//! link time (and `in6addr_any`, libc's, is defined in `abi.rs`).

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
