//! Activity on a set of CPUs: interrupts and context switches counted over an interval, tasks seen
//! by sampling.

use crate::environment::Interrupts;
use crate::files::Files;
use crate::journal::record::TaskId;
use crate::journal::tasks;
use punctual_core::{CpuSet, Fact, Nanos};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Limits of the samples and of the stored tasks.
const MAX_SAMPLES: usize = 10_000;
const MAX_TASKS: usize = 10_000;

/// The duration and the period of sampling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    pub interval: Nanos,
    /// The time between two samples of the tasks.
    pub period: Nanos,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { interval: Nanos::from_secs(2), period: Nanos::from_millis(50) }
    }
}

/// The activity on the CPUs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Activity {
    /// The length of the interval, in nanoseconds.
    pub interval: Nanos,
    /// The number of samples of the tasks. A task that exists only between two samples is not seen.
    pub samples: usize,
    pub cpus: Vec<CpuActivity>,
    /// The tasks seen running there, the most frequent first.
    pub tasks: Fact<Vec<TaskActivity>>,
    /// Tasks beyond the limit.
    pub tasks_left_out: usize,
}

/// The counts of one CPU over the interval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CpuActivity {
    pub cpu: usize,
    /// Interrupts of its own timer: scheduler ticks and timers of tasks.
    pub timer_interrupts: Fact<u64>,
    /// The number of context switches.
    pub context_switches: Fact<u64>,
    /// Interrupts of all kinds.
    pub interrupts: Fact<Vec<InterruptActivity>>,
    pub softirqs: Fact<Vec<InterruptActivity>>,
}

/// An interrupt and its count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InterruptActivity {
    /// Its number or short word.
    pub id: String,
    pub name: String,
    pub count: u64,
}

/// A task that was seen running.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TaskActivity {
    pub tid: i32,
    /// Its name: any bytes that the task chose.
    pub name: String,
    /// Whether it belongs to the kernel.
    pub kernel: bool,
    /// Whether the kernel has bound it to its CPUs.
    pub bound: bool,
    /// Whether it is a task of the partition itself.
    pub member: bool,
    /// The number of samples in which it had run since the previous one and was on one of the CPUs.
    pub seen: usize,
    /// Its switches during the interval on any CPU: an upper bound for these CPUs.
    pub switches: u64,
    /// Its run time during the interval on any CPU: an upper bound for these CPUs.
    pub run_time: Nanos,
}

/// Samples these CPUs for an interval. `members` are the threads of the partition.
pub fn sample_cpus(
    files: &dyn Files,
    cpus: &CpuSet,
    members: &HashSet<i32>,
    sampling: Sampling,
) -> Activity {
    let begin = Instant::now();
    let before = KernelReading::read(files);
    let mut watch = SamplingWatch::new(files, cpus);
    watch.read_threads(false);
    let mut samples = 0;
    while samples < MAX_SAMPLES {
        let left = sampling.interval.to_std().saturating_sub(begin.elapsed());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(sampling.period.to_std().max(Duration::from_millis(1)).min(left));
        watch.read_threads(true);
        samples += 1;
    }
    let after = KernelReading::read(files);
    let interval = Nanos(i64::try_from(begin.elapsed().as_nanos()).unwrap_or(i64::MAX));
    let cpus = cpus.iter().map(|cpu| after.activity_since(&before, cpu)).collect();
    let (tasks, tasks_left_out) = match read_usage(files, "self") {
        Some(_) => watch.busy_tasks(members),
        None => (
            Fact::Unavailable(
                "the kernel has no CONFIG_SCHED_INFO: /proc/PID/schedstat is missing".into(),
            ),
            0,
        ),
    };
    Activity { interval, samples, cpus, tasks, tasks_left_out }
}

/// The counters of the kernel at one moment.
struct KernelReading {
    interrupts: Fact<Interrupts>,
    softirqs: Fact<Interrupts>,
    switches: Fact<HashMap<usize, u64>>,
}

impl KernelReading {
    fn read(files: &dyn Files) -> KernelReading {
        KernelReading {
            interrupts: Interrupts::read(files, "/proc/interrupts"),
            softirqs: Interrupts::read(files, "/proc/softirqs"),
            switches: read_switches(files),
        }
    }

    fn activity_since(&self, before: &KernelReading, cpu: usize) -> CpuActivity {
        let interrupts = interrupts_between(&before.interrupts, &self.interrupts, cpu);
        let timers = |all: Vec<InterruptActivity>| {
            all.iter().filter(|one| is_timer(one)).map(|one| one.count).sum()
        };
        let context_switches = match (&before.switches, &self.switches) {
            (Fact::Known(before), Fact::Known(after)) => {
                match (before.get(&cpu), after.get(&cpu)) {
                    (Some(before), Some(after)) => Fact::Known(after.saturating_sub(*before)),
                    _ => Fact::Unavailable(format!("/proc/schedstat has no line for CPU {cpu}")),
                }
            }
            (_, why) => why.clone().map(|_| 0),
        };
        CpuActivity {
            cpu,
            timer_interrupts: interrupts.clone().map(timers),
            context_switches,
            interrupts,
            softirqs: interrupts_between(&before.softirqs, &self.softirqs, cpu),
        }
    }
}

/// x86 counts the local timer under LOC; others use an interrupt (`arch_timer`, `riscv-timer`).
fn is_timer(one: &InterruptActivity) -> bool {
    one.id == "LOC" || one.name.ends_with("_timer") || one.name.ends_with("-timer")
}

fn interrupts_between(
    before: &Fact<Interrupts>,
    after: &Fact<Interrupts>,
    cpu: usize,
) -> Fact<Vec<InterruptActivity>> {
    let (Fact::Known(before), Fact::Known(after)) = (before, after) else {
        return after.clone().map(|_| Vec::new());
    };
    let line_activity = |line: &crate::environment::InterruptLine| {
        let old = before
            .lines
            .iter()
            .find(|old| old.id == line.id)
            .and_then(|old| before.count_on(old, cpu));
        let count = after.count_on(line, cpu)?.saturating_sub(old.unwrap_or(0));
        (count > 0).then(|| InterruptActivity {
            id: line.id.clone(),
            name: line.requester_name(),
            count,
        })
    };
    Fact::Known(after.lines.iter().filter_map(line_activity).collect())
}

/// The ninth field of a `cpuN` line: the number of time slices run there
/// (Documentation/scheduler/sched-stats.rst).
fn read_switches(files: &dyn Files) -> Fact<HashMap<usize, u64>> {
    let path = "/proc/schedstat";
    let line = |line: &str| {
        let (name, fields) = line.split_once(' ')?;
        let cpu = name.strip_prefix("cpu")?.parse().ok()?;
        Some((cpu, fields.split_whitespace().nth(8)?.parse().ok()?))
    };
    match files.read(path) {
        Ok(text) => Fact::Known(text.lines().filter_map(line).collect()),
        Err(error) if error.is_missing() => {
            Fact::Unavailable("the kernel has no CONFIG_SCHEDSTATS".into())
        }
        Err(error) => Fact::Unavailable(error.to_string()),
    }
}

/// The usage of a task so far (/proc/TID/schedstat): time on CPUs, and number of switches.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct TaskUsage {
    run: i64,
    slices: u64,
}

struct BusyTask {
    stat: tasks::TaskStat,
    seen: usize,
    used: TaskUsage,
}

struct SamplingWatch<'a> {
    files: &'a dyn Files,
    cpus: &'a CpuSet,
    last: HashMap<TaskId, Option<TaskUsage>>,
    busy_tasks: HashMap<TaskId, BusyTask>,
    left_out: usize,
}

impl<'a> SamplingWatch<'a> {
    fn new(files: &'a dyn Files, cpus: &'a CpuSet) -> SamplingWatch<'a> {
        SamplingWatch { files, cpus, last: HashMap::new(), busy_tasks: HashMap::new(), left_out: 0 }
    }

    /// Reads every thread once; counts those that ran since the last sample and are on one of the
    /// CPUs.
    fn read_threads(&mut self, count: bool) {
        // A sample without a readable /proc sees no task, but counts.
        let mut now = HashMap::new();
        for tid in tasks::all_threads(self.files).unwrap_or_default() {
            let Ok(stat) = tasks::read_stat(self.files, tid) else { continue };
            let usage = read_usage(self.files, tid);
            // A thread that was not in the last sample began since.
            let before = self.last.get(&stat.id).copied().unwrap_or(Some(TaskUsage::default()));
            now.insert(stat.id, usage);
            if count && self.cpus.contains(stat.last_cpu) {
                self.note_run(stat, before, usage);
            }
        }
        self.last = now;
    }

    fn note_run(
        &mut self,
        stat: tasks::TaskStat,
        before: Option<TaskUsage>,
        now: Option<TaskUsage>,
    ) {
        let (Some(before), Some(now)) = (before, now) else { return };
        if now == before {
            return;
        }
        if self.busy_tasks.len() >= MAX_TASKS && !self.busy_tasks.contains_key(&stat.id) {
            self.left_out += 1;
            return;
        }
        let fresh = BusyTask { stat: stat.clone(), seen: 0, used: TaskUsage::default() };
        let visitor = self.busy_tasks.entry(stat.id).or_insert(fresh);
        visitor.seen += 1;
        visitor.used.run += (now.run - before.run).max(0);
        visitor.used.slices += now.slices.saturating_sub(before.slices);
    }

    fn busy_tasks(self, members: &HashSet<i32>) -> (Fact<Vec<TaskActivity>>, usize) {
        let mut tasks: Vec<TaskActivity> =
            self.busy_tasks.into_values().map(|visitor| describe_task(visitor, members)).collect();
        tasks.sort_by_key(|task| (std::cmp::Reverse(task.seen), task.tid));
        (Fact::Known(tasks), self.left_out)
    }
}

fn describe_task(visitor: BusyTask, members: &HashSet<i32>) -> TaskActivity {
    let BusyTask { stat, seen, used } = visitor;
    TaskActivity {
        tid: stat.id.tid,
        kernel: stat.is_kernel_thread(),
        bound: stat.is_bound(),
        member: members.contains(&stat.id.tid),
        name: stat.name,
        seen,
        switches: used.slices,
        run_time: Nanos(used.run),
    }
}

fn read_usage(files: &dyn Files, tid: impl std::fmt::Display) -> Option<TaskUsage> {
    let text = files.read(&format!("/proc/{tid}/schedstat")).ok()?;
    let mut fields = text.split_whitespace();
    let run = fields.next()?.parse().ok()?;
    Some(TaskUsage { run, slices: fields.nth(1)?.parse().ok()? })
}
