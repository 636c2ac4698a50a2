//! Every run of a lab.

use super::engine::{CellRunner, Host};
use super::lane::{RunLane, format_place, limit_of_target};
use super::request::{Overrides, check_cells};
use super::run_name::RunName;
use super::times::RunTimes;
use punctual_bundle::lab::VIRTUAL_MACHINE;
use punctual_core::Nanos;
use punctual_core::format::count_with_noun;
use punctual_plan::TargetPlan;
use punctual_plan::lab::{Lab, LabCell};
use punctual_plan::target::SshBoot;
use punctual_session::exit::Failure;
use punctual_stats::median_of_sorted;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// The time of a guest's run besides measuring, from packing its files to reading its results. The
/// two cells of `examples/lab-quick.toml` took 25 s of CPU each with 0.2 s of measuring, and 28 s
/// with 2 s (AMD EPYC, 2.4 GHz).
const AROUND: Nanos = Nanos::from_secs(25);
/// Seconds of this machine for one of a loaded guest in virtual time, from the same figures.
const SLOWER: i64 = 2;

/// A lab with every choice made.
pub struct PlannedLab {
    pub lab: Lab,
    pub cells: Vec<PlannedCell>,
    /// The seeds; `None` is the experiment's own.
    pub seeds: Vec<Option<u64>>,
    /// Runs of each cell and seed.
    pub repeat: u32,
    /// The maximum number of concurrent runs in virtual time.
    pub parallel: usize,
    /// The maximum number of concurrent Slurm tasks; none: as many as Slurm has room for.
    pub at_once: Option<usize>,
    /// The engine that runs the cells instead of this machine.
    pub engine: Option<CellRunner>,
    /// Whether every instruction of each run is seen (`run --exact`).
    pub exact: bool,
    /// How long runs may be started; none: until all have run.
    pub budget: Option<Duration>,
    /// How long earlier runs took here.
    pub times: RunTimes,
}

/// A cell with the facts known before it runs.
pub struct PlannedCell {
    pub cell: LabCell,
    /// The resources that it needs exclusively.
    pub lane: RunLane,
    /// The place where it runs, in words.
    pub place: String,
    /// The other systems that can run it; none: this machine, or an engine that finds one.
    pub hosts: Vec<Host>,
    /// The boot that it asks for there.
    pub boot: Option<SshBoot>,
    /// The limits of what its figures show.
    pub limit: Option<&'static str>,
    /// How long one run measures, in its own time.
    pub measures: Option<Nanos>,
    /// How long a run of this cell took before, in this lab's directory.
    pub took: Option<Nanos>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct LabJob {
    /// The index of the cell.
    pub cell: usize,
    /// The index of the seed.
    pub seed: usize,
    /// The repetition, from 0.
    pub repeat: u32,
}

impl LabJob {
    /// The runs of all cells with one seed, once.
    pub(crate) fn block_key(&self) -> (u32, usize) {
        (self.repeat, self.seed)
    }
}

impl PlannedLab {
    /// Checks all cells before anything starts.
    ///
    /// # Errors
    /// The errors in the cells or in the request.
    pub fn from_lab(lab: Lab, overrides: &Overrides) -> Result<PlannedLab, Failure> {
        let cells = lab.list_cells().map_err(Failure::refused)?;
        PlannedLab::of_cells(lab, cells, overrides)
    }

    /// Like [`PlannedLab::from_lab`] for cells that do not follow from the lab's axes.
    ///
    /// # Errors
    /// The errors in the cells.
    pub fn of_cells(
        lab: Lab,
        cells: Vec<LabCell>,
        overrides: &Overrides,
    ) -> Result<PlannedLab, Failure> {
        let planned = check_cells(&lab, cells, overrides)?;
        let engine = overrides.engine.as_ref();
        let cells = planned.into_iter().map(|(cell, target, measures)| {
            let (hosts, boot) = match (&target, engine) {
                (TargetPlan::Ssh(plan), _) => (Host::hosts_of_plan(plan), plan.boot.clone()),
                (TargetPlan::Host, Some(CellRunner::Ssh(hosts))) => (hosts.clone(), None),
                _ => (Vec::new(), None),
            };
            let other_hosts = Host::format_hosts(&hosts);
            PlannedCell {
                cell,
                place: match (&target, engine) {
                    _ if other_hosts.is_some() => other_hosts.clone().unwrap_or_default(),
                    (TargetPlan::Host, Some(CellRunner::Slurm)) => "a node of Slurm".to_owned(),
                    (TargetPlan::Host, Some(_)) => "another machine".to_owned(),
                    _ => format_place(&target),
                },
                lane: RunLane::from_target(&target, other_hosts),
                limit: limit_of_target(&target),
                hosts,
                boot,
                measures,
                took: None,
            }
        });
        let cells: Vec<PlannedCell> = cells.collect();
        let seeds = overrides.seeds.as_ref().or(lab.seeds.as_ref());
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(PlannedLab {
            seeds: seeds.map_or(vec![None], |seeds| seeds.iter().map(Some).collect()),
            repeat: overrides.repeat.unwrap_or(lab.repeat),
            parallel: overrides.parallel.or(lab.parallel).unwrap_or(cpus),
            at_once: overrides.parallel,
            engine: overrides.engine.clone(),
            exact: overrides.exact,
            budget: overrides.budget,
            times: RunTimes::default(),
            lab,
            cells,
        })
    }

    /// All runs in starting order: first those that may run side by side, then by repetition and
    /// seed, so that every cell has an early result and the cells of one machine alternate.
    pub fn all_jobs(&self) -> Vec<LabJob> {
        let repeats = 0..self.repeat;
        let seed_runs =
            repeats.flat_map(|repeat| (0..self.seeds.len()).map(move |seed| (repeat, seed)));
        let unordered_jobs = seed_runs.flat_map(|(repeat, seed)| {
            (0..self.cells.len()).map(move |cell| LabJob { cell, seed, repeat })
        });
        let mut jobs: Vec<LabJob> = unordered_jobs.collect();
        jobs.sort_by(|a, b| self.cells[a.cell].lane.cmp(&self.cells[b.cell].lane));
        if self.has_boots() {
            jobs.sort_by_cached_key(|job| {
                let cell = &self.cells[job.cell];
                let rank = self.boot_rank(job.block_key(), cell.boot.as_ref());
                (cell.lane.clone(), job.block_key(), rank, cell.boot.clone(), job.cell)
            });
        }
        jobs
    }

    /// Whether cells are booted on other systems.
    pub fn has_boots(&self) -> bool {
        self.cells.iter().any(|cell| cell.boot.is_some())
    }

    /// The place of a boot in its block: any, but the same when the lab is continued.
    fn boot_rank(&self, block: (u32, usize), boot: Option<&SshBoot>) -> [u8; 8] {
        let words = boot.map_or_else(String::new, |boot| format!("{:?}", boot));
        let text = format!("{}\0{block:?}\0{words}", self.lab.name);
        let mut rank = [0; 8];
        rank.copy_from_slice(&Sha256::digest(text)[..8]);
        rank
    }

    /// The name of a run in the lab's directory.
    pub fn run_name(&self, job: &LabJob) -> RunName {
        RunName {
            cell: self.cells[job.cell].cell.name.clone(),
            seed: self.seeds[job.seed],
            number: job.repeat + 1,
        }
    }

    /// A run in a few words: `6.1_rt_idle seed 7 run 2`.
    pub(crate) fn describe_run(&self, job: &LabJob) -> String {
        let seed = self.seeds[job.seed].map_or(String::new(), |seed| format!(" seed {seed}"));
        let repeat =
            if self.repeat > 1 { format!(" run {}", job.repeat + 1) } else { String::new() };
        format!("{}{seed}{repeat}", self.cells[job.cell].cell.name)
    }

    /// Whether runs of a cell must be equal to the last sample.
    pub(crate) fn repeats_exactly(&self, cell: usize) -> bool {
        self.cells[cell].lane == RunLane::Virtual
    }

    /// Takes over the durations of any lab's runs here, and the known medians of this lab's cells.
    pub fn learn_durations(&mut self, times: RunTimes, took: impl Fn(&RunName) -> Option<Nanos>) {
        self.times = times;
        let median = |cell: usize| {
            let runs = (0..self.seeds.len())
                .flat_map(|seed| (0..self.repeat).map(move |repeat| LabJob { cell, seed, repeat }));
            let took = runs.filter_map(|job| took(&self.run_name(&job)));
            let mut took: Vec<f64> = took.map(|took| took.ns() as f64).collect();
            took.sort_by(f64::total_cmp);
            median_of_sorted(&took).map(|ns| Nanos(ns as i64))
        };
        let median_times: Vec<Option<Nanos>> = (0..self.cells.len()).map(median).collect();
        self.cells.iter_mut().zip(median_times).for_each(|(cell, took)| cell.took = took);
    }

    /// The class of runs with similar duration: how a cell runs, whether every instruction is seen.
    pub(crate) fn run_kind(&self, cell: usize) -> String {
        let kind = match (&self.cells[cell].lane, self.is_guest(cell)) {
            (RunLane::Virtual, _) => "virtual time",
            (_, true) => "virtual machine",
            (RunLane::Remote(host), _) => return host.clone(),
            (RunLane::Machine, _) => "machine",
        };
        if self.exact { format!("{kind}, every instruction") } else { kind.to_owned() }
    }

    fn is_guest(&self, cell: usize) -> bool {
        self.cells[cell].place.starts_with(VIRTUAL_MACHINE)
    }

    /// The expected duration of one run by this machine's clock: as it took here before, else as
    /// others of its kind did; `None` if unknown.
    pub fn expected_duration(&self, cell: usize) -> Option<Nanos> {
        let factor =
            self.times.duration_factor(&self.run_kind(cell)).map_or(1.0, |(factor, _)| factor);
        let estimated =
            || Some(Nanos((self.unlearned_duration(cell)?.ns() as f64 * factor) as i64));
        self.cells[cell].took.or_else(estimated)
    }

    /// The expected duration before any run has been seen.
    pub(crate) fn unlearned_duration(&self, cell: usize) -> Option<Nanos> {
        let (around, slower) = match (&self.cells[cell].lane, self.is_guest(cell)) {
            (RunLane::Virtual, _) => (AROUND, SLOWER),
            (_, true) => (AROUND, 1),
            _ => (Nanos::SECOND, 1),
        };
        self.cells[cell].measures.map(|measures| measures * slower + around)
    }

    /// The basis of the estimates, in words.
    pub fn basis_of_estimates(&self) -> String {
        let measured_cells = self.cells.iter().filter(|cell| cell.took.is_some()).count() as u64;
        let known_runs = |cell: usize| {
            self.times.duration_factor(&self.run_kind(cell)).map(|(_, runs)| runs as u64)
        };
        let runs = (0..self.cells.len()).filter_map(known_runs).max();
        match (measured_cells, runs) {
            (0, None) => "no earlier run of this kind is known".to_owned(),
            (0, Some(runs)) => {
                format!("from {} of this kind here", count_with_noun(runs, "earlier run"))
            }
            (own, _) => format!("from what {} took before", count_with_noun(own, "cell")),
        }
    }
}
