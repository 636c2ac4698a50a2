//! Measures: threads on their CPUs, histograms that fit into memory.

use super::cpus::Zones;
use super::frames::PhaseFrame;
use super::{Resolver, place_or, value_or};
use crate::experiment::{MeasureResolved, MeasureSpec, WorkloadSpec};
use crate::kind::{DefaultCpus, ParameterProblems};
use crate::limits::{MAX_BINS, MAX_SERIES, MAX_THREADS, MEMORY_SHARE};
use crate::plan::{
    HistogramPlan, Length, MeasurePlan, SchedulingSpec, SystressFile, ThreadPlan, Workload,
};
use crate::problem::{Problem, ProblemKind};
use crate::text::{Setting, Span};
use crate::words::{CpuChoice, Placement, Word};
use punctual_core::{CpuSet, Nanos, Policy};

/// A resolved measure, except for its length, which depends on the phase.
pub(super) struct ResolvedMeasure<'a> {
    pub(super) spec: &'a MeasureSpec,
    pub(super) plan: MeasurePlan,
    /// The phases that it runs in, by index.
    pub(super) phases: Vec<usize>,
}

impl<'a> Resolver<'a> {
    pub(super) fn resolve_measures(
        &mut self,
        zones: &Zones,
        frames: &[PhaseFrame],
    ) -> Vec<ResolvedMeasure<'a>> {
        let experiment = self.experiment;
        if experiment.measures.is_empty() {
            let problem =
                Problem::error(ProblemKind::Combination, None, "the file measures nothing");
            self.note_problem(problem.with_help(
                "add a section `[[measure]]` with `kind = \"timer\"` (in a systress file: \
                 `timer_thread[0]`)",
            ));
        }
        let names = self.resolve_names(
            "measure",
            experiment
                .measures
                .iter()
                .map(|spec| (&spec.name, spec.workload.kind().word().to_owned())),
        );
        let mut room = Room { threads: vec![0; frames.len()], series: 0 };
        let mut measures = Vec::new();
        for (index, (spec, name)) in experiment.measures.iter().zip(names).enumerate() {
            let phases = self.phases_of(spec, frames);
            let plan = self.resolve_measure(index, spec, name, zones, &phases, &mut room);
            measures.push(ResolvedMeasure { spec, plan, phases });
        }
        self.check_memory(&measures);
        self.check_result_files(&measures);
        measures
    }

    fn resolve_measure(
        &mut self,
        index: usize,
        spec: &MeasureSpec,
        name: String,
        zones: &Zones,
        phases: &[usize],
        room: &mut Room,
    ) -> MeasurePlan {
        let (workload, policy) = self.resolve_workload(spec);
        let period = workload.sample_period().unwrap_or(Nanos::from_millis(100));
        let scheduling = self.measure_scheduling(spec, policy, period);
        let shared = policy == Policy::Deadline;
        let placement = value_or(
            &spec.threads,
            if shared { Placement::Shared(1) } else { workload.default_placement() },
        );
        let cpus = self.resolve_cpus(&spec.cpus, &default_cpus(&workload, &spec.cpus, zones));
        if placement != Placement::PerCpu {
            self.check_one_side(&spec.cpus, spec.span, &cpus, zones);
        }
        let count = match placement {
            Placement::PerCpu => cpus.len(),
            Placement::Shared(count) => count as usize,
        };
        let threads =
            match self.make_room(spec, count, workload.series_parts().len().max(1), phases, room) {
                true => plan_threads(&name, placement, &cpus, scheduling, &workload),
                false => Vec::new(),
            };
        self.warn_of_refused_deadline(spec, &threads, zones);
        self.check_one_length(spec);
        self.check_workload(spec, &workload, policy, count);
        self.check_program(spec, &workload, &cpus, zones);
        self.check_entries(spec, &workload, &cpus);
        spec.to_plan(MeasureResolved {
            systress: self.resolve_systress_file(index, spec, count, phases),
            name,
            histogram: self.resolve_histogram(spec, workload.default_histogram()),
            cpus,
            placement,
            threads,
            length: Length::UntilInterrupted,
            deadline: match &workload {
                Workload::Program(_) => spec.deadline.as_ref().map(|at| at.value),
                _ => None,
            },
            workload,
        })
    }

    fn check_one_length(&mut self, spec: &MeasureSpec) {
        if let (Some(duration), Some(samples)) = (&spec.duration, &spec.samples) {
            let message = "a measure ends after a duration or after a number of samples, not both";
            let problem = Problem::error(ProblemKind::Combination, Some(samples.span), message);
            self.note_problem(
                problem
                    .with_related(duration.span, "the duration")
                    .with_help("leave one of them out"),
            );
        }
    }

    /// Whether these phases have room for `more` threads.
    fn make_room(
        &mut self,
        spec: &MeasureSpec,
        count: usize,
        parts: usize,
        phases: &[usize],
        room: &mut Room,
    ) -> bool {
        phases.iter().for_each(|phase| room.threads[*phase] += count);
        room.series += count * parts * phases.len();
        let most_threads = phases.iter().map(|phase| room.threads[*phase]).max().unwrap_or(0);
        let message = match (most_threads > MAX_THREADS, room.series > MAX_SERIES) {
            (false, false) => return true,
            (true, _) => format!(
                "with this measure {most_threads} threads would run at the same time: at most \
                 {MAX_THREADS}"
            ),
            (false, true) => format!(
                "with this measure there would be {} series: at most {MAX_SERIES}",
                room.series
            ),
        };
        self.note_error(
            ProblemKind::Value,
            place_or(&spec.threads, spec.span),
            message,
            "measure on fewer CPUs, with fewer threads, or in fewer phases",
        );
        false
    }

    /// The work of the threads, and their policy.
    fn resolve_workload(&mut self, spec: &MeasureSpec) -> (Workload, Policy) {
        if let WorkloadSpec::Timer(timer) = &spec.workload {
            let (timer, policy) = self.resolve_timer(spec, timer);
            return (Workload::Timer(timer), policy);
        }
        let workload = spec.workload.resolved();
        let policy = value_or(&spec.policy, workload.default_policy());
        if policy == Policy::Deadline {
            let message = "only timers are measured under SCHED_DEADLINE";
            self.note_error(
                ProblemKind::Combination,
                place_or(&spec.policy, spec.span),
                message,
                "choose another policy",
            );
        }
        (workload, policy)
    }

    /// Checks the kind's own parameters for contradictions and harmful values.
    fn check_workload(
        &mut self,
        spec: &MeasureSpec,
        workload: &Workload,
        policy: Policy,
        threads: usize,
    ) {
        let mut problems = Vec::new();
        let mut combined =
            ParameterProblems { section: spec.span, policy, threads, problems: &mut problems };
        spec.workload.check(workload, &mut combined);
        for problem in problems {
            match problem.kind {
                ProblemKind::NeedsForce => self.note_dangerous(problem),
                _ => self.note_problem(problem),
            }
        }
        if spec.systress.is_some() && !matches!(workload, Workload::Timer(_)) {
            let message = "systress files hold the latencies of timers alone";
            self.note_error(
                ProblemKind::Combination,
                spec.span,
                message,
                "leave `systress` out; `punctual export` writes other formats",
            );
        }
    }

    fn resolve_histogram(&mut self, spec: &MeasureSpec, usual: HistogramPlan) -> HistogramPlan {
        let plan = HistogramPlan {
            range: value_or(&spec.histogram_range(), usual.range),
            resolution: value_or(&spec.histogram_resolution(), usual.resolution),
        };
        let span = place_of_histogram(spec);
        if plan.resolution > plan.range {
            let message = format!(
                "a bin of the histogram ({}) is wider than all of it ({})",
                plan.resolution, plan.range
            );
            self.note_error(
                ProblemKind::Combination,
                span,
                message,
                "choose a finer resolution or a larger range",
            );
        } else if plan.bin_count() > MAX_BINS {
            let (range, resolution) = (plan.range, plan.resolution);
            let message = format!(
                "a histogram of {range} in steps of {resolution} has {} bins ({}): at most \
                 {MAX_BINS}",
                plan.bin_count(),
                format_bytes(plan.bin_count() * 8)
            );
            let coarser = Nanos(range.ns() / (MAX_BINS as i64 - 1) + 1);
            let help = format!(
                "choose a resolution of {coarser}, or a range of {}",
                resolution * (MAX_BINS as i64 - 1)
            );
            self.note_error(ProblemKind::Value, span, message, &help);
        }
        plan
    }

    /// Checks that the exact histograms of all series together fit into their share of the memory.
    fn check_memory(&mut self, measures: &[ResolvedMeasure]) {
        let need = |measure: &ResolvedMeasure| {
            // Fast loops count in two tallies of the same size in addition to the series itself.
            let copies = if matches!(measure.plan.workload, Workload::Timer(_)) { 1 } else { 3 };
            let parts = measure.plan.workload.series_parts().len().max(1);
            let series =
                (measure.plan.threads.len() * measure.phases.len() * parts * copies) as u64;
            measure.plan.histogram.bin_count().min(MAX_BINS).saturating_mul(8 * series)
        };
        let needed_bytes: u64 = measures.iter().map(need).fold(0, u64::saturating_add);
        let room = self.context.memory_bytes / MEMORY_SHARE;
        let Some(largest) =
            measures.iter().max_by_key(|measure| need(measure)).filter(|_| needed_bytes > room)
        else {
            return;
        };
        let span = place_of_histogram(largest.spec);
        let message = format!(
            "the histograms of all series need {}, and may take {} (1/{MEMORY_SHARE} of this \
             system's memory)",
            format_bytes(needed_bytes),
            format_bytes(room)
        );
        let help = "choose a coarser resolution, a shorter range, fewer threads or fewer phases";
        self.note_error(ProblemKind::NotHere, span, message, help);
    }

    /// A deadline thread must be allowed on its whole root domain (kernel/sched/syscalls.c:
    /// __sched_setscheduler).
    fn warn_of_refused_deadline(
        &mut self,
        spec: &MeasureSpec,
        threads: &[ThreadPlan],
        zones: &Zones,
    ) {
        let whole =
            |thread: &ThreadPlan| thread.cpus == zones.online || thread.cpus == zones.partition;
        let deadline =
            |thread: &ThreadPlan| matches!(thread.scheduling, SchedulingSpec::Deadline(_));
        if threads.iter().any(|thread| deadline(thread) && !whole(thread)) {
            let message = "the kernel refuses SCHED_DEADLINE to a thread that may not run on all \
                           CPUs of its root domain";
            let problem = Problem::error(
                ProblemKind::Combination,
                Some(place_or(&spec.cpus, spec.span)),
                message,
            )
            .into_warning();
            self.note_problem(problem.with_help(
                "measure with `threads = 1` on all CPUs, or on all those of a `[partition]`",
            ));
        }
    }

    fn resolve_systress_file(
        &mut self,
        place: usize,
        spec: &MeasureSpec,
        threads: usize,
        phases: &[usize],
    ) -> Option<SystressFile> {
        let wanted = spec.systress.as_ref()?;
        if threads != 1 || phases.len() > 1 {
            let message = "a systress result file holds one thread in one phase";
            let help = "set `threads = 1` (or one CPU), and name one phase in `phases`";
            self.note_error(ProblemKind::Combination, wanted.span, message, help);
        }
        let index = value_or(&wanted.index, place as u32);
        let path = value_or(&wanted.file, format!("timer_thread{index:02}.txt")).into();
        Some(SystressFile { path, format: wanted.format(), index })
    }

    fn check_result_files(&mut self, measures: &[ResolvedMeasure]) {
        let mut seen_files = std::collections::HashMap::new();
        for (measure, file) in
            measures.iter().filter_map(|measure| Some((measure, measure.plan.systress.as_ref()?)))
        {
            let Some(wanted) = &measure.spec.systress else { continue };
            let span = place_or(&wanted.file, wanted.span);
            if let Some(first) = seen_files.insert(&file.path, span) {
                let message = format!("two measures write to {}", file.path.display());
                let problem = Problem::error(ProblemKind::Reference, Some(span), message);
                self.note_problem(
                    problem
                        .with_related(first, "so does this one")
                        .with_help("give each a file of its own"),
                );
            }
        }
    }
}

fn place_of_histogram(spec: &MeasureSpec) -> Span {
    place_or(&spec.histogram_range(), place_or(&spec.histogram_resolution(), spec.span))
}

/// The number of threads in each phase, and of series in all.
struct Room {
    threads: Vec<usize>,
    series: usize,
}

/// The default CPUs of a measure; for threads that share their CPUs it must be one side of a
/// partition.
fn default_cpus(workload: &Workload, written: &Setting<CpuChoice>, zones: &Zones) -> CpuSet {
    let measured_cpus = zones.measured_cpus();
    let chosen_cpus = match workload.default_cpus() {
        DefaultCpus::All => measured_cpus.clone(),
        DefaultCpus::Last => measured_cpus.iter().last().map(CpuSet::from_cpu).unwrap_or_default(),
        DefaultCpus::AllButFirst if measured_cpus.len() > 1 => {
            measured_cpus.iter().skip(1).collect()
        }
        DefaultCpus::AllButFirst => measured_cpus.clone(),
    };
    if written.is_some() { measured_cpus.clone() } else { chosen_cpus }
}

fn plan_threads(
    name: &str,
    placement: Placement,
    cpus: &CpuSet,
    scheduling: SchedulingSpec,
    workload: &Workload,
) -> Vec<ThreadPlan> {
    let offset = match workload {
        Workload::Timer(timer) => timer.offset,
        _ => Nanos::ZERO,
    };
    let thread = |k: usize, name: String, cpus: CpuSet| {
        let thread_scheduling = workload
            .priority_of(k)
            .map_or(scheduling, |priority| scheduling.with_priority(priority));
        ThreadPlan { name, cpus, scheduling: thread_scheduling, start_offset: offset * k as i64 }
    };
    match placement {
        Placement::PerCpu => cpus
            .iter()
            .enumerate()
            .map(|(k, cpu)| thread(k, format!("{name}/cpu{cpu}"), CpuSet::from_cpu(cpu)))
            .collect(),
        Placement::Shared(1) => vec![thread(0, name.to_owned(), cpus.clone())],
        Placement::Shared(count) => (0..count as usize)
            .map(|k| thread(k, format!("{name}/{k}"), workload.cpus_of(k, cpus)))
            .collect(),
    }
}

/// A size in bytes, for display.
pub(crate) fn format_bytes(n: u64) -> String {
    match n {
        0..10_240 => format!("{n} B"),
        10_240..10_485_760 => format!("{} KiB", n >> 10),
        10_485_760..10_737_418_240 => format!("{} MiB", n >> 20),
        _ => format!("{} GiB", n >> 30),
    }
}
