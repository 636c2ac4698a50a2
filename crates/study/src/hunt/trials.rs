//! Trials as runs of a lab: those of a batch run beside each other, earlier results are taken from
//! the directory, and failures are remembered.

use super::archive::{ArchiveKey, LengthKind, TrialResults};
use super::experiment;
use super::search::Trials;
use super::space::{Input, Space};
use super::spec::HuntSpec;
use super::standing::SearchProgress;
use crate::labs::attempt::AttemptResult;
use crate::labs::directory::LabDirectory;
use crate::labs::jobs::{LabJob, PlannedLab};
use crate::labs::progress::EnclosingStudy;
use crate::labs::request::Overrides;
use crate::labs::schedule;
use punctual_bundle::Bundle;
use punctual_bundle::exact::{EXACT_MEMBER, ExactDocument};
use punctual_plan::lab::{Lab, LabCell};
use punctual_session::exit::Failure;
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::{Listener, Silent};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file in the directory of trials with the reason of each failure, by the checksum of its
/// inputs.
const FAILURES: &str = "failures.json";
/// How the description of a guest's outcome begins (`punctual_lab::GuestOutcome`).
const GUEST: &str = "the guest";
/// Sections shorter than this occur everywhere.
const SHORT: u64 = 2_000;

/// Runs trials on one kernel.
pub struct Runner<'a> {
    spec: &'a HuntSpec,
    kernel: String,
    space: &'a Space,
    directory: LabDirectory,
    interrupts: &'a SignalRequests,
    parallel: Option<usize>,
    failures: BTreeMap<String, String>,
    /// The listener for progress.
    pub messages: Listener,
    /// The progress of the search with these trials.
    pub standing: Option<SearchProgress>,
    /// When to stop starting trials.
    pub until: Option<Instant>,
    /// Whether the user ended the search.
    pub interrupted: bool,
    /// Trials run by this process.
    pub started: usize,
    ran: Duration,
    /// The virtual time of an instruction, in ns.
    pub ns_per_instruction: u32,
}

impl<'a> Runner<'a> {
    /// Trials of a kernel, in a directory.
    ///
    /// # Errors
    /// The directory belongs to another search, or is in use.
    pub fn new(
        spec: &'a HuntSpec,
        kernel: &str,
        space: &'a Space,
        path: &Path,
        interrupts: &'a SignalRequests,
        parallel: Option<usize>,
    ) -> Result<Runner<'a>, Failure> {
        let directory = LabDirectory::open(path)?;
        let failures = directory.store().member(FAILURES).read_json().unwrap_or_default();
        Ok(Runner {
            spec,
            kernel: kernel.to_owned(),
            space,
            directory,
            interrupts,
            parallel,
            failures,
            messages: &Silent,
            standing: None,
            until: None,
            interrupted: false,
            started: 0,
            ran: Duration::ZERO,
            ns_per_instruction: 8,
        })
    }

    /// The experiment of an input.
    pub fn experiment(&self, input: &Input) -> Result<(String, String), Failure> {
        experiment::of(self.spec, &self.kernel, self.space, input)
    }

    /// The bundle of an input that was run.
    pub fn bundle(&self, input: &Input) -> Result<PathBuf, Failure> {
        let (name, _) = self.experiment(input)?;
        Ok(self.directory.path().join("cells").join(name).join("r1"))
    }

    /// The estimated time of this many trials, by those that were run; zero before the first.
    pub fn time_of(&self, trials: usize) -> Duration {
        let started = u32::try_from(self.started.max(1)).unwrap_or(u32::MAX);
        self.ran / started * u32::try_from(trials).unwrap_or(u32::MAX)
    }

    fn planned(&self, batch: &[Input]) -> Result<PlannedLab, Failure> {
        let mut cells = Vec::new();
        for input in batch {
            let (name, text) = self.experiment(input)?;
            cells.push(LabCell::of(name, &text).map_err(Failure::refused)?);
        }
        let budget = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let overrides =
            Overrides { parallel: self.parallel, exact: true, budget, ..Overrides::default() };
        PlannedLab::of_cells(Lab::of_cells("hunt"), cells, &overrides)
    }
}

impl Trials for Runner<'_> {
    type Error = Failure;

    fn run(&mut self, batch: &[Input]) -> Result<Option<Vec<TrialResults>>, Failure> {
        let planned = self.planned(batch)?;
        let jobs = planned.jobs();
        let inputs: Vec<String> =
            jobs.iter().map(|job| self.directory.inputs(&planned, job)).collect();
        let failed = |inputs: &String| self.failures.get(inputs).cloned();
        let known: Vec<Option<String>> = inputs.iter().map(failed).collect();
        let left: Vec<LabJob> = jobs
            .iter()
            .zip(&known)
            .filter(|(_, known)| known.is_none())
            .map(|(job, _)| job.clone())
            .collect();
        self.directory.prepare(&planned)?;
        self.directory.clean(&planned);
        let before = left
            .iter()
            .filter(|job| {
                let inputs = self.directory.inputs(&planned, job);
                self.directory.finished(&planned.name(job), &inputs).is_none()
            })
            .count();
        if before > 0 && planned.budget == Some(Duration::ZERO) {
            return Ok(None);
        }
        let began = Instant::now();
        let whole = self.standing.as_ref().map(|standing| || standing.line(Instant::now()));
        let whole = whole.as_ref().map(|whole| whole as EnclosingStudy<'_>);
        let ran =
            schedule::run(&planned, &left, &self.directory, self.interrupts, self.messages, whole)?;
        self.started += before;
        self.ran += began.elapsed();
        self.interrupted |= ran.interrupted;
        let mut by_cell: Vec<Option<TrialResults>> = vec![None; batch.len()];
        for (job, why) in jobs.iter().zip(known) {
            by_cell[job.cell] = why.map(failure);
        }
        for (job, done) in left.iter().zip(&ran.done) {
            by_cell[job.cell] = match done {
                AttemptResult::Whole(_) => Some(self.seen(&planned, job)),
                AttemptResult::Failed { why, .. } => {
                    // Only failures of the guest are remembered: this machine's may be resolved the
                    // next time.
                    if why.contains(GUEST) {
                        let inputs = self.directory.inputs(&planned, job);
                        self.failures.insert(inputs, why.clone());
                    }
                    Some(failure(why.clone()))
                }
                AttemptResult::Waiting => None,
            };
        }
        self.directory.store().write(FAILURES, &self.failures)?;
        let mine = |shown: &TrialResults| {
            shown.failure.as_ref().filter(|why| !why.contains(GUEST)).cloned()
        };
        let all: Vec<Option<String>> =
            by_cell.iter().map(|shown| shown.as_ref().and_then(mine)).collect();
        match all.first() {
            Some(Some(why)) if all.iter().all(Option::is_some) => {
                Err(Failure::no_evidence(format!("no trial of a batch could be run: {why}")))
            }
            // The completed trials before the first gap: a longer search begins with the same.
            _ => Ok(Some(by_cell.into_iter().map_while(|shown| shown).collect())),
        }
    }
}

fn failure(why: String) -> TrialResults {
    TrialResults { failure: Some(why), ..TrialResults::default() }
}

impl Runner<'_> {
    fn seen(&mut self, planned: &PlannedLab, job: &LabJob) -> TrialResults {
        let place = self.directory.path().join(planned.name(job).bundle());
        match explained(&place) {
            Some((bundle, exact)) => {
                self.ns_per_instruction = exact.ns_per_instruction;
                shown(&bundle, &exact)
            }
            None => failure("its instructions were not traced".to_owned()),
        }
    }
}

/// A bundle with its exact explanation.
pub fn explained(place: &Path) -> Option<(Bundle, ExactDocument)> {
    let bundle = Bundle::open(place).ok()?;
    let exact = bundle.document(EXACT_MEMBER).ok().flatten()?;
    Some((bundle, exact))
}

/// The worst sample of a bundle, in ns.
pub fn worst_ns(bundle: &Bundle) -> Option<i64> {
    let worst = bundle.series().flat_map(|(_, series)| &series.state.data.worst);
    worst.map(|sample| sample.latency().0).max()
}

/// The causes in a trial, with the longest of each.
pub fn shown(bundle: &Bundle, exact: &ExactDocument) -> TrialResults {
    let mut shown = TrialResults::default();
    let mut add = |key: ArchiveKey, length: u64| {
        if length >= SHORT {
            let longest = shown.lengths.entry(key).or_default();
            *longest = length.max(*longest);
        }
    };
    let worst = worst_ns(bundle).and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
    add((LengthKind::Sample, String::new()), worst / u64::from(exact.ns_per_instruction.max(1)));
    for section in &exact.sections.irqs_disabled {
        add((LengthKind::IrqsDisabled, section.function.clone()), section.longest);
    }
    for section in &exact.sections.preemption_disabled {
        add((LengthKind::PreemptionDisabled, section.function.clone()), section.longest);
    }
    // The functions of shorter ones are not known.
    for section in &exact.sections.not_preempted {
        if let Some((function, _)) = section.functions.first() {
            add((LengthKind::NotPreempted, function.clone()), section.longest);
        }
    }
    for part in exact.worst.iter().flat_map(|sample| &sample.parts) {
        if let ("not-preempted", Some((function, _))) = (part.kind.as_str(), part.functions.first())
        {
            add((LengthKind::NotPreempted, function.clone()), part.instructions);
        }
    }
    shown
}
