//! Random bytes as cyclictest's JSON.
#![no_main]

use punctual_bundle::import::{ImportFormat, ImportOptions, check};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let options = ImportOptions { format: Some(ImportFormat::CyclictestJson), ..ImportOptions::default() };
    let _ = check(bytes, &options);
});
