//! What to do about a cause of latency, and which rules of `punctual check` concern it.

use punctual_analyze::explain::{Budget, Cause, Mode};
use punctual_analyze::threads::Interrupt;
use punctual_core::{CauseKind, Names};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// What to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advice {
    pub text: String,
    /// The rules of `punctual check` whose fix it is, the most specific first.
    pub rules: &'static [&'static str],
}

/// What to do about a cause: more specific than [`CauseKind::advice`] where the
/// events show more than the kind.
pub fn of(cause: Cause, names: &Names) -> Advice {
    let (text, rules): (&str, &'static [&'static str]) = match cause {
        Cause::TimerIrqDelay { mode: Mode::User, .. } => (
            "Interrupts are never disabled in user mode: the timer itself expired late, as it \
             does under a hypervisor.",
            &["hypervisor", "tsc-deadline-timer", "smi-count"],
        ),
        Cause::Interrupt(Interrupt::Vector(vector)) => return of_vector(vector, names),
        Cause::Interrupt(Interrupt::Soft(vector)) => return of_softirq(vector, names),
        Cause::Throttled { budget: Budget::Group, .. } => (
            "The quota of the control group (cpu.max) throttles its tasks for the rest of a \
             period: raise it, or move the task out of the group.",
            &[],
        ),
        Cause::Throttled { budget: Budget::Deadline, .. } => (
            "The task used more than the runtime that it reserved: reserve more, or do less in a \
             period.",
            &[],
        ),
        Cause::Lock { kernel: true, .. } => (
            "This lock is in the kernel: let the two tasks use different files, mappings and \
             descriptors while latency matters.",
            &["preemption-model"],
        ),
        cause => (cause.kind().advice(), cause.kind().rules()),
    };
    Advice { text: text.to_owned(), rules }
}

/// What to do about a kind of cause of which no more is known.
pub fn of_kind(kind: CauseKind) -> Advice {
    Advice { text: kind.advice().to_owned(), rules: kind.rules() }
}

/// What to do about a lock that a lower priority holds.
pub fn of_inherited(holder: Option<&str>) -> String {
    format!(
        "Use a mutex with priority inheritance (PTHREAD_PRIO_INHERIT): {} then runs with the \
         priority of the waiting thread. Hold the lock for a shorter time.",
        holder.unwrap_or("its holder")
    )
}

fn of_vector(vector: u8, names: &Names) -> Advice {
    let name = names.vector(vector);
    let (text, rules): (&str, &'static [&'static str]) = if name.starts_with("local_timer") {
        (
            "The timer interrupt is handled on the CPU where the timer was set: the thread needs \
             its own; the tick and the timers of other tasks can be kept away.",
            &["nohz-full", "timer-migration"],
        )
    } else if name.starts_with("reschedule") || name.starts_with("call_function") {
        (
            "Another CPU sent an IPI: keep tasks that share memory or wake each other off this \
             CPU.",
            &["isolated-cpus", "user-tasks"],
        )
    } else if name.starts_with("thermal") {
        ("The processor reported that it is too hot.", &["thermal-throttling"])
    } else {
        (
            "The CPU's own interrupts follow from what runs there: isolate the CPU.",
            &["isolated-cpus"],
        )
    };
    Advice { text: text.to_owned(), rules }
}

/// The vectors of include/linux/interrupt.h, by their names.
fn of_softirq(vector: u8, names: &Names) -> Advice {
    let (text, rules): (&str, &'static [&'static str]) = match names.softirq(vector).as_str() {
        "NET_RX" | "NET_TX" => (
            "Packets are processed on the CPU of their interrupt: set the affinity of the \
             network's interrupts, and packet steering, to other CPUs.",
            &["packet-steering", "interrupts-elsewhere"],
        ),
        "RCU" => {
            ("Offload the RCU callbacks of this CPU to other CPUs (rcu_nocbs).", &["rcu-callbacks"])
        }
        "TIMER" | "HRTIMER" => (
            "Timers expire on the CPU where they were set: keep tasks that set them off this CPU.",
            &["timer-migration", "isolated-cpus"],
        ),
        "SCHED" => (
            "The scheduler balances load over CPUs that are not isolated.",
            &["isolated-cpus", "nohz-full"],
        ),
        "BLOCK" => (
            "Requests complete on the CPU of their interrupt: set its affinity to other CPUs.",
            &["interrupts-elsewhere", "managed-interrupts"],
        ),
        _ => (CauseKind::Softirq.advice(), CauseKind::Softirq.rules()),
    };
    Advice { text: text.to_owned(), rules }
}

/// The result of `punctual check` at the beginning of the run (`check.json` of a bundle).
#[derive(Clone, Debug, Default)]
pub struct Rules(HashMap<String, Rule>);

#[derive(Clone, Debug, Deserialize)]
struct Rule {
    id: String,
    verdict: String,
    message: String,
    #[serde(default)]
    fix: Option<String>,
}

/// A rule that concerns a cause, with its result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matching {
    pub id: &'static str,
    /// Its message; `None` where it was not checked, or is unknown. Untrusted: to be escaped.
    pub message: Option<String>,
    /// The fix, as a command or boot parameter; only where something is wrong. Untrusted: to be
    /// escaped.
    pub fix: Option<String>,
    pub is_well: bool,
}

impl Rules {
    /// Of that document; empty where it has another shape.
    pub fn of(document: Option<&Value>) -> Rules {
        let rules =
            document.and_then(|document| document.get("rules")).map(Vec::<Rule>::deserialize);
        let rules = rules.and_then(Result::ok).unwrap_or_default();
        Rules(rules.into_iter().map(|rule| (rule.id.clone(), rule)).collect())
    }

    /// The rules of an advice: those that have a fix (two at most), else the most specific one.
    pub fn matching(&self, advice: &Advice) -> Vec<Matching> {
        let all: Vec<Matching> = advice.rules.iter().map(|id| self.one(id)).collect();
        let wrong: Vec<Matching> =
            all.iter().filter(|rule| rule.fix.is_some()).take(2).cloned().collect();
        if wrong.is_empty() { all.into_iter().take(1).collect() } else { wrong }
    }

    fn one(&self, id: &'static str) -> Matching {
        let rule = self.0.get(id).filter(|rule| rule.verdict != "unknown");
        let is_well = rule.is_some_and(|rule| rule.verdict == "ok");
        let fix = rule.filter(|_| !is_well).and_then(|rule| rule.fix.clone());
        Matching { id, message: rule.map(|rule| rule.message.clone()), fix, is_well }
    }
}
