//! The exact explanation of samples in virtual time: every function between release and arrival,
//! from the instruction blocks recorded by QEMU's plugin.

pub mod difference;
pub mod document;
pub mod dump;
pub mod path;
pub mod phases;
pub mod programs;
pub mod sections;
pub mod symbols;
#[cfg(test)]
mod tests;

use dump::{Dump, DumpWindow, SectionKind};
use path::Path;
use phases::PathPart;
use punctual_bundle::exact::{ExactFunction, LongestSections};
use punctual_core::Nanos;
use symbols::FunctionTable;

/// An exactly explained sample.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExactSample {
    /// When it was due, in ns of its clock.
    pub due: i64,
    /// From `due` to `woke`, in virtual time.
    pub latency: Nanos,
    /// The measuring thread's name, if a switch to it was seen.
    pub thread: Option<String>,
    pub path: Path,
    /// The parts of the path.
    pub parts: Vec<PathPart>,
    pub functions: Vec<ExactFunction>,
}

/// The results of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exact {
    /// Instructions of the whole run.
    pub insns: u64,
    pub samples_seen: u64,
    /// Samples with a window shorter than their latency.
    pub cut: u64,
    /// The worst samples, the highest latency first.
    pub worst: Vec<ExactSample>,
    /// Ordinary samples, by latency.
    pub ordinary: Vec<ExactSample>,
    /// Instructions searched for sections: the measured part of the run.
    pub kept: u64,
    /// Blocks and places of sections dropped for lack of space.
    pub lost: u64,
    pub sections: LongestSections,
    /// The names of tasks, by their index in the paths' events and contexts.
    pub tasks: Vec<String>,
}

/// A function with more instructions in a sample than in an ordinary one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    pub function: String,
    pub here: u64,
    pub there: u64,
}

impl Exact {
    /// The results from a dump. `insn` is the time per instruction.
    pub fn from_dump(dump: &Dump, names: &FunctionTable, insn: Nanos) -> Exact {
        let samples_of = |windows: &[DumpWindow]| {
            let sample = |window: &DumpWindow| follow_sample(dump, window, names, insn);
            windows.iter().map(sample).collect::<Vec<_>>()
        };
        let (mut worst, mut ordinary) = (samples_of(&dump.worst), samples_of(&dump.ordinary));
        worst.sort_by_key(|sample| (std::cmp::Reverse(sample.latency), sample.due));
        ordinary.sort_by_key(|sample| (sample.latency, sample.due));
        let of_kind = |kind| sections::collect_sections(dump, names, kind);
        Exact {
            insns: dump.insns,
            samples_seen: dump.samples,
            cut: dump.cut,
            worst,
            ordinary,
            kept: dump.kept,
            lost: dump.lost,
            sections: LongestSections {
                irqs_disabled: of_kind(SectionKind::Irqs),
                preemption_disabled: of_kind(SectionKind::Preemption),
                not_preempted: of_kind(SectionKind::Resched),
                migration_disabled: of_kind(SectionKind::Migration),
                lock_waits: of_kind(SectionKind::LockWait),
            },
            tasks: dump.tasks.iter().map(|task| task.comm.clone()).collect(),
        }
    }

    /// The ordinary sample for comparison: the median one.
    pub(crate) fn typical_sample(&self) -> Option<&ExactSample> {
        self.ordinary.get(self.ordinary.len() / 2)
    }
}

impl ExactSample {
    /// The functions in which this sample exceeds another, the largest excess first.
    pub(crate) fn more_than(&self, other: &ExactSample) -> Vec<Difference> {
        let own_in_other = |name: &str| {
            other.functions.iter().find(|function| function.name == name).map_or(0, |f| f.own)
        };
        let mut differences: Vec<Difference> = self
            .functions
            .iter()
            .map(|function| Difference {
                function: function.name.clone(),
                here: function.own,
                there: own_in_other(&function.name),
            })
            .filter(|difference| difference.here > difference.there)
            .collect();
        differences.sort_by_key(|difference| std::cmp::Reverse(difference.here - difference.there));
        differences
    }
}

fn follow_sample(
    dump: &Dump,
    window: &DumpWindow,
    names: &FunctionTable,
    insn: Nanos,
) -> ExactSample {
    let path = Path::from_window(dump, window, names, insn);
    let parts = phases::split_path(&path, window.task);
    let functions = path.function_totals();
    ExactSample {
        due: window.due,
        latency: Nanos(window.woke.saturating_sub(window.due)),
        thread: window.task.map(|task| dump.tasks[task].comm.clone()),
        path,
        parts,
        functions,
    }
}
