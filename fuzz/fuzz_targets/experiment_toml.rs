//! Random bytes as a TOML experiment file.
#![no_main]

#[path = "../src/experiment.rs"]
mod experiment;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| experiment::check("fuzz.toml", bytes));
