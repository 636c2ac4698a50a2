//! The proofs, one function each.

use super::{RUN, TOO_MUCH_LOST};
use crate::{PhaseView, SeriesView};
use punctual_bundle::evidence::{
    Evidence, IsolationEvidence, LoadEvidence, OtherMeasurement, ReadBack, ThreadEvidence,
};
use punctual_bundle::meta::ASKED_SCHEDULING;
use punctual_bundle::ran_on::KernelEvidence;
use punctual_bundle::summary::{Proof, ProofOutcome, ProofWord};
use punctual_bundle::{Manifest, Outcome};
use punctual_core::event::Recorded;
use punctual_core::series::HDR_MAX;
use punctual_core::{Clock, Fact, Nanos};

/// A load that failed counts as there when it was alive for this share of its time.
const ALIVE: f64 = 0.9;
/// A load works when something had happened in at least this share of the looks.
const WORKING: f64 = 0.5;
/// A clock of this resolution or finer can be used: coarser is the kernel's tick.
const FINE: Nanos = Nanos(1_000);
/// A timer may have so many samples less than were due: its first ones, before its thread was let on its CPU.
const FIRST: u64 = 2;

/// The outcome of a proof without its subject.
type Said = (ProofOutcome, String);

fn holds(why: impl Into<String>) -> Said {
    (ProofOutcome::Holds, why.into())
}
fn fails(why: impl Into<String>) -> Said {
    (ProofOutcome::Fails, why.into())
}
fn unknown(why: impl Into<String>) -> Said {
    (ProofOutcome::Unknown, why.into())
}
fn not_recorded(why: impl Into<String>) -> Said {
    (ProofOutcome::NotRecorded, why.into())
}
/// What a plain user may lack: it fails where something is required of the figures.
fn lacks(insists: bool, why: impl Into<String>) -> Said {
    (if insists { ProofOutcome::Fails } else { ProofOutcome::Waived }, why.into())
}

fn proof(proof: ProofWord, subject: impl Into<String>, (outcome, why): Said) -> Proof {
    Proof { proof, subject: subject.into(), outcome, why }
}

/// Those about the run as a whole.
pub fn of_run(manifest: &Manifest, recorded: Option<&Recorded>) -> Vec<Proof> {
    let asked = manifest.target.as_ref().and_then(|target| target.kernel.as_ref());
    let kernel = asked.map(|asked| proof(ProofWord::Kernel, RUN, kernel(asked)));
    let recorder = recorded.map(|recorded| proof(ProofWord::Recorder, RUN, recorder(recorded)));
    kernel.into_iter().chain(recorder).collect()
}

fn kernel(kernel: &KernelEvidence) -> Said {
    let Some(booted) = &kernel.booted else { return unknown("which kernel ran there is not known") };
    let other = |asked: &String| asked != booted;
    if let Some(asked) = kernel.release.as_ref().filter(|asked| other(asked)) {
        return fails(format!("the kernel {asked} was asked for, and {booted} ran"));
    }
    match (&kernel.preemption, &kernel.preemption_in_force) {
        (Some(asked), Some(in_force)) if asked != in_force => {
            fails(format!("the kernel was asked for preempt={asked}, and {in_force} was in force"))
        }
        (Some(asked), None) => unknown(format!("whether preempt={asked} was in force is not known")),
        _ => holds(format!("{booted} ran, as asked")),
    }
}

fn recorder(recorded: &Recorded) -> Said {
    match recorded.lost() {
        0 => holds("the recording lost no event"),
        lost => unknown(format!("the recording lost {lost} events")),
    }
}

/// Those about a phase, its loads and its series.
pub fn of_phase(manifest: &Manifest, phase: &PhaseView) -> Vec<Proof> {
    let name = phase.meta.name.as_str();
    let full = |of: &str| format!("{name}/{of}");
    let required = |view: &SeriesView| !view.meta.requirements.is_empty();
    let mut all = Vec::new();
    let evidence = match &phase.meta.evidence {
        Fact::Known(evidence) => Some(evidence),
        Fact::Unavailable(why) => {
            all.push(proof(ProofWord::Scheduling, name, unknown(format!("no evidence could be kept: {why}"))));
            None
        }
        Fact::NotAsked => None,
    };
    for view in &phase.series {
        let thread = evidence.and_then(|evidence| thread_of(evidence, &view.meta.name));
        let insists = required(view) || evidence.is_some_and(|evidence| evidence.real_time_required);
        all.push(proof(ProofWord::Scheduling, full(&view.meta.name), scheduling(view, thread, insists)));
        all.push(proof(ProofWord::Affinity, full(&view.meta.name), affinity(thread)));
        if !is_absent(phase, view) {
            all.push(proof(ProofWord::Samples, full(&view.meta.name), samples(manifest, phase, view, thread)));
        }
    }
    if let Some(evidence) = evidence {
        let insists = evidence.real_time_required || phase.series.iter().any(required);
        all.extend(memory(evidence, insists).map(|said| proof(ProofWord::Memory, name, said)));
        all.push(proof(ProofWord::Clock, name, clock(evidence, phase)));
        all.extend(isolation(&evidence.isolation).map(|said| proof(ProofWord::Isolation, name, said)));
        all.extend(evidence.loads.iter().map(|one| proof(ProofWord::Load, full(&one.name), load(one))));
        all.push(proof(ProofWord::Others, name, others(&evidence.others, insists)));
        all.extend(throttled(&evidence.throttled).map(|said| proof(ProofWord::Throttling, name, said)));
    }
    all
}

fn thread_of<'a>(evidence: &'a Evidence, series: &str) -> Option<&'a ThreadEvidence> {
    evidence.threads.iter().find(|thread| thread.series.iter().any(|name| name == series))
}

/// Whether the system has nothing for this series, as its measure says: there is nothing to be valid.
fn is_absent(phase: &PhaseView, view: &SeriesView) -> bool {
    let mut absent = phase.meta.measures.iter().flat_map(|measure| &measure.notes.absent);
    view.state.data.count() == 0 && absent.any(|absent| absent.series == view.meta.name)
}

fn scheduling(view: &SeriesView, thread: Option<&ThreadEvidence>, insists: bool) -> Said {
    let meta = view.meta;
    let asked = meta.details.get(ASKED_SCHEDULING);
    let Some(thread) = thread else {
        return match asked.filter(|_| !meta.runs_as_asked()) {
            Some(asked) => lacks(insists, format!("{asked} was asked for, and it ran as {}", meta.scheduling)),
            None => not_recorded(format!("known from its start alone: {}", meta.scheduling)),
        };
    };
    if let Some(why) = &thread.refused {
        let asked = &thread.scheduling.asked;
        return lacks(insists, format!("{asked} was refused ({why}), and it ran as {}", meta.scheduling));
    }
    read_back(&thread.scheduling, "it ran as")
}

fn affinity(thread: Option<&ThreadEvidence>) -> Said {
    match thread.map(|thread| &thread.affinity) {
        Some(Fact::Known(read)) => read_back(read, "it was allowed on CPU"),
        Some(Fact::NotAsked) => holds("it was to be bound to no CPU"),
        Some(Fact::Unavailable(why)) => unknown(why.clone()),
        None => not_recorded("not read back while it measured"),
    }
}

/// What was read again and again while a thread measured, and by itself at its end.
fn read_back(read: &ReadBack, ran: &str) -> Said {
    let asked = &read.asked;
    if let Some(other) = &read.other {
        return fails(format!("{asked} was asked for, and {ran} {} from {} on", other.value, other.at.readable()));
    }
    match &read.after {
        Fact::Known(after) if after != asked => fails(format!("{asked} was asked for, and at its end {ran} {after}")),
        Fact::Known(_) => holds(format!("{asked}, read back {} times and at its end", read.times)),
        Fact::Unavailable(why) => unknown(format!("it could not be read back at its end: {why}")),
        Fact::NotAsked if read.times > 0 => {
            unknown(format!("{asked} {} times, and it never came to its end", read.times))
        }
        Fact::NotAsked => unknown("it was not read back"),
    }
}

fn samples(manifest: &Manifest, phase: &PhaseView, view: &SeriesView, thread: Option<&ThreadEvidence>) -> Said {
    let losses = &view.state.data.losses;
    let all = losses.recorded.saturating_add(losses.overruns).saturating_add(losses.dropped);
    if !view.meta.losses_known() {
        return not_recorded("its source does not tell what was lost");
    }
    if manifest.ending.is_none() && phase.meta.duration.is_none() {
        return unknown("the run was cut off: what came later is not known");
    }
    if losses.recorded == 0 && thread.is_some_and(|thread| thread.reached_end) {
        return fails("nothing was measured");
    }
    if losses.dropped > 0 {
        let share = losses.dropped as f64 / all.max(1) as f64;
        let why = format!("{} of {all} samples were lost ({:.3} %)", losses.dropped, share * 100.0);
        return if share > TOO_MUCH_LOST { fails(why) } else { unknown(why) };
    }
    let Some(thread) = thread else { return not_recorded("whether it came to its end was not recorded") };
    let count = losses.recorded;
    if count == 0 {
        return unknown("the run ended before its first sample");
    }
    let outcome = manifest.ending.as_ref().map(|ending| &ending.outcome);
    match thread.due {
        // A load that was to end the run has ended it: that was its length.
        _ if matches!(outcome, Some(Outcome::StoppedByLoad { .. })) => {
            return holds(format!("{count} samples until the load ended"));
        }
        Some(due) if !thread.reached_end => {
            return unknown(format!("the run ended before it did: {all} of {due} samples"));
        }
        None if thread.has_end && !thread.reached_end => {
            return unknown(format!("the run ended before it did: {count} samples until then"));
        }
        Some(due) => {
            let allowed = ((due as f64 * TOO_MUCH_LOST) as u64).max(FIRST);
            if all.saturating_add(allowed) < due {
                return fails(format!("{due} samples were due and there are {all}"));
            }
            return holds(format!("{all} of {due} that were due, none lost"));
        }
        None => {}
    }
    holds(format!("{count} samples, none lost, to its end"))
}

fn memory(evidence: &Evidence, insists: bool) -> Option<Said> {
    let memory = &evidence.memory;
    if !memory.asked {
        return None;
    }
    let unlocked = evidence.threads.iter().find_map(|thread| thread.unlocked.as_ref());
    Some(match (memory.refused.as_ref().or(unlocked), &memory.locked_kib) {
        (Some(why), _) => lacks(insists, format!("memory could not be locked: {why}")),
        (None, Fact::Known(0)) => lacks(insists, "at its end nothing was locked (VmLck 0 kB)"),
        (None, Fact::Known(kib)) => holds(format!("{kib} KiB were locked at its end")),
        (None, Fact::Unavailable(why)) => unknown(format!("whether memory is locked is not known: {why}")),
        (None, Fact::NotAsked) => unknown("whether memory is locked was not read"),
    })
}

fn clock(evidence: &Evidence, phase: &PhaseView) -> Said {
    let clock = &evidence.clock;
    if let Some(step) = clock.stepped {
        return fails(format!("the wall clock was set by {} while latencies were measured on it", step.readable()));
    }
    let too_long =
        |view: &SeriesView| view.state.data.max.is_some_and(|max| i128::from(max.ns()) > i128::from(HDR_MAX));
    if let Some(view) = phase.series.iter().find(|view| too_long(view)) {
        return fails(format!("latencies of {} are too long to be true", view.meta.name));
    }
    // Of a clock that can be set this is seen above; a step back between two looks shows here.
    let early = |view: &SeriesView| view.state.data.exact.below > 0 && view.meta.clock != Clock::Monotonic;
    if let Some(view) = phase.series.iter().find(|view| early(view)) {
        return fails(format!("events of {} came before they were due", view.meta.name));
    }
    match (&clock.source, &clock.source_after) {
        (Fact::Known(source), _) if source.contains("jiffies") => {
            fails(format!("the kernel has no clock source better than its tick ({source})"))
        }
        (Fact::Known(source), Fact::Known(after)) if source != after => {
            fails(format!("the kernel left the clock source {source} for {after} while it measured"))
        }
        (Fact::Unavailable(why), _) | (_, Fact::Unavailable(why)) => {
            unknown(format!("the clock source is not known: {why}"))
        }
        (Fact::Known(source), Fact::Known(_)) => match clock.resolution {
            Fact::Known(resolution) if resolution > FINE => {
                fails(format!("there are no high-resolution timers: clock_getres(2) says {}", resolution.readable()))
            }
            Fact::Known(resolution) => holds(format!("{source}, {} ns", resolution.ns())),
            _ => unknown("the resolution of the clock is not known"),
        },
        _ => unknown("the clock source was not read to the end"),
    }
}

fn isolation(isolation: &Fact<IsolationEvidence>) -> Option<Said> {
    Some(match isolation {
        Fact::NotAsked => return None,
        Fact::Unavailable(why) => unknown(format!("how the partition stands could not be read: {why}")),
        Fact::Known(IsolationEvidence { cpus, missing_before, missing_after }) => {
            match (missing_before.first(), missing_after.first()) {
                (Some(what), _) => fails(format!("the partition of CPU {cpus} was not as asked: {what}")),
                (None, Some(what)) => fails(format!("the partition of CPU {cpus} did not last: {what}")),
                (None, None) => holds(format!("the partition of CPU {cpus} stood from begin to end")),
            }
        }
    })
}

fn load(load: &LoadEvidence) -> Said {
    if load.due <= Nanos::ZERO {
        return holds("it was not to start before the end");
    }
    let alive = load.alive.ns().max(0) as f64 / load.due.ns() as f64;
    let share = (alive * 100.0).min(100.0);
    if alive < ALIVE && !load.done {
        let how = load.ended.as_ref().map_or("it never ran".to_owned(), |how| format!("it {how}"));
        return fails(format!("it was there for {share:.0} % of its time: {how}"));
    }
    let works = load.looks == 0 || load.looks.saturating_sub(load.idle_looks) as f64 / (load.looks as f64) >= WORKING;
    if !works && !load.may_rest {
        return fails(format!(
            "it idled: in {} of {} looks none of its processes had run (one that rests on purpose has `may_rest = true`)",
            load.idle_looks, load.looks
        ));
    }
    let rested = match load.may_rest {
        true => format!("; it rested in {} of {} looks, as it may", load.idle_looks, load.looks),
        false => String::new(),
    };
    match &load.progress {
        Fact::Known(progress) => holds(format!(
            "there for {share:.0} % of its time; {} of CPU time, {} times on a CPU{rested}",
            progress.cpu_time.readable(),
            progress.switches
        )),
        // So short a program that none of its lives was seen.
        _ if load.looks == 0 && load.ended.is_some() => holds(format!("there for {share:.0} % of its time")),
        Fact::Unavailable(why) => unknown(format!("what its processes did could not be read: {why}")),
        Fact::NotAsked => unknown("its processes were not looked at"),
    }
}

fn others(others: &Fact<Vec<OtherMeasurement>>, insists: bool) -> Said {
    match others {
        Fact::Known(others) => match others.first() {
            None => holds("no other punctual measured on its CPUs"),
            Some(one) => lacks(insists, format!("punctual (process {}) measured on CPU {} too", one.pid, one.cpus)),
        },
        Fact::Unavailable(why) => unknown(format!("whether somebody else measured there is not known: {why}")),
        Fact::NotAsked => not_recorded("whether somebody else measured there was not looked at"),
    }
}

/// Nothing where it cannot be known or did not happen: a run is not judged by it, a comparison is.
fn throttled(throttled: &Fact<Vec<String>>) -> Option<Said> {
    let what = throttled.known()?.first()?;
    Some((ProofOutcome::Waived, what.clone()))
}
