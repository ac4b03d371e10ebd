//! pith: the core and the operator's commands.
fn main() {}
