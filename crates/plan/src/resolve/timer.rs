//! A timer measure: its method of waiting and its policy, and their valid combinations.

use super::{Resolver, place_or, value_or};
use crate::experiment::{MeasureSpec, TimerSpec};
use crate::kinds::WorkloadKind;
use crate::limits::DEADLINE_PERIODS;
use crate::plan::{DeadlineParameters, SchedulingSpec, TimerPlan};
use crate::problem::{Problem, ProblemKind};
use crate::words::{Nice, TimerMethod, Word};
use punctual_core::{Clock, Nanos, Policy};

/// The default budget of a deadline thread: a tenth of its period, and at least this.
const RUNTIME: Nanos = Nanos::from_micros(10);

impl Resolver<'_> {
    /// The timer and its policy: a deadline method implies a deadline policy and vice versa, unless
    /// the file sets both.
    pub(super) fn resolve_timer(
        &mut self,
        spec: &MeasureSpec,
        timer: &TimerSpec,
    ) -> (TimerPlan, Policy) {
        let mut plan = timer.to_plan();
        let by_method = match plan.method {
            TimerMethod::Deadline => Policy::Deadline,
            _ => Policy::Fifo,
        };
        let policy = value_or(&spec.policy, by_method);
        if policy == Policy::Deadline {
            plan.method = value_or(&timer.method, TimerMethod::Deadline);
        }
        self.check_method(spec, timer, &plan, policy);
        if plan.offset >= plan.period {
            let message = format!(
                "the offset between threads ({}) is not shorter than the period ({})",
                plan.offset, plan.period
            );
            let problem = Problem::error(
                ProblemKind::Combination,
                Some(place_or(&timer.offset, spec.span)),
                message,
            );
            self.note_problem(problem.with_help(
                "an offset shifts the phase of each thread against the one before: less than a \
                 period",
            ));
        }
        (plan, policy)
    }

    fn check_method(
        &mut self,
        spec: &MeasureSpec,
        timer: &TimerSpec,
        plan: &TimerPlan,
        policy: Policy,
    ) {
        if plan.method == TimerMethod::Deadline && policy != Policy::Deadline {
            let span = place_or(&timer.method, spec.span);
            let message = format!(
                "the method `deadline` waits for the period of SCHED_DEADLINE, and the policy is \
                 {policy}"
            );
            let problem = Problem::error(ProblemKind::Combination, Some(span), message);
            let problem = problem.with_related(place_or(&spec.policy, spec.span), "the policy");
            self.note_problem(problem.with_help("choose the policy `deadline`, or another method"));
        }
        let refused = match (plan.method, plan.clock) {
            (TimerMethod::Deadline, Clock::Realtime | Clock::Tai) => {
                "SCHED_DEADLINE counts its periods on no such clock"
            }
            (TimerMethod::Timerfd, Clock::Tai) => "timerfd_create(2) takes no CLOCK_TAI",
            _ => return,
        };
        let message =
            format!("the method `{}` cannot use {}: {refused}", plan.method.word(), plan.clock);
        self.note_error(
            ProblemKind::Combination,
            place_or(&timer.clock, spec.span),
            message,
            "choose another clock or method",
        );
    }

    /// The policy with its parameters.
    pub(super) fn measure_scheduling(
        &mut self,
        spec: &MeasureSpec,
        policy: Policy,
        period: Nanos,
    ) -> SchedulingSpec {
        if !policy.has_priority() {
            self.refuse_priority(&spec.priority, policy);
        }
        if policy != Policy::Deadline {
            for (key, setting) in [("runtime", &spec.runtime), ("deadline", &spec.deadline)] {
                let Some(setting) = setting else { continue };
                if key == "deadline" && spec.workload.kind() == WorkloadKind::Program {
                    continue;
                }
                let message =
                    format!("`{key}` belongs to SCHED_DEADLINE, and the policy is {policy}");
                let help = format!("choose the policy `deadline`, or leave `{key}` out");
                self.note_error(ProblemKind::Combination, setting.span, message, &help);
            }
        }
        match policy {
            Policy::Fifo => SchedulingSpec::Fifo(spec.priority()),
            Policy::Rr => SchedulingSpec::Rr(spec.priority()),
            Policy::Other => SchedulingSpec::Other(Nice::default()),
            Policy::Batch => SchedulingSpec::Batch(Nice::default()),
            Policy::Idle => SchedulingSpec::Idle,
            Policy::Deadline => SchedulingSpec::Deadline(self.resolve_deadline(spec, period)),
        }
    }

    /// runtime ≤ deadline ≤ period, as the kernel requires (__checkparam_dl in
    /// kernel/sched/deadline.c).
    fn resolve_deadline(&mut self, spec: &MeasureSpec, period: Nanos) -> DeadlineParameters {
        let deadline = value_or(&spec.deadline, period);
        let tenth = Nanos(period.ns() / 10).max(RUNTIME).min(deadline);
        let runtime = value_or(&spec.runtime, tenth);
        let mut check = |ordered: bool, span, what: &str| {
            if !ordered {
                let message =
                    format!("{what}: runtime {runtime}, deadline {deadline}, period {period}");
                self.note_error(
                    ProblemKind::Combination,
                    span,
                    message,
                    "SCHED_DEADLINE requires runtime <= deadline <= period",
                );
            }
        };
        check(
            runtime <= deadline,
            place_or(&spec.runtime, spec.span),
            "the runtime is longer than the deadline",
        );
        check(
            deadline <= period,
            place_or(&spec.deadline, spec.span),
            "the deadline is later than the period",
        );
        let (shortest, longest) = DEADLINE_PERIODS;
        if period < shortest || period > longest {
            let message = format!(
                "the kernel takes a period of SCHED_DEADLINE from {shortest} to {longest} by \
                 default"
            );
            let problem =
                Problem::error(ProblemKind::Value, Some(spec.span), message).into_warning();
            self.note_problem(problem.with_help(
                "see sched_deadline_period_min_us and sched_deadline_period_max_us in \
                 /proc/sys/kernel",
            ));
        }
        DeadlineParameters { runtime, deadline, period }
    }
}
