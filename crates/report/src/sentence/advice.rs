//! What to do about a cause of latency, and which rules of `punctual check` look at the same.

use punctual_analyze::explain::{Budget, Cause, Mode};
use punctual_analyze::threads::Interrupt;
use punctual_core::Names;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// What to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advice {
    /// In a sentence or two.
    pub text: String,
    /// Rules of `punctual check` whose remedy it is, the nearest first.
    pub rules: &'static [&'static str],
}

/// What to do about a cause.
pub fn of(cause: Cause, names: &Names) -> Advice {
    let (text, rules): (&str, &'static [&'static str]) = match cause {
        Cause::Stolen => (
            "Time that a hypervisor or the firmware takes is beyond any setting of this system: give the guest CPUs of its own, or measure on the hardware.",
            &["steal-time", "hypervisor", "smi-count"],
        ),
        Cause::TimerLate { mode: Mode::User, .. } => (
            "Interrupts are never off in user mode: the timer itself came late, as it does under a hypervisor.",
            &["hypervisor", "tsc-deadline-timer", "smi-count"],
        ),
        Cause::TimerLate { .. } => (
            "Keep this task away from the CPU: set the CPU apart, or bind the task to others. What holds interrupts off for long is a driver or a console; a real-time kernel has fewer such places.",
            &["isolated-cpus", "preemption-model", "user-tasks", "console-messages", "serial-console"],
        ),
        Cause::Interrupt(Interrupt::Hard(_)) => (
            "Send this device's interrupt to another CPU, or run its handler as a thread below this task's priority.",
            &["interrupts-elsewhere", "irqbalance", "managed-interrupts", "threaded-interrupts"],
        ),
        Cause::Interrupt(Interrupt::Vector(vector)) => return of_vector(vector, names),
        Cause::Interrupt(Interrupt::Soft(vector)) => return of_softirq(vector, names),
        Cause::IdleExit { .. } => (
            "Forbid deep idle states: hold /dev/cpu_dma_latency at 0 while it matters (punctual does so for its runs unless told otherwise), or limit them at boot.",
            &["idle-states", "governor"],
        ),
        Cause::Waking { .. } => (
            "The wake-up has to reach another CPU by an interrupt: let who wakes and who is woken share a CPU or a cache, or keep that CPU free.",
            &["isolated-cpus", "idle-states"],
        ),
        Cause::NotSwitched { .. } => (
            "Only a real-time kernel can be preempted nearly everywhere; with another one keep this task off the CPU.",
            &["preemption-model", "preemption-request", "isolated-cpus", "user-tasks", "kernel-threads"],
        ),
        Cause::Preempted { .. } => (
            "A more urgent task ran: give that one another CPU, or this one a higher priority, if it is the more important one.",
            &["competing-priorities", "irq-thread-priorities", "isolated-cpus"],
        ),
        Cause::Throttled { budget: Budget::Group, .. } => (
            "The control group's quota (cpu.max) stops its tasks for the rest of a period: raise it or take the task out.",
            &[],
        ),
        Cause::Throttled { budget: Budget::Deadline, .. } => {
            ("The task used more than the runtime that it asked for: ask for more, or do less in a period.", &[])
        }
        Cause::Throttled { .. } => (
            "Real-time tasks used up what they may use: let them rest, or lift the limit where nothing else needs this CPU.",
            &["rt-throttling", "fair-server", "rt-group-budget"],
        ),
        Cause::Runqueue { .. } => (
            "Another task of the same rank has the CPU: give the threads CPUs of their own, or different priorities.",
            &["user-tasks", "isolated-cpus", "kernel-threads", "competing-priorities"],
        ),
        Cause::Migration { .. } => {
            ("Bind the thread to one CPU: moving it costs the time of a stop and its caches.", &["isolated-cpus"])
        }
        Cause::Lock { kernel: true, .. } => (
            "The lock is one inside the kernel: keep both tasks from the same files, mappings and descriptors while it matters.",
            &["preemption-model"],
        ),
        Cause::Lock { .. } => ("Hold this lock for a shorter time, share less, or hand data over without a lock.", &[]),
        Cause::Inversion { .. } => (
            "Make it a mutex with priority inheritance (PTHREAD_PRIO_INHERIT): its holder then runs with the urgency of who waits.",
            &[],
        ),
        Cause::Io { .. } => (
            "Do not wait for a device in a real-time thread: hand the data to another thread, and write there.",
            &["writeback-workqueue", "access-times"],
        ),
        Cause::PageFault => (
            "Lock the memory before it matters: mlockall(MCL_CURRENT | MCL_FUTURE), touch the stack and what is allocated once, and allocate nothing later.",
            &["memory-lock-limit", "swap", "transparent-hugepages", "numa-balancing"],
        ),
        Cause::Reclaim => (
            "Memory was short, and the thread had to free some itself: lock it, allocate nothing later, and leave more memory free.",
            &["memory-lock-limit", "swap", "hugepage-defrag"],
        ),
        Cause::Sleeping { .. } => {
            ("The thread waited for another one by its own choice: look at what that one did meanwhile.", &[])
        }
        Cause::Itself { .. } => (
            "The thread used the time itself: look into its own code, with test points or `punctual probe`.",
            &["mitigations", "governor", "frequency-cap"],
        ),
        Cause::Unknown => (
            "Nothing recorded tells. Larger buffers lose less ([explain] buffer), and a kernel with BTF tells more.",
            &["kernel-recorder"],
        ),
    };
    Advice { text: text.to_owned(), rules }
}

fn of_vector(vector: u8, names: &Names) -> Advice {
    let name = names.vector(vector);
    let (text, rules): (&str, &'static [&'static str]) = if name.starts_with("local_timer") {
        (
            "The timer's interrupt is served where the timer was set: the thread's own is needed; ticks and others' timers can be kept away.",
            &["nohz-full", "timer-migration"],
        )
    } else if name.starts_with("reschedule") || name.starts_with("call_function") {
        (
            "Another CPU asked this one for something: keep tasks that share memory or wake each other off this CPU.",
            &["isolated-cpus", "user-tasks"],
        )
    } else if name.starts_with("thermal") {
        ("The processor was too hot and told so.", &["thermal-throttling"])
    } else {
        ("The CPU's own interrupts follow from what runs there: set the CPU apart.", &["isolated-cpus"])
    };
    Advice { text: text.to_owned(), rules }
}

/// The vectors of include/linux/interrupt.h, by their names.
fn of_softirq(vector: u8, names: &Names) -> Advice {
    let (text, rules): (&str, &'static [&'static str]) = match names.softirq(vector).as_str() {
        "NET_RX" | "NET_TX" => (
            "Packets are processed where their interrupt arrives: send the network's interrupts, and its steering, to other CPUs.",
            &["packet-steering", "interrupts-elsewhere"],
        ),
        "RCU" => ("Let callbacks of this CPU run elsewhere.", &["rcu-callbacks"]),
        "TIMER" | "HRTIMER" => (
            "Timers are served where they were set: keep tasks that set them off this CPU.",
            &["timer-migration", "isolated-cpus"],
        ),
        "SCHED" => ("The scheduler balances load over CPUs that are not set apart.", &["isolated-cpus", "nohz-full"]),
        "BLOCK" => (
            "Requests are completed where their interrupt arrives: send it to other CPUs.",
            &["interrupts-elsewhere", "managed-interrupts"],
        ),
        _ => (
            "Softirqs run where they were raised: keep the interrupts and tasks that raise them off this CPU.",
            &["interrupts-elsewhere", "isolated-cpus"],
        ),
    };
    Advice { text: text.to_owned(), rules }
}

/// What `punctual check` said when the run began (`check.json` of a bundle).
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

/// A rule that matches a cause, and what it said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matching {
    /// Its name.
    pub id: &'static str,
    /// What is the case; `None` where it was not checked, or could not be told. From outside: to be escaped.
    pub message: Option<String>,
    /// What mends it, as a command or boot parameter; only where something is wrong. From outside: to be escaped.
    pub fix: Option<String>,
    /// Whether it is as it should be.
    pub is_well: bool,
}

impl Rules {
    /// Of that document; none of one of another shape.
    pub fn of(document: Option<&Value>) -> Rules {
        let rules = document.and_then(|document| document.get("rules")).map(Vec::<Rule>::deserialize);
        let rules = rules.and_then(Result::ok).unwrap_or_default();
        Rules(rules.into_iter().map(|rule| (rule.id.clone(), rule)).collect())
    }

    /// The rules of an advice: those that have something to say if there are any, else the nearest one.
    pub fn matching(&self, advice: &Advice) -> Vec<Matching> {
        let all: Vec<Matching> = advice.rules.iter().map(|id| self.one(id)).collect();
        let wrong: Vec<Matching> = all.iter().filter(|rule| rule.fix.is_some()).take(2).cloned().collect();
        if wrong.is_empty() { all.into_iter().take(1).collect() } else { wrong }
    }

    fn one(&self, id: &'static str) -> Matching {
        let rule = self.0.get(id).filter(|rule| rule.verdict != "unknown");
        let is_well = rule.is_some_and(|rule| rule.verdict == "ok");
        let fix = rule.filter(|_| !is_well).and_then(|rule| rule.fix.clone());
        Matching { id, message: rule.map(|rule| rule.message.clone()), fix, is_well }
    }
}
