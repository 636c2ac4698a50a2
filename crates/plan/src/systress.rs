//! Configuration files of systress, read unchanged: see "SYSTRESS FILES" in punctual-experiment(5).
//!
//! The behaviour of systress is kept: every default of punctual that differs is set explicitly.

mod properties;
mod scan;

use crate::context::LoadOptions;
use crate::experiment::{
    Experiment, HistogramSpec, LoadSpec, MeasureSpec, PartitionSpec, Settings, SystressSpec,
    TimerSpec, WorkloadSpec,
};
use crate::limits::{
    MAX_DURATION, MAX_LATENCY, MAX_PERIOD, MAX_REFRESH, MAX_SECTIONS, MAX_SYSTRESS_INDEX,
    MIN_PERIOD, MIN_REFRESH,
};
use crate::notes::{ProblemNotes, Read, Wrong};
use crate::problem::{Problem, ProblemKind, Problems};
use crate::text::{At, Setting, SourceFormat, SourceText, Span};
use crate::values;
use crate::words::{CpuChoice, DmaLatency, LoadOutput, OnExit, Placement, SystressFormat, Word};
use properties::Properties;
use punctual_core::{CpuSet, Nanos, Policy, Priority};
use scan::{STANZAS, Stanza, scan_stanzas};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads as much as possible and notes every problem. The experiment is complete only without
/// errors.
pub(crate) fn read(source: Arc<SourceText>, options: &LoadOptions) -> (Experiment, Problems) {
    let mut notes = ProblemNotes::new(source.clone(), options);
    let found = scan_stanzas(&source.text, &mut notes);
    let mut main: Option<&Stanza> = None;
    let (mut timers, mut programs) = (BTreeMap::new(), BTreeMap::new());
    for stanza in &found {
        match stanza.name {
            "main" => only_one(&mut main, stanza, &mut notes),
            "timer_thread" => add_by_index(&mut timers, stanza, &mut notes),
            "program" => add_by_index(&mut programs, stanza, &mut notes),
            other => notes.report_unknown_word(stanza.span, other, "a systress file", &STANZAS),
        }
    }
    let mut groups = Groups::default();
    let (settings, format) = read_settings(main, &mut groups, &mut notes);
    let experiment = Experiment {
        source: source.clone(),
        format: SourceFormat::Systress,
        settings,
        target: None,
        partition: None,
        record: None,
        explain: None,
        published: None,
        measures: timers
            .iter()
            .map(|(index, stanza)| timer_thread(*index, stanza, format, &mut groups, &mut notes))
            .collect(),
        loads: programs.values().map(|one| read_program(one, &mut groups, &mut notes)).collect(),
        phases: Vec::new(),
        warnings: Vec::new(),
    };
    let partition = groups.into_partition(&mut notes);
    (Experiment { partition, ..experiment }, notes.problems)
}

fn only_one<'t>(
    main: &mut Option<&'t Stanza<'t>>,
    stanza: &'t Stanza<'t>,
    notes: &mut ProblemNotes,
) {
    if let Some(index) = &stanza.index {
        notes.report_wrong_value(index.span, Wrong::new("`main` has no index"));
    }
    match main {
        None => *main = Some(stanza),
        Some(first) => report_duplicate(stanza, first, "there can be only one `main`", notes),
    }
}

fn add_by_index<'t>(
    by_index: &mut BTreeMap<u32, &'t Stanza<'t>>,
    stanza: &'t Stanza<'t>,
    notes: &mut ProblemNotes,
) {
    let Some(written) = &stanza.index else {
        let help = format!(
            "write `{}[{}]`",
            stanza.name,
            by_index.keys().last().map_or(0, |last| last + 1)
        );
        return notes.report_missing(
            stanza.span,
            &format!("`{}` needs an index", stanza.name),
            &help,
        );
    };
    let index = match parse_number(written.value)
        .and_then(|n| values::check_count(n, 0, u64::from(MAX_SYSTRESS_INDEX)))
    {
        Ok(index) => index as u32,
        Err(wrong) => return notes.report_wrong_value(written.span, wrong),
    };
    match by_index.get(&index) {
        Some(first) => report_duplicate(
            stanza,
            first,
            &format!("there are two `{}[{index}]`", stanza.name),
            notes,
        ),
        None if by_index.len() == MAX_SECTIONS => {
            notes.report_wrong_value(
                stanza.span,
                Wrong::new(format!("more than {MAX_SECTIONS} `{}` are too many", stanza.name)),
            );
        }
        None => {
            by_index.insert(index, stanza);
        }
    }
}

fn report_duplicate(stanza: &Stanza, first: &Stanza, message: &str, notes: &mut ProblemNotes) {
    let problem = Problem::error(ProblemKind::Reference, Some(stanza.span), message);
    notes.problems.push(problem.with_related(first.span, "the first is here"));
}

/// The properties of `main`, and the format of the result files.
fn read_settings(
    main: Option<&Stanza>,
    groups: &mut Groups,
    notes: &mut ProblemNotes,
) -> (Settings, At<SystressFormat>) {
    let nowhere = Span::default();
    let mut settings = Settings {
        memory_lock: Some(At::new(nowhere, false)),
        dma_latency: Some(At::new(nowhere, DmaLatency(None))),
        cpu_load: Some(At::new(nowhere, false)),
        ..Settings::default()
    };
    let mut format = At::new(nowhere, SystressFormat::Txt);
    let Some(main) = main else { return (settings, format) };
    let mut p = Properties::from_stanza(main, notes);
    settings.cpus = p
        .read_property(notes, "cpu_affinity", values::parse_cpus)
        .map(|cpus| cpus.map(CpuChoice::Listed));
    settings.refresh = p.read_property(notes, "stats.period", |v| {
        values::parse_duration(v, MIN_REFRESH, MAX_REFRESH)
    });
    format = p
        .read_property(notes, "stats.format", |v| values::parse_word(&v.to_lowercase(), "a layout"))
        .unwrap_or(format);
    settings.cpu_load =
        p.read_property(notes, "stats.cpu_load", parse_all_cpus).or(settings.cpu_load);
    settings.memory_lock = Some(p.take_flag(notes, "memlock"));
    groups.main = read_cgroup(&mut p, notes);
    if let Some(level) = p.read_property(notes, "dbg_level", parse_number) {
        let message = "`dbg_level` has no effect: punctual has its own options for verbosity";
        notes
            .problems
            .push(Problem::error(ProblemKind::Value, Some(level.span), message).into_warning());
    }
    p.finish(notes);
    (settings, format)
}

fn timer_thread(
    index: u32,
    stanza: &Stanza,
    format: At<SystressFormat>,
    groups: &mut Groups,
    notes: &mut ProblemNotes,
) -> MeasureSpec {
    let span = stanza.span;
    let mut p = Properties::from_stanza(stanza, notes);
    let (policy, priority) = read_scheduling(&mut p, notes);
    let cpus = p
        .read_property(notes, "cpu_affinity", values::parse_cpus)
        .map(|cpus| cpus.map(CpuChoice::Listed));
    let duration = p.read_property(notes, "lifetime.duration", |v| {
        values::parse_duration(v, Nanos::MICRO, MAX_DURATION)
    });
    let range = p.read_property(notes, "stats.histo_size", |v| {
        values::parse_duration(v, Nanos::MICRO, MAX_LATENCY)
    });
    let file = p.read_property(notes, "stats.filename", values::check_path);
    let period =
        p.read_property(notes, "period", |v| values::parse_duration(v, MIN_PERIOD, MAX_PERIOD));
    groups.threads.extend(read_cgroup(&mut p, notes).map(|group| (group, cpus.clone())));
    p.finish(notes);
    let ending = format.value.word();
    let file = file.unwrap_or_else(|| At::new(span, format!("timer_thread{index:02}.{ending}")));
    MeasureSpec {
        span,
        name: Some(At::new(span, format!("timer_thread{index:02}"))),
        workload: WorkloadSpec::Timer(TimerSpec { period, ..TimerSpec::default() }),
        cpus,
        threads: Some(At::new(span, Placement::Shared(1))),
        policy: Some(policy.unwrap_or(At::new(span, Policy::Other))),
        priority,
        duration,
        histogram: Some(HistogramSpec {
            span,
            range,
            resolution: Some(At::new(span, Nanos::MICRO)),
        }),
        systress: Some(SystressSpec {
            span,
            file: Some(file),
            format: Some(format),
            index: Some(At::new(span, index)),
        }),
        ..MeasureSpec::default()
    }
}

fn read_program(stanza: &Stanza, groups: &mut Groups, notes: &mut ProblemNotes) -> LoadSpec {
    let mut p = Properties::from_stanza(stanza, notes);
    let (policy, priority) = read_scheduling(&mut p, notes);
    let load = LoadSpec {
        span: stanza.span,
        command: p.read_property(notes, "cmdline", values::split_command),
        cpus: p
            .read_property(notes, "cpu_affinity", values::parse_cpus)
            .map(|cpus| cpus.map(CpuChoice::Listed)),
        policy,
        priority,
        stdout: p.read_property(notes, "output.out", parse_output_file),
        stderr: p.read_property(notes, "output.err", parse_output_file),
        on_success: on_exit(&mut p, stanza, "termination.ok", notes),
        on_failure: on_exit(&mut p, stanza, "termination.ko", notes),
        ..LoadSpec::default()
    };
    groups.programs.extend(read_cgroup(&mut p, notes).map(|group| (group, load.cpus.clone())));
    if !p.has_key("cmdline") {
        notes.report_missing(
            stanza.span,
            "this program has no command",
            "write `cmdline` and the command",
        );
    }
    p.finish(notes);
    load
}

fn read_scheduling(
    p: &mut Properties,
    notes: &mut ProblemNotes,
) -> (Setting<Policy>, Setting<Priority>) {
    let policy = p.read_property(notes, "sched.policy", values::parse_policy);
    (
        policy,
        p.read_property(notes, "sched.priority", |v| {
            parse_number(v).and_then(values::check_priority)
        }),
    )
}

/// The name of a cgroup, which may be written as a path from the root.
fn read_cgroup(p: &mut Properties, notes: &mut ProblemNotes) -> Option<At<String>> {
    p.read_property(notes, "cgroup", |text| values::check_name(text.trim_start_matches('/')))
}

/// The CPUs of a stanza.
type StanzaCpus = Setting<CpuChoice>;

/// The cgroups that stanzas name.
#[derive(Default)]
struct Groups {
    main: Option<At<String>>,
    threads: Vec<(At<String>, StanzaCpus)>,
    programs: Vec<(At<String>, StanzaCpus)>,
}

impl Groups {
    /// The partition that they ask for, made or found: the group of the timer threads, which their
    /// CPUs are for; the one of `main` is for everything else. A task is in the group that has its
    /// CPUs: what cannot be so is warned of.
    fn into_partition(self, notes: &mut ProblemNotes) -> Option<PartitionSpec> {
        let Groups { main, threads, programs } = self;
        let listed = |cpus: &StanzaCpus| match cpus.as_ref().map(|at| &at.value) {
            Some(CpuChoice::Listed(cpus)) => Some(cpus.clone()),
            _ => None,
        };
        let rest = main.as_ref().map(|group| group.value.clone());
        let is_rest = |group: &At<String>| rest.as_ref() == Some(&group.value);
        let mut own_group: Option<(At<String>, CpuSet)> = None;
        for (group, cpus) in threads.iter().filter(|(group, _)| !is_rest(group)) {
            match (listed(cpus), &mut own_group) {
                (Some(cpus), None) => own_group = Some((group.clone(), cpus)),
                (Some(cpus), Some((first, all))) if first.value == group.value => {
                    *all = all.union(&cpus);
                }
                (None, _) => {
                    warn_of_cgroup(group, "its CPUs (`cpu_affinity`) are not named", notes)
                }
                (Some(_), Some((first, _))) => {
                    let reason = format!("`{}` is the partition already", first.value);
                    warn_of_cgroup(group, &reason, notes);
                }
            }
        }
        let no_cpus = CpuSet::new();
        let partition_cpus = own_group.as_ref().map_or(&no_cpus, |(_, cpus)| cpus);
        for (group, cpus) in threads.iter().filter(|(group, _)| is_rest(group)).chain(&programs) {
            let names_partition =
                own_group.as_ref().is_some_and(|(own, _)| own.value == group.value);
            let cpus = listed(cpus);
            let inside = cpus.as_ref().is_some_and(|cpus| cpus.is_subset(partition_cpus));
            if !names_partition && !is_rest(group) {
                warn_of_cgroup(group, "no timer thread and not `main` names it", notes);
            } else if names_partition != inside {
                warn_of_cgroup(group, "its CPUs (`cpu_affinity`) are another group's", notes);
            }
        }
        let (group, cpus) = match own_group {
            Some(own) => own,
            None => {
                main.iter()
                    .for_each(|group| warn_of_cgroup(group, "no timer thread has another", notes));
                return None;
            }
        };
        Some(PartitionSpec {
            span: group.span,
            cpus: Some(At::new(group.span, cpus)),
            housekeeping: main,
            found: Some(At::new(group.span, true)),
            name: Some(group),
            ..PartitionSpec::default()
        })
    }
}

/// The group of a task cannot be the one that is named.
fn warn_of_cgroup(group: &At<String>, why: &str, notes: &mut ProblemNotes) {
    let message = format!("`cgroup {}` has no effect: {why}", group.value);
    let problem = Problem::error(ProblemKind::Value, Some(group.span), message).into_warning();
    let help = "a task runs in the partition that has its CPUs: name them in `cpu_affinity`";
    notes.problems.push(problem.with_help(help));
}

/// The action at the end of a program. Without a setting there is none.
fn on_exit(
    p: &mut Properties,
    stanza: &Stanza,
    key: &'static str,
    notes: &mut ProblemNotes,
) -> Setting<OnExit> {
    let said = p.read_property(notes, key, |v| {
        values::parse_word(&v.to_lowercase(), "something to do when a program ends")
    });
    Some(said.unwrap_or(At::new(stanza.span, OnExit::Ignore)))
}

fn parse_number(text: &str) -> Read<i64> {
    text.parse().map_err(|_| {
        Wrong::new(format!("`{}` is not a whole number", crate::escape::clip_text(text)))
    })
}

/// The only value of `stats.cpu_load`.
fn parse_all_cpus(text: &str) -> Read<bool> {
    match text {
        "all" => Ok(true),
        _ => Err(Wrong::new("only the load of all CPUs can be shown")
            .with_help("write `all`, or leave it out")),
    }
}

/// A path; here `null` is an ordinary file name.
fn parse_output_file(text: &str) -> Read<LoadOutput> {
    let path = values::check_path(text)?;
    Ok(LoadOutput::File(if path == "null" { "./null".into() } else { path.into() }))
}
