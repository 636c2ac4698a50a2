//! `mutex`: each wait for a lock that threads contend for, with its holders meanwhile.

use crate::form::{count_form, duration_form, flag_form, list_form, word_form};
use crate::kind::{DefaultCpus, Kind, KindFacts, ParameterProblems, parameters, words};
use crate::words::Placement;
use punctual_core::event::Group;
use punctual_core::{CpuSet, Nanos, Policy, Priority};

words! {
    /// The computation of the threads.
    Sums {
        /// The integral of 4/(1+x²), every term added to one sum under the lock.
        Shared = "shared",
        /// The same, each thread with its own sum: the lock is taken once per thread and round.
        Own = "own",
    }
}

words! {
    /// The kind of lock.
    LockKind {
        /// pthread_mutex_t of the default type.
        Normal = "normal",
        /// With PTHREAD_PRIO_INHERIT.
        Pi = "pi",
        /// With PTHREAD_MUTEX_ROBUST.
        Robust = "robust",
        /// PTHREAD_MUTEX_ADAPTIVE_NP: spins before it sleeps.
        Adaptive = "adaptive",
        /// pthread_spinlock_t
        Spin = "spin",
        /// A ticket lock: first come, first served.
        Ticket = "ticket",
        /// pthread_rwlock_t, taken for writing.
        Rwlock = "rwlock",
    }
}

parameters! {
    /// Threads that contend for a lock; `threads` is their number, with a series each.
    MutexPlan, MutexSpec {
        /// Which lock: `normal`, `pi`, `robust`, `adaptive` (pthread mutexes), `spin`, `ticket`, or
        /// `rwlock` (taken for writing).
        lock: LockKind = LockKind::Normal, word_form("a lock");
        /// What they compute: `shared`: the integral of 4/(1+x²) in one sum, the lock taken for
        /// every term; `own`: each thread has a sum of its own, the lock taken once per thread and
        /// round.
        sums: Sums = Sums::Shared, word_form("a way to sum up");
        /// Terms of the integral in each round, all threads together.
        terms: u64 = 4_000, count_form(1, 1_000_000_000);
        /// How many rounds; 0: as many as fit into the measure's length.
        rounds: u64 = 0, count_form(0, 1_000_000_000);
        /// How long the lock is held in addition to the summation.
        hold: Nanos = Nanos::ZERO, duration_form(Nanos::ZERO, Nanos::SECOND);
        /// Whether each thread has one of the CPUs, in turn; without, each runs wherever the
        /// scheduler puts it.
        spread: bool = true, flag_form();
        /// The priority of each thread in turn, where the policy has priorities; empty: those of
        /// `priority`.
        priorities: Vec<u8> = Vec::new(), list_form(0, 1_024, count_form(1, 99));
    }
}

impl MutexPlan {
    pub(crate) const FACTS: KindFacts = KindFacts {
        validated_by: "π, a counter behind the lock, and calls of futex(2) by tracepoint",
        explained_by: &[Group::Futex, Group::Lock],
        ..KindFacts::new("mutex", "waits for a lock, with its holders")
    };
}

impl Kind for MutexPlan {
    fn default_placement(&self) -> Placement {
        Placement::Shared(4)
    }
    fn default_cpus(&self) -> DefaultCpus {
        DefaultCpus::All
    }
    fn default_policy(&self) -> Policy {
        Policy::Other
    }
    fn cpus_of(&self, thread: usize, cpus: &CpuSet) -> CpuSet {
        let own_cpu = cpus.iter().nth(thread % cpus.len().max(1)).filter(|_| self.spread);
        own_cpu.map_or_else(|| cpus.clone(), CpuSet::from_cpu)
    }
    fn priority_of(&self, thread: usize) -> Option<Priority> {
        self.priorities.get(thread).and_then(|priority| Priority::new(*priority))
    }
    /// Real-time threads sleep after every 10 ms. But a thread spins for ever if the owner has a
    /// lower priority and no CPU.
    fn is_spinning(&self) -> bool {
        matches!(self.lock, LockKind::Spin | LockKind::Ticket)
    }
}

impl MutexSpec {
    pub(crate) fn check_conflicts(&self, plan: &MutexPlan, problems: &mut ParameterProblems) {
        if plan.terms < problems.threads as u64 {
            let message =
                format!("{} terms are fewer than {} threads", plan.terms, problems.threads);
            problems.report_conflict(
                &self.terms,
                message,
                "choose at least as many terms as threads",
            );
        }
        if plan.priorities.len() > problems.threads {
            let message =
                format!("{} priorities for {} threads", plan.priorities.len(), problems.threads);
            problems.report_conflict(&self.priorities, message, "name at most one for each thread");
        }
        if !matches!(problems.policy, Policy::Fifo | Policy::Rr) && !plan.priorities.is_empty() {
            problems.report_conflict(
                &self.priorities,
                "only policies fifo and rr have priorities",
                "set `policy = \"fifo\"`",
            );
        }
    }
}
