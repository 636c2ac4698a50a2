//! All fuzz targets as one program: `$FUZZ_TARGET` selects one. See `fuzz/run`.
#![no_main]

use std::sync::LazyLock;

mod targets;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let found = targets::TARGETS.iter().find(|(name, _)| *name == wanted);
    found.unwrap_or_else(|| panic!("$FUZZ_TARGET is {wanted:?}, which is no target")).1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
