//! The bundle of a command, and how to show it. A trace of another tool is converted to one.

use crate::exit::Failure;
use crate::output::{self, is_colored};
use punctual_bundle::Bundle;
use punctual_bundle::import::ImportQuestions;
use punctual_core::{Nanos, SeriesRequirement};
use punctual_report::terminal::ShowOptions;
use punctual_session::cycles::CycleOptions;
use punctual_session::messages::display_path;
use punctual_session::traces::{self, Converted, TraceOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// Bundles converted from traces, for as long as this process needs them.
static TEMPORARY: Mutex<Vec<TempDir>> = Mutex::new(Vec::new());

/// Options for the cycles in a trace, or in a recording without samples.
#[derive(clap::Args, Default)]
pub struct CycleArgs {
    /// Of a trace or recording: only the cycles of threads of this name [default: those of
    /// real-time threads, and those that timers release]; of another import, only this thread
    #[arg(long, value_name = "NAME")]
    thread: Option<String>,
    /// Count the cycles of a trace or recording whose response time exceeds this, or the samples of
    /// another import
    #[arg(long, value_name = "DURATION")]
    deadline: Option<Nanos>,
    /// A requirement on the cycles of a trace or recording, written as for `punctual attach`, or on
    /// each thread of another import (`max < 100us`)
    #[arg(long, value_name = "REQUIREMENT")]
    require: Vec<SeriesRequirement>,
}

impl CycleArgs {
    /// Whether any option is set.
    pub fn has_any(&self) -> bool {
        self.thread.is_some() || self.deadline.is_some() || !self.require.is_empty()
    }

    /// The options for the import of figures.
    pub fn import_questions(&self) -> ImportQuestions {
        ImportQuestions {
            thread: self.thread.clone(),
            deadline: self.deadline,
            requirements: self.require.clone(),
        }
    }

    /// The options for the search for cycles.
    pub fn cycle_options(&self) -> CycleOptions {
        CycleOptions {
            thread: self.thread.clone(),
            deadline: self.deadline,
            requirements: self.require.clone(),
            ..CycleOptions::default()
        }
    }
}

/// The maximum number of directory entries to search for bundles.
const ENTRIES: usize = 10_000;

/// These, or by default the newest bundle in the current directory, which is reported.
pub fn or_newest(named: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
    if !named.is_empty() {
        return Ok(named);
    }
    let newest = newest_bundle(Path::new(".")).ok_or_else(|| {
        Failure::refused(
            "no bundle is named, and there is none in the current directory: name one, or measure \
             with `punctual run`, `measure` or `attach`",
        )
    })?;
    output::print_stderr(&format!("{}: the newest bundle here\n", display_path(&newest)));
    Ok(vec![newest])
}

/// The bundle in a directory that was begun last.
fn newest_bundle(directory: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?.take(ENTRIES).flatten();
    let bundle = |entry: std::fs::DirEntry| {
        let header = entry.path().join("bundle.json");
        let changed = header.symlink_metadata().ok().filter(|of| of.is_file())?.modified().ok()?;
        Some((changed, PathBuf::from(entry.file_name())))
    };
    entries.filter_map(bundle).max().map(|(_, path)| path)
}

/// Opens a bundle, or converts a trace of another tool (`-`: standard input). A missing one is a
/// wrong request.
pub fn open_bundle(path: &Path) -> Result<Bundle, Failure> {
    open_with(path, &CycleArgs::default()).map(|(bundle, _)| bundle)
}

/// Like [`open_bundle`], with options for a trace's cycles; also returns the result of the
/// conversion.
pub fn open_with(path: &Path, args: &CycleArgs) -> Result<(Bundle, Option<Converted>), Failure> {
    if !traces::is_trace(path) {
        return Ok((Bundle::open(path).map_err(Failure::refused)?, None));
    }
    make_temporary_bundle(|directory| {
        traces::import_trace(path, directory, None, args.cycle_options())
    })
    .map(|(bundle, converted)| (bundle, Some(converted)))
}

/// The cycles in the recording of a bundle, as a separate bundle.
pub fn cycles_of(bundle: &Bundle, args: &CycleArgs) -> Result<(Bundle, Converted), Failure> {
    let name = bundle.manifest.experiment.clone();
    let origin = bundle.manifest.origin.clone();
    let options = TraceOptions { name, origin, cycles: args.cycle_options() };
    make_temporary_bundle(|directory| traces::cycles_of(bundle, directory, options))
}

/// Makes a bundle that lasts as long as this process.
fn make_temporary_bundle(
    make: impl FnOnce(&Path) -> Result<Converted, Failure>,
) -> Result<(Bundle, Converted), Failure> {
    let cannot = |why| Failure::failed(format!("cannot make a temporary directory: {why}"));
    let room = tempfile::Builder::new().prefix("punctual-").tempdir().map_err(cannot)?;
    let directory = room.path().join("bundle");
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).push(room);
    let converted = make(&directory)?;
    Ok((Bundle::open(&directory).map_err(Failure::failed)?, converted))
}

/// Removes bundles converted from traces.
pub fn remove_temporary() {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Opens a bundle to show or export it; detects damaged samples, too.
pub fn open_checked(path: &Path) -> Result<Bundle, Failure> {
    let mut bundle = open_bundle(path)?;
    bundle.check_samples();
    Ok(bundle)
}

/// The options that show figures in a bundle's time base.
pub fn show_options_of(bundle: &Bundle) -> ShowOptions {
    show_options().in_time(bundle.timebase())
}

/// The options for standard output.
pub fn show_options() -> ShowOptions {
    ShowOptions {
        width: output::terminal_width(),
        whole: output::terminal_size(io::stdout()).is_none(),
        color: is_colored(&io::stdout()),
        ..ShowOptions::default()
    }
}
