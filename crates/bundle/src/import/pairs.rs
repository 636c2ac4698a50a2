//! The output of ptsematest, svsematest, pmqtest and sigwaittest: two lines per pair of threads,
//! repeated.
//!
//! ```text
//! #0: ID27802, P80, CPU0, I500; #1: ID27806, P80, CPU0, Cycles 1734
//! #1 -> #0, Min    3, Cur    4, Avg    4, Max   42
//! ```

use super::numbers::{ThreadProgress, without_cursor_moves};
use super::recorded::{self, ImportedFile, MAX_COUNT, MAX_LATENCY, Thread};
use super::{Malformed, Tool};
use punctual_core::cpuset::MAX_CPUS;
use std::collections::BTreeMap;

/// The tool that a text looks like: pmqtest's lines have a timeout, those of the other three are
/// indistinguishable.
pub enum Recognized {
    Pmqtest,
    /// One of ptsematest, svsematest and sigwaittest.
    Ambiguous,
}

/// Whether this is the output of pairs.
pub fn recognize(text: &str) -> Option<Recognized> {
    let mut lines = text.lines().map(without_cursor_moves);
    let line = lines.find(|line| PairHead::read(line.trim_start()).is_some())?;
    Some(if line.contains(", TO ") { Recognized::Pmqtest } else { Recognized::Ambiguous })
}

/// The first line of a pair.
struct PairHead {
    sender: u64,
    tid: Option<i32>,
    priority: Option<u8>,
    cpu: Option<u32>,
    interval: Option<u64>,
    cycles: u64,
}

impl PairHead {
    fn read(line: &str) -> Option<PairHead> {
        let (sender, receiver) = line.strip_prefix('#')?.split_once(';')?;
        let (number, sender) = sender.split_once(':')?;
        let (_, receiver) = receiver.trim().strip_prefix('#')?.split_once(':')?;
        // The latency is the receiver's; `any` means no affinity.
        let field = |text: &str, name: &str| {
            text.split(',')
                .find_map(|part| part.trim().strip_prefix(name).map(|rest| rest.trim().to_owned()))
        };
        Some(PairHead {
            sender: number.trim().parse().ok()?,
            tid: field(receiver, "ID").and_then(|id| id.parse().ok()),
            priority: field(receiver, "P").and_then(|p| p.parse().ok()).filter(|p| *p <= 99),
            cpu: field(receiver, "CPU")
                .and_then(|cpu| cpu.parse().ok())
                .filter(|cpu| (*cpu as usize) < MAX_CPUS),
            interval: field(sender, "I")
                .and_then(|i| i.parse().ok())
                .filter(|i| (1..=MAX_LATENCY).contains(i)),
            cycles: field(receiver, "Cycles")?.parse().ok()?,
        })
    }
}

/// The second line: the sender's number, minimum, mean and maximum.
fn figures(line: &str) -> Option<(u64, [u64; 3])> {
    let (_, rest) = line.strip_prefix('#')?.split_once("-> #")?;
    let mut parts = rest.split(',');
    let sender = parts.next()?.trim().parse().ok()?;
    let mut found = [None; 3];
    for part in parts {
        let mut words = part.split_ascii_whitespace();
        let place = match words.next()? {
            "Min" => 0,
            "Avg" => 1,
            "Max" => 2,
            _ => continue,
        };
        found[place] = words.next().and_then(|word| word.parse().ok());
    }
    Some((sender, [found[0]?, found[1]?, found[2]?]))
}

/// Reads the text; the last lines of each pair count.
pub fn parse(text: &str, tool: Tool) -> Result<ImportedFile, Malformed> {
    let mut recorded = ImportedFile::of(tool, source(tool));
    let mut pairs: BTreeMap<u64, Thread> = BTreeMap::new();
    let mut seen: BTreeMap<u64, ThreadProgress> = BTreeMap::new();
    for (k, line) in text.lines().enumerate() {
        let (at, line) = (k + 1, without_cursor_moves(line.trim_end()));
        let line = line.trim_start();
        if let Some(pair) = PairHead::read(line) {
            let index = (pair.sender / 2) as usize;
            if index >= MAX_CPUS {
                return Err(Malformed::at(
                    at,
                    format!("no pair begins with thread {}", pair.sender),
                ));
            }
            let now = ThreadProgress {
                tid: pair.tid,
                cycles: Some(pair.cycles),
                ..ThreadProgress::default()
            };
            if let Some(before) = seen.insert(pair.sender, now) {
                now.follows(&ThreadProgress { max: None, ..before }, at)?;
                seen.insert(pair.sender, ThreadProgress { max: before.max, ..now });
            }
            let thread = pairs.entry(pair.sender).or_default();
            thread.undistributed =
                recorded::bounded(pair.cycles, MAX_COUNT, "the count of cycles", at)?;
            (thread.index, thread.name) = (index, Some(name(index)));
            (thread.tid, thread.priority, thread.cpu) = (pair.tid, pair.priority, pair.cpu);
            thread.interval = pair.interval;
        } else if let Some((sender, [min, mean, max])) = figures(line) {
            let Some(thread) = pairs.get_mut(&sender) else { continue };
            let largest = recorded::bounded(max, MAX_LATENCY, "Max", at)?;
            let seen = seen.entry(sender).or_default();
            let now = ThreadProgress { max: Some(max as i64), ..*seen };
            now.follows(seen, at)?;
            *seen = now;
            (thread.min, thread.mean, thread.max) =
                (min.min(largest), mean.min(largest) as f64, largest);
            thread.details.insert("figures".into(), "stated".into());
        }
    }
    recorded.threads = pairs.into_values().collect();
    for thread in &mut recorded.threads {
        // `(not yet ready)`: the pair had begun but has no figures.
        if thread.details.remove("figures").is_none() {
            thread.undistributed = 0;
        }
    }
    Ok(recorded)
}

/// The name of a pair.
pub fn name(index: usize) -> String {
    format!("pair {index}")
}

fn source(tool: Tool) -> &'static str {
    match tool {
        Tool::Svsematest => "svsematest text",
        Tool::Pmqtest => "pmqtest text",
        Tool::Sigwaittest => "sigwaittest text",
        _ => "ptsematest text",
    }
}
