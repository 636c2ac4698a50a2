//! `[[measure]]`: the keys of every measure, then those of its kind.

use crate::experiment::{MeasureSpec, SystressSpec, TimerSpec, WorkloadSpec};
use crate::limits::{
    MAX_COUNTERS, MAX_DURATION, MAX_LATENCY, MAX_PERIOD, MAX_REQUIREMENTS, MAX_SAMPLES,
    MAX_SYSTRESS_INDEX, MAX_THREADS, MIN_RUNTIME,
};
use crate::notes::{Notes, Read, Wrong};
use crate::table::{Table, integer, mismatch, span, text};
use crate::text::{At, Setting};
use crate::values;
use crate::words::{Placement, Word, WorkloadKind};
use punctual_core::words::nearest;
use punctual_core::{Nanos, PerfEvent, Requirement};
use toml::de::DeValue;

/// The measure, or `None` where its kind is not known. Mistakes in its keys are reported all the
/// same: with those that every measure has, and, where the kind looks like one that there is, with
/// that one's.
pub(super) fn measure(notes: &mut Notes, mut t: Table) -> Option<MeasureSpec> {
    let kind =
        t.take(notes, "kind", |v| values::word::<WorkloadKind>(text(v)?, "a kind of measure"));
    if !t.has("kind") {
        notes.missing(t.span, "this measure has no kind", "write `kind = \"timer\"`");
    }
    let near = || {
        let word = t.text("kind")?;
        let near = nearest(word, WorkloadKind::WORDS.iter().map(|(known, _)| *known))?;
        WorkloadKind::WORDS.iter().find(|(known, _)| *known == near).map(|(_, kind)| *kind)
    };
    let meant = kind.as_ref().map(|kind| kind.value).or_else(near);
    let (range, resolution) = histogram(notes, &mut t);
    let measure = MeasureSpec {
        span: t.span,
        name: t.take(notes, "name", |v| values::name(text(v)?)),
        cpus: t.take(notes, "cpus", |v| values::cpu_choice(text(v)?)),
        threads: t.take(notes, "threads", threads),
        policy: t.take(notes, "policy", |v| values::policy(text(v)?)),
        priority: t.take(notes, "priority", |v| values::priority(integer(v)?)),
        runtime: t.take(notes, "runtime", |v| values::duration(span(v)?, MIN_RUNTIME, MAX_PERIOD)),
        deadline: t
            .take(notes, "deadline", |v| values::duration(span(v)?, MIN_RUNTIME, MAX_PERIOD)),
        duration: t
            .take(notes, "duration", |v| values::duration(span(v)?, Nanos::MICRO, MAX_DURATION)),
        samples: t.take(notes, "samples", |v| values::count(integer(v)?, 1, MAX_SAMPLES)),
        range,
        resolution,
        stop_above: latency(notes, &mut t, "stop_above"),
        counters: counters(notes, &mut t),
        require: requirements(notes, &mut t),
        phases: t.take_list(notes, "phases", values::name),
        systress: systress(notes, &mut t),
        workload: match meant {
            Some(kind) => WorkloadSpec::read(kind, notes, &mut t),
            None => WorkloadSpec::Timer(TimerSpec::default()),
        },
    };
    // The keys of a measure of an unknown kind are unknown.
    if meant.is_some() {
        t.finish(notes);
    }
    kind.map(|_| measure)
}

fn requirements(notes: &mut Notes, t: &mut Table) -> Vec<At<Requirement>> {
    let Some(mut list) = t.take_list(notes, "require", values::requirement) else {
        return Vec::new();
    };
    if list.value.len() > MAX_REQUIREMENTS {
        notes.wrong(
            list.span,
            Wrong::new(format!("more than {MAX_REQUIREMENTS} requirements are too many")),
        );
        list.value.truncate(MAX_REQUIREMENTS);
    }
    list.value
}

fn counters(notes: &mut Notes, t: &mut Table) -> Vec<At<PerfEvent>> {
    let Some(mut list) = t.take_list(notes, "counters", values::perf_event) else {
        return Vec::new();
    };
    if list.value.len() > MAX_COUNTERS {
        notes.wrong(list.span, Wrong::new(format!("`counters`: at most {MAX_COUNTERS} events")));
        list.value.truncate(MAX_COUNTERS);
    }
    let mut seen: Vec<&PerfEvent> = Vec::new();
    for event in &list.value {
        if seen.contains(&&event.value) {
            notes.wrong(
                event.span,
                Wrong::new(format!("`counters`: {} is there twice", event.value)),
            );
        }
        seen.push(&event.value);
    }
    list.value
}

fn histogram(notes: &mut Notes, t: &mut Table) -> (Setting<Nanos>, Setting<Nanos>) {
    let Some(mut table) = t.take_table(notes, "histogram", "`histogram`") else {
        return (None, None);
    };
    let shape = (latency(notes, &mut table, "range"), latency(notes, &mut table, "resolution"));
    table.finish(notes);
    shape
}

fn systress(notes: &mut Notes, t: &mut Table) -> Option<SystressSpec> {
    let mut table = t.take_table(notes, "systress", "`systress`")?;
    let systress = SystressSpec {
        span: table.span,
        file: table.take(notes, "file", |v| values::path(text(v)?)),
        format: table.take(notes, "format", |v| values::word(text(v)?, "a layout of systress")),
        index: table.take(notes, "index", |v| {
            values::count(integer(v)?, 0, u64::from(MAX_SYSTRESS_INDEX)).map(|index| index as u32)
        }),
    };
    table.finish(notes);
    Some(systress)
}

fn latency(notes: &mut Notes, t: &mut Table, key: &'static str) -> Setting<Nanos> {
    t.take(notes, key, |v| values::duration(span(v)?, Nanos(1), MAX_LATENCY))
}

fn threads(value: &DeValue<'_>) -> Read<Placement> {
    match value {
        DeValue::String(word) if word == "per-cpu" => Ok(Placement::PerCpu),
        DeValue::String(_) => {
            Err(Wrong::new("this is not a number of threads").help("`\"per-cpu\"`, or a number"))
        }
        DeValue::Integer(_) => values::count(integer(value)?, 1, MAX_THREADS as u64)
            .map(|count| Placement::Shared(count as u32)),
        other => Err(mismatch(other, "`per-cpu` or a number of threads")),
    }
}
