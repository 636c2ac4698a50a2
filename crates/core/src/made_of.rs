//! The components of a run in virtual time.

use serde::{Deserialize, Serialize};

/// The files and settings of a run in virtual time: equal ones give an identical run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MadeOf {
    /// The SHA-256 of the kernel's image, in hexadecimal.
    pub kernel: String,
    /// The SHA-256 of the guest's initramfs with all programs.
    pub initramfs: String,
    /// The architecture of its processor in Debian's terms; none: amd64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    pub emulator: String,
    /// The SHA-256 of the archive passed to the guest when it was resumed from its saved boot; none
    /// if that is in the initramfs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    pub memory_mb: u32,
    /// The additions to the kernel's command line.
    pub command_line: String,
    /// The additions to QEMU's arguments.
    pub qemu_arguments: Vec<String>,
}
