//! Traces of other tools.

use super::{Converted, TraceExtent, TraceOptions, TraceReader, convert_trace, store};
use crate::cycles::CycleOptions;
use crate::exit::Failure;
use crate::messages::display_path;
use punctual_bundle::import::Tool;
use punctual_core::{CallPath, Event};
use punctual_traces::{ReadAt, Trace, TraceError};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Makes a bundle of another tool's trace, which is recognised by content, in `directory`, which
/// must not exist; `-` is standard input. Its experiment is named `name`, or after the file.
pub fn import_trace(
    path: &Path,
    directory: &Path,
    name: Option<String>,
    cycles: CycleOptions,
) -> Result<Converted, Failure> {
    let mut trace = open_trace(path)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = name.or(stem.filter(|stem| stem != "-")).unwrap_or_else(|| "trace".to_owned());
    let origin = format!("import: {}", trace.format().word());
    let mut converted =
        convert_trace(directory, &mut trace, TraceOptions { name, origin, cycles })?;
    if converted.none.is_some() && !converted.has_moments && is_table(path) {
        let reason = "it has figures of a kernel tracer, but no events";
        let file = display_path(path);
        converted.none =
            Some(format!("{reason}\nhelp: `punctual import {file}` reads the figures"));
    }
    Ok(converted)
}

/// Opens a trace, which is recognised by content; `-` is standard input.
fn open_trace(path: &Path) -> Result<Trace, Failure> {
    let cannot = |why: TraceError| {
        let tool = matches!(why, TraceError::Unrecognized { .. }).then(|| tool_of(path)).flatten();
        let figures = tool.map_or(String::new(), |tool| {
            let (tool, file) = (tool.name(), display_path(path));
            format!("\nhelp: it holds figures of {tool}: `punctual import {file}` reads them")
        });
        Failure::refused(format!("{}: {why}{figures}", display_path(path)))
    };
    match find_metadata(path) {
        Some(metadata) => open_ctf(&metadata).map_err(cannot),
        None => Trace::open(open_file(path)?).map_err(cannot),
    }
}

/// The system calls of this name whose functions a trace of function_graph shows.
///
/// # Errors
/// It is no trace, or its end cannot be read.
pub fn call_paths(path: &Path, call: &str) -> Result<Vec<CallPath>, Failure> {
    let mut trace = open_trace(path)?;
    let unreadable = |why| Failure::refused(format!("{}: {why}", display_path(path)));
    trace.by_ref().try_for_each(|event| event.map(drop)).map_err(unreadable)?;
    let call = call.replace('-', "_");
    Ok(trace.call_paths().iter().filter(|path| path.call == call).cloned().collect())
}

/// Whether a file is figures that look like a trace.
fn is_table(path: &Path) -> bool {
    punctual_bundle::import::is_tracer_table(&read_head(path))
}

/// The tool whose figures a file holds.
fn tool_of(path: &Path) -> Option<Tool> {
    punctual_bundle::import::tool_of(&read_head(path))
}

fn read_head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.map_or(Vec::new(), |_| head)
}

/// The beginning of a file that is read for that, in bytes.
const HEAD: u64 = 1 << 16;

/// Whether a file is a trace in a known format.
pub fn is_foreign_trace(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| Trace::open(file).is_ok())
}

/// Whether a directory is an LTTng trace.
pub(super) fn is_of_lttng(path: &Path) -> bool {
    find_metadata(path).is_some()
}

/// The metadata of an LTTng trace: in the directory itself, or of the kernel in a session's.
fn find_metadata(path: &Path) -> Option<PathBuf> {
    let places = ["metadata", "kernel/metadata"].map(|file| path.join(file));
    places.into_iter().find(|file| file.is_file())
}

const MOST_FILES: usize = 1 << 14;

/// The files beside the metadata are streams; subdirectories contain an index of them.
fn open_ctf(metadata: &Path) -> Result<Trace, TraceError> {
    let directory = metadata.parent().unwrap_or(Path::new("."));
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)?.take(MOST_FILES) {
        let entry = entry?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if entry.path() != metadata && !hidden && entry.path().is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let mut streams: Vec<Box<dyn ReadAt>> = Vec::new();
    for path in paths {
        streams.push(Box::new(File::open(path)?));
    }
    Trace::open_ctf(File::open(metadata)?, streams)
}

fn open_file(path: &Path) -> Result<File, Failure> {
    if path == Path::new("-") {
        return store::spool_pipe(&mut std::io::stdin().lock());
    }
    File::open(path)
        .map_err(|why| Failure::refused(format!("cannot read {}: {why}", display_path(path))))
}

impl TraceReader for Trace {
    fn next_event(&mut self) -> Option<Result<Event, String>> {
        self.next().map(|event| event.map_err(|why| why.to_string()))
    }

    fn trace_extent(&self) -> TraceExtent {
        let facts = self.facts();
        let seen_counts =
            facts.tracepoints.into_iter().map(|(name, count)| (name, count.seen)).collect();
        TraceExtent { recorded: facts.recorded, names: facts.names, seen: seen_counts }
    }
}
