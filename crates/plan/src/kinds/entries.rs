//! `entries`: interruptions of CPUs, as measured by `punctual attach --cpus`.

use crate::form::SectionKey;
use crate::kind::{DefaultCpus, Kind, KindFacts, ParameterProblems, SampledBy};
use crate::notes::ProblemNotes;
use crate::table::TomlTable;
use crate::words::Placement;
use punctual_core::entry::EntrySeries;
use punctual_core::{CpuSet, Metric, NamedSeries, Policy, SeriesRequirement, cpu_label};

/// Every entry into the kernel on the CPUs. Each CPU has the series *NAME*`/cpu`*N*`/interruption`
/// and `/entry`. It has no own keys.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EntriesPlan;

/// The keys set in the file: none.
#[derive(Clone, Debug, Default)]
pub struct EntriesSpec;

impl EntriesPlan {
    pub(crate) const FACTS: KindFacts = KindFacts {
        // Since the first bundles that have entries.
        in_bundle: "cpu",
        sampled_by: SampledBy::Kernel,
        validated_by: "/proc/interrupts",
        ..KindFacts::new("entries", "entries into the kernel on CPUs, and who caused them")
    };
}

impl Kind for EntriesPlan {
    fn series_parts(&self) -> Vec<String> {
        EntrySeries::ALL.map(|series| series.as_str().to_owned()).to_vec()
    }
    /// One per CPU, without a thread of punctual.
    fn default_placement(&self) -> Placement {
        Placement::PerCpu
    }
    fn default_cpus(&self) -> DefaultCpus {
        DefaultCpus::All
    }
    fn default_policy(&self) -> Policy {
        Policy::Other
    }
}

impl EntriesSpec {
    pub(crate) fn section_keys() -> Vec<SectionKey> {
        Vec::new()
    }
    pub(crate) fn read(_: &mut ProblemNotes, _: &mut TomlTable) -> EntriesSpec {
        EntriesSpec
    }
    pub(crate) fn to_plan(&self) -> EntriesPlan {
        EntriesPlan
    }
    pub(crate) fn beside_defaults(&self) -> EntriesSpec {
        EntriesSpec
    }
    pub(crate) fn toml_entries(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    pub(crate) fn check_conflicts(&self, _: &EntriesPlan, problems: &mut ParameterProblems) {
        if problems.policy != Policy::Other {
            let message = "`policy` has no effect here: no thread measures";
            problems.report_conflict::<()>(&None, message, "leave `policy` out");
        }
    }
}

impl EntriesPlan {
    pub(crate) fn to_spec(&self) -> EntriesSpec {
        EntriesSpec
    }
    /// Why no series of these CPUs can meet or violate a requirement.
    pub fn reason_to_refuse(of: &SeriesRequirement, cpus: &CpuSet) -> Option<String> {
        if let Some(NamedSeries::Cycle(kind)) = of.kind {
            return Some(format!(
                "CPUs have no series `{}`: that is of a `program`",
                kind.as_str()
            ));
        }
        if let Some(name) = &of.thread {
            let number = name.strip_prefix("cpu").and_then(|number| number.parse().ok());
            match number.filter(|number| cpu_label(*number) == *name) {
                None => return Some(format!("`{name}` is not a CPU: CPUs are named like `cpu3`")),
                Some(cpu) if !cpus.contains(cpu) => {
                    let reason =
                        format!("it is about CPU {cpu}, which is not measured (CPU {cpus} is)");
                    return Some(reason);
                }
                Some(_) => {}
            }
        }
        let metric = of.requirement.metric;
        matches!(metric, Metric::Faults | Metric::Switches | Metric::Overruns)
            .then(|| format!("entries into the kernel have no `{metric}`"))
    }
    /// Every parameter by its key: there is none.
    pub(crate) fn display_entries(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}
