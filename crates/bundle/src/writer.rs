//! Writes a bundle during the run. Checkpointed data remain readable whenever the writer dies.

use crate::account::{self, SeriesAccount};
use crate::calibration::Calibration;
use crate::checkpoint::FrameSlots;
use crate::exit::CommandEnd;
use crate::intervals::LimitSummary;
use crate::lines::{self, SampleLine};
use crate::log::{self, SampleWindow};
use crate::manifest::{self, Manifest, PartGap, RunEnding};
use crate::member::Member;
use crate::meta::{PhaseMeta, SeriesMeta};
use crate::observed::ObservedSeries;
use crate::planned::{PLAN, PlannedRequests};
use crate::ran_on::RanOn;
use crate::state::SeriesState;
use crate::summary::Summary;
use crate::{BundleError, FORMAT_VERSION};
use punctual_core::{Fact, Finding, PublishedResults, Sample};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub struct BundleWriter {
    directory: PathBuf,
    manifest: Manifest,
    /// Held while the bundle is written, so that a continuing run can see it.
    _lock: Option<File>,
}

/// Space reserved for the last files of a bundle and freed when they are written, so that even a
/// full disk records its end.
const RESERVE: &str = "reserve";
const RESERVE_BYTES: usize = 128 << 10;

/// Locks a bundle until the result is dropped; [`io::ErrorKind::WouldBlock`] while it is being
/// written.
pub fn lock_bundle(directory: &Path) -> io::Result<File> {
    let opened = File::open(directory)?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive)?;
    Ok(opened)
}

/// Removes the directory of a writer killed before its first file: empty, or with a part of that
/// file. Returns whether it did.
pub fn remove_unbegun(directory: &Path) -> bool {
    // A writer is at work.
    let Ok(_lock) = lock_bundle(directory) else { return false };
    let Ok(entries) = fs::read_dir(directory) else { return false };
    let names: Vec<_> = entries.map(|entry| entry.map(|entry| entry.file_name())).collect();
    let is_left = |name: &io::Result<_>| matches!(name, Ok(name) if name == "bundle.new");
    if !names.iter().all(is_left) {
        return false;
    }
    let _ = fs::remove_file(directory.join("bundle.new"));
    fs::remove_dir(directory).is_ok()
}

impl BundleWriter {
    /// Creates the directory, which must not exist, and writes its manifest.
    pub fn create(
        directory: &Path,
        experiment: &str,
        origin: &str,
    ) -> Result<BundleWriter, BundleError> {
        BundleWriter::create_at(directory, experiment, origin, jiff::Timestamp::now())
    }

    /// As [`BundleWriter::create`], for a run that began at another time (an import).
    pub fn create_at(
        directory: &Path,
        experiment: &str,
        origin: &str,
        created: jiff::Timestamp,
    ) -> Result<BundleWriter, BundleError> {
        fs::create_dir(directory).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => BundleError::Exists(directory.to_owned()),
            _ => BundleError::Io { action: "create", path: directory.to_owned(), source },
        })?;
        let manifest = Manifest {
            format: manifest::FORMAT.to_owned(),
            version: FORMAT_VERSION,
            punctual: env!("CARGO_PKG_VERSION").to_owned(),
            experiment: experiment.to_owned(),
            origin: origin.to_owned(),
            calibration: Fact::NotAsked,
            created,
            limits: Some(Vec::new()),
            ..Manifest::default()
        };
        // On a file system without locks, writes without one.
        let _lock = lock_bundle(directory).ok();
        let writer = BundleWriter { directory: directory.to_owned(), manifest, _lock };
        let begun = writer
            .write_manifest()
            .and_then(|()| writer.member(RESERVE).replace_bytes(&[b'-'; RESERVE_BYTES]));
        // A directory without a manifest is empty and would block the next run.
        begun.inspect_err(|_| drop(fs::remove_dir_all(directory)))?;
        Ok(writer)
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn member(&self, name: &str) -> Member {
        Member::from_root(&self.directory).join(name)
    }

    fn write_manifest(&self) -> Result<(), BundleError> {
        self.member("bundle.json").replace_json_durably(&self.manifest)
    }

    /// Sets the target of the run.
    pub fn set_target(&mut self, target: RanOn) -> Result<(), BundleError> {
        self.manifest.target = Some(target);
        self.write_manifest()
    }

    /// Sets the name of the measured system.
    pub fn set_machine(&mut self, name: String) -> Result<(), BundleError> {
        self.manifest.machine = Some(name).filter(|name| !name.is_empty());
        self.write_manifest()
    }

    /// Sets the outcome of each interval limit of the recording, by the name of the limited
    /// interval; written with the end.
    pub fn set_limits(&mut self, limits: Vec<(String, LimitSummary)>) {
        self.manifest.limits = Some(limits);
    }

    /// Sets the samples delayed by punctual itself; written with the end.
    pub fn set_observed(&mut self, observed: Vec<ObservedSeries>) {
        self.manifest.observed = observed;
    }

    /// Sets how the command ended; written with the end.
    pub fn set_command(&mut self, command: Option<CommandEnd>) {
        self.manifest.command = command;
    }

    /// Adds output that could not be written; written with the end.
    pub fn add_unwritten(&mut self, what: impl IntoIterator<Item = String>) {
        self.manifest.unwritten.extend(what);
    }

    /// Sets how the run ended; written with the end.
    pub fn set_ending(&mut self, ending: RunEnding) {
        self.manifest.ending = Some(ending);
    }

    /// Sets the gap without measurement before it.
    pub fn set_gap(&mut self, gap: PartGap) -> Result<(), BundleError> {
        self.manifest.gaps = vec![gap];
        self.write_manifest()
    }

    /// Sets the overhead of recording on the measurement, or why it is unknown.
    pub fn set_calibration(&mut self, calibration: Fact<Calibration>) -> Result<(), BundleError> {
        self.manifest.calibration = calibration;
        self.write_manifest()
    }

    /// Keeps the experiment as written, under `file_name` (`experiment.toml`, `experiment.cfg`).
    pub fn write_experiment(
        &mut self,
        file_name: &'static str,
        bytes: &[u8],
    ) -> Result<(), BundleError> {
        self.member(file_name).replace_bytes(bytes)?;
        self.manifest.experiment_file = Some(file_name.to_owned());
        self.write_manifest()
    }

    /// Keeps the published results of the experiment.
    pub fn write_published(&mut self, published: &PublishedResults) -> Result<(), BundleError> {
        self.manifest.published = Some(published.clone());
        self.write_manifest()
    }

    /// Keeps the plan as run.
    pub fn write_plan(&self, toml: &str) -> Result<(), BundleError> {
        self.member(PLAN).replace_bytes(toml.as_bytes())
    }

    /// Returns the requests of the plan, as a later reader of the bundle sees them.
    pub fn planned_requests(&self) -> Result<PlannedRequests, BundleError> {
        PlannedRequests::read(&self.member(PLAN))
    }

    /// Keeps a document of the run beside the series: `environment`, `environment-end`, `check`.
    pub fn write_document(
        &self,
        name: &'static str,
        document: &impl Serialize,
    ) -> Result<(), BundleError> {
        self.member(name).with_extension("json").replace_json(document)
    }

    /// Reads such a document back; `Ok(None)` without one.
    pub fn read_document<T: DeserializeOwned>(
        &self,
        name: &'static str,
    ) -> Result<Option<T>, BundleError> {
        BundleError::if_there(self.member(name).with_extension("json").read_json())
    }

    /// Keeps the findings known so far.
    pub fn write_findings(&self, findings: &[Finding]) -> Result<(), BundleError> {
        self.member("findings.json").replace_json(&findings)
    }

    /// Begins phase number `index`, or updates its description.
    pub fn write_phase(&self, index: usize, phase: &PhaseMeta) -> Result<(), BundleError> {
        self.phase_place(index).write(phase)
    }

    /// The place of phase number `index`.
    pub fn phase_place(&self, index: usize) -> PhasePlace {
        PhasePlace(self.member("phases"), format!("{index:03}"))
    }

    /// Begins series number `series` of a phase that began; its log takes at most `keep` samples.
    pub fn begin_series(
        &self,
        phase: usize,
        series: usize,
        meta: &SeriesMeta,
        keep: u64,
    ) -> Result<SeriesWriter, BundleError> {
        self.phase_place(phase).begin_series(series, meta, keep)
    }
    /// Ends the bundle: writes the final findings, the figures and the ending, and syncs everything
    /// to disk.
    pub fn finish(mut self, summary: &Summary, ending: RunEnding) -> Result<(), BundleError> {
        // The space is needed now, even if this fails.
        let _ = self.member(RESERVE).remove();
        self.write_findings(&summary.findings)?;
        self.member("summary.json").replace_json(summary)?;
        self.manifest.ending = Some(ending);
        self.manifest.verdict = Some(summary.verdict.clone());
        self.write_manifest()?;
        Member::from_root(&self.directory).sync_to_disk()
    }
}

/// The place of a phase in a bundle, for a thread other than that of the [`BundleWriter`].
#[derive(Clone)]
pub struct PhasePlace(Member, String);

impl PhasePlace {
    /// See [`BundleWriter::write_phase`].
    pub fn write(&self, phase: &PhaseMeta) -> Result<(), BundleError> {
        self.0.create_directory()?;
        let directory = self.directory();
        directory.create_directory()?;
        directory.join("phase.json").replace_json(phase)
    }

    fn directory(&self) -> Member {
        self.0.join(&self.1)
    }

    /// See [`BundleWriter::begin_series`].
    pub fn begin_series(
        &self,
        series: usize,
        meta: &SeriesMeta,
        keep: u64,
    ) -> Result<SeriesWriter, BundleError> {
        let stem = self.directory().join(format!("{series:04}"));
        let meta_member = stem.with_extension("meta.json");
        meta_member.replace_json(meta)?;
        let log_member = stem.with_extension("log");
        let mut file = log_member.create_new()?;
        file.write_all(log::MAGIC).map_err(BundleError::from_io("write", log_member.path()))?;
        Ok(SeriesWriter {
            meta_member,
            state_member: stem.with_extension("state.json"),
            checkpoint_member: stem.with_extension("checkpoint"),
            account_member: stem.with_extension("account.json"),
            checkpoint: None,
            slots: FrameSlots::default(),
            log_member,
            log: file,
            buffer: Vec::new(),
            before_writing: || {},
            log_bytes: log::MAGIC.len() as u64,
            kept: 0,
            keep,
            old_log_member: stem.with_extension("old.log"),
            lines_member: stem.with_extension("lines"),
            lines: None,
            kept_before: 0,
        })
    }
}

pub struct SeriesWriter {
    meta_member: Member,
    state_member: Member,
    checkpoint_member: Member,
    account_member: Member,
    checkpoint: Option<File>,
    slots: FrameSlots,
    log_member: Member,
    log: File,
    /// The encoded data of the current write.
    buffer: Vec<u8>,
    /// Called where all is ready that the next system call writes.
    before_writing: fn(),
    log_bytes: u64,
    kept: u64,
    keep: u64,
    old_log_member: Member,
    lines_member: Member,
    /// The long plot, in a run for weeks.
    lines: Option<SeriesLines>,
    /// The number of samples in the older log.
    kept_before: u64,
}

/// Appends whole blocks to a file of `bytes` bytes, and empties the buffer.
fn append_blocks(
    file: &mut File,
    bytes: &mut u64,
    buffer: &mut Vec<u8>,
    end: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let written = file.write_all(buffer).and_then(|()| end(file));
    if written.is_err() {
        // A partial write must not precede later whole blocks.
        let _ = file.set_len(*bytes);
        let _ = io::Seek::seek(file, io::SeekFrom::Start(*bytes));
    } else {
        *bytes += buffer.len() as u64;
    }
    buffer.clear();
    written
}

/// The additional state of a series for weeks.
struct SeriesLines {
    file: File,
    bytes: u64,
    /// The size at which the log replaces the older one.
    log_limit: u64,
}

impl SeriesWriter {
    /// Waits with this function before each write that is made while samples come in.
    pub fn wait_before_writing(&mut self, wait: fn()) {
        self.before_writing = wait;
    }

    /// Appends samples to the log within its bound; the caller keeps the statistics.
    pub fn append_samples(&mut self, samples: &[Sample]) -> Result<(), BundleError> {
        let room = self.keep.saturating_sub(self.kept).min(samples.len() as u64) as usize;
        log::encode_samples(&mut self.buffer, &samples[..room]);
        self.flush()?;
        self.kept += room as u64;
        Ok(())
    }

    /// Appends a window of one second to the log.
    pub fn append_window(&mut self, window: &SampleWindow) -> Result<(), BundleError> {
        log::encode_window(&mut self.buffer, window);
        self.flush()
    }

    /// Bounds the log from now on: a full log becomes the older log and replaces that; lines are
    /// kept permanently.
    pub fn begin_rotation(&mut self, log_limit: u64) -> Result<(), BundleError> {
        let mut file = self.lines_member.create_new()?;
        file.write_all(log::MAGIC)
            .map_err(BundleError::from_io("write", self.lines_member.path()))?;
        self.lines = Some(SeriesLines { file, bytes: log::MAGIC.len() as u64, log_limit });
        Ok(())
    }

    /// Appends a line of the long plot and syncs it to disk.
    pub fn append_line(&mut self, line: &SampleLine) -> Result<(), BundleError> {
        let Some(lines) = &mut self.lines else { return Ok(()) };
        lines::encode_line(&mut self.buffer, line);
        let sync = |file: &File| file.sync_data();
        (self.before_writing)();
        append_blocks(&mut lines.file, &mut lines.bytes, &mut self.buffer, sync)
            .map_err(BundleError::from_io("write", self.lines_member.path()))
    }

    fn rotate_if_full(&mut self) -> Result<(), BundleError> {
        if self.lines.as_ref().is_none_or(|lines| self.log_bytes < lines.log_limit) {
            return Ok(());
        }
        self.log_member.rename(&self.old_log_member)?;
        self.log = self.log_member.create_new()?;
        self.log
            .write_all(log::MAGIC)
            .map_err(BundleError::from_io("write", self.log_member.path()))?;
        self.log_bytes = log::MAGIC.len() as u64;
        (self.kept_before, self.kept) = (self.kept, 0);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BundleError> {
        self.rotate_if_full()?;
        if self.buffer.is_empty() {
            return Ok(());
        }
        (self.before_writing)();
        append_blocks(&mut self.log, &mut self.log_bytes, &mut self.buffer, |_| Ok(()))
            .map_err(BundleError::from_io("write", self.log_member.path()))
    }

    /// The number of samples that the log still takes.
    pub fn samples_left(&self) -> u64 {
        self.keep.saturating_sub(self.kept)
    }

    /// The number of samples in the log and in the older one.
    pub fn kept_count(&self) -> u64 {
        self.kept_before + self.kept
    }

    /// The length of the log so far, in bytes.
    pub fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// Saves the current statistics, which a reader finds if the writer dies.
    pub fn save_checkpoint(&mut self, state: &SeriesState) -> Result<(), BundleError> {
        let place = self.slots.next(state, &mut self.buffer);
        let path = self.checkpoint_member.path();
        let file = match self.checkpoint.take() {
            Some(file) => Ok(file),
            None => self.checkpoint_member.create_new(),
        };
        (self.before_writing)();
        let written = file.and_then(|file| {
            self.checkpoint
                .insert(file)
                .write_all_at(&self.buffer, place)
                .map_err(BundleError::from_io("write", path))
        });
        self.buffer.clear();
        written?;
        self.slots.confirm_written();
        Ok(())
    }

    /// Replaces its description.
    pub fn write_meta(&self, meta: &SeriesMeta) -> Result<(), BundleError> {
        self.meta_member.replace_json(meta)
    }

    /// Saves the current breakdown of its samples' time.
    pub fn write_account(&self, account: &Fact<SeriesAccount>) -> Result<(), BundleError> {
        account::write(&self.account_member, account)
    }

    /// Writes the final statistics; checkpoints are obsolete then.
    pub fn finish(&mut self, state: &SeriesState) -> Result<(), BundleError> {
        self.state_member.replace_with(|out| state.write(out))?;
        match self.checkpoint.take() {
            Some(_) => self.checkpoint_member.remove(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bundles_without_any_complete_file_are_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        for name in ["empty", "begun", "foreign", "written"] {
            fs::create_dir(at(name)).expect("a directory");
        }
        fs::write(at("begun/bundle.new"), "{\"form").expect("a file");
        fs::write(at("foreign/notes.txt"), "mine").expect("a file");
        assert!(remove_unbegun(&at("empty")) && !at("empty").exists());
        assert!(remove_unbegun(&at("begun")) && !at("begun").exists());
        assert!(!remove_unbegun(&at("foreign")) && at("foreign/notes.txt").exists());
        assert!(!remove_unbegun(&at("missing")));
        let _writer = lock_bundle(&at("written")).expect("locked");
        assert!(!remove_unbegun(&at("written")) && at("written").exists());
    }
}
