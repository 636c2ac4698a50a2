//! Random bytes as a TOML experiment file.

pub fn fuzz(bytes: &[u8]) {
    crate::experiment::check("fuzz.toml", bytes);
}
