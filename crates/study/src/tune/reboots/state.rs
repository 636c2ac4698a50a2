//! The progress of a tuning's boots, stored in its directory.

use crate::tune::directory::{TuneDirectory, TuningSpec};
use crate::tune::setting::Setting;
use punctual_bundle::tune::NotTried;
use punctual_session::exit::Failure;
use serde::{Deserialize, Serialize};

const STATE: &str = "reboots.json";
/// Boots with the same parameters that may fail to come up: one may be a power cut.
const TRIES: u32 = 2;

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RebootState {
    /// The number of requested boots.
    pub boots: u64,
    /// The last requested one, until its purpose is achieved.
    pub armed: Option<Armed>,
    /// Whether each parameter alone came up; first the untouched machine, by the empty name.
    pub trials: Vec<BootTrial>,
    /// Parameter sets with which the machine fell back to others.
    pub fallen: Vec<Fallen>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Armed {
    /// The number of the boot, as on its command line.
    pub boot: u64,
    /// The purpose of the boot.
    pub purpose: String,
    /// The boot in which it was requested.
    pub during: String,
    /// The boot in which it came up: another one with its number is not the requested one.
    #[serde(default)]
    pub came_up_in: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BootTrial {
    pub name: String,
    pub came_up: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fallen {
    pub names: Vec<String>,
    pub times: u32,
}

impl RebootState {
    /// # Errors
    /// The state cannot be read.
    pub fn read(directory: &TuneDirectory) -> Result<RebootState, Failure> {
        directory.store().read(STATE)
    }

    /// # Errors
    /// The state cannot be written.
    pub fn keep(&self, directory: &TuneDirectory) -> Result<(), Failure> {
        directory.store().write(STATE, self)
    }

    /// Forgets the requested boot: the next boot means nothing.
    ///
    /// # Errors
    /// The state cannot be written.
    pub fn forget(&mut self, directory: &TuneDirectory) -> Result<(), Failure> {
        self.armed = None;
        self.keep(directory)
    }

    /// The parameter to try alone next; empty for the untouched machine.
    pub(crate) fn next_trial(&self, spec: &TuningSpec) -> Option<Vec<String>> {
        match self.trials.len() {
            0 => Some(Vec::new()),
            tried => spec.settings.get(tried - 1).map(|setting| vec![setting.name.clone()]),
        }
    }

    /// The tuning with the parameters that came up alone.
    pub(crate) fn that_came_up(&self, spec: &TuningSpec) -> TuningSpec {
        let fell = |setting: &Setting| {
            self.trials.iter().any(|trial| trial.name == setting.name && !trial.came_up)
        };
        let mut spec = spec.clone();
        for setting in std::mem::take(&mut spec.settings) {
            match fell(&setting) {
                true => spec.left_out.push(NotTried {
                    name: setting.name,
                    why: "a boot with it did not come up, or came up without it".to_owned(),
                }),
                false => spec.settings.push(setting),
            }
        }
        spec
    }

    pub(crate) fn fell_again(&mut self, names: &[String]) {
        match self.fallen.iter_mut().find(|fallen| fallen.names == names) {
            Some(fallen) => fallen.times += 1,
            None => self.fallen.push(Fallen { names: names.to_vec(), times: 1 }),
        }
    }

    /// Whether these parameters are not tried any more.
    pub(crate) fn is_given_up(&self, names: &[String]) -> bool {
        self.fallen.iter().any(|fallen| fallen.names == names && fallen.times >= TRIES)
    }
}
