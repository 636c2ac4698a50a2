//! Traces of other tools.

use super::{About, Converted, TraceOptions, TraceReader, convert, store};
use crate::cycles::CycleOptions;
use crate::exit::Failure;
use crate::messages::shown;
use punctual_core::Event;
use punctual_traces::{CTF, Trace, TraceError};
use std::fs::File;
use std::path::Path;

/// Makes a bundle of a trace of another tool, which is recognised by content, in `directory`, which
/// must not exist; `-` is standard input.
pub fn import(path: &Path, directory: &Path, cycles: CycleOptions) -> Result<Converted, Failure> {
    let cannot = |why: TraceError| Failure::refused(format!("{}: {why}", shown(path)));
    let mut trace = Trace::open(file(path)?).map_err(cannot)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = stem.filter(|stem| stem != "-").unwrap_or_else(|| "trace".to_owned());
    let origin = format!("import: {}", trace.format().word());
    convert(directory, &mut trace, TraceOptions { name, origin, cycles })
}

/// Whether a file is a trace that is known.
pub fn recognizes(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| Trace::open(file).is_ok())
}

/// Whether a directory is a trace of LTTng.
pub(super) fn is_of_lttng(path: &Path) -> bool {
    ["metadata", "kernel/metadata"].iter().any(|file| path.join(file).is_file())
}

fn file(path: &Path) -> Result<File, Failure> {
    if is_of_lttng(path) {
        return Err(Failure::refused(format!("{}: {CTF}", shown(path))));
    }
    if path == Path::new("-") {
        return store::spool(&mut std::io::stdin().lock());
    }
    File::open(path).map_err(|why| Failure::refused(format!("cannot read {}: {why}", shown(path))))
}

impl TraceReader for Trace {
    fn next_event(&mut self) -> Option<Result<Event, String>> {
        self.next().map(|event| event.map_err(|why| why.to_string()))
    }

    fn about(&self) -> About {
        let facts = self.facts();
        About { recorded: facts.recorded, names: facts.names }
    }
}
