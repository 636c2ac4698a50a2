//! Folded stacks, one line per stack with its instructions, as flame graphs take them
//! (github.com/brendangregg/FlameGraph, speedscope).

use punctual_bundle::exact::{ExactCall, ExactDocument, ExplainedExactSample};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the calls of all samples: the sample, the task or interrupt, its functions from the
/// outermost, and their own instructions.
pub fn exact_folded(document: &ExactDocument, out: &mut dyn Write) -> io::Result<()> {
    for (place, sample) in document.worst.iter().enumerate() {
        let name = match sample.series.is_empty() {
            true => format!("sample {}", place + 1),
            false => format!("{}/{} {}", sample.phase, sample.series, place + 1),
        };
        for (stack, own) in stacks(sample) {
            writeln!(out, "{};{stack} {own}", frame(&name))?;
        }
    }
    Ok(())
}

/// A frame without separators and line breaks.
fn frame(name: &str) -> String {
    name.chars().map(|c| if c == ';' || c.is_control() { '_' } else { c }).collect()
}

/// The self instructions of each stack.
fn stacks(sample: &ExplainedExactSample) -> BTreeMap<String, u64> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    let mut open: Vec<(&ExactCall, u64)> = Vec::new();
    let mut close = |open: &mut Vec<(&ExactCall, u64)>| {
        let names: Vec<String> = open.iter().map(|(call, _)| frame(&call.function)).collect();
        if let Some((call, inside)) = open.pop() {
            let own = (call.end - call.begin.min(call.end)).saturating_sub(inside);
            if own > 0 {
                *stacks.entry(names.join(";")).or_default() += own;
            }
            if let Some((_, outer)) = open.last_mut() {
                *outer += call.end - call.begin.min(call.end);
            }
        }
    };
    for call in &sample.calls {
        while open.last().is_some_and(|(other, _)| other.end <= call.begin) {
            close(&mut open);
        }
        open.push((call, 0));
    }
    while !open.is_empty() {
        close(&mut open);
    }
    stacks
}
