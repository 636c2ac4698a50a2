//! The request of a search: options, or a hunt file (docs/hunt.md). It is stored in the search's
//! directory, from which the search is resumed.

use punctual_core::Nanos;
use punctual_session::exit::Failure;
use punctual_session::messages::shown;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// A hunt file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HuntSpec {
    /// The kernel to search.
    pub kernel: String,
    /// Additional words of its command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cmdline: String,
    /// Memory of the virtual machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Own kernel modules, as in `[target]` of an experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<String>,
    /// Kernels on which the findings are measured, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
    /// How long to start new trials.
    #[serde(default = "half_an_hour")]
    pub budget: String,
    /// The maximum number of trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trials: Option<usize>,
    /// How long a trial measures in virtual time; shorter and longer ones are fractions of it.
    #[serde(default = "a_second")]
    pub duration: String,
    /// The run time of a trial's virtual machine on this machine after which it counts as hung.
    #[serde(default = "five_minutes")]
    pub timeout: String,
    /// The seed of the order of trials.
    #[serde(default = "one")]
    pub seed: u32,
    /// How inputs are chosen.
    #[serde(default, skip_serializing_if = "Strategy::is_search")]
    pub strategy: Strategy,
    /// The stressors of stress-ng; default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stressors: Option<Vec<String>>,
    /// Requirements on all findings: `max < 20000 instructions`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<String>,
    /// The measure, as in an experiment; default: a timer of 1 ms.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub measure: toml::Table,
    /// Loads in addition to the stressors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<OwnLoad>,
}

/// A load of the hunt file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnLoad {
    pub name: String,
    pub command: String,
    /// Additional words to try; it is tried without them, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<String>,
}

/// How inputs are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// By the results so far.
    #[default]
    Search,
    /// Uniformly, independent of results: for comparison.
    Random,
}

impl Strategy {
    fn is_search(&self) -> bool {
        *self == Strategy::Search
    }
}

fn half_an_hour() -> String {
    "30min".to_owned()
}

fn five_minutes() -> String {
    "300s".to_owned()
}

fn a_second() -> String {
    "1s".to_owned()
}

const fn one() -> u32 {
    1
}

impl HuntSpec {
    pub fn of_kernel(kernel: &str) -> HuntSpec {
        HuntSpec {
            kernel: kernel.to_owned(),
            cmdline: String::new(),
            memory: None,
            drivers: Vec::new(),
            against: Vec::new(),
            budget: half_an_hour(),
            trials: None,
            duration: a_second(),
            timeout: five_minutes(),
            seed: one(),
            strategy: Strategy::Search,
            stressors: None,
            require: Vec::new(),
            measure: toml::Table::new(),
            load: Vec::new(),
        }
    }

    /// A hunt file.
    ///
    /// # Errors
    /// The file cannot be read, or contains an error.
    pub fn read(path: &Path) -> Result<HuntSpec, Failure> {
        let refused = |why: &dyn std::fmt::Display| {
            Failure::refused(format!("cannot read {}: {why}", shown(path)))
        };
        let text = fs::read_to_string(path).map_err(|why| refused(&why))?;
        let mut spec: HuntSpec = toml::from_str(&text).map_err(|why| refused(&why))?;
        // Absolute, so that findings can be run again from anywhere.
        for driver in &mut spec.drivers {
            let whole = std::path::absolute(&*driver).map_err(|why| refused(&why))?;
            *driver = whole.to_string_lossy().into_owned();
        }
        Ok(spec)
    }

    pub fn text(&self) -> Result<String, Failure> {
        toml::to_string(self).map_err(Failure::failed)
    }

    /// How long to start new trials.
    pub fn budget(&self) -> Result<Nanos, Failure> {
        positive("budget", &self.budget)
    }

    /// How long a trial measures.
    pub fn duration(&self) -> Result<Nanos, Failure> {
        positive("duration", &self.duration)
    }
}

fn positive(key: &str, text: &str) -> Result<Nanos, Failure> {
    match text.parse::<Nanos>() {
        Ok(time) if time > Nanos::ZERO => Ok(time),
        Ok(_) => Err(Failure::refused(format!("{key}: {text} is not a duration"))),
        Err(why) => Err(Failure::refused(format!("{key}: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hunt_file_is_parsed_and_printed_unchanged() {
        let text = "kernel = \"6.1\"\nagainst = [\"6.12\"]\nbudget = \"10min\"\nrequire = [\"max < \
                    20000 instructions\"]\n[measure]\nkind = \"irq\"\n[[load]]\nname = \
                    \"own\"\ncommand = \"sh -c true\"\n";
        let spec: HuntSpec = toml::from_str(text).expect("a hunt file");
        assert_eq!(spec.against, ["6.12"]);
        assert_eq!(spec.budget().map(|b| b.ns()).ok(), Some(600_000_000_000));
        assert_eq!(spec.load[0].name, "own");
        let again: HuntSpec = toml::from_str(&spec.text().expect("text")).expect("a hunt file");
        assert_eq!(again, spec);
        assert!(toml::from_str::<HuntSpec>("kernel = \"6.1\"\nbudgte = \"1s\"").is_err());
        assert!(HuntSpec { budget: "0s".into(), ..spec }.budget().is_err());
    }
}
