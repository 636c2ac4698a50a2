//! A block of measuring: a run of the experiment in its own process, and its figure.

use super::boot::write_experiment;
use super::directory::TuningSpec;
use crate::baseline::not_comparable;
use crate::process::{Process, failure_reason, own_run, to_nanos};
use punctual_bundle::{Bundle, Member};
use punctual_core::Nanos;
use punctual_session::exit::Failure;
use punctual_session::interrupts::{SignalRequests, interruption_failure};
use punctual_stats::tune::TuneFigure;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// A block that was measured.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct BlockMeasurement {
    /// The figure in ns; `None` if it cannot be used.
    pub figure: Option<f64>,
    /// Why the figure cannot be used.
    pub why: Option<String>,
}

/// Measures blocks and waits: runs on this machine, or a simulated one in tests.
pub(crate) trait BlockRunner {
    /// Measures the block with this number, counted from 1. `on`: the settings in force.
    ///
    /// # Errors
    /// The tuning ends: it was interrupted, for example.
    fn measure_block(&mut self, number: u64, on: &[bool]) -> Result<BlockMeasurement, Failure>;
    /// Waits.
    ///
    /// # Errors
    /// The tuning was interrupted.
    fn wait(&mut self, time: Nanos) -> Result<(), Failure>;
    /// The time since its creation.
    fn elapsed(&self) -> Nanos;
}

pub(crate) struct BlockRuns {
    pub experiment: PathBuf,
    /// The directory of their bundles, while they are needed.
    pub place: PathBuf,
    /// The requested figure of each.
    pub figure: TuneFigure,
    pub spec: TuningSpec,
    pub interrupts: SignalRequests,
    pub began: Instant,
}

impl BlockRunner for BlockRuns {
    fn measure_block(&mut self, number: u64, on: &[bool]) -> Result<BlockMeasurement, Failure> {
        let bundle = self.place.join(format!("{number:05}"));
        let log = Member::from_root(&self.place).join(format!("{number:05}.log"));
        discard_bundle(&bundle);
        let mut command = match &self.spec.guest {
            None => own_run(&bundle, &self.experiment),
            Some(_) => {
                let file = self.place.join(format!("{number:05}.toml"));
                write_experiment(&self.experiment, &self.spec.boot_words(on), &file)?;
                // In virtual time blocks with one seed would be identical.
                let mut command = own_run(&bundle, &file);
                command.args(["--seed", &number.to_string()]);
                command
            }
        };
        command.arg("--quiet");
        let status = self.run_block(command, &bundle, &log)?;
        let read = self.read(&bundle, status, &log);
        // Only the figure is kept: an hour would be gigabytes.
        if read.is_ok() {
            discard_bundle(&bundle);
            let _ = log.remove();
            let _ = fs::remove_file(self.place.join(format!("{number:05}.toml")));
        }
        let (figure, why) = read.map_or_else(|why| (None, Some(why)), |of| (Some(of), None));
        Ok(BlockMeasurement { figure, why })
    }

    fn wait(&mut self, time: Nanos) -> Result<(), Failure> {
        let until = Instant::now() + time.to_std();
        while Instant::now() < until {
            if self.interrupts.end_requested() {
                return Err(interruption_failure());
            }
            let left = until.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        Ok(())
    }

    fn elapsed(&self) -> Nanos {
        to_nanos(self.began.elapsed())
    }
}

impl BlockRuns {
    fn run_block(
        &self,
        command: Command,
        bundle: &Path,
        log: &Member,
    ) -> Result<ExitStatus, Failure> {
        let file = File::create(log.path())
            .map_err(|why| Failure::failed(format!("cannot write {}: {why}", log.display())))?;
        let mut process = Process::start_run(command, Some(file), None)?;
        let status = process.wait_for_end(&|| self.interrupts.end_requested(), Duration::MAX)?;
        match status.filter(|_| !process.was_asked()) {
            Some(status) => Ok(status),
            None => {
                discard_bundle(bundle);
                Err(interruption_failure())
            }
        }
    }

    fn read(&self, bundle: &Path, status: ExitStatus, log: &Member) -> Result<f64, String> {
        let mut bundle = Bundle::open(bundle).map_err(|_| failure_reason(status, log))?;
        let summary = punctual_stats::summarize_bundle(&bundle);
        if let Some(why) = not_comparable(&summary) {
            return Err(why);
        }
        self.figure.read_figure(&mut bundle)
    }
}

/// Removes a bundle. The next run finds one that cannot be removed, and overwrites nothing.
fn discard_bundle(bundle: &Path) {
    let _ = fs::remove_dir_all(bundle);
}
