//! How a tuning across reboots boots this machine: decided once, when it begins.

use punctual_core::Nanos;
use punctual_host::boot::Loader;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The assumed length of a boot until the programs run, before one is measured.
const BOOT: Nanos = Nanos::from_secs(60);

/// The choices made at the beginning.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RebootPlan {
    /// Blocks per boot. Their common conditions (kernel placement, memory layout) make them one
    /// observation.
    pub blocks: u32,
    /// Time after the boot without measuring: services start, and memory is in motion.
    pub settle: Nanos,
    pub loader: Loader,
    /// Whether a hardware watchdog ends a hang.
    pub watchdog: bool,
    /// The directory in which the tuning was begun: an experiment may name files relative to it.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
}

impl RebootPlan {
    /// The time of one observation with blocks of this length.
    pub fn observation(&self, block: Nanos) -> Nanos {
        BOOT + self.settle + Nanos(block.ns().saturating_mul(i64::from(self.blocks)))
    }

    /// The words for the command line of every boot of the tuning, also of the untouched machine:
    /// so that boots differ only by the tried parameters.
    pub fn words(&self, boot: u64, tried: &str) -> String {
        let watchdog = if self.watchdog { WATCHDOG } else { "" };
        let tried = if tried.is_empty() { String::new() } else { format!(" {tried}") };
        format!("{PANIC}{watchdog} {MARK}{boot}{tried}")
    }
}

/// A kernel that panics reboots after 10 s, then into the usual entry.
const PANIC: &str = "panic=10";
/// systemd arms the hardware watchdog when it starts (systemd(1), kernel command line).
const WATCHDOG: &str = " systemd.watchdog_sec=60";
/// The number of this boot in the tuning. The kernel ignores parameters of unknown modules, and
/// does not pass words with a dot to init (init/main.c, `unknown_bootoption`).
const MARK: &str = "punctual.tune=";

/// Whether a command line is that of this boot, with all of these words.
pub(crate) fn is_boot(cmdline: &str, boot: u64, tried: &str) -> bool {
    let mark = format!("{MARK}{boot}");
    let mut wanted = tried.split_whitespace().chain([mark.as_str()]);
    wanted.all(|word| cmdline.split_whitespace().any(|there| there == word))
}

/// Whether a command line is that of any boot of a tuning.
pub(crate) fn is_tuning(cmdline: &str) -> bool {
    cmdline.split_whitespace().any(|word| word.starts_with(MARK))
}
