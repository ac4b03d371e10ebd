//! libc's functions that this library replaces.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Finds a function in the libraries loaded after this one, once.
pub(crate) fn next(cache: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = cache.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: `name` is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        std::process::abort(); // a libc without its basic functions
    }
    cache.store(found, Ordering::Relaxed);
    found
}

/// Calls libc's function of this name and signature with the arguments of these names.
macro_rules! real {
    ($name:ident($($argument:ident: $type:ty),*) -> $result:ty) => {{
        static CACHE: std::sync::atomic::AtomicPtr<std::ffi::c_void> =
            std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
        const NAME: &std::ffi::CStr =
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name without NUL"),
            };
        let found = $crate::real::next(&CACHE, NAME);
        // The signature is that of libc's function of this name.
        let function: unsafe extern "C-unwind" fn($($type),*) -> $result = std::mem::transmute(found);
        function($($argument),*)
    }};
}
pub(crate) use real;
