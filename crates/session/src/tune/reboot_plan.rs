//! How a tuning across reboots boots this machine: what is decided once, when it begins.

use punctual_core::Nanos;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a boot is taken to last before the programs run, where nothing is measured yet.
const BOOT: Nanos = Nanos::from_secs(60);

/// What is decided once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RebootPlan {
    /// Blocks that are measured in one boot. What they share of it (where the kernel lies, which
    /// memory was given to whom) makes them one observation together.
    pub blocks: u32,
    /// How long after the boot nothing is measured: services start, and memory is in motion.
    pub settle: Nanos,
    pub loader: Loader,
    /// Whether there is a hardware watchdog, which ends a hang.
    pub watchdog: bool,
    /// The directory in which the tuning was begun: an experiment may name files by it.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
}

/// What boots the kernel, and with which words for one time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// GRUB 2, with its configuration in this directory; `body` is the entry that was booted,
    /// without its title.
    Grub { directory: String, body: String },
    /// systemd-boot, with `loader/entries` in this directory; `body` is the entry that was booted.
    SystemdBoot { directory: String, body: String },
    /// A guest whose harness boots it again with the words that it finds in this file, as
    /// `punctual.reboots=` on the command line says.
    Harness { file: String },
}

impl RebootPlan {
    /// How long one observation takes, of blocks that measure so long.
    pub fn observation(&self, block: Nanos) -> Nanos {
        BOOT + self.settle + Nanos(block.ns().saturating_mul(i64::from(self.blocks)))
    }

    /// What is added to the command line of every boot of the tuning, also of the untouched
    /// machine: so that all differ by what is tried alone.
    pub fn words(&self, boot: u64, tried: &str) -> String {
        let watchdog = if self.watchdog { WATCHDOG } else { "" };
        let tried = if tried.is_empty() { String::new() } else { format!(" {tried}") };
        format!("{PANIC}{watchdog} {MARK}{boot}{tried}")
    }
}

/// A kernel that panics boots again after 10 s, and then the usual entry.
const PANIC: &str = "panic=10";
/// systemd arms the hardware watchdog when it starts (systemd(1), kernel command line).
const WATCHDOG: &str = " systemd.watchdog_sec=60";
/// Which boot of a tuning this is. The kernel ignores parameters of modules that it does not have,
/// and does not hand words with a dot to init (init/main.c, `unknown_bootoption`).
const MARK: &str = "punctual.tune=";

/// Whether a command line is that of this boot, with all of these words.
pub fn is_boot(cmdline: &str, boot: u64, tried: &str) -> bool {
    let mark = format!("{MARK}{boot}");
    let mut wanted = tried.split_whitespace().chain([mark.as_str()]);
    wanted.all(|word| cmdline.split_whitespace().any(|there| there == word))
}

/// Whether a command line is that of any boot of a tuning.
pub fn is_tuning(cmdline: &str) -> bool {
    cmdline.split_whitespace().any(|word| word.starts_with(MARK))
}
