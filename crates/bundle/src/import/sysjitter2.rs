//! The output of sysjitter2: gaps of a busy loop, in bins named by their upper edge in µs, a column
//! per core (xzpeter/sysjitter2, `write_summary`). The last bin also holds all longer gaps.

use super::numbers::{decimal, number, second_run};
use super::oslat::{CommonProperties, OslatThread};
use super::recorded::{BINS, ImportedFile, MAX_LATENCY, bounded};
use super::{Malformed, TextReader, Tool};
use punctual_core::Nanos;
use punctual_core::cpuset::MAX_CPUS;

pub(super) const READER: TextReader = TextReader {
    what: "text of sysjitter2",
    recognize: |text| text.lines().any(|line| bin(line).is_some()).then_some(Tool::Sysjitter2),
    parse: |text, _, _| parse(text),
    may_lack_unit: false,
};

const MICRO: u64 = 1_000;

/// The upper edge in µs of a row of gaps: `    001 (us):\t 26110432 26110434`.
fn bin(line: &str) -> Option<u64> {
    let (edge, _) = line.trim_start().split_once(" (us):")?;
    edge.parse().ok().filter(|of| edge.len() >= 3 && (1..=BINS).contains(of))
}

fn parse(text: &str) -> Result<ImportedFile, Malformed> {
    let mut into = ImportedFile::of(Tool::Sysjitter2, "sysjitter2");
    let mut threads: Vec<OslatThread> = Vec::new();
    let (mut has_maxima, mut lines) = (false, 0);
    for (k, line) in text.lines().enumerate() {
        lines = k + 1;
        let Some((name, rest)) = line.split_once("):").or_else(|| line.split_once(':')) else {
            continue;
        };
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let cells = |unit: &str| match words.as_slice() {
            [cells @ .., last] if *last == unit && cells.len() == threads.len() => Ok(cells),
            cells if unit.is_empty() && cells.len() == threads.len() => Ok(cells),
            cells => {
                let (count, cores) = (cells.len(), threads.len());
                Err(Malformed::at(lines, format!("{count} columns for {cores} cores")))
            }
        };
        match name.trim() {
            "core_i" if !threads.is_empty() => return Err(second_run(lines)),
            "core_i" if words.len() > MAX_CPUS => {
                return Err(Malformed::at(lines, "more cores than CPUs"));
            }
            "core_i" => {
                let cpu = |word: &&str| word.parse().ok().filter(|cpu| (*cpu as usize) < MAX_CPUS);
                let thread = |word| OslatThread { cpu: cpu(word), ..OslatThread::default() };
                threads = words.iter().map(thread).collect();
            }
            "maxlat" => {
                let cells = cells("(us)")?.to_vec();
                for (thread, cell) in threads.iter_mut().zip(cells) {
                    let max = bounded(number(cell, lines)?, MAX_LATENCY, "the maximum", lines)?;
                    thread.max = max * MICRO;
                }
                has_maxima = true;
            }
            "runtime" => {
                let cells = cells("(sec)")?;
                let seconds = decimal(cells.first().copied().unwrap_or_default(), lines)?;
                into.duration = Some(Nanos((seconds.min(MAX_LATENCY as f64) * 1e9) as i64));
            }
            _ => {
                let Some(edge) = bin(line) else { continue };
                let cells = cells("")?.to_vec();
                for (thread, cell) in threads.iter_mut().zip(cells) {
                    let before = thread.bins.last().map_or(0, |(before, _)| before / MICRO);
                    if edge != before + 1 {
                        return Err(Malformed::at(
                            lines,
                            format!("the bin {edge} is out of order"),
                        ));
                    }
                    thread.bins.push((edge * MICRO, number(cell, lines)?));
                }
            }
        }
    }
    if !has_maxima || threads.is_empty() {
        return Err(Malformed::at(lines.max(1), "there is no row `maxlat:`: it was cut off"));
    }
    threads.iter_mut().for_each(figures);
    let common = CommonProperties { width: MICRO, ..CommonProperties::default() };
    common.put(threads, &mut into)?;
    Ok(into)
}

/// The figures that it does not state, from the bins.
fn figures(thread: &mut OslatThread) {
    let filled = || thread.bins.iter().filter(|(_, count)| *count > 0);
    let min = filled().next().map_or(0, |(edge, _)| *edge);
    let sum: f64 = filled().map(|(edge, count)| *edge as f64 * *count as f64).sum();
    let count: f64 = filled().map(|(_, count)| *count as f64).sum();
    (thread.min, thread.mean) = (min, sum / count.max(1.0));
}
