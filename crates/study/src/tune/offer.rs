//! The settings that this machine offers: the unsatisfied rules of `check` with a fix at run time,
//! and the tweaks of `isolate`, as far as they would change something.

use super::setting::{OF_ISOLATE, Setting, traits_of_setting};
use punctual_bundle::tune::NotTried;
use punctual_core::CpuSet;
use punctual_core::words::{format_suggestion, nearest_word};
use punctual_host::check::{self, Context, RuleResult, RuleVerdict};
use punctual_host::files::Files;
use punctual_host::isolate::tweaks::{self, Draft, Tweak};
use punctual_host::isolate::{MachineSplit, PartitionRequest, TargetCpus};
use punctual_host::journal::record::KernelWrite;
use punctual_host::journal::value::{is_same_value, normalize_value};
use punctual_session::exit::Failure;
use serde::{Deserialize, Serialize};

/// The settings to try, and those that are not tried.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Offer {
    pub settings: Vec<Setting>,
    /// The omitted settings, with reasons.
    pub left_out: Vec<NotTried>,
}

/// The selection of settings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SettingChoice {
    /// Only these; empty: all.
    pub only: Vec<String>,
    pub without: Vec<String>,
}

/// The machine's offer to keep these CPUs free; without CPUs, settings of no CPU in particular.
pub(crate) fn offer_settings(files: &dyn Files, cpus: Option<&CpuSet>) -> Offer {
    let mut offer = Offer::default();
    let context = Context::new(files, cpus.cloned());
    for result in check::evaluate_all(&context) {
        if !matches!(result.verdict, RuleVerdict::Ok | RuleVerdict::Unknown)
            && !result.writes.is_empty()
        {
            let setting = of_rule(files, result);
            offer.add(setting);
        }
    }
    let request = cpus.map(|cpus| PartitionRequest::new(TargetCpus::Cpus(cpus.clone())));
    match request.map(|request| MachineSplit::survey_machine(files, &request)) {
        Some(Ok(machine)) => {
            let kept = |tweak: &&Tweak| {
                // These tweaks are parts of a partition, which a tuning does not make.
                ![tweaks::LOAD_BALANCE, tweaks::REPLUG].contains(&tweak.name)
            };
            tweaks::all_tweaks()
                .filter(kept)
                .for_each(|tweak| offer.add_tweak(files, &machine, tweak));
        }
        Some(Err(why)) => offer.leave_out("settings of isolate", why.to_string()),
        None => {
            let reason = "they keep CPUs free, and no CPU is left beside those that are measured: \
                       name some with --cpus";
            offer.leave_out("settings of isolate", reason.to_owned());
        }
    }
    offer
}

fn of_rule(files: &dyn Files, result: RuleResult) -> Setting {
    let write = |write: check::FixWrite| {
        let old = files.read(&write.path).map(|text| normalize_value(&text)).unwrap_or_default();
        KernelWrite::new(&write.path, old, &write.value)
    };
    Setting {
        writes: result.writes.into_iter().map(write).collect(),
        name: result.id,
        why: result.why,
        source: result.source,
        boot: String::new(),
    }
}

impl Offer {
    fn leave_out(&mut self, name: &str, why: String) {
        self.left_out.push(NotTried { name: name.to_owned(), why });
    }

    /// Adds a setting, merging equal ones. CPUs that share a clock share its file: it is written
    /// once.
    fn add(&mut self, mut setting: Setting) {
        let mut known_writes: Vec<(String, String)> = Vec::new();
        setting.writes.retain(|write| {
            let one = (write.path.clone(), write.new.clone());
            let is_new = !is_same_value(&write.old, &write.new) && !known_writes.contains(&one);
            known_writes.push(one);
            is_new
        });
        if setting.writes.is_empty() {
            return;
        }
        let does_same = |other: &Setting| {
            let written = |write: &KernelWrite| {
                other
                    .writes
                    .iter()
                    .any(|of| of.path == write.path && is_same_value(&of.new, &write.new))
            };
            setting.writes.len() == other.writes.len() && setting.writes.iter().all(written)
        };
        match self.settings.iter().position(does_same) {
            // The writes drafted by isolate can be reverted step by step.
            Some(place) if self.settings[place].name == setting.name => {
                self.settings[place].writes = setting.writes;
            }
            Some(place) => {
                let reason = format!("the same as {}", self.settings[place].name);
                self.leave_out(&setting.name.clone(), reason);
            }
            None => {
                // A rule and a tweak of one name with different values are two settings.
                if self.settings.iter().any(|other| other.name == setting.name) {
                    setting.name = format!("{OF_ISOLATE}{}", setting.name);
                }
                self.settings.push(setting);
            }
        }
    }

    fn add_tweak(&mut self, files: &dyn Files, machine: &MachineSplit, tweak: &Tweak) {
        let mut draft = Draft::default();
        if let Err(why) = (tweak.settings)(files, machine, &mut draft) {
            return self.leave_out(tweak.name, why);
        }
        let writes: Vec<KernelWrite> = draft.writes.into_iter().map(|(_, write)| write).collect();
        if writes.is_empty() {
            let skip_reason = draft.skipped.first().cloned();
            let reason = skip_reason.unwrap_or_else(|| "it is so already".to_owned());
            return self.leave_out(tweak.name, reason);
        }
        self.add(Setting {
            name: tweak.name.to_owned(),
            why: tweak.doc.to_owned(),
            source: tweak.source.to_owned(),
            writes,
            boot: String::new(),
        });
    }

    /// Applies the selection.
    ///
    /// # Errors
    /// A name is not a setting here.
    pub fn apply_choice(&mut self, choice: &SettingChoice) -> Result<(), Failure> {
        for name in choice.only.iter().chain(&choice.without) {
            if self.settings.iter().any(|setting| setting.name == *name) {
                continue;
            }
            let omitted_setting = self.left_out.iter().find(|left| left.name == *name);
            let reason = match omitted_setting {
                Some(left) => format!("it is left out: {}", left.why),
                None => {
                    let names = self.settings.iter().map(|setting| setting.name.as_str());
                    let near = format_suggestion(nearest_word(name, names));
                    format!("this machine offers no such setting{near}")
                }
            };
            return Err(Failure::refused(format!(
                "`{name}` cannot be tried: {reason}\nhelp: `punctual tune --list` shows what \
                 there is"
            )));
        }
        let SettingChoice { only, without } = choice;
        let mut kept = Vec::new();
        for setting in std::mem::take(&mut self.settings) {
            let name = setting.name.clone();
            if without.contains(&name) {
                self.leave_out(&name, "--without".to_owned());
            } else if !only.is_empty() && !only.contains(&name) {
                self.leave_out(&name, "not named by --only".to_owned());
            } else if only.is_empty() && traits_of_setting(&name).only_named {
                let reason = "it takes a protection away: tried only where --only names it";
                self.leave_out(&name, reason.to_owned());
            } else {
                kept.push(setting);
            }
        }
        self.settings = kept;
        Ok(())
    }
}
