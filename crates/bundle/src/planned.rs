//! The requests of the plan in a bundle: the phases with their requirements, and the limits on the
//! recording. The series of an incomplete run do not show them.

use crate::BundleError;
use crate::member::Member;
use crate::verdict::Unbegun;
use serde::Deserialize;

/// The file of the plan as run.
pub(crate) const PLAN: &str = "plan.toml";

/// The requests of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlannedRequests {
    /// The phases in order, with their requirements.
    pub phases: Vec<Unbegun>,
    /// The limits on intervals of the recording.
    pub limits: Vec<String>,
    /// The number of samples kept per series; absent without a plan.
    pub keep_samples: Option<u64>,
}

#[derive(Deserialize)]
struct PlanText {
    #[serde(default)]
    experiment: PlannedSettings,
    #[serde(default)]
    record: PlannedRecord,
    #[serde(default)]
    measure: Vec<PlannedMeasure>,
    #[serde(default)]
    phase: Vec<PlannedPhase>,
}

#[derive(Deserialize, Default)]
struct PlannedSettings {
    keep_samples: Option<u64>,
}

#[derive(Deserialize, Default)]
struct PlannedRecord {
    #[serde(default)]
    limits: Vec<String>,
}

#[derive(Deserialize)]
struct PlannedMeasure {
    #[serde(default)]
    require: Vec<String>,
    /// The phases in which it measures; all if it names none.
    phases: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct PlannedPhase {
    name: String,
}

impl PlannedRequests {
    /// Reads it from the plan of a bundle; empty without a plan (imports).
    pub(crate) fn read(plan: &Member) -> Result<PlannedRequests, BundleError> {
        let text = BundleError::if_there(plan.read_text())?;
        let read = text.map(|text| PlannedRequests::of_plan(&text)).transpose();
        read.map(Option::unwrap_or_default)
            .map_err(|why| BundleError::from_damage(plan.path(), why))
    }

    /// Reads a plan as run (`plan.toml`).
    pub fn of_plan(text: &str) -> Result<PlannedRequests, String> {
        let plan: PlanText = toml::from_str(text).map_err(|why| why.message().to_owned())?;
        let phase = |phase: PlannedPhase| {
            let is_in = |measure: &&PlannedMeasure| {
                measure.phases.as_ref().is_none_or(|names| names.contains(&phase.name))
            };
            let measures = plan.measure.iter().filter(is_in);
            let requirements = measures.flat_map(|measure| measure.require.clone()).collect();
            Unbegun { phase: phase.name, requirements }
        };
        Ok(PlannedRequests {
            phases: plan.phase.into_iter().map(phase).collect(),
            limits: plan.record.limits,
            keep_samples: plan.experiment.keep_samples,
        })
    }

    pub fn has_requests(&self) -> bool {
        !self.limits.is_empty() || self.phases.iter().any(|phase| !phase.requirements.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_assigned_to_the_phases_of_their_measures() {
        let text = "[record]\nlimits = [\"a->b < 1us\"]\n[[measure]]\nname = \"t\"\nrequire = \
                    [\"max < 1us\"]\nphases = [\"then\"]\n[[measure]]\nname = \"u\"\n\
                    [[phase]]\nname = \"first\"\n[[phase]]\nname = \"then\"\n";
        let planned = PlannedRequests::of_plan(text).unwrap();
        let phases: Vec<_> =
            planned.phases.iter().map(|of| (of.phase.as_str(), of.requirements.len())).collect();
        assert_eq!((phases, planned.limits.len()), (vec![("first", 0), ("then", 1)], 1));
        assert!(planned.has_requests() && !PlannedRequests::default().has_requests());
        assert!(PlannedRequests::of_plan("phase = 3").is_err());
    }
}
