//! Which machine this is.

/// Its name, as in uname(2), without a call of our own; empty where it cannot be read.
pub fn name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().replace('/', "_")
}
