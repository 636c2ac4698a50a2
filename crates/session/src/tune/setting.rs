//! A setting that can be tried, and what is known of it beside its writes.

use punctual_analyze::tune::{Candidate, Risk};
use punctual_core::Nanos;
use punctual_host::journal::record::Write;
use serde::{Deserialize, Serialize};

/// A setting of this machine, with the value that is tried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Setting {
    /// Its name, as `--only` takes it: that of the rule of `check`, or of the tweak of `isolate`.
    pub name: String,
    /// What it is for, in one sentence.
    pub why: String,
    /// Where that can be read.
    pub source: String,
    /// The writes that set it.
    pub writes: Vec<Write>,
    /// The words of the kernel's command line that set it, where it takes a boot; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot: String,
}

/// What is known of a setting, whichever machine offers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits {
    /// What it may do besides what it is for.
    pub risk: Risk,
    /// How long after a switch blocks do not count yet, in s.
    pub wash_out_s: i64,
    /// Whether it is tried only where `--only` names it: it takes a protection away.
    pub only_named: bool,
}

const LOW: Traits = Traits { risk: Risk::Low, wash_out_s: 0, only_named: false };
const MEDIUM: Traits = Traits { risk: Risk::Medium, ..LOW };
const NAMED: Traits = Traits { risk: Risk::High, only_named: true, ..LOW };

/// Huge pages, merged pages and compacted memory stay for a while: khugepaged scans every 10 s
/// (`khugepaged/scan_sleep_millisecs`), NUMA balancing every 60 s at most, of which the first
/// passes matter (`scan_period_max_ms`).
const MEMORY_S: i64 = 15;
/// A clock and its voltage follow within milliseconds; the temperature takes longer, and drift
/// within a group is seen by its controls.
const POWER_S: i64 = 2;

/// What is known of each that is not [`LOW`], by its name.
const KNOWN: [(&str, Traits); 33] = [
    // Of the boot.
    ("mitigations-off", NAMED),
    ("no-watchdogs", NAMED),
    ("idle-poll", NAMED),
    ("isolated-cpus", MEDIUM),
    ("rt-throttling", NAMED),
    ("fair-server", NAMED),
    ("watchdog", NAMED),
    ("nmi-watchdog", NAMED),
    ("soft-watchdog", NAMED),
    ("hung-task-detector", NAMED),
    ("machine-check", NAMED),
    ("machine-check-polling", NAMED),
    // It changes what this program itself measures with.
    ("clocksource", NAMED),
    ("cpus-online", NAMED),
    ("governor", Traits { wash_out_s: POWER_S, ..MEDIUM }),
    ("energy-preference", Traits { wash_out_s: POWER_S, ..MEDIUM }),
    ("frequency-cap", Traits { wash_out_s: POWER_S, ..MEDIUM }),
    ("turbo", Traits { wash_out_s: POWER_S, ..MEDIUM }),
    ("idle-states", Traits { wash_out_s: POWER_S, ..MEDIUM }),
    ("resume-latency", Traits { wash_out_s: POWER_S, ..MEDIUM }),
    ("pcie-power-saving", Traits { wash_out_s: POWER_S, ..MEDIUM }),
    ("transparent-hugepages", Traits { wash_out_s: MEMORY_S, ..LOW }),
    ("hugepage-defrag", Traits { wash_out_s: MEMORY_S, ..LOW }),
    ("proactive-compaction", Traits { wash_out_s: MEMORY_S, ..LOW }),
    ("locked-page-compaction", Traits { wash_out_s: MEMORY_S, ..LOW }),
    ("ksm", Traits { wash_out_s: MEMORY_S, ..LOW }),
    ("same-page-merging", Traits { wash_out_s: MEMORY_S, ..LOW }),
    ("numa-balancing", Traits { wash_out_s: MEMORY_S, ..LOW }),
    ("swap", Traits { wash_out_s: MEMORY_S, ..LOW }),
    ("irq-affinity", MEDIUM),
    ("interrupts-elsewhere", MEDIUM),
    // Statistics that are collected every few seconds at most before.
    ("vmstat", Traits { wash_out_s: 1, ..LOW }),
    ("vm-statistics", Traits { wash_out_s: 1, ..LOW }),
];

/// Before the name of a tweak of `isolate` where a rule of `check` has the same with another value.
pub const OF_ISOLATE: &str = "isolate-";

/// What is known of the setting with this name.
pub fn traits(name: &str) -> Traits {
    let name = name.strip_prefix(OF_ISOLATE).unwrap_or(name);
    KNOWN.iter().find(|(known, _)| *known == name).map_or(LOW, |(_, traits)| *traits)
}

/// The names of all settings of which more is known.
#[cfg(test)]
pub fn known() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, _)| *name)
}

impl Setting {
    /// The value that is tried, in words: one file with its value, or how many.
    pub fn value(&self) -> String {
        let is_same = |write: &&Write| self.writes.first().is_some_and(|w| w.new == write.new);
        let same = self.writes.iter().filter(is_same).count();
        match self.writes.as_slice() {
            [] => self.boot.clone(),
            [one] => format!("{} = {}", one.path, one.new),
            [one, ..] if same == self.writes.len() => {
                format!("{} and {} more = {}", one.path, same - 1, one.new)
            }
            [one, rest @ ..] => format!("{} = {} and {} more", one.path, one.new, rest.len()),
        }
    }

    /// As the experiment takes it. Two that write different values to one file exclude each other.
    pub fn candidates(all: &[Setting]) -> Vec<Candidate> {
        let candidate = |setting: &Setting| {
            let Traits { risk, wash_out_s, only_named } = traits(&setting.name);
            let others = all.iter().enumerate();
            let excluded = others.filter(|(_, other)| setting.conflicts_with(other));
            Candidate {
                name: setting.name.clone(),
                value: setting.value(),
                risk,
                switch: Nanos::ZERO,
                wash_out: Nanos::from_secs(wash_out_s),
                excludes: excluded.map(|(place, _)| place).collect(),
                requires: Vec::new(),
                only_named,
            }
        };
        all.iter().map(candidate).collect()
    }

    fn conflicts_with(&self, other: &Setting) -> bool {
        let parameter = |setting: &Setting| setting.boot.split('=').next().map(str::to_owned);
        let boots_both = !self.boot.is_empty() && parameter(self) == parameter(other);
        self.name != other.name && (boots_both || self.writes_to_same(other))
    }

    fn writes_to_same(&self, other: &Setting) -> bool {
        self.writes.iter().any(|write| other.writes.iter().any(|of| of.path == write.path))
    }
}
