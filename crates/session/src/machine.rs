//! The identity of this machine.

/// The machine's name, as in uname(2), without a system call of our own; empty if unreadable.
pub fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().replace('/', "_")
}
