//! Random bytes as a systress configuration file.

pub fn fuzz(bytes: &[u8]) {
    super::experiment::check("fuzz.cfg", bytes);
}
