//! Random bytes as the JSON of each tool.
use punctual_bundle::import::{ImportOptions, Tool, check_input};

pub fn fuzz(bytes: &[u8]) {
    for from in [None, Some(Tool::Cyclictest), Some(Tool::Oslat), Some(Tool::Cyclicdeadline)] {
        let _ = check_input(bytes, &ImportOptions { from, ..ImportOptions::default() });
    }
}
