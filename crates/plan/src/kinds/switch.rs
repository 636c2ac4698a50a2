//! `switch`: from the last instruction of one task to the first of the next.

use crate::form::{bytes_form, count_form, duration_form, list_form, word_form};
use crate::kind::{
    DefaultCpus, HistogramPlan, Kind, KindFacts, ParameterProblems, SampledBy, parameters, words,
};
use punctual_core::{Bytes, Nanos, Policy};

words! {
    /// The handover from one task to the next.
    Mechanism {
        /// One byte through a pipe(2).
        Pipe = "pipe",
        /// An eventfd(2).
        Eventfd = "eventfd",
        /// A futex(2).
        Futex = "futex",
        /// A real-time signal, waited for with sigwaitinfo(2).
        Signal = "signal",
        /// Two SCHED_RR tasks that sleep and wake in turn.
        Sleep = "sleep",
        /// sched_yield(2) among tasks of equal priority.
        Yield = "yield",
    }
}

words! {
    /// The kind of the tasks.
    Tasks {
        /// Threads of one process: one address space.
        Threads = "threads",
        /// Processes: the address space changes with every switch.
        Processes = "processes",
    }
}

words! {
    /// The distance of neighbours in the ring.
    Distance {
        /// On one CPU: a switch is a context switch.
        SameCpu = "same-cpu",
        /// On the other hardware thread of the same core.
        Smt = "smt",
        /// On another core with the same last-level cache.
        SameCache = "same-cache",
        /// On a core with another last-level cache.
        OtherCache = "other-cache",
        /// On any other CPU.
        OtherCpu = "other-cpu",
    }
}

words! {
    /// How a task goes through its working set, which decides what a switch takes from it.
    Walk {
        /// A word of each cache line is read and written: caches.
        Lines = "lines",
        /// One word of each page, in another line of each: the TLB.
        Pages = "pages",
        /// A branch by each byte, which is random and the task's own: the branch predictor.
        Branches = "branches",
        /// The same loop over bytes that are all alike: nothing to predict.
        Straight = "straight",
    }
}

parameters! {
    /// A ring of tasks, of which one runs at a time.
    SwitchPlan, SwitchSpec {
        /// How one task hands over to the next: `pipe`, `eventfd`, `futex`, `signal`, `sleep` (two
        /// tasks that sleep and wake in turn) or `yield`.
        mechanism: Mechanism = Mechanism::Pipe, word_form("a way to hand over");
        /// What the tasks are: `threads` of one process, or `processes`.
        tasks: Tasks = Tasks::Threads, word_form("a kind of task");
        /// The number of tasks in the ring.
        ring: u32 = 2, count_form(2, 1_024);
        /// Where neighbours run: `same-cpu`, `smt` (the other hardware thread of the core),
        /// `same-cache` (another core below the same last-level cache), `other-cache`, or
        /// `other-cpu` (any).
        distance: Distance = Distance::SameCpu, word_form("a distance");
        /// What each task reads and writes between two switches; a series `ws-SIZE` for each where
        /// there are several.
        working_set: Vec<Bytes> = vec![Bytes(0)], list_form(1, 32, bytes_form(Bytes(0),
            Bytes::mib(16)));
        /// How a task goes through its set: `lines` reads and writes each cache line; `pages` one
        /// word of each page, which takes few lines and many entries of the TLB; `branches` takes
        /// a branch by each byte, random and the task's own; `straight`, its control, is the same
        /// loop over bytes that are all alike.
        walk: Walk = Walk::Lines, word_form("a way to go through a working set");
        /// How long all tasks sleep after every 10ms.
        rest: Nanos = Nanos::from_millis(1), duration_form(Nanos::ZERO, Nanos::SECOND);
    }
}

/// The maximum of all working sets of a ring together.
const MOST_MEMORY: u64 = 1 << 30;

impl SwitchPlan {
    pub(crate) const FACTS: KindFacts = KindFacts {
        sampled_by: SampledBy::Helpers,
        validated_by: "switches of each task by getrusage(2), and by perf",
        times_calls: true,
        ..KindFacts::new("switch", "from the last instruction of one task to the first of the next")
    };
}

impl Kind for SwitchPlan {
    fn series_parts(&self) -> Vec<String> {
        let one = self.working_set.len() == 1;
        if one {
            Vec::new()
        } else {
            self.working_set.iter().map(|size| format!("ws-{size}")).collect()
        }
    }
    fn default_cpus(&self) -> DefaultCpus {
        if self.distance == Distance::SameCpu { DefaultCpus::Last } else { DefaultCpus::All }
    }
    fn default_policy(&self) -> Policy {
        if self.mechanism == Mechanism::Sleep { Policy::Rr } else { Policy::Fifo }
    }
    fn default_histogram(&self) -> HistogramPlan {
        HistogramPlan { range: Nanos::MILLI, resolution: Nanos(100) }
    }
    fn is_spinning(&self) -> bool {
        self.rest == Nanos::ZERO
    }
}

impl SwitchSpec {
    pub(crate) fn check_conflicts(&self, plan: &SwitchPlan, problems: &mut ParameterProblems) {
        if problems.threads != 1 {
            let help = "leave `threads` out; `ring` is the number of tasks";
            problems.report_conflict(&self.ring, "a switch is measured by one ring", help);
        }
        if plan.mechanism == Mechanism::Yield && plan.distance != Distance::SameCpu {
            let help = "choose `distance = \"same-cpu\"`, or another mechanism";
            problems.report_conflict(
                &self.distance,
                "sched_yield yields only to tasks of the same CPU",
                help,
            );
        }
        if plan.mechanism == Mechanism::Sleep && plan.distance != Distance::SameCpu {
            let help = "choose `distance = \"same-cpu\"`, or another mechanism";
            problems.report_conflict(
                &self.distance,
                "tasks that sleep and wake in turn switch on one CPU",
                help,
            );
        }
        if plan.mechanism == Mechanism::Sleep && plan.ring != 2 {
            problems.report_conflict(
                &self.ring,
                "the sleep and wake pair is a pair",
                "leave `ring` out, or choose another mechanism",
            );
        }
        let largest = plan.working_set.iter().max().map_or(0, |size| size.get());
        if largest.saturating_mul(plan.ring.into()) > MOST_MEMORY {
            let message =
                format!("{} tasks with {} each need more than 1 GiB", plan.ring, Bytes(largest));
            problems.report_conflict(
                &self.working_set,
                message,
                "choose fewer tasks or smaller working sets",
            );
        }
        let mut sorted = plan.working_set.clone();
        sorted.sort();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            problems.report_conflict(
                &self.working_set,
                "a working set is listed twice",
                "name each size once",
            );
        }
    }
}
