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
use crate::text::{At, Setting, SourceFormat, SourceText, Span, list, set};
use crate::words::{CpuChoice, RecordedEvents};
use punctual_core::{CpuSet, PublishedResult, PublishedResults};
use std::collections::HashSet;
use std::path::Path;

impl Plan {
    /// The plan as an experiment with every setting written out.
    pub(crate) fn to_experiment(&self) -> Experiment {
        Experiment {
            source: SourceText::shared(format!("{}.toml", self.name), ""),
            format: SourceFormat::Toml,
            settings: self.settings(),
            target: self.target.to_spec(),
            partition: self.partition.as_ref().map(partition),
            record: self.record.as_ref().map(record),
            explain: self.explain.as_ref().map(explain),
            published: self.published.as_ref().map(published),
            measures: self
                .measures_in_order()
                .into_iter()
                .map(|measure| self.measure(measure))
                .collect(),
            loads: self.each_load().map(load).collect(),
            phases: self.phases.iter().map(phase).collect(),
            warnings: Vec::new(),
        }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            name: set(self.name.clone()),
            cpus: listed(&self.controller_cpus),
            output: set(path(&self.output)),
            forever: self.forever.then(|| at(true)),
            ..self.to_spec()
        }
    }

    pub(crate) fn measure(&self, measure: &MeasurePlan) -> MeasureSpec {
        let scheduling = measure.threads.first().map(|thread| thread.scheduling);
        let deadline = scheduling.and_then(|scheduling| match scheduling {
            SchedulingSpec::Deadline(parameters) => Some(parameters),
            _ => None,
        });
        let occurrences: Vec<(&PhasePlan, &MeasurePlan)> =
            self.occurrences(&measure.name).collect();
        // A length that equals the phase's in every phase is written only there.
        let own = occurrences.iter().any(|(phase, here)| here.length != whole(phase));
        MeasureSpec {
            name: set(measure.name.clone()),
            workload: measure.workload.spec(),
            cpus: listed(&measure.cpus),
            threads: set(measure.placement),
            policy: scheduling.map(|scheduling| at(scheduling.policy())),
            priority: scheduling.and_then(SchedulingSpec::priority).map(at),
            runtime: deadline.map(|parameters| at(parameters.runtime)),
            deadline: deadline.map(|of| of.deadline).or(measure.deadline).map(at),
            duration: match measure.length {
                Length::Duration(duration) if own => set(duration),
                _ => None,
            },
            samples: match measure.length {
                Length::Samples(samples) => set(samples),
                _ => None,
            },
            histogram: Some(HistogramSpec {
                span: Span::default(),
                range: set(measure.histogram.range),
                resolution: set(measure.histogram.resolution),
            }),
            phases: match occurrences.len() == self.phases.len() {
                true => None,
                false => set(occurrences.iter().map(|(phase, _)| at(phase.name.clone())).collect()),
            },
            systress: measure.systress.as_ref().map(|file| SystressSpec {
                span: Span::default(),
                file: set(path(&file.path)),
                format: set(file.format),
                index: set(file.index),
            }),
            ..measure.to_spec()
        }
    }

    /// A measure in each phase that it runs in.
    fn occurrences(&self, name: &str) -> impl Iterator<Item = (&PhasePlan, &MeasurePlan)> {
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
        let mut seen = HashSet::new();
        self.phases
            .iter()
            .flat_map(|phase| &phase.loads)
            .filter(move |load| seen.insert(load.name.as_str()))
    }
}

/// Whether this measure is the first of every phase that still has it.
fn heads_all(measure: &MeasurePlan, rests: &[&[MeasurePlan]]) -> bool {
    rests
        .iter()
        .all(|rest| rest.iter().position(|other| other.name == measure.name).unwrap_or(0) == 0)
}

/// The default length of a measure.
fn whole(phase: &PhasePlan) -> Length {
    phase.duration.map_or(Length::UntilInterrupted, Length::Duration)
}

fn published(published: &PublishedResults) -> PublishedSpec {
    let result = |result: &PublishedResult| ResultSpec {
        span: Span::default(),
        what: set(result.what.clone()),
        value: set(result.value.clone()),
        here: result.here.as_ref().and_then(|here| here.parse().ok()).map(at),
        shape: result.shape.clone().map(at),
    };
    PublishedSpec {
        span: Span::default(),
        source: set(published.source.clone()),
        result: published.results.iter().map(result).collect(),
    }
}

fn phase(phase: &PhasePlan) -> PhaseSpec {
    PhaseSpec {
        span: Span::default(),
        name: set(phase.name.clone()),
        duration: phase.duration.map(at),
        loads: list(phase.loads.iter().map(|load| load.name.clone())),
    }
}

pub(crate) fn partition(partition: &PartitionPlan) -> PartitionSpec {
    PartitionSpec { cpus: set(partition.cpus.clone()), ..partition.to_spec() }
}

pub(crate) fn record(record: &RecordPlan) -> RecordSpec {
    let groups = record.events.iter().map(|group| RecordedEvents::Group(*group));
    let named = record.tracepoints.iter().cloned().map(RecordedEvents::Tracepoint);
    RecordSpec {
        events: set(groups.chain(named).map(at).collect()),
        cpus: listed(&record.cpus),
        ..record.to_spec()
    }
}

pub(crate) fn explain(explain: &ExplainPlan) -> ExplainSpec {
    ExplainSpec {
        events: set(explain.events.iter().map(|group| at(*group)).collect()),
        ..explain.to_spec()
    }
}

pub(crate) fn load(load: &LoadPlan) -> LoadSpec {
    LoadSpec {
        name: set(load.name.clone()),
        command: set(load.argv.clone()),
        cpus: listed(&load.cpus),
        policy: set(load.scheduling.policy()),
        priority: load.scheduling.priority().map(at),
        nice: load.scheduling.nice().map(at),
        ..load.to_spec()
    }
}

fn at<T>(value: T) -> At<T> {
    At::new(Span::default(), value)
}

fn listed(cpus: &CpuSet) -> Setting<CpuChoice> {
    set(CpuChoice::Listed(cpus.clone()))
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
