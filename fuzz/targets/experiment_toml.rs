//! Random bytes as a TOML experiment file.

pub fn fuzz(bytes: &[u8]) {
    super::experiment::check("fuzz.toml", bytes);
}
