//! The exact explanation of samples in virtual time: every function between release and arrival,
//! from the blocks of instructions that QEMU's plugin saw.

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

use dump::{Dump, SectionKind, Window};
use path::{Function, Path};
use phases::Part;
use punctual_bundle::exact::Sections;
use punctual_core::Nanos;
use symbols::Names;

/// A sample, exactly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExactSample {
    /// When it was due, in ns of its clock.
    pub due: i64,
    /// From `due` to `woke`, in virtual time.
    pub latency: Nanos,
    /// The measuring thread's name, where a switch to it was seen.
    pub thread: Option<String>,
    pub path: Path,
    /// The parts of the way.
    pub parts: Vec<Part>,
    pub functions: Vec<Function>,
}

/// All that is known of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exact {
    /// Instructions of the whole run.
    pub insns: u64,
    pub samples_seen: u64,
    /// Samples whose window is shorter than their latency.
    pub cut: u64,
    /// The worst samples, the latest first.
    pub worst: Vec<ExactSample>,
    /// Ordinary ones, by their latency.
    pub ordinary: Vec<ExactSample>,
    /// Instructions in which sections were looked for: the measured part of the run.
    pub kept: u64,
    /// Blocks and places of sections that found no room.
    pub lost: u64,
    pub sections: Sections,
    /// The names of tasks, by their place in the paths' events and contexts.
    pub tasks: Vec<String>,
}

/// A function that a sample has more of than an ordinary one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    pub function: String,
    pub here: u64,
    pub there: u64,
}

impl Exact {
    /// Of what the plugin wrote. `insn` is the time that an instruction takes.
    pub fn of(dump: &Dump, names: &Names, insn: Nanos) -> Exact {
        let all = |windows: &[Window]| {
            let sample = |window: &Window| sample(dump, window, names, insn);
            windows.iter().map(sample).collect::<Vec<_>>()
        };
        let (mut worst, mut ordinary) = (all(&dump.worst), all(&dump.ordinary));
        worst.sort_by_key(|sample| (std::cmp::Reverse(sample.latency), sample.due));
        ordinary.sort_by_key(|sample| (sample.latency, sample.due));
        let of_kind = |kind| sections::sections(dump, names, kind);
        Exact {
            insns: dump.insns,
            samples_seen: dump.samples,
            cut: dump.cut,
            worst,
            ordinary,
            kept: dump.kept,
            lost: dump.lost,
            sections: Sections {
                irqs_disabled: of_kind(SectionKind::Irqs),
                preemption_disabled: of_kind(SectionKind::Preemption),
                not_preempted: of_kind(SectionKind::Resched),
                migration_disabled: of_kind(SectionKind::Migration),
                lock_waits: of_kind(SectionKind::LockWait),
            },
            tasks: dump.tasks.iter().map(|task| task.comm.clone()).collect(),
        }
    }

    /// The ordinary sample to compare with: the one in the middle.
    pub fn typical(&self) -> Option<&ExactSample> {
        self.ordinary.get(self.ordinary.len() / 2)
    }
}

impl ExactSample {
    /// What this sample has more of than another, the most first.
    pub fn more_than(&self, other: &ExactSample) -> Vec<Difference> {
        let there = |name: &str| {
            other.functions.iter().find(|function| function.name == name).map_or(0, |f| f.own)
        };
        let mut more: Vec<Difference> = self
            .functions
            .iter()
            .map(|function| Difference {
                function: function.name.clone(),
                here: function.own,
                there: there(&function.name),
            })
            .filter(|difference| difference.here > difference.there)
            .collect();
        more.sort_by_key(|difference| std::cmp::Reverse(difference.here - difference.there));
        more
    }
}

fn sample(dump: &Dump, window: &Window, names: &Names, insn: Nanos) -> ExactSample {
    let path = Path::of(dump, window, names, insn);
    let parts = phases::parts(&path, window.task);
    let functions = path.functions();
    ExactSample {
        due: window.due,
        latency: Nanos(window.woke.saturating_sub(window.due)),
        thread: window.task.map(|task| dump.tasks[task].comm.clone()),
        path,
        parts,
        functions,
    }
}
