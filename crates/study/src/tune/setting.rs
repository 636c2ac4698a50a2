//! A setting that can be tried, and its traits besides its writes.

use punctual_core::Nanos;
use punctual_host::files::Files;
use punctual_host::journal::record::{FileValue, KernelWrite};
use punctual_host::journal::value::{is_same_value, normalize_value};
use punctual_stats::tune::{Candidate, Risk};
use serde::{Deserialize, Serialize};

/// A setting of this machine, with the value to try.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Setting {
    /// The name, as `--only` takes it: that of the rule of `check`, or of the tweak of `isolate`.
    pub name: String,
    /// The purpose, in one sentence.
    pub why: String,
    /// The source of that statement.
    pub source: String,
    /// The writes that set it.
    pub writes: Vec<KernelWrite>,
    /// The words on the kernel's command line if the setting needs a boot; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot: String,
}

/// Traits of a setting that are the same on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits {
    /// The side effects.
    pub risk: Risk,
    /// Time after a switch in which blocks do not count, in s.
    pub wash_out_s: i64,
    /// Whether the setting is tried only if `--only` names it: it removes a protection.
    pub only_named: bool,
}

const LOW: Traits = Traits { risk: Risk::Low, wash_out_s: 0, only_named: false };
const MEDIUM: Traits = Traits { risk: Risk::Medium, ..LOW };
const ONLY_NAMED: Traits = Traits { risk: Risk::High, only_named: true, ..LOW };

/// Huge pages, merged pages and compacted memory persist for a while: khugepaged scans every 10 s
/// (`khugepaged/scan_sleep_millisecs`), NUMA balancing every 60 s at most, and its first passes
/// matter (`scan_period_max_ms`).
const MEMORY_S: i64 = 15;
/// A clock and its voltage follow within milliseconds; the temperature takes longer, and
/// the random order of a group spreads it over all settings.
const POWER_S: i64 = 2;

/// The traits of each setting that differ from [`LOW`], by its name.
const KNOWN: [(&str, Traits); 33] = [
    // Boot parameters.
    ("mitigations-off", ONLY_NAMED),
    ("no-watchdogs", ONLY_NAMED),
    ("idle-poll", ONLY_NAMED),
    ("isolated-cpus", MEDIUM),
    ("rt-throttling", ONLY_NAMED),
    ("fair-server", ONLY_NAMED),
    ("watchdog", ONLY_NAMED),
    ("nmi-watchdog", ONLY_NAMED),
    ("soft-watchdog", ONLY_NAMED),
    ("hung-task-detector", ONLY_NAMED),
    ("machine-check", ONLY_NAMED),
    ("machine-check-polling", ONLY_NAMED),
    // Changes the clock of this program's own measurements.
    ("clocksource", ONLY_NAMED),
    ("cpus-online", ONLY_NAMED),
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
    // The statistics are otherwise collected every few seconds at most.
    ("vmstat", Traits { wash_out_s: 1, ..LOW }),
    ("vm-statistics", Traits { wash_out_s: 1, ..LOW }),
];

/// The prefix of an `isolate` tweak's name if a rule of `check` has the same one with another
/// value.
pub(crate) const OF_ISOLATE: &str = "isolate-";

/// The traits of the setting with this name.
pub fn traits_of_setting(name: &str) -> Traits {
    let name = name.strip_prefix(OF_ISOLATE).unwrap_or(name);
    KNOWN.iter().find(|(known, _)| *known == name).map_or(LOW, |(_, traits)| *traits)
}

/// The names of all settings with known traits.
#[cfg(test)]
pub fn known_names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, _)| *name)
}

impl Setting {
    /// Its writes, each with its name.
    pub(crate) fn named_writes(&self) -> impl Iterator<Item = (&str, &KernelWrite)> {
        self.writes.iter().map(|write| (self.name.as_str(), write))
    }

    /// The value to try, in words: one file with its value, or a count.
    pub fn format_value(&self) -> String {
        let is_same =
            |write: &&KernelWrite| self.writes.first().is_some_and(|w| w.new == write.new);
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

    /// The candidates of the experiment. Two settings that write different values to one file
    /// exclude each other.
    pub(crate) fn to_candidates(all: &[Setting]) -> Vec<Candidate> {
        let candidate = |setting: &Setting| {
            let Traits { risk, wash_out_s, .. } = traits_of_setting(&setting.name);
            let other_settings = all.iter().enumerate();
            let excluded = other_settings.filter(|(_, other)| setting.conflicts_with(other));
            Candidate {
                name: setting.name.clone(),
                value: setting.format_value(),
                risk,
                wash_out: Nanos::from_secs(wash_out_s),
                excludes: excluded.map(|(place, _)| place).collect(),
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

/// The contents of the files of these settings.
pub(crate) fn snapshot_files(files: &dyn Files, settings: &[Setting]) -> Vec<FileValue> {
    let mut paths: Vec<&String> = settings
        .iter()
        .flat_map(|setting| setting.writes.iter().map(|write| &write.path))
        .collect();
    paths.sort();
    paths.dedup();
    let file_value = |path: &String| {
        let value =
            files.read(path).map_or_else(|why| why.to_string(), |text| normalize_value(&text));
        FileValue { path: path.clone(), value }
    };
    paths.into_iter().map(file_value).collect()
}

/// The differences of two snapshots, in words.
pub(crate) fn format_differences(before: &[FileValue], after: &[FileValue]) -> Vec<String> {
    let value_pairs = before.iter().zip(after);
    let differing =
        value_pairs.filter(|(before, after)| !is_same_value(&before.value, &after.value));
    let words = |(before, after): (&FileValue, &FileValue)| {
        format!("{} holds `{}`; it held `{}`", before.path, after.value, before.value)
    };
    differing.map(words).collect()
}
