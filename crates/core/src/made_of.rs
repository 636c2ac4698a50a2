//! What a run in virtual time was made of.

use serde::{Deserialize, Serialize};

/// The files and settings of a run in virtual time: the same are the same run, to the last digit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MadeOf {
    /// The kernel's image, by its SHA-256 in hexadecimal digits.
    pub kernel: String,
    /// The guest's first file system with all programs, by its SHA-256.
    pub initramfs: String,
    /// The architecture of its processor, as Debian calls it; none: amd64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    pub emulator: String,
    /// What it was given when it went on from its saved boot, by the SHA-256 of the archive; none
    /// where that is in the first file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    pub memory_mb: u32,
    /// What was added to the kernel's command line.
    pub command_line: String,
    /// What was added to QEMU's arguments.
    pub qemu_arguments: Vec<String>,
}
