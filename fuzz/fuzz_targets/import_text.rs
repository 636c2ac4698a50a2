//! Random bytes as the text of each tool, which its content names.
use punctual_bundle::import::{ImportOptions, Tool, check};

pub fn fuzz(bytes: &[u8]) {
    for from in [None, Some(Tool::Sigwaittest)] {
        let _ = check(bytes, &ImportOptions { from, ..ImportOptions::default() });
    }
}
