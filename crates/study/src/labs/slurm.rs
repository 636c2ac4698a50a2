//! `--on slurm`: the runs of a lab as job arrays of Slurm, on nodes that share its directory.
//!
//! Slurm queues, starts, kills and restarts. Here the runs without a bundle are submitted, and if
//! some still have none when the queue is empty, a few times more. A task runs `punctual lab cell`:
//! it may be killed at any moment, and run twice. A `lab run` after one that was killed finds its
//! tasks in the queue by their name and waits for them.

use super::attempt::{AttemptResult, AttemptedRuns, stored_outcome};
use super::directory::LabDirectory;
use super::jobs::{LabJob, PlannedLab};
use super::lane::RunLane;
use super::progress::LabProgress;
use super::run_name::RunName;
use crate::process::to_nanos;
use punctual_core::format::{count_with_noun, escape_unsafe};
use punctual_core::{Nanos, encode_hex};
use punctual_session::exit::Failure;
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::Listener;
use sha2::{Digest, Sha256};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The maximum number of submissions of a run that leaves neither a bundle nor an error.
const SUBMISSIONS: usize = 4;
/// The maximum size of an array: Slurm's default (MaxArraySize is 1001).
const ARRAY: usize = 1000;
/// The range of times between two reads of the queue: longer for a longer lab.
const POLL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// How long Slurm may fail to answer: its controller may be restarting.
const SILENCE: Duration = Duration::from_secs(600);
/// The directory of the program and the output of the tasks, in the lab's directory.
const PLACE: &str = "slurm";

/// Runs all jobs without a finished bundle.
///
/// # Errors
/// The directory cannot be written, or Slurm rejects the arrays.
pub fn run_jobs(
    planned: &PlannedLab,
    jobs: &[LabJob],
    directory: &LabDirectory,
    interrupts: &SignalRequests,
    messages: Listener,
) -> Result<AttemptedRuns, Failure> {
    let names: Vec<RunName> = jobs.iter().map(|job| planned.run_name(job)).collect();
    let inputs: Vec<String> =
        jobs.iter().map(|job| directory.sum_of_inputs(planned, job)).collect();
    let path = directory
        .path()
        .canonicalize()
        .map_err(|why| Failure::failed(format!("cannot find the lab's directory: {why}")))?;
    let sum = encode_hex(&Sha256::digest(path.as_os_str().as_encoded_bytes())[..4]);
    let mut lab = Cluster {
        planned,
        jobs,
        directory,
        name: format!("punctual-lab-{sum}"),
        path,
        submitted: vec![0; jobs.len()],
        done: vec![AttemptResult::Waiting; jobs.len()],
        names,
        inputs,
        began: Instant::now(),
    };
    lab.check_runs(&mut |_, _, _| {});
    let finished_count = jobs.len() - lab.missing_runs().len();
    let mut progress = LabProgress::new(jobs.len(), finished_count, messages);
    let ended = lab.run_all(&mut progress, interrupts);
    progress.restore_terminal();
    let interrupted = ended?;
    Ok(AttemptedRuns { done: lab.done, interrupted })
}

struct Cluster<'a> {
    planned: &'a PlannedLab,
    jobs: &'a [LabJob],
    directory: &'a LabDirectory,
    /// The name of all jobs of this lab in the queue.
    name: String,
    path: PathBuf,
    submitted: Vec<usize>,
    done: Vec<AttemptResult>,
    names: Vec<RunName>,
    inputs: Vec<String>,
    began: Instant,
}

impl Cluster<'_> {
    fn run_all(
        &mut self,
        progress: &mut LabProgress,
        interrupts: &SignalRequests,
    ) -> Result<bool, Failure> {
        // Tasks of a killed `lab run` continue.
        if self.wait_for_tasks(progress, interrupts)? {
            return Ok(true);
        }
        self.directory.remove_leftovers(self.planned);
        for round in 0..SUBMISSIONS {
            let missing = self.missing_runs();
            if missing.is_empty() {
                break;
            }
            if round > 0 {
                let missing_text = count_with_noun(missing.len() as u64, "run");
                progress.show_line(&format!("{missing_text} without a bundle: submitted again"));
            }
            self.submit_runs(&missing)?;
            if self.wait_for_tasks(progress, interrupts)? {
                return Ok(true);
            }
        }
        if self.read_queue().is_ok_and(|queue| queue.is_empty()) {
            self.directory.remove_leftovers(self.planned);
        }
        for k in self.missing_runs() {
            let reason = format!(
                "no bundle after it was submitted {} times; see {}",
                self.submitted[k],
                self.path.join(PLACE).display()
            );
            let took = to_nanos(self.began.elapsed());
            self.done[k] = AttemptResult::Failed { why: reason, exit_code: None, took };
        }
        Ok(false)
    }

    /// The runs without any result.
    fn missing_runs(&self) -> Vec<usize> {
        (0..self.jobs.len()).filter(|k| matches!(self.done[*k], AttemptResult::Waiting)).collect()
    }

    /// Waits until the queue has nothing of this lab, or all is done; returns whether it was
    /// interrupted.
    fn wait_for_tasks(
        &mut self,
        progress: &mut LabProgress,
        interrupts: &SignalRequests,
    ) -> Result<bool, Failure> {
        let began = Instant::now();
        let (mut answered, mut held) = (began, false);
        loop {
            // The queue is read first: tasks that are over by then have left their bundles.
            let queue = self.read_queue();
            let mut over = |name: &str, took, failure: Option<&str>| {
                progress.on_run_end(name, took, failure, None);
            };
            self.check_runs(&mut over);
            match queue {
                Ok(queue) if queue.is_empty() => return Ok(false),
                _ if self.missing_runs().is_empty() => return Ok(false),
                Ok(queue) => {
                    answered = Instant::now();
                    let waits = |task: &&SlurmTask| task.state == "PD";
                    let waiting = queue.iter().filter(waits).count();
                    let on: Vec<String> = queue
                        .iter()
                        .filter(|task| task.state != "PD")
                        .map(|task| task.place.clone())
                        .collect();
                    progress.refresh(&[format!("{} ({waiting} queued)", on.join(", "))], None);
                    let stuck = queue.iter().find(|task| task.is_held());
                    if let Some(task) = stuck.filter(|_| !held) {
                        held = true;
                        progress.show_line(&format!(
                            "Slurm holds tasks: {}; `scontrol release {}` releases them",
                            task.place, self.name
                        ));
                    }
                }
                Err(why) if answered.elapsed() > SILENCE => return Err(why),
                Err(_) => {}
            }
            let next = Instant::now() + (began.elapsed() / 20).clamp(POLL.0, POLL.1);
            while Instant::now() < next {
                if interrupts.end_requested() {
                    progress.show_line(
                        "interrupted: cancelling the tasks; run the same command again to continue",
                    );
                    self.run_command("scancel", &["--name", &self.name])?;
                    return Ok(true);
                }
                std::thread::sleep(Duration::from_millis(40));
            }
        }
    }

    /// Checks which runs are over.
    fn check_runs(&mut self, over: &mut dyn FnMut(&str, Duration, Option<&str>)) {
        for k in self.missing_runs() {
            let (name, inputs) = (&self.names[k], &self.inputs[k]);
            let words = self.planned.describe_run(&self.jobs[k]);
            let done = stored_outcome(self.directory, name, inputs);
            match &done {
                AttemptResult::Whole(stamp) => over(&words, Nanos(stamp.took).to_std(), None),
                AttemptResult::Failed { why, took, .. } if self.submitted[k] > 0 => {
                    over(&words, took.to_std(), Some(why));
                }
                // A result of an earlier `lab run`: it is tried again.
                _ => continue,
            }
            self.done[k] = done;
        }
    }

    /// The tasks of this lab that Slurm has not ended. Completing ones (CG) count as over: on a
    /// dead node that state takes long.
    fn read_queue(&self) -> Result<Vec<SlurmTask>, Failure> {
        let words = ["--noheader", "--array", "--name", &self.name, "--format", "%t %R"];
        let lines = self.run_command("squeue", &words)?;
        let task = |line: &str| {
            let (state, place) = line.split_once(' ')?;
            Some(SlurmTask { state: state.to_owned(), place: escape_unsafe(place) })
        };
        Ok(lines.lines().filter_map(task).filter(|task| task.state != "CG").collect())
    }

    /// Submits runs: those that measure a machine get an exclusive node.
    fn submit_runs(&mut self, runs: &[usize]) -> Result<(), Failure> {
        let place = self.path.join(PLACE);
        self.place_program(&place)?;
        let alone = |k: &&usize| self.planned.cells[self.jobs[**k].cell].lane == RunLane::Machine;
        let (machine, others): (Vec<usize>, Vec<usize>) = runs.iter().partition(alone);
        for (runs, nodes) in [(machine, "--exclusive"), (others, "--cpus-per-task=1")] {
            for array in runs.chunk_by(|a, b| a / ARRAY == b / ARRAY) {
                let base = array[0] / ARRAY * ARRAY;
                let indices: Vec<usize> = array.iter().map(|k| k - base).collect();
                let task = format!(
                    "exec {} lab cell {} $(({base} + SLURM_ARRAY_TASK_ID)){}",
                    quote_path(&place.join("punctual")),
                    quote_path(&self.path),
                    if self.planned.exact { " --exact" } else { "" }
                );
                let limit_suffix =
                    self.planned.at_once.map_or(String::new(), |most| format!("%{most}"));
                let array = format!("--array={}{limit_suffix}", format_ranges(&indices));
                let output = format!("--output={}", place.join("%A_%a.out").display());
                let directory = format!("--chdir={}", self.path.display());
                let name = format!("--job-name={}", self.name);
                let how = ["--parsable", "--requeue", "--open-mode=append"];
                let array_options = [nodes, &name, &directory, &output, &array, "--wrap", &task];
                self.run_command("sbatch", &[&how[..], &array_options[..]].concat())?;
            }
        }
        runs.iter().for_each(|k| self.submitted[*k] += 1);
        Ok(())
    }

    /// Copies this program to where all nodes find it: it is one of the inputs of a run.
    fn place_program(&self, place: &Path) -> Result<(), Failure> {
        let program = place.join("punctual");
        let cannot = |why: std::io::Error| {
            Failure::failed(format!("cannot write {}: {why}", program.display()))
        };
        fs::create_dir_all(place).map_err(cannot)?;
        let own_program = fs::read("/proc/self/exe").map_err(cannot)?;
        if fs::read(&program).is_ok_and(|there| there == own_program) {
            return Ok(());
        }
        self.directory.store().replace_file(&format!("{PLACE}/punctual"), &own_program)?;
        fs::set_permissions(&program, Permissions::from_mode(0o755)).map_err(cannot)
    }

    /// Runs a Slurm command and returns its output.
    fn run_command(&self, program: &str, words: &[&str]) -> Result<String, Failure> {
        let ran = Command::new(program).args(words).output().map_err(|why| {
            Failure::refused(format!(
                "cannot start {program}: {why}; --on slurm needs Slurm's commands (Debian package \
                 slurm-client)"
            ))
        })?;
        if !ran.status.success() {
            let said = escape_unsafe(String::from_utf8_lossy(&ran.stderr).trim());
            return Err(Failure::failed(format!("{program} failed: {said}")));
        }
        Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
    }
}

struct SlurmTask {
    state: String,
    /// The node, or the reason to wait.
    place: String,
}

impl SlurmTask {
    /// Whether the task needs a person: `(JobHeldUser)`, `(launch failed requeued held)`.
    fn is_held(&self) -> bool {
        self.state == "PD" && (self.place.contains("Held") || self.place.contains("held"))
    }
}

/// Numbers in Slurm's notation: `0-2,5`.
fn format_ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// A path as one word of sh(1).
fn quote_path(path: &Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_written_as_ranges() {
        assert_eq!(format_ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(format_ranges(&[4]), "4");
    }
}
