//! Runs the jobs of a lab, each in a process of its own; jobs that do not disturb each other run
//! concurrently.

use super::directory::{Directory, Stamp, is_whole};
use super::jobs::{Job, Planned};
use super::lane::Lane;
use super::progress::{Progress, nanos};
use crate::exit::Failure;
use crate::interrupts::Interrupts;
use crate::messages::Listener;
use punctual_bundle::{Bundle, Outcome};
use punctual_core::{CpuSet, Nanos};
use punctual_report::format::plain;
use punctual_sys::attributes::{affinity, set_affinity, tid};
use punctual_sys::children;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often child processes are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(40);
/// How long a run that was asked to end may take for it.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of a failed run's log is shown.
const LOG_TAIL_BYTES: usize = 600;

/// The result of a job.
#[derive(Clone, Debug)]
pub enum Done {
    /// Its bundle is there.
    Whole(Stamp),
    /// There is no whole bundle, for this reason.
    Failed {
        /// In a line.
        why: String,
        /// The exit code, where there is one.
        exit_code: Option<i32>,
        /// By this machine's clock.
        took: Nanos,
    },
    /// It has not been run.
    Waiting,
}

/// The result of every job, in their order, and whether the lab was interrupted.
pub struct Ran {
    /// One for each job.
    pub done: Vec<Done>,
    /// Ended early.
    pub interrupted: bool,
}

/// A run going on.
struct Running {
    job: usize,
    child: Child,
    began: Instant,
    /// The CPU that it has for itself, by its place among those that may be used.
    slot: Option<usize>,
    inputs: String,
    ended_by_us: bool,
}

/// Runs all jobs without a finished bundle.
///
/// # Errors
/// The directory cannot be written. A run that fails is no error.
pub fn run(
    planned: &Planned,
    jobs: &[Job],
    directory: &Directory,
    interrupts: &Interrupts,
    messages: Listener,
) -> Result<Ran, Failure> {
    let inputs: Vec<String> = jobs.iter().map(|job| directory.inputs(planned, job)).collect();
    let finished = |(job, inputs): (&Job, &String)| match directory.finished(planned, job, inputs) {
        Some(stamp) => Done::Whole(stamp),
        None => Done::Waiting,
    };
    let done: Vec<Done> = jobs.iter().zip(&inputs).map(finished).collect();
    let there = done.iter().filter(|done| matches!(done, Done::Whole(_))).count();
    let mut scheduler = Scheduler {
        planned,
        jobs,
        directory,
        cpus: affinity(0).map(|cpus| cpus.iter().collect()).unwrap_or_default(),
        progress: Progress::new(jobs.len(), there, messages),
        pending: (0..jobs.len()).filter(|k| matches!(done[*k], Done::Waiting)).collect(),
        running: Vec::new(),
        done,
        took: Vec::new(),
    };
    let ended = scheduler.all(&inputs, interrupts);
    scheduler.progress.end();
    let interrupted = ended?;
    Ok(Ran { done: scheduler.done, interrupted })
}

struct Scheduler<'a> {
    planned: &'a Planned,
    jobs: &'a [Job],
    directory: &'a Directory,
    cpus: Vec<usize>,
    progress: Progress,
    pending: Vec<usize>,
    running: Vec<Running>,
    done: Vec<Done>,
    /// What runs took, with what was expected of them where that was known.
    took: Vec<(Nanos, Option<Nanos>)>,
}

impl Scheduler<'_> {
    fn all(&mut self, inputs: &[String], interrupts: &Interrupts) -> Result<bool, Failure> {
        let began = Instant::now();
        while !(self.pending.is_empty() && self.running.is_empty()) {
            if interrupts.end_requested() {
                self.end_all()?;
                return Ok(true);
            }
            // What has begun goes on to its end.
            if self.planned.budget.is_some_and(|budget| began.elapsed() >= budget) {
                self.pending.clear();
            }
            self.start_ready(inputs)?;
            std::thread::sleep(POLL_INTERVAL);
            self.reap()?;
            let left = self.left();
            let names: Vec<String> =
                self.running.iter().map(|running| self.name(running.job)).collect();
            self.progress.refresh(&names, left);
        }
        Ok(false)
    }

    fn start_ready(&mut self, inputs: &[String]) -> Result<(), Failure> {
        loop {
            let lanes: Vec<&Lane> =
                self.running.iter().map(|running| self.lane(running.job)).collect();
            let next = self
                .pending
                .iter()
                .position(|k| self.lane(*k).may_begin(&lanes, self.planned.parallel));
            let Some(next) = next else { return Ok(()) };
            let job = self.pending.remove(next);
            let running = self.begin(job, inputs[job].clone())?;
            self.running.push(running);
        }
    }

    fn begin(&mut self, job: usize, inputs: String) -> Result<Running, Failure> {
        let slot = (*self.lane(job) == Lane::Virtual).then(|| self.free_slot());
        let command = command(self.planned, &self.jobs[job], self.directory)?;
        let child = match slot.and_then(|slot| self.cpus.get(slot % self.cpus.len().max(1))) {
            Some(cpu) => started_on(*cpu, command),
            None => started(command),
        };
        let child =
            child.map_err(|why| Failure::failed(format!("cannot start punctual: {why}")))?;
        Ok(Running { job, child, began: Instant::now(), slot, inputs, ended_by_us: false })
    }

    /// The first CPU that no run has for itself.
    fn free_slot(&self) -> usize {
        (0..)
            .find(|slot| self.running.iter().all(|running| running.slot != Some(*slot)))
            .unwrap_or(0)
    }

    fn reap(&mut self) -> Result<(), Failure> {
        let mut k = 0;
        while k < self.running.len() {
            match self.running[k].child.try_wait() {
                Ok(None) => k += 1,
                Ok(Some(status)) => {
                    let running = self.running.remove(k);
                    self.over(running, status)?;
                }
                Err(why) => return Err(Failure::failed(format!("cannot wait for a run: {why}"))),
            }
        }
        Ok(())
    }

    fn over(&mut self, running: Running, status: ExitStatus) -> Result<(), Failure> {
        let job = &self.jobs[running.job];
        let took = nanos(running.began.elapsed());
        let unfinished = self.directory.unfinished(self.planned, job);
        if running.ended_by_us {
            let _ = fs::remove_dir_all(&unfinished);
            return Ok(());
        }
        let exit_code = status.code();
        let done = if is_whole(&unfinished) {
            let stamp = Stamp {
                inputs: running.inputs,
                took: took.ns(),
                exit_code: exit_code.unwrap_or(-1),
            };
            self.directory.finish(self.planned, job, &stamp)?;
            Done::Whole(stamp)
        } else {
            let why = failed_outcome(&unfinished)
                .unwrap_or_else(|| why(status, &self.directory.log(self.planned, job)));
            let kept = self
                .directory
                .path()
                .join(format!("{}.failed", Directory::bundle(self.planned, job)));
            let _ = fs::remove_dir_all(&kept);
            let _ = fs::rename(&unfinished, &kept);
            Done::Failed { why, exit_code, took }
        };
        if matches!(done, Done::Whole(_)) {
            self.took.push((took, self.planned.expected(job.cell)));
        }
        let failure = match &done {
            Done::Failed { why, .. } => Some(why.clone()),
            _ => None,
        };
        self.done[running.job] = done;
        let left = self.left();
        self.progress.over(
            &self.name(running.job),
            running.began.elapsed(),
            failure.as_deref(),
            left,
        );
        Ok(())
    }

    /// How long the rest takes, from what runs took in relation to what was expected; `None` where
    /// nobody knows.
    fn left(&self) -> Option<Nanos> {
        let ns_of = |time: Nanos| time.ns() as f64;
        let known = self
            .took
            .iter()
            .filter_map(|(took, expected)| Some((ns_of(*took), ns_of((*expected)?))));
        let sums = known.fold((0.0, 0.0), |(took, expected), (t, e)| (took + t, expected + e));
        let factor = if sums.1 > 0.0 { sums.0 / sums.1 } else { 1.0 };
        // Of a cell that does not say how long it takes, what the others took.
        let all: f64 = self.took.iter().map(|(took, _)| ns_of(*took)).sum();
        let mean = (!self.took.is_empty()).then(|| all / self.took.len() as f64);
        let expected =
            |cell: usize| self.planned.expected(cell).map(|time| ns_of(time) * factor).or(mean);
        let mut side_by_side = 0.0;
        let mut alone = 0.0;
        let rest = self.pending.iter().map(|k| (*k, 0.0));
        let going_on = self
            .running
            .iter()
            .map(|running| (running.job, running.began.elapsed().as_nanos() as f64));
        for (job, so_far) in rest.chain(going_on) {
            let expected = expected(self.jobs[job].cell)?;
            match self.lane(job) {
                Lane::Machine => alone += (expected - so_far).max(0.0),
                Lane::Virtual | Lane::Remote(_) => side_by_side += (expected - so_far).max(0.0),
            }
        }
        Some(Nanos((alone + side_by_side / self.planned.parallel.max(1) as f64) as i64))
    }

    /// Ends all running jobs and waits for them.
    fn end_all(&mut self) -> Result<(), Failure> {
        self.progress
            .say("interrupted: ending the running jobs; run the same command again to continue");
        let until = Instant::now() + END_TIMEOUT;
        let mut signal = libc::SIGTERM;
        while !self.running.is_empty() {
            for running in &mut self.running {
                if !running.ended_by_us || signal == libc::SIGKILL {
                    // Gone already is as good.
                    let _ = children::send(-(running.child.id() as i32), signal);
                    running.ended_by_us = true;
                }
            }
            std::thread::sleep(POLL_INTERVAL);
            self.reap()?;
            if Instant::now() > until {
                signal = libc::SIGKILL;
            }
        }
        Ok(())
    }

    fn lane(&self, job: usize) -> &Lane {
        &self.planned.cells[self.jobs[job].cell].lane
    }

    fn name(&self, job: usize) -> String {
        name(self.planned, &self.jobs[job])
    }
}

/// A run in a few words: `6.1_rt_idle seed 7 run 2`.
pub fn name(planned: &Planned, job: &Job) -> String {
    let seed = planned.seeds[job.seed].map_or(String::new(), |seed| format!(" seed {seed}"));
    let repeat =
        if planned.repeat > 1 { format!(" run {}", job.repeat + 1) } else { String::new() };
    format!("{}{seed}{repeat}", planned.cells[job.cell].cell.name)
}

fn command(planned: &Planned, job: &Job, directory: &Directory) -> Result<Command, Failure> {
    let log = directory.log(planned, job);
    let opened = File::create(&log).and_then(|out| Ok((out.try_clone()?, out)));
    let (out, err) =
        opened.map_err(|why| Failure::failed(format!("cannot write {}: {why}", log.display())))?;
    let unfinished = directory.unfinished(planned, job);
    let _ = fs::remove_dir_all(&unfinished);
    let mut command = Command::new("/proc/self/exe");
    command.args(["run", "--quiet", "--child-of", &std::process::id().to_string(), "--output"]);
    command.arg(&unfinished).arg(directory.path().join(Directory::experiment(planned, job)));
    command.args(planned.exact.then_some("--exact"));
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    Ok(command)
}

/// In a process group of its own, so that Ctrl-C comes to us alone and we end it in good order.
pub fn started(mut command: Command) -> std::io::Result<Child> {
    command.process_group(0).spawn()
}

/// As [`started`], on one CPU: a child has the affinity of the thread that starts it.
fn started_on(cpu: usize, command: Command) -> std::io::Result<Child> {
    let own = affinity(tid())?;
    set_affinity(tid(), &CpuSet::single(cpu))?;
    let child = started(command);
    set_affinity(tid(), &own)?;
    child
}

/// What a bundle says of a run that failed.
fn failed_outcome(bundle: &Path) -> Option<String> {
    match Bundle::open(bundle).ok()?.manifest.ending?.outcome {
        Outcome::Failed { why } => Some(plain(&why)),
        _ => None,
    }
}

/// Why a run left no complete bundle: the end of its log.
fn why(status: ExitStatus, log: &Path) -> String {
    let messages = fs::read(log).unwrap_or_default();
    let messages =
        String::from_utf8_lossy(&messages[messages.len().saturating_sub(64 << 10)..]).into_owned();
    let line = messages
        .lines()
        .rev()
        .find(|line| line.contains("error"))
        .or(messages.lines().rev().find(|l| !l.trim().is_empty()));
    let mut line = plain(line.unwrap_or("no output").trim());
    if let Some((end, _)) = line.char_indices().nth(LOG_TAIL_BYTES) {
        line.truncate(end);
    }
    format!("{status}: {line}")
}
