//! A tuning from its request to its findings.

use super::blocks::{BlockMeasurement, BlockRunner, BlockRuns};
use super::directory::{TuneDirectory, TuningSpec};
use super::setting::{format_differences, snapshot_files};
use punctual_bundle::tune::{BlockRecord, NotTried, TuningDocument, TuningEnd};
use punctual_core::Nanos;
use punctual_core::format;
use punctual_host::files::{Files, Root};
use punctual_host::isolate::check_rights;
use punctual_host::journal;
use punctual_host::journal::record::ChangePurpose;
use punctual_session::changes::{MachineChanges, refusal_reason};
use punctual_session::exit::Failure;
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::Listener;
use punctual_stats::tune::{
    BlockRequest, MeasuredBlock, TunableMachine, TuneFigure, Tuning, run_tuning, tuned_requirement,
};
use std::path::Path;
use std::time::Instant;

/// The purpose of its settings.
pub(crate) const TUNING: &ChangePurpose = &ChangePurpose::Tuning;

/// The result of a tuning.
pub struct TuneResult {
    pub document: TuningDocument,
    /// Why the tuning ended early; the settings are reverted, and it can be resumed.
    pub broken: Option<Failure>,
}

/// Begins a tuning.
///
/// # Errors
/// The tuning cannot begin. Nothing is changed then, or all changes are reverted.
pub fn begin_tuning(
    place: &Path,
    experiment: &[u8],
    spec: TuningSpec,
    messages: Listener,
) -> Result<TuneResult, Failure> {
    let interrupts = SignalRequests::listen()?;
    let (files, store) = (Root::from_system(), journal::JournalDirectory::from_system());
    if spec.guest.is_some() {
        let directory = TuneDirectory::create(place, experiment, &spec)?;
        return with_runs(None, &directory, &spec, interrupts, messages);
    }
    check_rights(&files).map_err(Failure::refused)?;
    let changes = MachineChanges { files: &files, store: &store, purpose: TUNING };
    let spec = tried_once(&changes, spec)?;
    let directory = TuneDirectory::create(place, experiment, &spec)?;
    with_runs(Some(&changes), &directory, &spec, interrupts, messages)
}

/// Resumes a tuning.
///
/// # Errors
/// There is no tuning, or the machine has changed.
pub fn resume_tuning(
    place: &Path,
    messages: Listener,
) -> Result<(TuningSpec, TuneResult), Failure> {
    let (files, store) = (Root::from_system(), journal::JournalDirectory::from_system());
    let (directory, spec) = TuneDirectory::open(place)?;
    if spec.guest.is_none() {
        check_rights(&files).map_err(Failure::refused)?;
    }
    let interrupts = SignalRequests::listen()?;
    let changes = MachineChanges { files: &files, store: &store, purpose: TUNING };
    let changes = spec.guest.is_none().then_some(&changes);
    let ended = with_runs(changes, &directory, &spec, interrupts, messages)?;
    Ok((spec, ended))
}

fn with_runs(
    changes: Option<&MachineChanges>,
    directory: &TuneDirectory,
    spec: &TuningSpec,
    interrupts: SignalRequests,
    messages: Listener,
) -> Result<TuneResult, Failure> {
    let mut runs = BlockRuns {
        experiment: directory.experiment_path(),
        place: directory.runs_directory(),
        figure: TuneFigure::parse(&spec.figure).map_err(Failure::refused)?,
        spec: spec.clone(),
        interrupts,
        began: Instant::now(),
    };
    tune_machine(changes, directory, spec, &mut runs, messages)
}

/// Applies and reverts each setting once: writes that the kernel refuses are left out, and a
/// setting without any writes left is not tried.
///
/// # Errors
/// No setting is left, or one could not be reverted.
pub(crate) fn tried_once(
    changes: &MachineChanges,
    mut spec: TuningSpec,
) -> Result<TuningSpec, Failure> {
    changes.restore_settings()?;
    let before = snapshot_files(changes.files, &spec.settings);
    let mut kept = Vec::new();
    for mut setting in std::mem::take(&mut spec.settings) {
        let results = changes.apply_writes(&setting.named_writes().collect::<Vec<_>>());
        changes.restore_settings()?;
        let results = results?;
        let refused: Vec<String> = results.iter().filter_map(refusal_reason).collect();
        let mut results = results.iter();
        setting
            .writes
            .retain(|_| results.next().is_some_and(|result| refusal_reason(result).is_none()));
        match setting.writes.is_empty() {
            false => kept.push(setting),
            true => {
                let first_refusal = refused.into_iter().next();
                let reason = first_refusal.unwrap_or_else(|| "it changes nothing".to_owned());
                spec.left_out.push(NotTried { name: setting.name, why: reason });
            }
        }
    }
    spec.settings = kept;
    check_unchanged(changes.files, &before, &spec)?;
    if spec.settings.is_empty() {
        return Err(Failure::refused("no setting is left to try: see `punctual tune --list`"));
    }
    Ok(spec)
}

fn check_unchanged(
    files: &dyn Files,
    before: &[journal::record::FileValue],
    spec: &TuningSpec,
) -> Result<(), Failure> {
    let after = snapshot_files(files, &spec.settings);
    let is_kept = |file: &&journal::record::FileValue| after.iter().any(|of| of.path == file.path);
    let before: Vec<_> = before.iter().filter(is_kept).cloned().collect();
    let changed = format_differences(&before, &after);
    match changed.is_empty() {
        true => Ok(()),
        false => Err(Failure::failed(format!(
            "settings are not as they were before the tuning:\n  {}",
            changed.join("\n  ")
        ))),
    }
}

/// The contents of the settings' files at the time of the request.
fn as_asked(spec: &TuningSpec) -> Vec<journal::record::FileValue> {
    let writes = spec.settings.iter().flat_map(|setting| &setting.writes);
    let mut file_values: Vec<_> = writes
        .map(|write| journal::record::FileValue {
            path: write.path.clone(),
            value: write.old.clone(),
        })
        .collect();
    file_values.sort_by(|a, b| a.path.cmp(&b.path));
    file_values.dedup_by(|a, b| a.path == b.path);
    file_values
}

/// Runs the tuning on a machine that measures blocks. However it ends, the settings are reverted;
/// only killing this process leaves them to the journal. Without `changes` blocks boot with their
/// settings, and nothing is changed here.
///
/// # Errors
/// The tuning cannot begin, or the settings cannot be reverted.
pub(crate) fn tune_machine(
    changes: Option<&MachineChanges>,
    directory: &TuneDirectory,
    spec: &TuningSpec,
    blocks: &mut dyn BlockRunner,
    messages: Listener,
) -> Result<TuneResult, Failure> {
    let restore = || {
        let Some(changes) = changes else { return Ok(()) };
        changes
            .restore_settings()
            .and_then(|()| check_unchanged(changes.files, &as_asked(spec), spec))
    };
    restore()?;
    let (kept, mut tuning) = directory.replay_blocks(spec)?;
    let before = kept.last().map_or(Nanos::ZERO, |block| block.elapsed);
    let mut machine = OnMachine {
        changes,
        directory,
        spec,
        blocks,
        messages,
        kept,
        before,
        refused: None,
        last: None,
    };
    let ran = run_tuning(&mut tuning, &mut machine);
    let kept = machine.kept;
    messages.replace_line("");
    let restored = restore();
    let mut document = tuning_document(spec, &tuning, &kept);
    if ran.is_err() {
        document.ended = TuningEnd::Interrupted;
    }
    directory.write(&document)?;
    restored?;
    Ok(TuneResult { document, broken: ran.err() })
}

/// The findings, with the facts that the experiment does not know.
fn tuning_document(spec: &TuningSpec, tuning: &Tuning, blocks: &[BlockRecord]) -> TuningDocument {
    let found = tuning.to_document(&spec.figure);
    let require = spec.require.as_ref().and_then(|text| text.parse().ok());
    let is_recommended = !found.recommended.is_empty();
    TuningDocument {
        experiment: spec.experiment.clone(),
        kernel: spec.kernel.clone(),
        target: spec.guest.clone(),
        not_tried: spec.left_out.clone(),
        required: require.map(|require| tuned_requirement(&require, blocks, is_recommended)),
        ..found
    }
}

/// This machine, as the experiment's interface.
struct OnMachine<'a> {
    changes: Option<&'a MachineChanges<'a>>,
    directory: &'a TuneDirectory,
    spec: &'a TuningSpec,
    blocks: &'a mut dyn BlockRunner,
    messages: Listener,
    kept: Vec<BlockRecord>,
    /// The time of earlier processes.
    before: Nanos,
    /// Why the next block cannot be used: a setting was refused that was accepted before.
    refused: Option<String>,
    last: Option<BlockMeasurement>,
}

impl TunableMachine for OnMachine<'_> {
    type Error = Failure;

    fn apply_settings(&mut self, on: &[bool]) -> Result<(), Failure> {
        let settings = self.spec.settings.iter().zip(on).filter(|(_, on)| **on);
        let steps: Vec<_> = settings.flat_map(|(setting, _)| setting.named_writes()).collect();
        let results =
            self.changes.map_or(Ok(Vec::new()), |changes| changes.apply_writes(&steps))?;
        self.refused = results.iter().find_map(refusal_reason);
        Ok(())
    }

    fn wait_to_settle(&mut self, time: Nanos) -> Result<(), Failure> {
        if time > Nanos::ZERO { self.blocks.wait(time) } else { Ok(()) }
    }

    fn measure_block(&mut self, request: &BlockRequest) -> Result<Option<f64>, Failure> {
        let number = self.kept.len() as u64 + 1;
        let measured = match self.refused.clone() {
            Some(why) => BlockMeasurement { figure: None, why: Some(why) },
            None => self.blocks.measure_block(number, &request.on)?,
        };
        let figure = measured.figure;
        self.last = Some(measured);
        Ok(figure)
    }

    fn elapsed_time(&self) -> Nanos {
        self.before + self.blocks.elapsed()
    }

    fn store_block(&mut self, request: &BlockRequest, block: MeasuredBlock) -> Result<(), Failure> {
        let record = BlockRecord {
            number: self.kept.len() as u64 + 1,
            purpose: request.purpose.word().to_owned(),
            on: self.spec.enabled_names(&request.on),
            figure: block.figure,
            why: self.last.take().and_then(|measured| measured.why),
            elapsed: block.elapsed,
        };
        self.directory.append_block(&record)?;
        show_progress(self.messages, self.spec, &record);
        self.kept.push(record);
        Ok(())
    }
}

/// Shows a line of each block; on a terminal it replaces the one before, unless the block is
/// unusable.
fn show_progress(messages: Listener, spec: &TuningSpec, block: &BlockRecord) {
    let figure = match (block.figure, &block.why) {
        (Some(figure), _) => format!("{} µs", format::micros_f64(figure)),
        (None, why) => {
            format!(
                "cannot be used: {}",
                format::escape_unsafe(why.as_deref().unwrap_or("not known"))
            )
        }
    };
    let on = match block.on.as_slice() {
        [] => "untouched".to_owned(),
        on => format::count_with_noun(on.len() as u64, "setting"),
    };
    let line = format!(
        "{} of {}: block {}, {on}: {} {figure}",
        format::rough_span_text(block.elapsed),
        format::rough_span_text(spec.within),
        block.number,
        spec.figure,
    );
    match messages.line_width() {
        Some(_) if block.figure.is_some() => messages.replace_line(&line),
        _ => messages.show_progress(&line),
    }
}
