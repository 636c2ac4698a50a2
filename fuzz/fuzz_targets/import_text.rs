//! Random bytes as the text of each tool, which its content names.
#![no_main]

use punctual_bundle::import::{ImportOptions, Tool, check};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for from in [None, Some(Tool::Sigwaittest)] {
        let _ = check(bytes, &ImportOptions { from, ..ImportOptions::default() });
    }
});
