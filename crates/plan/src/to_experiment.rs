//! The inverse: the experiment that sets everything a plan holds. Read again, it resolves to the
//! same plan.

use crate::experiment::{
    Experiment, ExplainSpec, HistogramSpec, LoadSpec, MeasureSpec, PartitionSpec, PhaseSpec,
    PublishedSpec, RecordSpec, ResultSpec, Settings, SystressSpec,
};
use crate::plan::{Length, LoadPlan, MeasurePlan, PhasePlan, Plan, RecordPlan, Scheduling};
use crate::text::{At, Setting, SourceFormat, SourceText, Span};
use crate::words::{CpuChoice, DmaLatency, RecordedEvents};
use punctual_core::{CpuSet, Published, PublishedResult};
use std::collections::HashSet;
use std::path::Path;

impl Plan {
    /// The plan as an experiment with every setting written out.
    pub fn to_experiment(&self) -> Experiment {
        Experiment {
            source: SourceText::shared(format!("{}.toml", self.name), ""),
            format: SourceFormat::Toml,
            settings: self.settings(),
            target: self.target.to_spec(),
            partition: self.partition.as_ref().map(|partition| PartitionSpec {
                span: Span::default(),
                cpus: set(partition.cpus.clone()),
                name: set(partition.name.clone()),
                disable: list(partition.disable.iter().cloned()),
            }),
            record: self.record.as_ref().map(|record| RecordSpec {
                span: Span::default(),
                events: set(recorded_events(record)),
                cpus: listed(&record.cpus),
                pids: set(record.pids.clone()),
                points: set(record.points),
                max_size: set(record.max_size),
                limits: set(record.limits.iter().map(|limit| at(limit.clone())).collect()),
            }),
            explain: self.explain.as_ref().map(|explain| ExplainSpec {
                span: Span::default(),
                worst: set(explain.worst),
                above: explain.above.map(at),
                before: set(explain.before),
                account: set(explain.account),
                buffer: set(explain.buffer),
                events: set(explain.events.iter().map(|group| at(*group)).collect()),
                stacks: set(explain.stacks),
            }),
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

    fn settings(&self) -> Settings {
        Settings {
            span: Span::default(),
            name: set(self.name.clone()),
            cpus: listed(&self.controller_cpus),
            refresh: set(self.refresh),
            memory_lock: set(self.memory_lock),
            dma_latency: set(DmaLatency(self.dma_latency)),
            seed: self.seed.map(at),
            output: set(path(&self.output)),
            cpu_load: set(self.cpu_load),
            keep_samples: set(self.keep_samples),
            require_real_time: set(self.require_real_time),
            force: self.force.then(|| at(true)),
            on_violation: self.on_violation.clone().map(at),
            forever: self.forever.then(|| at(true)),
            calibrate: self.calibrate.map(at),
        }
    }

    fn measure(&self, measure: &MeasurePlan) -> MeasureSpec {
        let scheduling = measure.threads.first().map(|thread| thread.scheduling);
        let deadline = scheduling.and_then(|scheduling| match scheduling {
            Scheduling::Deadline(parameters) => Some(parameters),
            _ => None,
        });
        let occurrences: Vec<(&PhasePlan, &MeasurePlan)> =
            self.occurrences(&measure.name).collect();
        // A length that is the phase's own everywhere is written there alone.
        let own = occurrences.iter().any(|(phase, here)| here.length != whole(phase));
        MeasureSpec {
            span: Span::default(),
            name: set(measure.name.clone()),
            workload: measure.workload.spec(),
            cpus: listed(&measure.cpus),
            threads: set(measure.placement),
            policy: scheduling.map(|scheduling| at(scheduling.policy())),
            priority: scheduling.and_then(Scheduling::priority).map(at),
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
            stop_above: measure.stop_above.map(at),
            counters: list(measure.counters.iter().cloned()),
            require: list(measure.requirements.iter().cloned()),
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

    /// Each measure once, in an order that every phase agrees with: phases hold subsequences of the
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

/// Whether nothing stands before this measure in any phase that still has it.
fn heads_all(measure: &MeasurePlan, rests: &[&[MeasurePlan]]) -> bool {
    rests
        .iter()
        .all(|rest| rest.iter().position(|other| other.name == measure.name).unwrap_or(0) == 0)
}

/// How long a measure takes that does not set it.
fn whole(phase: &PhasePlan) -> Length {
    phase.duration.map_or(Length::UntilInterrupted, Length::Duration)
}

fn published(published: &Published) -> PublishedSpec {
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

fn load(load: &LoadPlan) -> LoadSpec {
    LoadSpec {
        span: Span::default(),
        name: set(load.name.clone()),
        command: set(load.argv.clone()),
        cpus: listed(&load.cpus),
        policy: set(load.scheduling.policy()),
        priority: load.scheduling.priority().map(at),
        nice: load.scheduling.nice().map(at),
        stdout: set(load.stdout.clone()),
        stderr: set(load.stderr.clone()),
        on_success: set(load.on_success),
        on_failure: set(load.on_failure),
        start_delay: set(load.start_delay),
        may_rest: load.may_rest.then(|| at(true)),
    }
}

fn at<T>(value: T) -> At<T> {
    At::new(Span::default(), value)
}

fn set<T>(value: T) -> Setting<T> {
    Some(at(value))
}

/// A list; nothing where it is empty.
fn list<T>(items: impl Iterator<Item = T>) -> Setting<Vec<At<T>>> {
    let items: Vec<At<T>> = items.map(at).collect();
    if items.is_empty() { None } else { set(items) }
}

fn listed(cpus: &CpuSet) -> Setting<CpuChoice> {
    set(CpuChoice::Listed(cpus.clone()))
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn recorded_events(record: &RecordPlan) -> Vec<At<RecordedEvents>> {
    let groups = record.events.iter().map(|group| RecordedEvents::Group(*group));
    let named = record.tracepoints.iter().cloned().map(RecordedEvents::Tracepoint);
    groups.chain(named).map(at).collect()
}
