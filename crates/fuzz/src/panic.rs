//! Text and location of a panic.

use std::any::Any;
use std::cell::RefCell;
use std::panic;

thread_local! {
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Suppresses the printing of panics: they are reported with their input.
pub fn suppress_output() {
    panic::set_hook(Box::new(|info| {
        LAST.with(|last| *last.borrow_mut() = Some(info.to_string()));
    }));
}

/// The text of a panic that was caught on this thread.
pub fn what(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    LAST.with(|last| last.borrow_mut().take()).unwrap_or(text)
}
