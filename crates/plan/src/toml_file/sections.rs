//! `[experiment]`, `[partition]`, `[record]`, `[explain]`, `[[load]]` and `[[phase]]`.

use crate::experiment::{ExplainSpec, LoadSpec, PartitionSpec, PhaseSpec, RecordSpec, Settings};
use crate::limits::{
    MAX_BEFORE, MAX_DURATION, MAX_EXPLAINED, MAX_KEPT_SAMPLES, MAX_LATENCY, MAX_PIDS, MAX_REFRESH,
    MIN_REFRESH,
};
use crate::notes::{Notes, Read, Wrong};
use crate::table::{Table, boolean, integer, mismatch, span, text};
use crate::text::Setting;
use crate::values;
use crate::words::OnExit;
use punctual_core::Nanos;
use toml::de::DeValue;

/// At most this many sections of a kind: the bound on everything that is worked out of them.
pub(super) fn bounded<'t, 'i>(
    notes: &mut Notes,
    mut tables: Vec<Table<'t, 'i>>,
    most: usize,
) -> Vec<Table<'t, 'i>> {
    if let Some(beyond) = tables.get(most) {
        let message =
            format!("{} sections {} are too many: at most {most}", tables.len(), beyond.title);
        notes.wrong(beyond.span, Wrong::new(message));
        tables.truncate(most);
    }
    tables
}

pub(super) fn settings(notes: &mut Notes, mut t: Table) -> Settings {
    let settings = Settings {
        name: t.take(notes, "name", |v| values::name(text(v)?)),
        cpus: t.take(notes, "cpus", |v| values::cpu_choice(text(v)?)),
        refresh: t.take(notes, "refresh", |v| values::duration(span(v)?, MIN_REFRESH, MAX_REFRESH)),
        memory_lock: t.take(notes, "memory_lock", boolean),
        dma_latency: t.take(notes, "dma_latency", |v| values::dma_latency(text(v)?)),
        seed: t.take(notes, "seed", |v| values::count(integer(v)?, 0, i64::MAX as u64)),
        output: t.take(notes, "output", |v| values::path(text(v)?)),
        cpu_load: t.take(notes, "cpu_load", boolean),
        keep_samples: t
            .take(notes, "keep_samples", |v| values::count(integer(v)?, 0, MAX_KEPT_SAMPLES)),
        require_real_time: t.take(notes, "require_real_time", boolean),
        force: t.take(notes, "force", boolean),
        on_violation: t.take(notes, "on_violation", |v| values::shell_command(text(v)?)),
        forever: t.take(notes, "forever", boolean),
    };
    t.finish(notes);
    settings
}

pub(super) fn partition(notes: &mut Notes, mut t: Table) -> PartitionSpec {
    let partition = PartitionSpec {
        span: t.span,
        cpus: t.take(notes, "cpus", |v| values::cpus(text(v)?)),
        name: t.take(notes, "name", |v| values::name(text(v)?)),
        disable: t
            .take_list(notes, "disable", values::name)
            .map(|list| list.value)
            .unwrap_or_default(),
    };
    needs(notes, &t, "cpus", "`[partition]` needs the CPUs to set apart", "write `cpus = \"3\"`");
    t.finish(notes);
    partition
}

pub(super) fn record(notes: &mut Notes, mut t: Table) -> RecordSpec {
    let record = RecordSpec {
        span: t.span,
        events: t.take_list(notes, "events", values::recorded_events),
        cpus: t.take(notes, "cpus", |v| values::cpu_choice(text(v)?)),
        pids: t.take(notes, "pids", pids),
        points: t.take(notes, "points", boolean),
        max_size: t.take(notes, "max_size", |v| values::recording_size(text(v)?)),
        limits: t.take_list(notes, "limits", values::design_limit),
    };
    t.finish(notes);
    record
}

pub(super) fn explain(notes: &mut Notes, mut t: Table) -> ExplainSpec {
    let explain = ExplainSpec {
        span: t.span,
        worst: t.take(notes, "worst", |v| {
            values::count(integer(v)?, 0, MAX_EXPLAINED.into()).map(|count| count as u32)
        }),
        above: t.take(notes, "above", |v| values::duration(span(v)?, Nanos(1), MAX_LATENCY)),
        before: t.take(notes, "before", |v| values::duration(span(v)?, Nanos::ZERO, MAX_BEFORE)),
        account: t.take(notes, "account", boolean),
        buffer: t.take(notes, "buffer", |v| values::buffer_size(text(v)?)),
        events: t.take_list(notes, "events", values::group),
        stacks: t.take(notes, "stacks", boolean),
    };
    t.finish(notes);
    explain
}

pub(super) fn load(notes: &mut Notes, mut t: Table) -> LoadSpec {
    let load = LoadSpec {
        span: t.span,
        name: t.take(notes, "name", |v| values::name(text(v)?)),
        command: t.take(notes, "command", command),
        cpus: t.take(notes, "cpus", |v| values::cpu_choice(text(v)?)),
        policy: t.take(notes, "policy", |v| values::policy(text(v)?)),
        priority: t.take(notes, "priority", |v| values::priority(integer(v)?)),
        nice: t.take(notes, "nice", |v| values::nice(integer(v)?)),
        stdout: t.take(notes, "stdout", |v| values::output(text(v)?)),
        stderr: t.take(notes, "stderr", |v| values::output(text(v)?)),
        on_success: on_exit(notes, &mut t, "on_success"),
        on_failure: on_exit(notes, &mut t, "on_failure"),
        start_delay: t
            .take(notes, "start_delay", |v| values::duration(span(v)?, Nanos::ZERO, MAX_DURATION)),
        may_rest: t.take(notes, "may_rest", boolean),
    };
    needs(
        notes,
        &t,
        "command",
        "this load has no command",
        "write `command = \"stress-ng --fork 2\"`",
    );
    t.finish(notes);
    load
}

pub(super) fn phase(notes: &mut Notes, mut t: Table) -> PhaseSpec {
    let phase = PhaseSpec {
        span: t.span,
        name: t.take(notes, "name", |v| values::name(text(v)?)),
        duration: t
            .take(notes, "duration", |v| values::duration(span(v)?, Nanos::MICRO, MAX_DURATION)),
        loads: t.take_list(notes, "loads", values::name).map(|list| list.value).unwrap_or_default(),
    };
    t.finish(notes);
    phase
}

fn on_exit(notes: &mut Notes, t: &mut Table, key: &'static str) -> Setting<OnExit> {
    t.take(notes, key, |v| values::word(text(v)?, "something to do when a load ends"))
}

/// An array of process ids.
fn pids(value: &DeValue<'_>) -> Read<Vec<u32>> {
    let Some(items) = value.as_array() else {
        return Err(mismatch(value, "an array of process ids"));
    };
    if items.len() > MAX_PIDS {
        return Err(Wrong::new(format!(
            "{} processes are too many: at most {MAX_PIDS}",
            items.len()
        )));
    }
    let pid = |item| {
        integer(item).and_then(|pid| values::count(pid, 1, i32::MAX as u64)).map(|pid| pid as u32)
    };
    items.iter().map(|item| pid(item.get_ref())).collect()
}

/// A string to be split, or an array of arguments as they are.
fn command(value: &DeValue<'_>) -> Read<Vec<String>> {
    match value {
        DeValue::String(line) => values::command(line),
        DeValue::Array(items) => {
            let argv = items
                .iter()
                .map(|item| text(item.get_ref()).map(str::to_owned))
                .collect::<Read<Vec<_>>>()?;
            values::arguments(argv)
        }
        other => Err(mismatch(other, "a command line or an array of arguments")),
    }
}

pub(super) fn needs(notes: &mut Notes, t: &Table, key: &str, message: &str, help: &str) {
    if !t.has(key) {
        notes.missing(t.span, message, help);
    }
}
