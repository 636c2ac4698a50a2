//! The proofs, one function each.

use super::{RUN, TOO_MUCH_LOST};
use crate::requirements::CUT_OFF;
use crate::{PhaseView, SeriesView, heat};
use punctual_bundle::evidence::{
    ControllerEvidence, IsolationEvidence, LoadEvidence, OtherMeasurement, PhaseEvidence,
    ProgramEvidence, ReadBack, SettingsEvidence, ThreadEvidence,
};
use punctual_bundle::meta::{ATTACHED_WORKLOAD, ENTRIES_WORKLOAD};
use punctual_bundle::ran_on::KernelEvidence;
use punctual_bundle::summary::{Proof, ProofOutcome, ProofWord};
use punctual_bundle::{Manifest, Outcome};
use punctual_core::event::Recorded;
use punctual_core::series::HDR_MAX;
use punctual_core::{Clock, Fact, Nanos};

/// The buffers cover shorter delays of punctual itself.
const HELD: Nanos = Nanos::SECOND;
/// The minimum share of its time that a failed load must have lived to count as present.
const ALIVE: f64 = 0.9;
/// The minimum share of polls that must have found a load running.
const WORKING: f64 = 0.5;
/// The coarsest usable resolution of a clock: coarser is the kernel's tick.
const FINE: Nanos = Nanos(1_000);
/// The maximum number of due samples that a timer may lack: its first ones, before its thread was
/// on its CPU.
const FIRST: u64 = 2;

/// The outcome of a proof without its subject.
type Judgement = (ProofOutcome, String);

fn holds_because(why: impl Into<String>) -> Judgement {
    (ProofOutcome::Holds, why.into())
}
fn fails_because(why: impl Into<String>) -> Judgement {
    (ProofOutcome::Fails, why.into())
}
fn unknown_because(why: impl Into<String>) -> Judgement {
    (ProofOutcome::Unknown, why.into())
}
fn not_recorded(why: impl Into<String>) -> Judgement {
    (ProofOutcome::NotRecorded, why.into())
}
/// A property that an unprivileged user may lack: it fails if the figures have requirements.
fn fails_if_insisted(insists: bool, why: impl Into<String>) -> Judgement {
    (if insists { ProofOutcome::Fails } else { ProofOutcome::Waived }, why.into())
}

fn new_proof(proof: ProofWord, subject: impl Into<String>, (outcome, why): Judgement) -> Proof {
    Proof { proof, subject: subject.into(), outcome, why }
}

/// The proofs about the run as a whole.
pub fn of_run(manifest: &Manifest, recorded: Option<&Recorded>) -> Vec<Proof> {
    let request = manifest.target.as_ref().and_then(|target| target.kernel.as_ref());
    let kernel = request.map(|request| new_proof(ProofWord::Kernel, RUN, judge_kernel(request)));
    let recorder =
        recorded.map(|recorded| new_proof(ProofWord::Recorder, RUN, judge_recorder(recorded)));
    kernel.into_iter().chain(recorder).collect()
}

fn judge_kernel(kernel: &KernelEvidence) -> Judgement {
    let Some(booted) = &kernel.booted else {
        return unknown_because("the running kernel is unknown");
    };
    let is_other_kernel = |request: &String| request != booted;
    if let Some(request) = kernel.release.as_ref().filter(|request| is_other_kernel(request)) {
        return fails_because(format!("the kernel {request} was requested, {booted} ran"));
    }
    match (&kernel.preemption, &kernel.preemption_in_force) {
        (Some(request), Some(in_force)) if request != in_force => {
            fails_because(format!("preempt={request} was requested, {in_force} was in force"))
        }
        (Some(request), None) => {
            unknown_because(format!("whether preempt={request} was in force is unknown"))
        }
        _ => holds_because(format!("{booted} ran, as requested")),
    }
}

fn judge_recorder(recorded: &Recorded) -> Judgement {
    match recorded.lost_count() {
        0 => holds_because("no recorded event was lost"),
        lost => unknown_because(format!("the recording lost {lost} events")),
    }
}

/// The proofs about a phase, its loads and its series; for a run in parts each is the gravest.
pub fn of_phase(manifest: &Manifest, phase: &PhaseView) -> Vec<Proof> {
    let evidence = &phase.meta.evidence;
    let mut phase_proofs = of_part(manifest, phase, evidence);
    let controller = phase.meta.controller.known_value().map(|own| judge_controller(own, phase));
    phase_proofs
        .extend(controller.map(|text| new_proof(ProofWord::Controller, &phase.meta.name, text)));
    let mut cut_off = false;
    for part in evidence.known_value().iter().flat_map(|evidence| &evidence.other_parts) {
        match part {
            Fact::NotAsked => cut_off = true,
            part => keep_gravest(&mut phase_proofs, of_part(manifest, phase, part)),
        }
    }
    if cut_off {
        let reason = "a part of the run was cut off: its validity is unknown";
        phase_proofs.push(new_proof(
            ProofWord::Scheduling,
            phase.meta.name.as_str(),
            unknown_because(reason),
        ));
    }
    phase_proofs
}

/// While punctual does not run, it drains no buffers. A phase without losses is complete, however
/// long it lasted.
fn judge_controller(own: &ControllerEvidence, phase: &PhaseView) -> Judgement {
    let did_not_run = format!("punctual itself did not run for {}", own.delayed.to_readable());
    let lost = phase.series.iter().map(|view| view.state.data.losses.dropped);
    match lost.fold(0, u64::saturating_add) {
        _ if own.delayed == Nanos::ZERO => holds_because("no round of punctual itself was late"),
        lost if lost > 0 && own.longest >= HELD => {
            fails_because(format!("{did_not_run}, and {lost} samples were lost"))
        }
        _ => holds_because(format!(
            "{did_not_run} in all, at most {} at once",
            own.longest.to_readable()
        )),
    }
}

fn keep_gravest(all: &mut Vec<Proof>, more: Vec<Proof>) {
    let gravity = |outcome: ProofOutcome| match outcome {
        ProofOutcome::Holds => 0,
        ProofOutcome::NotRecorded => 1,
        ProofOutcome::Waived => 2,
        ProofOutcome::Unknown => 3,
        ProofOutcome::Fails => 4,
    };
    for proof in more {
        let same = |own: &&mut Proof| own.proof == proof.proof && own.subject == proof.subject;
        match all.iter_mut().find(same) {
            Some(own) if gravity(own.outcome) >= gravity(proof.outcome) => {}
            Some(own) => *own = proof,
            None => all.push(proof),
        }
    }
}

fn of_part(manifest: &Manifest, phase: &PhaseView, evidence: &Fact<PhaseEvidence>) -> Vec<Proof> {
    let name = phase.meta.name.as_str();
    let full = |of: &str| format!("{name}/{of}");
    let required = |view: &SeriesView| !view.meta.requirements.is_empty();
    let mut part_proofs = Vec::new();
    let evidence = match evidence {
        Fact::Known(evidence) => Some(evidence),
        Fact::Unavailable(why) => {
            part_proofs.push(new_proof(
                ProofWord::Scheduling,
                name,
                unknown_because(format!("no evidence could be stored: {why}")),
            ));
            None
        }
        Fact::NotAsked => None,
    };
    for view in &phase.series {
        let thread = evidence.and_then(|evidence| thread_of(evidence, &view.meta.name));
        let insists =
            required(view) || evidence.is_some_and(|evidence| evidence.real_time_required);
        let (scheduling, affinity) = match program_of(evidence, &view.meta.name) {
            Some(_) if view.meta.workload == ENTRIES_WORKLOAD => {
                (holds_because("no thread measures"), holds_because("no thread measures"))
            }
            Some(_) => (
                holds_by_program(&view.meta.scheduling),
                holds_by_program(&format!("CPU {}", view.meta.cpus)),
            ),
            None => (judge_scheduling(view, thread, insists), judge_affinity(thread)),
        };
        part_proofs.push(new_proof(ProofWord::Scheduling, full(&view.meta.name), scheduling));
        part_proofs.push(new_proof(ProofWord::Affinity, full(&view.meta.name), affinity));
        if !is_absent(phase, view) {
            part_proofs.push(new_proof(
                ProofWord::Samples,
                full(&view.meta.name),
                judge_samples(manifest, phase, view, evidence),
            ));
        }
    }
    if let Some(evidence) = evidence {
        let insists = evidence.real_time_required || phase.series.iter().any(required);
        part_proofs.extend(
            judge_memory(evidence, insists).map(|text| new_proof(ProofWord::Memory, name, text)),
        );
        part_proofs.push(new_proof(ProofWord::Clock, name, judge_clock(evidence, phase)));
        part_proofs.extend(
            judge_isolation(&evidence.isolation)
                .map(|text| new_proof(ProofWord::Isolation, name, text)),
        );
        part_proofs.extend(
            judge_settings(&evidence.settings)
                .map(|text| new_proof(ProofWord::Settings, name, text)),
        );
        part_proofs.extend(
            evidence
                .loads
                .iter()
                .map(|one| new_proof(ProofWord::Load, full(&one.name), judge_load(one))),
        );
        let empty_programs = evidence.programs.iter().filter(|program| program.series.is_empty());
        part_proofs.extend(empty_programs.map(|program| {
            let cut = !program.reached_end && program.ended.is_none();
            let judgement = match cut {
                true => unknown_because("the run ended before any cycle was recognised"),
                false => fails_because("no thread with cycles was found: nothing was measured"),
            };
            new_proof(ProofWord::Samples, full(&program.name), judgement)
        }));
        part_proofs.push(new_proof(
            ProofWord::Others,
            name,
            judge_other_measurements(&evidence.others, insists),
        ));
        part_proofs.extend(
            judge_throttling(&evidence.throttled)
                .map(|text| new_proof(ProofWord::Throttling, name, text)),
        );
    }
    let limits = phase.meta.heat.known_value().map(heat::describe_limits).unwrap_or_default();
    part_proofs.extend(
        limits
            .into_iter()
            .next()
            .map(|what| new_proof(ProofWord::Throttling, name, (ProofOutcome::Waived, what))),
    );
    part_proofs
}

fn thread_of<'a>(evidence: &'a PhaseEvidence, series: &str) -> Option<&'a ThreadEvidence> {
    evidence.threads.iter().find(|thread| thread.series.iter().any(|name| name == series))
}

/// Whether the system cannot measure this series, which leaves nothing to prove.
fn is_absent(phase: &PhaseView, view: &SeriesView) -> bool {
    let mut absent = phase.meta.measures.iter().flat_map(|measure| &measure.notes.absent);
    view.state.data.sample_count() == 0 && absent.any(|absent| absent.series == view.meta.name)
}

/// The thread is the program's: no properties were requested.
fn holds_by_program(what: &str) -> Judgement {
    holds_because(format!("the program's own: {what}"))
}

fn judge_scheduling(
    view: &SeriesView,
    thread: Option<&ThreadEvidence>,
    insists: bool,
) -> Judgement {
    let meta = view.meta;
    let requested = meta.requested_scheduling();
    let Some(thread) = thread else {
        return match requested.filter(|_| !meta.has_requested_scheduling()) {
            Some(asked) => fails_if_insisted(
                insists,
                format!("{asked} was requested, it ran as {}", meta.scheduling),
            ),
            None => not_recorded(format!("known from its start alone: {}", meta.scheduling)),
        };
    };
    if let Some(why) = &thread.refused {
        let request = &thread.scheduling.asked;
        return fails_if_insisted(
            insists,
            format!("{request} was refused ({why}), it ran as {}", meta.scheduling),
        );
    }
    read_back(&thread.scheduling, "it ran as")
}

fn judge_affinity(thread: Option<&ThreadEvidence>) -> Judgement {
    match thread.map(|thread| &thread.affinity) {
        Some(Fact::Known(read)) => read_back(read, "it was allowed on CPU"),
        Some(Fact::NotAsked) => holds_because("no affinity was requested"),
        Some(Fact::Unavailable(why)) => unknown_because(why.clone()),
        None => not_recorded("not read back during the measurement"),
    }
}

/// The readings while a thread measured, and its own at the end.
fn read_back(read: &ReadBack, ran: &str) -> Judgement {
    let request = &read.asked;
    if let Some(other) = &read.other {
        return fails_because(format!(
            "{request} was requested, {ran} {} from {} on",
            other.value,
            other.at.to_readable()
        ));
    }
    match &read.after {
        Fact::Known(after) if after != request => {
            fails_because(format!("{request} was requested, at the end {ran} {after}"))
        }
        Fact::Known(_) => {
            holds_because(format!("{request}, read back {} times and at the end", read.times))
        }
        Fact::Unavailable(why) => {
            unknown_because(format!("it could not be read back at the end: {why}"))
        }
        Fact::NotAsked if read.times > 0 => {
            unknown_because(format!("{request} {} times, but it did not reach its end", read.times))
        }
        Fact::NotAsked => unknown_because("it was not read back"),
    }
}

fn judge_samples(
    manifest: &Manifest,
    phase: &PhaseView,
    view: &SeriesView,
    evidence: Option<&PhaseEvidence>,
) -> Judgement {
    let thread = evidence.and_then(|evidence| thread_of(evidence, &view.meta.name));
    let losses = &view.state.data.losses;
    let expected_samples =
        losses.recorded.saturating_add(losses.skipped).saturating_add(losses.dropped);
    if !view.meta.are_losses_known() {
        return not_recorded("the source does not report losses");
    }
    if manifest.ending.is_none() && phase.meta.duration.is_none() {
        return unknown_because(CUT_OFF);
    }
    if losses.lost_records > 0 {
        return judge_losses(losses.lost_records, expected_samples);
    }
    if let Some(why) = phase.meta.missing_of_source() {
        return unknown_because(why);
    }
    if losses.recorded == 0 && thread.is_some_and(|thread| thread.reached_end) {
        return fails_because("nothing was measured");
    }
    if losses.dropped > 0 {
        let dropped = losses.dropped;
        if view.meta.workload == ATTACHED_WORKLOAD {
            let share = dropped as f64 / expected_samples.max(1) as f64 * 100.0;
            return unknown_because(format!(
                "of {dropped} of {expected_samples} cycles it is not known when they were \
                 released or ended ({share:.3} %)"
            ));
        }
        return judge_losses(dropped, expected_samples);
    }
    if let Some(program) = program_of(evidence, &view.meta.name) {
        return program_samples(program, losses.recorded);
    }
    let Some(thread) = thread else {
        return not_recorded("whether it reached its end was not recorded");
    };
    let count = losses.recorded;
    if count == 0 {
        return unknown_because("the run ended before its first sample");
    }
    let outcome = manifest.ending.as_ref().map(|ending| &ending.outcome);
    // A requested stop is not a fault of the measurement.
    let is_stopped = matches!(outcome, Some(Outcome::StoppedAbove { .. }));
    match thread.due {
        // The load that was to end the run did so at its planned length.
        _ if matches!(outcome, Some(Outcome::StoppedByLoad { .. })) => {
            return holds_because(format!("{count} samples until the load ended"));
        }
        Some(due) if !thread.reached_end || is_stopped => {
            return unknown_because(format!(
                "the run ended early: {expected_samples} of {due} samples"
            ));
        }
        None if thread.has_end && !thread.reached_end => {
            return unknown_because(format!("the run ended early: {count} samples until then"));
        }
        Some(due) => {
            let allowed = ((due as f64 * TOO_MUCH_LOST) as u64).max(FIRST);
            if expected_samples.saturating_add(allowed) < due {
                return fails_because(format!("{expected_samples} of {due} samples that were due"));
            }
            return holds_because(format!("{expected_samples} of {due} that were due, none lost"));
        }
        None => {}
    }
    holds_because(format!("{count} samples to its end, none lost"))
}

fn judge_losses(lost: u64, all: u64) -> Judgement {
    let share = lost as f64 / all.max(1) as f64;
    let reason = format!("{lost} of {all} samples were lost ({:.3} %)", share * 100.0);
    if share > TOO_MUCH_LOST { fails_because(reason) } else { unknown_because(reason) }
}

fn program_of<'a>(
    evidence: Option<&'a PhaseEvidence>,
    series: &str,
) -> Option<&'a ProgramEvidence> {
    evidence?.programs.iter().find(|program| program.series.iter().any(|name| name == series))
}

/// A thread of a program that was measured, or a CPU.
fn program_samples(program: &ProgramEvidence, count: u64) -> Judgement {
    let ran = program.ran.to_readable();
    match (&program.ended, program.reached_end) {
        _ if program.lost > 0 => {
            unknown_because(format!("{} records of cycles were lost", program.lost))
        }
        (Some(how), false) => unknown_because(format!(
            "the program {how} early, after {ran}: {count} samples until then"
        )),
        (None, false) if program.has_end => {
            unknown_because(format!("the run ended early: {count} samples until then"))
        }
        _ => holds_because(format!("{count} samples in {ran}, none lost")),
    }
}

fn judge_memory(evidence: &PhaseEvidence, insists: bool) -> Option<Judgement> {
    let memory = &evidence.memory;
    if !memory.asked {
        return None;
    }
    let unlocked = evidence.threads.iter().find_map(|thread| thread.unlocked.as_ref());
    Some(match (memory.refused.as_ref().or(unlocked), &memory.locked_kib) {
        (Some(why), _) => fails_if_insisted(insists, format!("memory could not be locked: {why}")),
        (None, Fact::Known(0)) => {
            fails_if_insisted(insists, "no memory was locked at the end (VmLck 0 kB)")
        }
        (None, Fact::Known(kib)) => holds_because(format!("{kib} KiB were locked at the end")),
        (None, Fact::Unavailable(why)) => {
            unknown_because(format!("whether memory is locked is unknown: {why}"))
        }
        (None, Fact::NotAsked) => unknown_because("whether memory is locked was not read"),
    })
}

fn judge_clock(evidence: &PhaseEvidence, phase: &PhaseView) -> Judgement {
    let clock = &evidence.clock;
    if let Some(step) = clock.stepped {
        return fails_because(format!(
            "the wall clock was set by {} while latencies were measured on it",
            step.to_readable()
        ));
    }
    let too_long = |view: &SeriesView| {
        view.state.data.max.is_some_and(|max| i128::from(max.ns()) > i128::from(HDR_MAX))
    };
    if let Some(view) = phase.series.iter().find(|view| too_long(view)) {
        return fails_because(format!("latencies of {} are implausibly long", view.meta.name));
    }
    // For a settable clock this is detected above; a step back between two polls shows here.
    let early =
        |view: &SeriesView| view.state.data.exact.below > 0 && view.meta.clock != Clock::Monotonic;
    if let Some(view) = phase.series.iter().find(|view| early(view)) {
        return fails_because(format!("events of {} came before they were due", view.meta.name));
    }
    match (&clock.source, &clock.source_after) {
        (Fact::Known(source), _) if source.contains("jiffies") => {
            fails_because(format!("the kernel has no clock source better than its tick ({source})"))
        }
        (Fact::Known(source), Fact::Known(after)) if source != after => fails_because(format!(
            "the kernel replaced the clock source {source} by {after} during the measurement"
        )),
        (Fact::Unavailable(why), _) | (_, Fact::Unavailable(why)) => {
            unknown_because(format!("the clock source is unknown: {why}"))
        }
        (Fact::Known(source), Fact::Known(_)) => match clock.resolution {
            Fact::Known(resolution) if resolution > FINE => fails_because(format!(
                "no high-resolution timers: clock_getres(2) returns {}",
                resolution.to_readable()
            )),
            Fact::Known(resolution) => holds_because(format!("{source}, {} ns", resolution.ns())),
            _ => unknown_because("the resolution of the clock is unknown"),
        },
        _ => unknown_because("the clock source was not read at the end"),
    }
}

fn judge_isolation(isolation: &Fact<IsolationEvidence>) -> Option<Judgement> {
    Some(match isolation {
        Fact::NotAsked => return None,
        Fact::Unavailable(why) => {
            unknown_because(format!("the state of the partition could not be read: {why}"))
        }
        Fact::Known(IsolationEvidence { cpus, missing_before, missing_after }) => {
            match (missing_before.first(), missing_after.first()) {
                (Some(what), _) => fails_because(format!(
                    "the partition of CPU {cpus} was not as requested: {what}"
                )),
                (None, Some(what)) => {
                    fails_because(format!("the partition of CPU {cpus} did not last: {what}"))
                }
                (None, None) => holds_because(format!(
                    "the partition of CPU {cpus} was in force from begin to end"
                )),
            }
        }
    })
}

fn judge_settings(settings: &Fact<SettingsEvidence>) -> Option<Judgement> {
    Some(match settings {
        Fact::NotAsked => return None,
        Fact::Unavailable(why) => unknown_because(format!("the fixed settings are unknown: {why}")),
        Fact::Known(SettingsEvidence { missing_before, missing_after }) => {
            match (missing_before.first(), missing_after.first()) {
                (Some(what), _) => {
                    fails_because(format!("a fixed setting was not in force: {what}"))
                }
                (None, Some(what)) => {
                    fails_because(format!("a fixed setting did not last: {what}"))
                }
                (None, None) => holds_because("the fixed settings were in force from begin to end"),
            }
        }
    })
}

fn judge_load(load: &LoadEvidence) -> Judgement {
    if load.due <= Nanos::ZERO {
        return holds_because("it was not due to start before the end");
    }
    let stopped = load.stopped.iter().fold(Nanos::ZERO, |sum, (from, to)| sum + (*to - *from));
    let alive = (load.alive - stopped).ns().max(0) as f64 / load.due.ns() as f64;
    let share = (alive * 100.0).min(100.0);
    if alive < ALIVE && !load.done {
        let ended = load.ended.as_ref().map(|how| format!("it {how}"));
        let how = when_stopped(load).or(ended).unwrap_or_else(|| "it never ran".to_owned());
        return fails_because(format!("it ran for {share:.0} % of its time: {how}"));
    }
    let is_most_polls = |looks: u64| looks as f64 > (1.0 - WORKING) * load.looks as f64;
    if is_most_polls(load.idle_looks) && !load.may_rest {
        return fails_because(format!(
            "it idled: in {} of {} polls none of its processes had run (set `may_rest = true` for \
             a load that rests on purpose)",
            load.idle_looks, load.looks
        ));
    }
    // The CPUs were busy, but not with this load: two such runs must not be compared.
    if is_most_polls(load.starved_looks + load.idle_looks) && !load.may_rest {
        return (
            ProofOutcome::Waived,
            format!(
                "in {} of {} polls its processes waited for a CPU that others kept busy",
                load.starved_looks, load.looks
            ),
        );
    }
    let rested = match load.may_rest {
        true => format!("; it rested in {} of {} polls, as allowed", load.idle_looks, load.looks),
        false => String::new(),
    };
    let rested = when_stopped(load).map_or(rested.clone(), |when| format!("; {when}{rested}"));
    match &load.progress {
        Fact::Known(progress) => holds_because(format!(
            "running for {share:.0} % of its time; {} of CPU time, {} times on a CPU{rested}",
            progress.cpu_time.to_readable(),
            progress.switches
        )),
        // The program was too short for any poll to find it alive.
        _ if load.looks == 0 && load.ended.is_some() => {
            holds_because(format!("running for {share:.0} % of its time"))
        }
        Fact::Unavailable(why) => {
            unknown_because(format!("the state of its processes could not be read: {why}"))
        }
        Fact::NotAsked => unknown_because("its processes were not polled"),
    }
}

/// The times at which a load was stopped; `None` if it never was.
pub(crate) fn when_stopped(load: &LoadEvidence) -> Option<String> {
    let seconds = |at: Nanos| format!("{:.1} s", at.ns() as f64 / 1e9);
    let spans = load.stopped.iter();
    let spans: Vec<String> =
        spans.map(|(from, to)| format!("from {} to {}", seconds(*from), seconds(*to))).collect();
    (!spans.is_empty()).then(|| format!("it was stopped {}", spans.join(", ")))
}

fn judge_other_measurements(others: &Fact<Vec<OtherMeasurement>>, insists: bool) -> Judgement {
    match others {
        Fact::Known(others) => match others.first() {
            None => holds_because("no other punctual measured on its CPUs"),
            Some(one) => fails_if_insisted(
                insists,
                format!("punctual (process {}) also measured on CPU {}", one.pid, one.cpus),
            ),
        },
        Fact::Unavailable(why) => {
            unknown_because(format!("whether another punctual measured there is unknown: {why}"))
        }
        Fact::NotAsked => not_recorded("whether another punctual measured there was not checked"),
    }
}

/// None if unknown or not throttled: a run is not judged by it, a comparison is.
fn judge_throttling(throttled: &Fact<Vec<String>>) -> Option<Judgement> {
    let what = throttled.known_value()?.first()?;
    Some((ProofOutcome::Waived, what.clone()))
}
