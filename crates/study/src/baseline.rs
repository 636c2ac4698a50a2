//! `--baseline DIR`: earlier runs for comparison, a small file each, by experiment, machine,
//! kernel.

use punctual_bundle::baseline::{
    BaselineRun, FoundChange, HeldAgainst, RECORD, TREND, TrendDocument, WorseFigure,
};
use punctual_bundle::summary::{Summary, ValidityWord};
use punctual_bundle::{Bundle, Member, Outcome, amend};
use punctual_core::{Fact, Nanos, encode_hex};
use punctual_host::environment::Environment;
use punctual_session::end::EarlierRuns;
use punctual_session::exit::Failure;
use punctual_stats::baseline::ProposedRate;
use punctual_stats::{baseline, summarize_bundle};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A larger file is not a record of punctual.
const MOST_BYTES: u64 = 1 << 20;
/// Variables with the commit under test, if none is given; the first that is set counts: GitHub,
/// GitLab, Jenkins, Buildkite.
const COMMITS: [&str; 4] = ["GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT"];
const UNKNOWN: &str = "unknown";

/// The runs to compare with.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// The directory of the records; created if missing.
    pub directory: PathBuf,
    /// The commit under test.
    pub commit: Option<String>,
    /// Whether a run that cannot be judged yet is *undecided*.
    pub required: bool,
}

/// The runs of one experiment, machine and kernel.
#[derive(Clone, Debug, Default)]
pub struct RunHistory {
    /// Oldest first.
    pub runs: Vec<BaselineRun>,
    /// The files of `runs`, in the same order.
    pub files: Vec<PathBuf>,
    /// Why further files were omitted.
    pub left_out: Vec<String>,
}

impl EarlierRuns for Baseline {
    fn compare_bundle(&self, bundle: &Path) -> Result<Summary, Failure> {
        let before = Bundle::open(bundle).map_err(Failure::failed)?;
        let (mut held, record) = self.compare_bundle(&before)?;
        held.directory = self.format_directory();
        held.required = self.required;
        let after = amend::hold_against(bundle, held).map_err(Failure::failed)?;
        let mut summary = summarize_bundle(&after);
        let code = summary.verdict.exit_code(after.manifest.command);
        summary.ending.iter_mut().for_each(|ending| ending.exit_code = code);
        amend::renew_summary(bundle, &summary).map_err(Failure::failed)?;
        if let Some(record) = record {
            self.store_record(&record)?;
        }
        Ok(summary)
    }
}

impl Baseline {
    /// Checks, before anything starts, that the directory exists or can be created.
    pub fn check_directory(&self) -> Result<(), Failure> {
        let creation_result = std::fs::create_dir_all(&self.directory);
        let writable = creation_result.and_then(|()| {
            let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
            Ok(rustix::fs::access(&self.directory, access)?)
        });
        writable.map_err(|why| {
            Failure::refused(format!(
                "cannot write {} (--baseline): {why}",
                self.format_directory()
            ))
        })
    }

    fn format_directory(&self) -> String {
        punctual_session::messages::display_path(&self.directory)
    }

    fn compare_bundle(
        &self,
        bundle: &Bundle,
    ) -> Result<(HeldAgainst, Option<BaselineRun>), Failure> {
        let summary = summarize_bundle(bundle);
        let obstacle = not_comparable(&summary).or_else(|| failed_command(bundle));
        if let Some(why) = obstacle {
            return Ok((HeldAgainst { not_held: Some(why), ..HeldAgainst::default() }, None));
        }
        let mut record = make_record(bundle, &summary, self.commit.clone())?;
        let mut history = RunHistory::read(&self.records_directory(&record))?;
        let other_versions = history.retain_comparable(&record);
        let mut comparison = baseline::compare_with_baseline(&history.runs, &record);
        comparison.left_out = (history.left_out.len() + other_versions) as u64;
        record.found = Some(found_changes(&comparison));
        Ok((comparison, Some(record)))
    }

    /// The directory of such records.
    fn records_directory(&self, run: &BaselineRun) -> PathBuf {
        let parts = [&run.experiment, &run.machine, &run.kernel];
        parts.iter().fold(self.directory.clone(), |place, part| place.join(file_name(part)))
    }

    /// All histories, by experiment, machine and kernel.
    fn read_histories(&self) -> Result<Vec<RunHistory>, Failure> {
        let below = |places: Vec<Member>| -> Result<Vec<Member>, Failure> {
            let mut subdirectories = Vec::new();
            for place in places {
                let inside = place.list_entries("").map_err(Failure::failed)?;
                subdirectories.extend(inside.into_iter().filter(Member::is_directory));
            }
            Ok(subdirectories)
        };
        let places = below(below(below(vec![Member::from_root(&self.directory)])?)?)?;
        places.iter().map(|place| RunHistory::read(place.path())).collect()
    }

    /// Makes each history begin with its newest run; returns the number of histories.
    pub fn accept_newest(&self) -> Result<usize, Failure> {
        let mut accepted = 0;
        for history in self.read_histories()? {
            let Some((run, file)) = history.runs.last().zip(history.files.last()) else { continue };
            let (Some(place), Some(name)) = (file.parent(), file.file_name()) else { continue };
            let record = BaselineRun { begins: true, ..run.clone() };
            let file = Member::from_root(place).join(name);
            file.replace_json_durably(&record).map_err(Failure::failed)?;
            accepted += 1;
        }
        Ok(accepted)
    }

    fn store_record(&self, record: &BaselineRun) -> Result<(), Failure> {
        let place = self.records_directory(record);
        let cannot = |why: &dyn std::fmt::Display| {
            Failure::failed(format!("cannot keep the run in {}: {why}", self.format_directory()))
        };
        std::fs::create_dir_all(&place).map_err(|why| cannot(&why))?;
        let time = record.created.strftime("%Y%m%dT%H%M%S%.9fZ");
        let file = Member::from_root(&place).join(format!("{time}-{}.json", std::process::id()));
        file.replace_json_durably(record).map_err(|why| cannot(&why))
    }
}

/// The trend of all histories of a directory; with `since`, only of runs that began within this
/// time before now; with `propose`, with bounds.
pub fn read_trend(
    baseline: &Baseline,
    since: Option<Nanos>,
    propose: Option<ProposedRate>,
) -> Result<TrendDocument, Failure> {
    let mut document =
        TrendDocument { schema: TREND.to_owned(), histories: Vec::new(), left_out: Vec::new() };
    let now = jiff::Timestamp::now().as_nanosecond();
    for mut history in baseline.read_histories()? {
        document.left_out.append(&mut history.left_out);
        history.newest_version();
        let begin = since.map_or(i128::MIN, |since| now - i128::from(since.ns()));
        let from = history.runs.partition_point(|run| run.created.as_nanosecond() < begin);
        document.histories.extend(punctual_stats::baseline::build_trend(
            &history.runs,
            from,
            propose,
        ));
    }
    Ok(document)
}

impl RunHistory {
    /// Keeps the runs of the version of the experiment that ran last.
    fn newest_version(&mut self) {
        let Some(digest) = self.runs.last().map(|run| run.digest.clone()) else { return };
        let runs_and_files = self.runs.drain(..).zip(self.files.drain(..));
        let (runs, files) = runs_and_files.filter(|(run, _)| run.digest == digest).unzip();
        (self.runs, self.files) = (runs, files);
    }

    /// The records of this directory. Unreadable ones are omitted, with the reason.
    pub fn read(place: &Path) -> Result<RunHistory, Failure> {
        let mut history = RunHistory::default();
        let mut found: Vec<(BaselineRun, PathBuf)> = Vec::new();
        for file in Member::from_root(place).list_entries(".json").map_err(Failure::failed)? {
            let bytes: Result<Vec<u8>, String> =
                file.read_at_most(MOST_BYTES).map_err(|why| why.to_string());
            let read = bytes.and_then(|bytes| {
                let run: Result<BaselineRun, _> = serde_json::from_slice(&bytes);
                run.map_err(|why| format!("{}: {why}", file.display()))
            });
            match read {
                Ok(run) if run.schema == RECORD => found.push((run, file.path().to_owned())),
                Ok(run) => {
                    history.left_out.push(format!(
                        "{}: {} is not known",
                        file.display(),
                        run.schema
                    ));
                }
                Err(why) => history.left_out.push(why),
            }
        }
        found.sort_by_key(|(run, _)| run.created);
        (history.runs, history.files) = found.into_iter().unzip();
        Ok(history)
    }

    /// Keeps the runs to compare with: earlier, of the same version of the experiment, from the
    /// beginning of the history. Returns the number of runs of other versions.
    fn retain_comparable(&mut self, of: &BaselineRun) -> usize {
        let total_runs = self.runs.len();
        self.runs.retain(|run| run.digest == of.digest);
        let other_versions = total_runs - self.runs.len();
        self.runs.retain(|run| run.created < of.created);
        self.from_begin();
        other_versions
    }

    /// Keeps the newest accepted run and those after it.
    pub fn from_begin(&mut self) {
        if let Some(begin) = self.runs.iter().rposition(|run| run.begins) {
            self.runs.drain(..begin);
        }
    }
}

/// The changes that later runs need to know.
fn found_changes(held: &HeldAgainst) -> Vec<FoundChange> {
    let found_change =
        |worse: &WorseFigure| FoundChange { figure: worse.figure.clone(), since: worse.since };
    held.worse.iter().map(found_change).collect()
}

/// Why the figures of a run cannot be compared with those of others.
pub(crate) fn not_comparable(summary: &Summary) -> Option<String> {
    let outcome = summary.ending.as_ref().map(|ending| &ending.outcome);
    let is_invalid =
        summary.validity.as_ref().is_some_and(|of| of.verdict == ValidityWord::Invalid);
    match outcome {
        Some(Outcome::Completed) if is_invalid => {
            Some("it was not measured as requested".to_owned())
        }
        Some(Outcome::Completed) => None,
        Some(other) => Some(format!("the run did not complete: {other}")),
        None => Some("the run has no end".to_owned()),
    }
}

/// A program that failed did not do the same work as one that succeeded.
fn failed_command(bundle: &Bundle) -> Option<String> {
    let command = bundle.manifest.command.filter(|of| of.by_itself && of.code != 0)?;
    Some(format!("the command ended with exit code {}", command.code))
}

/// The requirements and deadlines of a run without an experiment file, as of an attached program:
/// with others, other things are counted.
fn join_requirements(bundle: &Bundle) -> String {
    let mut requirement_texts = BTreeSet::new();
    for phase in &bundle.phases {
        requirement_texts.extend(phase.meta.without_series.iter().cloned());
        for series in &phase.series {
            requirement_texts.extend(series.meta.requirements.iter().cloned());
        }
    }
    requirement_texts.into_iter().collect::<Vec<String>>().join("\n")
}

fn make_record(
    bundle: &Bundle,
    summary: &Summary,
    commit: Option<String>,
) -> Result<BaselineRun, Failure> {
    let environment: Environment =
        bundle.read_document("environment").map_err(Failure::failed)?.unwrap_or_default();
    let experiment = match &bundle.manifest.experiment_file {
        Some(file) => bundle.member(file).read().map_err(Failure::failed)?,
        None => join_requirements(bundle).into_bytes(),
    };
    let digest = encode_hex(&Sha256::digest(&experiment));
    let of_ci = || COMMITS.iter().find_map(|name| std::env::var(name).ok());
    let kernel = &environment.kernel;
    let kind = if kernel.is_real_time() == Some(true) { " PREEMPT_RT" } else { "" };
    let version = kernel.release_numbers().map(|(major, minor)| format!("{major}.{minor}{kind}"));
    let cpus = environment.cpus.known_value().map_or(0, Vec::len);
    let model = environment.machine.cpu_model.known_value().map_or(UNKNOWN, String::as_str);
    Ok(BaselineRun {
        schema: RECORD.to_owned(),
        created: summary.created,
        machine: format!("{model}, {cpus} CPUs"),
        experiment: summary.experiment.clone(),
        digest,
        kernel: version.unwrap_or_else(|| UNKNOWN.to_owned()),
        commit: commit.or_else(of_ci).filter(|commit| !commit.is_empty()),
        bundle: Some(punctual_session::messages::display_path(&bundle.directory)),
        verdict: summary.verdict.word,
        begins: false,
        found: None,
        figures: baseline::figures_to_keep(summary),
        environment: changing_facts(&environment, bundle.manifest.machine.as_deref()),
    })
}

/// Facts that may change between runs, as text.
fn changing_facts(environment: &Environment, name: Option<&str>) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let mut add = |what: &str, value: Option<String>| {
        texts.extend(value.map(|value| (what.to_owned(), value)));
    };
    let (kernel, machine) = (&environment.kernel, &environment.machine);
    add("machine's name", name.map(str::to_owned));
    add("kernel", kernel.release.known_value().cloned());
    add("build of the kernel", kernel.version.known_value().cloned());
    add("kernel command line", kernel.command_line.known_value().map(|line| line.0.clone()));
    add("preemption", kernel.preemption.known_value().map(|of| of.model.to_string()));
    add("microcode", machine.microcode.known_value().cloned());
    add("board and firmware", machine.board.known_value().cloned());
    add("clocksource", environment.clock.current.known_value().cloned());
    add("idle governor", environment.idle_governor.known_value().cloned());
    for (path, value) in &environment.settings.0 {
        add(
            path,
            match value {
                Fact::Known(text) => Some(text.clone()),
                _ => None,
            },
        );
    }
    texts
}

/// A unique, readable directory name.
fn file_name(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' })
        .take(60)
        .collect();
    let plain = plain.trim_start_matches('.');
    let hash = Sha256::digest(text.as_bytes());
    format!("{plain}-{}", encode_hex(&hash[..3]))
}

#[cfg(test)]
mod tests;
