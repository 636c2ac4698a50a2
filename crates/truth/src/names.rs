//! The names of threads and devices, the same in all processes.

/// The priority of the measured thread.
pub const PRIORITY: u8 = 80;
/// The device of the kernel module (truth/module).
pub const DEVICE: &str = "/dev/punctual-truth";
/// The name of the injecting thread.
pub const CULPRIT: &str = "truth-culprit";
/// The thread between the subject and the culprit.
pub const HOLDER: &str = "truth-holder";
/// A measuring thread of `punctual run`.
pub const MEASURING: &str = "measure";
