//! Random bytes as a systress configuration file.
#![no_main]

#[path = "../src/experiment.rs"]
mod experiment;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| experiment::check("fuzz.cfg", bytes));
