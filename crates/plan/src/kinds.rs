//! The kinds of workload: the only place that lists all of them. One file per kind declares its
//! facts, its keys and its properties; parsing, defaults, writing, `--plan` and documents are
//! derived from these.

mod entries;
mod heap;
mod irq;
mod mutex;
mod netio;
mod program;
mod spin;
mod storage;
mod switch;
mod syscall;
mod testpoint_cost;
mod timer;

pub use entries::{EntriesPlan, EntriesSpec};
pub use heap::{HeapPlan, HeapSpec, Sizes};
pub use irq::{IrqPlan, IrqSource, IrqSpec};
pub use mutex::{LockKind, MutexPlan, MutexSpec, Sums};
pub use netio::{Cipher, NetioPlan, NetioSpec, RequestAt, Transport, Writing};
pub use program::{ProgramPlan, ProgramSpec};
pub use spin::{SpinPlan, SpinSpec};
pub use storage::{Forcing, StorageMode, StoragePlan, StorageSpec};
pub use switch::{Distance, Mechanism, SwitchPlan, SwitchSpec, Tasks, Walk};
pub use syscall::{Call, SyscallPlan, SyscallSpec, Target};
pub use testpoint_cost::{PointMechanism, TestpointCostPlan, TestpointCostSpec};
pub use timer::{TimerPlan, TimerSpec};

pub use crate::kind::{HistogramPlan, SampledBy};

use crate::form::SectionKey;
use crate::kind::{DefaultCpus, Kind, KindFacts, ParameterProblems};
use crate::notes::ProblemNotes;
use crate::section::FileSection;
use crate::table::TomlTable;
use crate::words::{Placement, Word};
use punctual_core::event::Group;
use punctual_core::{CpuSet, Nanos, Policy, Priority};

/// Declares the enums of all kinds and their accessors.
macro_rules! kinds {
    ($( $(#[$doc:meta])+ $kind:ident($spec:ident, $plan:ident) )*) => {
        /// The kinds of measure.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum WorkloadKind { $( $(#[$doc])+ $kind, )* }

        impl Word for WorkloadKind {
            const WORDS: &'static [(&'static str, WorkloadKind)] =
                &[ $( ($plan::FACTS.word, WorkloadKind::$kind), )* ];
        }

        /// The kind of a measure and the keys that only this kind has, as the file sets them.
        #[derive(Clone, Debug)]
        pub enum WorkloadSpec { $( $(#[$doc])+ $kind($spec), )* }

        /// The work of a measure's threads.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Workload { $( $(#[$doc])+ $kind($plan), )* }

        impl WorkloadKind {
            const fn facts(self) -> KindFacts {
                match self { $( WorkloadKind::$kind => $plan::FACTS, )* }
            }
            /// The keys that only this kind has.
            pub fn keys(self) -> Vec<SectionKey> {
                match self { $( WorkloadKind::$kind => $spec::section_keys(), )* }
            }
        }

        impl WorkloadSpec {
            /// Reads the keys of a kind.
            pub(crate) fn read(
                kind: WorkloadKind,
                notes: &mut ProblemNotes,
                t: &mut TomlTable,
            ) -> WorkloadSpec {
                match kind {
                    $( WorkloadKind::$kind => WorkloadSpec::$kind($spec::read(notes, t)), )*
                }
            }
            /// The `kind` of the measure.
            pub fn kind(&self) -> WorkloadKind {
                match self { $( WorkloadSpec::$kind(_) => WorkloadKind::$kind, )* }
            }
            /// The keys that are set, with their values in TOML.
            pub(crate) fn entries(&self) -> Vec<(&'static str, String)> {
                match self { $( WorkloadSpec::$kind(spec) => spec.toml_entries(), )* }
            }
            /// Checks for contradictions.
            pub(crate) fn check(&self, plan: &Workload, problems: &mut ParameterProblems) {
                match (self, plan) {
                    $( (WorkloadSpec::$kind(spec), Workload::$kind(plan)) => {
                        spec.beside_defaults().check_conflicts(plan, problems)
                    } )*
                    _ => {}
                }
            }
            /// Fills in every default.
            pub(crate) fn resolved(&self) -> Workload {
                match self { $( WorkloadSpec::$kind(spec) => Workload::$kind(spec.to_plan()), )* }
            }
        }

        impl Workload {
            /// The `kind` of the measure.
            pub fn kind(&self) -> WorkloadKind {
                match self { $( Workload::$kind(_) => WorkloadKind::$kind, )* }
            }
            /// The experiment that sets everything.
            pub(crate) fn spec(&self) -> WorkloadSpec {
                match self { $( Workload::$kind(plan) => WorkloadSpec::$kind(plan.to_spec()), )* }
            }
            /// Every parameter of the kind by its key, for display.
            pub fn facts(&self) -> Vec<(&'static str, String)> {
                match self { $( Workload::$kind(plan) => plan.display_entries(), )* }
            }
            fn of_kind(&self) -> &dyn Kind {
                match self { $( Workload::$kind(plan) => plan, )* }
            }
        }
    };
}

kinds! {
    /// Timer latency.
    Timer(TimerSpec, TimerPlan)
    /// A system call.
    Syscall(SyscallSpec, SyscallPlan)
    /// A context switch.
    Switch(SwitchSpec, SwitchPlan)
    /// An interrupt.
    Irq(IrqSpec, IrqPlan)
    /// A wait for a lock.
    Mutex(MutexSpec, MutexPlan)
    /// Memory from the heap.
    Heap(HeapSpec, HeapPlan)
    /// Writing to a file.
    Storage(StorageSpec, StoragePlan)
    /// Receiving, encrypting, writing.
    Netio(NetioSpec, NetioPlan)
    /// Gaps in a busy loop.
    Spin(SpinSpec, SpinPlan)
    /// Writing a test point.
    TestpointCost(TestpointCostSpec, TestpointCostPlan)
    /// The cycles of a program.
    Program(ProgramSpec, ProgramPlan)
    /// Entries into the kernel.
    Entries(EntriesSpec, EntriesPlan)
}

impl Workload {
    /// The last parts of the names of each thread's series; empty: one series with the name of the
    /// thread.
    pub(crate) fn series_parts(&self) -> Vec<String> {
        self.of_kind().series_parts()
    }
    /// The distance between two samples, if there is one.
    pub fn sample_period(&self) -> Option<Nanos> {
        self.of_kind().sample_period()
    }
    /// Whether threads of punctual measure: a program has its own, and entries are those of CPUs.
    pub fn has_threads(&self) -> bool {
        self.kind().sampled_by() != SampledBy::Kernel
    }
    /// Whether a real-time thread of this kind never sleeps by itself.
    pub(crate) fn is_spinning(&self) -> bool {
        self.of_kind().is_spinning()
    }
    /// The CPUs of one of its threads that share these CPUs.
    pub(crate) fn cpus_of(&self, thread: usize, cpus: &CpuSet) -> CpuSet {
        self.of_kind().cpus_of(thread, cpus)
    }
    /// The priority of one of its threads, if it has its own.
    pub(crate) fn priority_of(&self, thread: usize) -> Option<Priority> {
        self.of_kind().priority_of(thread)
    }
    pub(crate) fn default_placement(&self) -> Placement {
        self.of_kind().default_placement()
    }
    pub(crate) fn default_cpus(&self) -> DefaultCpus {
        self.of_kind().default_cpus()
    }
    pub(crate) fn default_policy(&self) -> Policy {
        self.of_kind().default_policy()
    }
    pub(crate) fn default_histogram(&self) -> HistogramPlan {
        self.of_kind().default_histogram()
    }
    /// The series of a thread, by their full names.
    pub fn series_of(&self, thread: &str) -> Vec<String> {
        match self.series_parts() {
            parts if parts.is_empty() => vec![thread.to_owned()],
            parts => parts.iter().map(|part| format!("{thread}/{part}")).collect(),
        }
    }
}

impl Default for WorkloadSpec {
    fn default() -> WorkloadSpec {
        WorkloadSpec::Timer(TimerSpec::default())
    }
}

impl WorkloadKind {
    /// The kind with this word.
    pub fn from_word(word: &str) -> Option<WorkloadKind> {
        WorkloadKind::WORDS.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind)
    }
    /// Its description, in one line.
    pub fn title(self) -> &'static str {
        self.facts().title
    }
    /// The task that takes its samples.
    pub fn sampled_by(self) -> SampledBy {
        self.facts().sampled_by
    }
    /// The independent source that its own counts are compared with.
    pub fn validated_by(self) -> &'static str {
        self.facts().validated_by
    }
    /// Its word in the series of a bundle.
    pub const fn in_bundle(self) -> &'static str {
        self.facts().in_bundle
    }
    /// The groups of events that show its waits, besides those that every kind has.
    pub(crate) fn explained_by(self) -> &'static [Group] {
        self.facts().explained_by
    }
    /// Whether it times system calls.
    pub(crate) fn times_calls(self) -> bool {
        self.facts().times_calls
    }
}
