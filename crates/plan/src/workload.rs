//! The workload of a measure: the only place that lists all kinds.

use crate::form::Key;
use crate::kinds::{
    DefaultCpus, EntriesPlan, EntriesSpec, HeapPlan, HeapSpec, HistogramPlan, IrqPlan, IrqSpec,
    Kind, MutexPlan, MutexSpec, NetioPlan, NetioSpec, ParameterProblems, ProgramPlan, ProgramSpec,
    SpinPlan, SpinSpec, StoragePlan, StorageSpec, SwitchPlan, SwitchSpec, SyscallPlan, SyscallSpec,
    TestpointCostPlan, TestpointCostSpec, TimerPlan, TimerSpec,
};
use crate::notes::Notes;
use crate::section::Section;
use crate::table::Table;
use crate::words::{Placement, Word, WorkloadKind};
use punctual_core::{CpuSet, Nanos, Policy, Priority};

/// Declares the enums of all kinds but the timer, which is resolved separately, and their
/// accessors.
macro_rules! kinds {
    ($( $kind:ident($spec:ident, $plan:ident) )*) => {
        /// The kind of a measure and the keys that only this kind has, as the file sets them.
        #[derive(Clone, Debug)]
        pub enum WorkloadSpec {
            /// The keys of [`WorkloadKind::Timer`].
            Timer(TimerSpec),
            $(
                #[doc = concat!("The keys of [`WorkloadKind::", stringify!($kind), "`].")]
                $kind($spec),
            )*
        }

        /// The work of a measure's threads.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Workload {
            /// The timer of [`WorkloadKind::Timer`].
            Timer(TimerPlan),
            $(
                #[doc = concat!("What [`WorkloadKind::", stringify!($kind), "`] times.")]
                $kind($plan),
            )*
        }

        impl Default for WorkloadSpec {
            fn default() -> WorkloadSpec {
                WorkloadSpec::Timer(TimerSpec::default())
            }
        }

        impl WorkloadKind {
            /// The keys that only this kind has.
            pub fn keys(self) -> Vec<Key> {
                match self {
                    WorkloadKind::Timer => TimerSpec::keys(),
                    $( WorkloadKind::$kind => $spec::keys(), )*
                }
            }
        }

        impl WorkloadSpec {
            /// Reads the keys of a kind.
            pub(crate) fn read(
                kind: WorkloadKind,
                notes: &mut Notes,
                t: &mut Table,
            ) -> WorkloadSpec {
                match kind {
                    WorkloadKind::Timer => WorkloadSpec::Timer(TimerSpec::read(notes, t)),
                    $( WorkloadKind::$kind => WorkloadSpec::$kind($spec::read(notes, t)), )*
                }
            }
            /// The `kind` of the measure.
            pub fn kind(&self) -> WorkloadKind {
                match self {
                    WorkloadSpec::Timer(_) => WorkloadKind::Timer,
                    $( WorkloadSpec::$kind(_) => WorkloadKind::$kind, )*
                }
            }
            /// The keys that are set, with their values in TOML.
            pub(crate) fn entries(&self) -> Vec<(&'static str, String)> {
                match self {
                    WorkloadSpec::Timer(spec) => spec.entries(),
                    $( WorkloadSpec::$kind(spec) => spec.entries(), )*
                }
            }
            /// Checks for contradictions.
            pub(crate) fn check(&self, plan: &Workload, problems: &mut ParameterProblems) {
                match (self, plan) {
                    $( (WorkloadSpec::$kind(spec), Workload::$kind(plan)) => {
                        spec.beside_defaults().check(plan, problems)
                    } )*
                    _ => {}
                }
            }
            /// Fills in every default; those of a timer depend on its policy, which the caller
            /// knows.
            pub(crate) fn resolved(&self, timer: impl FnOnce(&TimerSpec) -> TimerPlan) -> Workload {
                match self {
                    WorkloadSpec::Timer(spec) => Workload::Timer(timer(spec)),
                    $( WorkloadSpec::$kind(spec) => Workload::$kind(spec.resolved()), )*
                }
            }
        }

        impl Workload {
            /// The `kind` of the measure.
            pub fn kind(&self) -> WorkloadKind {
                match self {
                    Workload::Timer(_) => WorkloadKind::Timer,
                    $( Workload::$kind(_) => WorkloadKind::$kind, )*
                }
            }
            /// The experiment that sets everything.
            pub(crate) fn spec(&self) -> WorkloadSpec {
                match self {
                    Workload::Timer(plan) => WorkloadSpec::Timer(plan.spec()),
                    $( Workload::$kind(plan) => WorkloadSpec::$kind(plan.spec()), )*
                }
            }
            /// Every parameter of the kind by its key, for display.
            pub fn facts(&self) -> Vec<(&'static str, String)> {
                match self {
                    Workload::Timer(plan) => plan.facts(),
                    $( Workload::$kind(plan) => plan.facts(), )*
                }
            }
            fn of_kind(&self) -> &dyn Kind {
                match self {
                    Workload::Timer(plan) => plan,
                    $( Workload::$kind(plan) => plan, )*
                }
            }
        }
    };
}

kinds! {
    Syscall(SyscallSpec, SyscallPlan)
    Switch(SwitchSpec, SwitchPlan)
    Irq(IrqSpec, IrqPlan)
    Mutex(MutexSpec, MutexPlan)
    Heap(HeapSpec, HeapPlan)
    Storage(StorageSpec, StoragePlan)
    Netio(NetioSpec, NetioPlan)
    Spin(SpinSpec, SpinPlan)
    TestpointCost(TestpointCostSpec, TestpointCostPlan)
    Program(ProgramSpec, ProgramPlan)
    Entries(EntriesSpec, EntriesPlan)
}

impl Workload {
    /// The last parts of the names of each thread's series; empty: one series with the name of the
    /// thread.
    pub fn parts(&self) -> Vec<String> {
        self.of_kind().parts()
    }
    /// The distance between two samples, if there is one.
    pub fn period(&self) -> Option<Nanos> {
        self.of_kind().period()
    }
    /// Whether threads of punctual measure: a program has its own, and entries are those of CPUs.
    pub fn has_threads(&self) -> bool {
        !matches!(self, Workload::Program(_) | Workload::Entries(_))
    }
    /// Whether a real-time thread of this kind never sleeps by itself.
    pub fn spins(&self) -> bool {
        self.of_kind().spins()
    }
    /// The CPUs of one of its threads that share these CPUs.
    pub(crate) fn cpus_of(&self, thread: usize, cpus: &CpuSet) -> CpuSet {
        self.of_kind().cpus_of(thread, cpus)
    }
    /// The priority of one of its threads, if it has its own.
    pub(crate) fn priority_of(&self, thread: usize) -> Option<Priority> {
        self.of_kind().priority_of(thread)
    }
    pub(crate) fn placement(&self) -> Placement {
        self.of_kind().placement()
    }
    pub(crate) fn default_cpus(&self) -> DefaultCpus {
        self.of_kind().cpus()
    }
    pub(crate) fn policy(&self) -> Policy {
        self.of_kind().policy()
    }
    pub(crate) fn histogram(&self) -> HistogramPlan {
        self.of_kind().histogram()
    }
    /// The series of a thread, by their full names.
    pub fn series_of(&self, thread: &str) -> Vec<String> {
        match self.parts() {
            parts if parts.is_empty() => vec![thread.to_owned()],
            parts => parts.iter().map(|part| format!("{thread}/{part}")).collect(),
        }
    }
}

impl WorkloadKind {
    /// Every kind, with its description in one line.
    pub fn titles() -> impl Iterator<Item = (&'static str, &'static str)> {
        WorkloadKind::WORDS.iter().map(|(word, kind)| (*word, kind.title()))
    }
    /// Its description, in one line.
    pub fn title(self) -> &'static str {
        match self {
            WorkloadKind::Timer => "from the expiry of a timer to the thread that waits for it",
            WorkloadKind::Syscall => "one system call",
            WorkloadKind::Switch => {
                "from the last instruction of one task to the first of the next"
            }
            WorkloadKind::Irq => "from an interrupt to its handler and to the waiting thread",
            WorkloadKind::Mutex => "waits for a lock, with its holders",
            WorkloadKind::Heap => "malloc, first touch, free",
            WorkloadKind::Storage => "open, write, close and sync of a file",
            WorkloadKind::Netio => {
                "a periodic task that receives, encrypts and writes, step by step"
            }
            WorkloadKind::Spin => "gaps in a loop that only reads the clock",
            WorkloadKind::TestpointCost => "the cost of a test point, by mechanism",
            WorkloadKind::Program => "the cycles of an unmodified program's threads",
            WorkloadKind::Entries => "entries into the kernel on CPUs, and who caused them",
        }
    }
}
