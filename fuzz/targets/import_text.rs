//! Random bytes as the text of each tool, detected by its content.
use punctual_bundle::import::{ImportOptions, Tool, check_input};

pub fn fuzz(bytes: &[u8]) {
    for from in [None, Some(Tool::Cyclicdeadline)] {
        let _ = check_input(bytes, &ImportOptions { from, ..ImportOptions::default() });
    }
}
