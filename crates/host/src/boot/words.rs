//! The kernel and the command line of a trial.

use super::BootError;
use serde::{Deserialize, Serialize};

/// A boot that is tried once.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Trial {
    /// The release of an installed kernel; `None`: that of the usual boot.
    #[serde(default)]
    pub kernel: Option<String>,
    /// Words added to the usual command line.
    #[serde(default)]
    pub add: String,
    /// Parameters taken from it, by name: `quiet`, or `isolcpus` with any value.
    #[serde(default)]
    pub remove: Vec<String>,
}

/// The number of a trial on its command line. The kernel ignores parameters of unknown modules, and
/// does not pass words with a dot to init (init/main.c, `unknown_bootoption`).
pub const MARK: &str = "punctual.boot=";

/// Whether a command line is that of a trial of `punctual boot`.
pub(super) fn is_trial(cmdline: &str) -> bool {
    cmdline.split_whitespace().any(|word| word.starts_with(MARK))
}

/// The mark of the trial that is requested in this boot.
pub(super) fn trial_mark(boot_id: &str) -> String {
    let id: String = boot_id.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    format!("{MARK}{id}")
}

impl Trial {
    /// Checks that no part of it has a special meaning to boot loaders, whose configurations are
    /// scripts.
    pub(super) fn check_words(&self) -> Result<(), BootError> {
        let plain = |text: &str| {
            text.chars().all(|c| c.is_ascii_alphanumeric() || " =.,_-:/@+".contains(c))
        };
        let is_name = |name: &str| {
            !name.is_empty() && plain(name) && !name.contains([' ', '/']) && name != ".."
        };
        // Words after `--` are init's.
        let has_end = self.add.split_whitespace().any(|word| word == "--");
        let names = || self.remove.iter().map(String::as_str).chain(self.kernel.as_deref());
        match plain(&self.add) && !has_end && names().all(is_name) {
            true => Ok(()),
            false => {
                let refused_words: Vec<&str> =
                    [self.add.as_str()].into_iter().chain(names()).collect();
                let words = punctual_core::format::escape_unsafe(&refused_words.join(" "));
                Err(BootError::Refused(format!("`{words}` cannot be part of a boot entry")))
            }
        }
    }

    /// Whether a word of the usual command line stays.
    fn keeps_word(&self, word: &str) -> bool {
        let name = word.split('=').next().unwrap_or_default();
        !self.remove.iter().any(|removed| removed == word || removed == name)
    }

    /// A line without the removed words, whose other parts stay as they are.
    pub(super) fn without_removed(&self, line: &str) -> String {
        let parts = line.split_inclusive(char::is_whitespace);
        let kept: String = parts.filter(|part| self.keeps_word(part.trim_end())).collect();
        kept.trim_end().to_owned()
    }

    /// The usual command line with its changes.
    pub(super) fn apply_to(&self, usual: &str) -> String {
        format!("{} {}", self.without_removed(usual.trim()), self.add).trim().to_owned()
    }

    /// The words that a command line lacks or should not have, each with what is wrong.
    pub(super) fn list_differences(&self, cmdline: &str) -> Vec<String> {
        let present_words: Vec<&str> = cmdline.split_whitespace().collect();
        let missing = self.add.split_whitespace().filter(|word| !present_words.contains(word));
        let added: Vec<&str> = self.add.split_whitespace().collect();
        let kept =
            present_words.iter().filter(|word| !self.keeps_word(word) && !added.contains(word));
        missing
            .map(|word| format!("the command line has no {word}"))
            .chain(kept.map(|word| format!("the command line still has {word}")))
            .collect()
    }
}
