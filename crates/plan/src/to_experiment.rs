//! The inverse: the experiment that sets everything in a plan. Parsed again, it resolves to the
//! same plan.

use crate::experiment::{
    Experiment, ExplainSpec, HistogramSpec, LoadSpec, MeasureSpec, PartitionSpec, PhaseSpec,
    PublishedSpec, RecordSpec, ResultSpec, Settings, SystressSpec,
};
use crate::plan::{
    ExplainPlan, Length, LoadPlan, MeasurePlan, PartitionPlan, PhasePlan, Plan, RecordPlan,
    SchedulingSpec,
};
use crate::text::{At, Setting, SourceFormat, SourceText, Span, to_list_setting, to_setting};
use crate::words::{CpuChoice, RecordedEvents};
use punctual_core::{CpuSet, PublishedResult, PublishedResults};
use std::collections::HashSet;
use std::path::Path;

impl Plan {
    /// The plan as an experiment with every setting written out.
    pub(crate) fn to_experiment(&self) -> Experiment {
        Experiment {
            source: SourceText::new_shared(format!("{}.toml", self.name), ""),
            format: SourceFormat::Toml,
            settings: self.to_settings(),
            target: self.target.to_spec(),
            partition: self.partition.as_ref().map(to_partition_spec),
            record: self.record.as_ref().map(to_record_spec),
            explain: self.explain.as_ref().map(to_explain_spec),
            published: self.published.as_ref().map(to_published_spec),
            measures: self
                .measures_in_order()
                .into_iter()
                .map(|measure| self.to_measure_spec(measure))
                .collect(),
            loads: self.each_load().map(to_load_spec).collect(),
            phases: self.phases.iter().map(to_phase_spec).collect(),
            warnings: Vec::new(),
        }
    }

    pub(crate) fn to_settings(&self) -> Settings {
        Settings {
            name: to_setting(self.name.clone()),
            cpus: listed_cpus(&self.controller_cpus),
            output: to_setting(path_text(&self.output)),
            forever: self.forever.then(|| to_unplaced(true)),
            ..self.to_spec()
        }
    }

    pub(crate) fn to_measure_spec(&self, measure: &MeasurePlan) -> MeasureSpec {
        let scheduling = measure.threads.first().map(|thread| thread.scheduling);
        let deadline = scheduling.and_then(|scheduling| match scheduling {
            SchedulingSpec::Deadline(parameters) => Some(parameters),
            _ => None,
        });
        let occurrences: Vec<(&PhasePlan, &MeasurePlan)> =
            self.find_occurrences(&measure.name).collect();
        // A length that equals the phase's in every phase is written only there.
        let has_own_length =
            occurrences.iter().any(|(phase, here)| here.length != default_length(phase));
        MeasureSpec {
            name: to_setting(measure.name.clone()),
            workload: measure.workload.spec(),
            cpus: listed_cpus(&measure.cpus),
            threads: to_setting(measure.placement),
            policy: scheduling.map(|scheduling| to_unplaced(scheduling.policy())),
            priority: scheduling.and_then(SchedulingSpec::priority).map(to_unplaced),
            runtime: deadline.map(|parameters| to_unplaced(parameters.runtime)),
            deadline: deadline.map(|of| of.deadline).or(measure.deadline).map(to_unplaced),
            duration: match measure.length {
                Length::Duration(duration) if has_own_length => to_setting(duration),
                _ => None,
            },
            samples: match measure.length {
                Length::Samples(samples) => to_setting(samples),
                _ => None,
            },
            histogram: Some(HistogramSpec {
                span: Span::default(),
                range: to_setting(measure.histogram.range),
                resolution: to_setting(measure.histogram.resolution),
            }),
            phases: match occurrences.len() == self.phases.len() {
                true => None,
                false => to_setting(
                    occurrences.iter().map(|(phase, _)| to_unplaced(phase.name.clone())).collect(),
                ),
            },
            systress: measure.systress.as_ref().map(|file| SystressSpec {
                span: Span::default(),
                file: to_setting(path_text(&file.path)),
                format: to_setting(file.format),
                index: to_setting(file.index),
            }),
            ..measure.to_spec()
        }
    }

    /// A measure in each phase that it runs in.
    fn find_occurrences(&self, name: &str) -> impl Iterator<Item = (&PhasePlan, &MeasurePlan)> {
        let in_phase =
            move |phase: &PhasePlan| phase.measures.iter().position(|measure| measure.name == name);
        self.phases
            .iter()
            .filter_map(move |phase| in_phase(phase).map(|place| (phase, &phase.measures[place])))
    }

    /// Each measure once, in an order consistent with every phase: phases hold subsequences of the
    /// file's order.
    fn measures_in_order(&self) -> Vec<&MeasurePlan> {
        let mut rests: Vec<&[MeasurePlan]> =
            self.phases.iter().map(|phase| phase.measures.as_slice()).collect();
        let mut order = Vec::new();
        while let Some(next) =
            rests.iter().filter_map(|rest| rest.first()).find(|next| heads_all(next, &rests))
        {
            order.push(next);
            for rest in &mut rests {
                if let Some((_, others)) =
                    rest.split_first().filter(|(first, _)| first.name == next.name)
                {
                    *rest = others;
                }
            }
        }
        order
    }

    fn each_load(&self) -> impl Iterator<Item = &LoadPlan> {
        let mut seen_names = HashSet::new();
        self.phases
            .iter()
            .flat_map(|phase| &phase.loads)
            .filter(move |load| seen_names.insert(load.name.as_str()))
    }
}

/// Whether this measure is the first of every phase that still has it.
fn heads_all(measure: &MeasurePlan, rests: &[&[MeasurePlan]]) -> bool {
    rests
        .iter()
        .all(|rest| rest.iter().position(|other| other.name == measure.name).unwrap_or(0) == 0)
}

/// The default length of a measure.
fn default_length(phase: &PhasePlan) -> Length {
    phase.duration.map_or(Length::UntilInterrupted, Length::Duration)
}

fn to_published_spec(published: &PublishedResults) -> PublishedSpec {
    let result = |result: &PublishedResult| ResultSpec {
        span: Span::default(),
        what: to_setting(result.what.clone()),
        value: to_setting(result.value.clone()),
        here: result.here.as_ref().and_then(|here| here.parse().ok()).map(to_unplaced),
        shape: result.shape.clone().map(to_unplaced),
    };
    PublishedSpec {
        span: Span::default(),
        source: to_setting(published.source.clone()),
        result: published.results.iter().map(result).collect(),
    }
}

fn to_phase_spec(phase: &PhasePlan) -> PhaseSpec {
    PhaseSpec {
        span: Span::default(),
        name: to_setting(phase.name.clone()),
        duration: phase.duration.map(to_unplaced),
        loads: to_list_setting(phase.loads.iter().map(|load| load.name.clone())),
    }
}

pub(crate) fn to_partition_spec(partition: &PartitionPlan) -> PartitionSpec {
    PartitionSpec { cpus: to_setting(partition.cpus.clone()), ..partition.to_spec() }
}

pub(crate) fn to_record_spec(record: &RecordPlan) -> RecordSpec {
    let groups = record.events.iter().map(|group| RecordedEvents::Group(*group));
    let named = record.tracepoints.iter().cloned().map(RecordedEvents::Tracepoint);
    RecordSpec {
        events: to_setting(groups.chain(named).map(to_unplaced).collect()),
        cpus: listed_cpus(&record.cpus),
        ..record.to_spec()
    }
}

pub(crate) fn to_explain_spec(explain: &ExplainPlan) -> ExplainSpec {
    ExplainSpec {
        events: to_setting(explain.events.iter().map(|group| to_unplaced(*group)).collect()),
        ..explain.to_spec()
    }
}

pub(crate) fn to_load_spec(load: &LoadPlan) -> LoadSpec {
    LoadSpec {
        name: to_setting(load.name.clone()),
        command: to_setting(load.argv.clone()),
        cpus: listed_cpus(&load.cpus),
        policy: to_setting(load.scheduling.policy()),
        priority: load.scheduling.priority().map(to_unplaced),
        nice: load.scheduling.nice().map(to_unplaced),
        ..load.to_spec()
    }
}

fn to_unplaced<T>(value: T) -> At<T> {
    At::new(Span::default(), value)
}

fn listed_cpus(cpus: &CpuSet) -> Setting<CpuChoice> {
    to_setting(CpuChoice::Listed(cpus.clone()))
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
