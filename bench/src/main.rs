//! Side by side.
fn main() {}
