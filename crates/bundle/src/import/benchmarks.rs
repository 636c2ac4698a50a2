//! The output of schbench and sysjitter: percentiles of latencies, and of gaps of a busy loop. The
//! distribution between two percentiles is unknown, so every sample counts as the longest that it
//! can be.

use super::numbers::{decimal, number};
use super::recorded::{ImportedFile, MAX_COUNT, MAX_LATENCY, Thread, bounded};
use super::{Malformed, TextReader, Tool};
use punctual_core::cpuset::MAX_CPUS;
use punctual_core::{Finding, Nanos, Severity};

pub(super) const READER: TextReader = TextReader {
    what: "percentiles of schbench or sysjitter",
    recognize,
    parse: |text, tool, _| parse(text, tool),
    may_lack_unit: false,
};

/// The maximum number of bins between the stated percentiles.
const MAX_PERCENTILES: usize = 32;

fn recognize(text: &str) -> Option<Tool> {
    text.lines().find_map(|line| match line.trim() {
        line if line.contains(" percentiles (usec) runtime ") => Some(Tool::Schbench),
        line if line.starts_with("int_n:") || line.starts_with("threshold(ns):") => {
            Some(Tool::Sysjitter)
        }
        _ => None,
    })
}

fn parse(text: &str, tool: Tool) -> Result<ImportedFile, Malformed> {
    let mut into = match tool {
        Tool::Schbench => schbench(text)?,
        _ => sysjitter(text)?,
    };
    let message = "the source states percentiles alone: every sample counts as the longest that \
                   they admit, so that the mean and percentiles between them are upper bounds";
    into.findings.push(
        Finding::new("percentiles-alone", Severity::Note, "", message)
            .remedy("compare the percentiles that the tool states, and maxima"),
    );
    Ok(into)
}

/// schbench prints cumulative figures every ten seconds: the last ones count.
fn schbench(text: &str) -> Result<ImportedFile, Malformed> {
    let mut into = ImportedFile::of(Tool::Schbench, "schbench");
    let mut thread: Option<(Thread, u64)> = None;
    let mut lines = 0;
    for (k, line) in text.lines().enumerate() {
        let (at, line) = (k + 1, line.trim());
        lines = at;
        if let Some((name, rest)) = line.split_once(" percentiles (") {
            thread = None;
            // Requests per second are not a latency.
            let Some((_, rest)) = rest.split_once("usec) runtime ") else { continue };
            let mut words = rest.split(['(', ' ']).filter(|word| !word.is_empty());
            let seconds = number(words.next().unwrap_or_default(), at)?;
            let samples = number(words.nth(1).unwrap_or_default(), at)?;
            let seconds = bounded(seconds, MAX_LATENCY, "the runtime", at)? as i64;
            into.duration = into.duration.max(Some(Nanos::SECOND * seconds));
            let samples = bounded(samples, MAX_COUNT, "the count", at)?;
            let name = name.trim().to_lowercase().trim_end_matches(" latencies").to_owned();
            thread = Some((Thread { name: Some(name), ..Thread::default() }, samples));
        } else if let Some((of, samples)) = &mut thread {
            if let Some((share, rest)) = line.split_once("th:") {
                let share = decimal(share.trim_start_matches(['*', ' ']), at)?.min(100.0);
                let value = rest.split_ascii_whitespace().next().unwrap_or_default();
                let value = bounded(number(value, at)?, MAX_LATENCY, "the latency", at)?;
                add(of, at, value, (share * *samples as f64 / 100.0).ceil() as u64)?;
            } else if let Some((min, max)) =
                line.strip_prefix("min=").and_then(|rest| rest.split_once(", max="))
            {
                of.min = bounded(number(min, at)?, MAX_LATENCY, "min", at)?;
                of.max = bounded(number(max, at)?, MAX_LATENCY, "max", at)?;
                let whole = finish(of, at, *samples)?;
                into.threads.retain(|before| before.name != whole.name);
                into.threads.push(whole);
                thread = None;
            }
        }
    }
    if into.threads.is_empty() {
        return Err(Malformed::at(lines.max(1), "there is no line `min=…, max=…`: it was cut off"));
    }
    (0..).zip(&mut into.threads).for_each(|(index, thread)| thread.index = index);
    Ok(into)
}

/// Adds the samples up to this rank, which are at most this long; those of the previous rank are
/// already in.
fn add(thread: &mut Thread, at: usize, value: u64, rank: u64) -> Result<(), Malformed> {
    let counted: u64 = thread.beyond.iter().map(|(_, n)| n).sum();
    let count = rank.saturating_sub(counted);
    if thread.beyond.len() > MAX_PERCENTILES
        || thread.beyond.last().is_some_and(|(before, _)| *before > value)
    {
        return Err(Malformed::at(at, "the percentiles do not ascend"));
    }
    match thread.beyond.last_mut().filter(|(before, _)| *before == value) {
        Some((_, before)) => *before += count,
        None if count > 0 => thread.beyond.push((value, count)),
        None => {}
    }
    Ok(())
}

/// The samples beyond the last percentile count as the maximum.
fn finish(thread: &mut Thread, at: usize, samples: u64) -> Result<Thread, Malformed> {
    let (min, max) = (thread.min, thread.max);
    if min > max {
        return Err(Malformed::at(at, format!("the smallest, {min}, is more than the largest")));
    }
    // Its percentile bins are coarser than the minimum and maximum.
    let clamp = |(value, n): (u64, u64)| (value.clamp(min, max), n);
    for (value, n) in std::mem::take(&mut thread.beyond).into_iter().map(clamp) {
        let before: u64 = thread.beyond.iter().map(|(_, n)| n).sum();
        add(thread, at, value, before + n)?;
    }
    add(thread, at, max, samples)?;
    let sum: f64 = thread.beyond.iter().map(|(value, n)| *value as f64 * *n as f64).sum();
    thread.mean = sum / samples.max(1) as f64;
    Ok(std::mem::take(thread))
}

/// The percentiles of sysjitter, in thousandths of a percent.
const PERCENTILES: [(&str, u64); 6] = [
    ("int_median(ns)", 50_000),
    ("int_90(ns)", 90_000),
    ("int_99(ns)", 99_000),
    ("int_999(ns)", 99_900),
    ("int_9999(ns)", 99_990),
    ("int_99999(ns)", 99_999),
];

/// sysjitter: a row per figure, a column per core.
fn sysjitter(text: &str) -> Result<ImportedFile, Malformed> {
    let mut into = ImportedFile::of(Tool::Sysjitter, "sysjitter");
    into.unit = Nanos(1);
    let mut rows: Vec<(usize, &str, Vec<&str>)> = Vec::new();
    for (k, line) in text.lines().enumerate() {
        let Some((name, rest)) = line.trim().split_once(':') else { continue };
        if rows.iter().any(|(_, before, _)| *before == name) && name.starts_with("int_") {
            return Err(super::numbers::second_run(k + 1));
        }
        if rows.len() < 64 {
            rows.push((k + 1, name, rest.split_ascii_whitespace().collect()));
        }
    }
    let of = |name: &str| rows.iter().find(|(_, own, _)| *own == name);
    let lines = text.lines().count().max(1);
    let row = |name: &'static str| {
        of(name).ok_or_else(|| Malformed::at(lines, format!("there is no row `{name}:`")))
    };
    let (at, _, counts) = row("int_n")?;
    if counts.len() > MAX_CPUS {
        return Err(Malformed::at(*at, "more cores than CPUs"));
    }
    let figure = |name: &'static str, core: usize| -> Result<u64, Malformed> {
        let (at, _, cells) = row(name)?;
        let cell = cells.get(core).copied().unwrap_or_default();
        bounded(number(cell, *at)?, MAX_LATENCY * 1_000, name, *at)
    };
    for core in 0..counts.len() {
        let samples = bounded(figure("int_n", core)?, MAX_COUNT, "the count", *at)?;
        if samples == 0 {
            continue;
        }
        let cpu = of("core_i").and_then(|(_, _, cells)| cells.get(core)?.parse().ok());
        let mut thread = Thread {
            index: core,
            name: cpu.map(|cpu: u32| format!("CPU {cpu}")),
            cpu: cpu.filter(|cpu| (*cpu as usize) < MAX_CPUS),
            min: figure("int_min(ns)", core)?,
            max: figure("int_max(ns)", core)?,
            ..Thread::default()
        };
        for (name, share) in PERCENTILES {
            // sysjitter takes the sorted gap at this index.
            let index = (u128::from(samples) * u128::from(share) / 100_000) as u64;
            if of(name).is_some() {
                add(&mut thread, *at, figure(name, core)?, (index + 1).min(samples))?;
            }
        }
        let mean = figure("int_mean(ns)", core)?;
        let whole = finish(&mut thread, *at, samples)?;
        into.threads.push(Thread { mean: mean as f64, ..whole });
    }
    if let Some((at, _, cells)) = of("runtime(s)") {
        let seconds = decimal(cells.first().copied().unwrap_or_default(), *at)?;
        let seconds = seconds.min(MAX_LATENCY as f64);
        into.duration = Some(Nanos((seconds * 1e9) as i64));
    }
    if let Some((_, _, cells)) = of("threshold(ns)") {
        let threshold: String =
            cells.first().copied().unwrap_or_default().chars().take(20).collect();
        into.details.insert("threshold_ns".into(), threshold.clone());
        let message = "sysjitter counts only gaps above its threshold: counts, means and \
                       percentiles are of those alone";
        into.findings.push(
            Finding::new("only-above-threshold", Severity::Note, "", message)
                .evidence(format!("threshold: {threshold} ns")),
        );
    }
    Ok(into)
}
