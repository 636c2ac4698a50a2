//! Runs the jobs of a lab, each in a process of its own, here or on hosts; jobs that do not disturb
//! each other run concurrently.

use super::attempt::{Attempt, AttemptResult, AttemptedRuns, StartMethod};
use super::directory::LabDirectory;
use super::estimates::store_durations;
use super::hosts::{Hosts, NextHost};
use super::jobs::{LabJob, PlannedCell, PlannedLab};
use super::lane::RunLane;
use super::progress::LabProgress;
use crate::process::POLL_INTERVAL;
use punctual_core::Nanos;
use punctual_session::exit::Failure;
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::Messages;
use punctual_sys::attributes::read_affinity;
use std::process::ExitStatus;
use std::time::Instant;

struct RunningJob {
    job: usize,
    attempt: Attempt,
    /// The CPU reserved for the job, as an index into the usable ones.
    slot: Option<usize>,
    /// The other system that runs it.
    host: Option<usize>,
}

/// Runs all jobs without a finished bundle.
///
/// # Errors
/// The directory cannot be written. A failed run is not an error.
pub fn run_jobs(
    planned: &PlannedLab,
    jobs: &[LabJob],
    directory: &LabDirectory,
    interrupts: &SignalRequests,
    messages: &dyn Messages,
) -> Result<AttemptedRuns, Failure> {
    let inputs: Vec<String> =
        jobs.iter().map(|job| directory.sum_of_inputs(planned, job)).collect();
    let finished = |(job, inputs): (&LabJob, &String)| {
        directory.finished_stamp(&planned.run_name(job), inputs)
    };
    let finished = jobs.iter().zip(&inputs).map(finished);
    let done: Vec<AttemptResult> =
        finished.map(|of| of.map_or(AttemptResult::Waiting, AttemptResult::Whole)).collect();
    let before = done.clone();
    let finished_count = done.iter().filter(|done| matches!(done, AttemptResult::Whole(_))).count();
    let mut scheduler = Scheduler {
        planned,
        jobs,
        directory,
        cpus: read_affinity(0).map(|cpus| cpus.iter().collect()).unwrap_or_default(),
        progress: LabProgress::new(jobs.len(), finished_count, messages),
        hosts: Hosts::from_lab(planned),
        pending: (0..jobs.len()).filter(|k| matches!(done[*k], AttemptResult::Waiting)).collect(),
        running: Vec::new(),
        done,
        took: Vec::new(),
    };
    let ended = scheduler.run_all(&inputs, interrupts);
    scheduler.progress.restore_terminal();
    let interrupted = ended?;
    store_durations(planned, jobs, &before, &scheduler.done);
    Ok(AttemptedRuns { done: scheduler.done, interrupted })
}

struct Scheduler<'a> {
    planned: &'a PlannedLab,
    jobs: &'a [LabJob],
    directory: &'a LabDirectory,
    cpus: Vec<usize>,
    hosts: Hosts,
    progress: LabProgress<'a>,
    pending: Vec<usize>,
    running: Vec<RunningJob>,
    done: Vec<AttemptResult>,
    /// The durations of runs, with the estimates if there were any.
    took: Vec<(Nanos, Option<Nanos>)>,
}

impl Scheduler<'_> {
    fn run_all(&mut self, inputs: &[String], interrupts: &SignalRequests) -> Result<bool, Failure> {
        let began = Instant::now();
        while !(self.pending.is_empty() && self.running.is_empty()) {
            if interrupts.end_requested() {
                self.end_all()?;
                return Ok(true);
            }
            // Running jobs complete.
            if self.planned.budget.is_some_and(|budget| began.elapsed() >= budget) {
                self.pending.clear();
            }
            self.start_ready(inputs)?;
            std::thread::sleep(POLL_INTERVAL);
            self.reap_ended()?;
            let left = self.remaining_time();
            let names: Vec<String> =
                self.running.iter().map(|running| self.describe_job(running.job)).collect();
            self.progress.refresh(&names, left);
        }
        Ok(false)
    }

    fn start_ready(&mut self, inputs: &[String]) -> Result<(), Failure> {
        while let Some((next, host)) = self.next() {
            let job = self.pending.remove(next);
            let running = self.start_job(job, inputs[job].clone(), host)?;
            self.running.push(running);
        }
        Ok(())
    }

    /// The place of the next job that can start, and its host; `None` for this machine.
    fn next(&self) -> Option<(usize, Option<usize>)> {
        let lanes: Vec<&RunLane> =
            self.running.iter().map(|running| self.lane_of_job(running.job)).collect();
        let may_begin = |k: usize| self.lane_of_job(k).may_begin(&lanes, self.planned.parallel);
        let is_here = |k: usize| self.cell_of_job(k).hosts.is_empty();
        if let Some(next) = self.pending.iter().position(|k| is_here(*k) && may_begin(*k)) {
            return Some((next, None));
        }
        let ready: Vec<usize> =
            (0..self.pending.len()).filter(|place| may_begin(self.pending[*place])).collect();
        let jobs: Vec<&LabJob> =
            ready.iter().map(|place| &self.jobs[self.pending[*place]]).collect();
        let running: Vec<&LabJob> = self.running.iter().map(|of| &self.jobs[of.job]).collect();
        let is_free = |host: &usize| self.running.iter().all(|of| of.host != Some(*host));
        self.hosts.usable_hosts().filter(is_free).find_map(|host| {
            let next = self.hosts.next(host, self.planned, &jobs, &running)?;
            Some((ready[next], Some(host)))
        })
    }

    /// Jobs without a usable host wait for the next `lab run`.
    fn fail_stranded(&mut self) {
        for job in std::mem::take(&mut self.pending) {
            match self.hosts.stranded_reason(self.cell_of_job(job)) {
                Some(why) => {
                    let took = Nanos::ZERO;
                    self.done[job] = AttemptResult::Failed { why, exit_code: None, took };
                }
                None => self.pending.push(job),
            }
        }
    }

    fn start_job(
        &mut self,
        job: usize,
        inputs: String,
        host: Option<usize>,
    ) -> Result<RunningJob, Failure> {
        let alone = host.is_none() && *self.lane_of_job(job) == RunLane::Virtual;
        let slot = alone.then(|| self.free_slot());
        let cpu = slot.and_then(|slot| self.cpus.get(slot % self.cpus.len().max(1)).copied());
        let start = |host| self.hosts.start_run(host, self.planned, &self.jobs[job]);
        let options = host.map(start).unwrap_or_default();
        let how = StartMethod { exact: self.planned.exact, cpu, options: &options };
        let name = self.planned.run_name(&self.jobs[job]);
        let attempt = Attempt::start(self.directory, &name, inputs, how)?;
        Ok(RunningJob { job, attempt, slot, host })
    }

    /// The first CPU not reserved by a run.
    fn free_slot(&self) -> usize {
        (0..)
            .find(|slot| self.running.iter().all(|running| running.slot != Some(*slot)))
            .unwrap_or(0)
    }

    fn reap_ended(&mut self) -> Result<(), Failure> {
        let mut k = 0;
        while k < self.running.len() {
            match self.running[k].attempt.process.exit_status()? {
                None => k += 1,
                Some(status) => {
                    let running = self.running.remove(k);
                    self.on_job_end(running, status)?;
                }
            }
        }
        Ok(())
    }

    fn on_job_end(&mut self, running: RunningJob, status: ExitStatus) -> Result<(), Failure> {
        let job = running.job;
        let name = self.planned.run_name(&self.jobs[job]);
        let elapsed = running.attempt.process.elapsed();
        let done = running.attempt.conclude(self.directory, &name, status)?;
        let failure = match &done {
            AttemptResult::Waiting => return Ok(()),
            AttemptResult::Whole(stamp) => {
                self.took
                    .push((Nanos(stamp.took), self.planned.expected_duration(self.jobs[job].cell)));
                None
            }
            AttemptResult::Failed { why, .. } => Some(why.clone()),
        };
        if let (Some(host), Some(why)) = (running.host, &failure) {
            let cell = &self.planned.cells[self.jobs[job].cell];
            let next = self.hosts.handle_failure(job, cell, host, why);
            self.fail_stranded();
            if let NextHost::Again(reason) = next {
                self.progress.show_line(&format!("{}  {why}; {reason}", self.describe_job(job)));
                self.pending.insert(0, job);
                return Ok(());
            }
        }
        self.done[job] = done;
        let left = self.remaining_time();
        self.progress.on_run_end(&self.describe_job(job), elapsed, failure.as_deref(), left);
        Ok(())
    }

    /// The estimated rest, from the ratio of durations to estimates; `None` if unknown.
    fn remaining_time(&self) -> Option<Nanos> {
        let ns_of = |time: Nanos| time.ns() as f64;
        let known_durations = self
            .took
            .iter()
            .filter_map(|(took, expected)| Some((ns_of(*took), ns_of((*expected)?))));
        let sums =
            known_durations.fold((0.0, 0.0), |(took, expected), (t, e)| (took + t, expected + e));
        let factor = if sums.1 > 0.0 { sums.0 / sums.1 } else { 1.0 };
        // For a cell without an estimate, the duration of the others.
        let total_took: f64 = self.took.iter().map(|(took, _)| ns_of(*took)).sum();
        let mean = (!self.took.is_empty()).then(|| total_took / self.took.len() as f64);
        let expected = |cell: usize| {
            self.planned.expected_duration(cell).map(|time| ns_of(time) * factor).or(mean)
        };
        let (mut alone, mut side_by_side, mut elsewhere) = (0.0, 0.0, 0.0);
        let rest = self.pending.iter().map(|k| (*k, 0.0));
        let going_on = self
            .running
            .iter()
            .map(|running| (running.job, running.attempt.process.elapsed().as_nanos() as f64));
        for (job, so_far) in rest.chain(going_on) {
            let expected = expected(self.jobs[job].cell)?;
            *match self.lane_of_job(job) {
                RunLane::Machine => &mut alone,
                RunLane::Virtual => &mut side_by_side,
                RunLane::Remote(_) => &mut elsewhere,
            } += (expected - so_far).max(0.0);
        }
        let share = |time: f64, of: usize| time / of.max(1) as f64;
        let parallel_time = share(side_by_side, self.planned.parallel)
            .max(share(elsewhere, self.hosts.usable_count()));
        Some(Nanos((alone + parallel_time) as i64))
    }

    /// Ends all running jobs and waits for them.
    fn end_all(&mut self) -> Result<(), Failure> {
        self.progress.show_line(
            "interrupted: ending the running jobs; run the same command again to continue",
        );
        while !self.running.is_empty() {
            self.running.iter_mut().for_each(|running| running.attempt.process.request_end());
            std::thread::sleep(POLL_INTERVAL);
            self.reap_ended()?;
        }
        Ok(())
    }

    fn cell_of_job(&self, job: usize) -> &PlannedCell {
        &self.planned.cells[self.jobs[job].cell]
    }

    fn lane_of_job(&self, job: usize) -> &RunLane {
        &self.cell_of_job(job).lane
    }

    fn describe_job(&self, job: usize) -> String {
        self.planned.describe_run(&self.jobs[job])
    }
}
