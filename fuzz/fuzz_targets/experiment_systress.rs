//! Random bytes as a systress configuration file.

pub fn fuzz(bytes: &[u8]) {
    crate::experiment::check("fuzz.cfg", bytes);
}
