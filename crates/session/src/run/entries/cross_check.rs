//! Compares the counts of interrupts with those of /proc/interrupts.

use super::recorder::EntriesRecorder;
use punctual_core::entry::{EntryCounts, Vector};
use punctual_core::{Fact, Tolerance, Validation};
use punctual_host::environment::Interrupts;
use punctual_host::files::Root;
use std::collections::BTreeMap;

const FILE: &str = "/proc/interrupts";
/// The compared counts: in words, the vectors, and the line of the file.
const VECTORS: [(&str, &[Vector], &str); 4] = [
    ("local timer interrupts", &[Vector::LocalTimer], "LOC"),
    ("reschedule IPIs", &[Vector::Reschedule], "RES"),
    ("function call IPIs", &[Vector::CallFunction, Vector::CallFunctionSingle], "CAL"),
    ("irq_work interrupts", &[Vector::IrqWork], "IWI"),
];

/// The kernel's counts at an instant between two readings of the file.
pub struct CheckedReading {
    before: Fact<Interrupts>,
    counts: BTreeMap<usize, EntryCounts>,
    after: Fact<Interrupts>,
}

impl CheckedReading {
    pub fn read(
        recorder: &mut EntriesRecorder,
        cpus: impl Iterator<Item = usize>,
    ) -> CheckedReading {
        let before = Interrupts::read(&Root::from_system(), FILE);
        recorder.catch_up();
        let counts = cpus.filter_map(|cpu| Some((cpu, recorder.entry_counts(cpu)?))).collect();
        CheckedReading { before, counts, after: Interrupts::read(&Root::from_system(), FILE) }
    }

    /// Names of the devices' interrupts.
    pub(crate) fn interrupt_names(&self) -> BTreeMap<u32, String> {
        let lines = self.after.known_value().map_or(&[][..], |all| &all.lines);
        lines.iter().filter_map(|line| Some((line.irq_number()?, line.requester_name()))).collect()
    }

    /// Entries of tasks of this CPU that found no room.
    pub fn own_lost(&self, cpu: usize) -> u64 {
        self.counts.get(&cpu).map_or(0, |counts| counts.own_lost)
    }

    /// The counts of a CPU since an earlier reading, each beside the file's. `unseen` events of all
    /// CPUs were not shown.
    pub(crate) fn validate_since(
        &self,
        earlier: &CheckedReading,
        cpu: usize,
        recorder: &EntriesRecorder,
        unseen: u64,
    ) -> Vec<Validation> {
        let (Some(first), Some(last)) = (earlier.counts.get(&cpu), self.counts.get(&cpu)) else {
            return Vec::new();
        };
        let compare = |what: &str, claimed: u64, count: &dyn Fn(&Interrupts) -> Option<u64>| {
            let at = |reading: &Fact<Interrupts>| reading.known_value().and_then(count);
            let readings =
                [at(&earlier.before), at(&earlier.after), at(&self.before), at(&self.after)];
            let [Some(a), Some(b), Some(c), Some(d)] = readings else { return None };
            let around = b.saturating_sub(a) + d.saturating_sub(c);
            let tolerance = Tolerance::EXACT
                .allow_fewer(around, "while the file was read")
                .allow_more(unseen, "events that the kernel did not show");
            let counted = Fact::Known(c.saturating_sub(b));
            Some(Validation::compare_counts(what, claimed, counted, FILE, tolerance))
        };
        let line = |id: &'static str| {
            move |all: &Interrupts| all.count_on(all.lines.iter().find(|line| line.id == id)?, cpu)
        };
        let devices = |all: &Interrupts| {
            let lines = all.lines.iter().filter(|line| line.irq_number().is_some());
            Some(lines.filter_map(|line| all.count_on(line, cpu)).sum())
        };
        let count_growth =
            |vectors: &[Vector]| last.vector_count(vectors) - first.vector_count(vectors);
        let are_seen =
            |vectors: &[Vector]| vectors.iter().all(|one| recorder.vectors().contains(one));
        let vectors = VECTORS.into_iter().filter(|(_, vectors, _)| are_seen(vectors));
        let mut validations: Vec<Validation> = vectors
            .filter_map(|(what, of_it, id)| compare(what, count_growth(of_it), &line(id)))
            .collect();
        let shootdowns = last.shootdowns - first.shootdowns;
        let shootdowns = compare("TLB shootdowns", shootdowns, &line("TLB"));
        validations.extend(shootdowns.map(|one| match recorder.sees_calls() {
            true => one,
            false => one.undecided_above("this kernel shows none that has nothing to flush"),
        }));
        let irqs = compare("device interrupts", last.irqs - first.irqs, &devices);
        validations.extend(irqs.map(|one| {
            one.with_explanation("handlers that ran; several devices may share an interrupt")
        }));
        validations
    }
}
