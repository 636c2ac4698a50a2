//! Converts results of other tools to bundles, for reports that show them beside new ones.
//!
//! Data that the tool did not keep stay absent; assumptions are stated in a finding. The input is
//! read and checked as a whole before anything is written.

mod cmdline;
mod hwlatdetect;
mod jitterdebugger;
mod json;
mod oslat;
mod osnoise;
mod others;
mod questions;
mod recorded;
mod rteval;
mod rtla;
mod scan;
mod sched;
mod threads;
mod tool;
mod write;
mod xenomai;

use crate::summary::Summary;
use crate::{Bundle, BundleError};
pub use questions::ImportQuestions;
use recorded::ImportedFile;
use std::io::{self, Read};
use std::path::Path;

/// A reader of text that one tool, or a few with nearly the same output, print.
struct TextReader {
    /// The text, for errors.
    what: &'static str,
    /// The tool that wrote the text, if it is one of its own.
    recognize: fn(&str) -> Option<Tool>,
    /// `--nanoseconds` is passed on only if a text may lack its unit.
    parse: fn(&str, Tool, bool) -> Result<ImportedFile, Malformed>,
    may_lack_unit: bool,
}

macro_rules! tools {
    ($($(#[$doc:meta])* $tool:ident: $name:literal $(, $reader:expr)?;)*) => {
        /// A tool whose results can be imported.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Tool {
            $($(#[$doc])* $tool,)*
        }

        impl Tool {
            pub const ALL: [Tool; [$($name),*].len()] = [$(Tool::$tool),*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Tool::$tool => $name,)* }
            }
        }

        /// The last one that recognises a text reads it: reports may quote other tools.
        static TEXTS: &[TextReader] = &[ $($($reader,)?)* ];
    };
}

tools! {
    /// Wake-up latency of timers (rt-tests).
    Cyclictest: "cyclictest";
    /// The same for SCHED_DEADLINE tasks (rt-tests).
    Cyclicdeadline: "cyclicdeadline";
    /// Gaps seen by a busy loop (rt-tests).
    Oslat: "oslat", oslat::READER;
    /// Gaps seen by the kernel's hwlat tracer (rt-tests).
    Hwlatdetect: "hwlatdetect", hwlatdetect::READER;
    /// The output of rtla, and of the kernel's tracers of the same names.
    Timerlat: "rtla-timerlat", rtla::READER;
    Osnoise: "rtla-osnoise", osnoise::READER;
    /// Wake-up latency of timers, with a thread on each CPU (jitterdebugger 0.1 to 0.3).
    Jitterdebugger: "jitterdebugger";
    /// Latency of Xenomai's timers (its `latency`), and of those of EVL.
    Xenomai: "xenomai-latency", xenomai::READER;
    Latmus: "latmus";
    /// cyclictest or timerlat beside loads.
    Rteval: "rteval", rteval::READER;
    /// Scheduling delays of all threads (`perf sched timehist` and `latency`).
    PerfSched: "perf-sched", sched::READER;
}

/// The maximum size of an input: 256 MiB.
const MAX_INPUT: u64 = 1 << 28;

/// Options of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The name of the experiment, usually that of the file.
    pub name: String,
    /// The tool that wrote it; recognised by content if not given.
    pub from: Option<Tool>,
    /// Whether a text of cyclictest is in ns (its `-N`), which the text does not show (JSON does).
    pub nanoseconds: bool,
    /// The requirements on its figures.
    pub asked: ImportQuestions,
}

/// The reason why an import failed.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The input cannot be read.
    #[error("cannot read the input: {0}")]
    Read(#[from] io::Error),
    /// The input is larger than [`MAX_INPUT`].
    #[error(
        "the input is larger than {} MiB, the bound of what is read at once: import a part of it, \
         or a histogram (cyclictest -h)",
        MAX_INPUT >> 20
    )]
    TooLarge,
    /// The input is malformed.
    #[error("line {line}: {why} (read as {what})")]
    Malformed {
        /// The format that it was read as.
        what: &'static str,
        /// The line, from 1.
        line: usize,
        why: String,
    },
    /// The tool that wrote it is not recognisable.
    #[error("{0}")]
    Unrecognized(String),
    /// It cannot answer a question asked of it.
    #[error("{0}")]
    Unanswerable(String),
    /// The bundle cannot be written.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// The defect of an input with its line; 0: that which is being read. [`parse`] adds the format.
#[derive(Debug, PartialEq, Eq)]
struct Malformed {
    line: usize,
    why: String,
}

impl Malformed {
    fn with_line(line: usize, why: impl Into<String>) -> Malformed {
        Malformed { line, why: why.into() }
    }

    /// The same in this line, unless it is of another.
    fn or_at(self, line: usize) -> Malformed {
        Malformed { line: if self.line == 0 { line } else { self.line }, ..self }
    }
}

impl From<String> for Malformed {
    fn from(why: String) -> Malformed {
        Malformed::with_line(0, why)
    }
}

impl From<&str> for Malformed {
    fn from(why: &str) -> Malformed {
        Malformed::with_line(0, why)
    }
}

/// Reads the results of another tool and writes them as a bundle into `directory`, which must not
/// exist. `summarize` makes the figures of the finished bundle (`punctual_stats::summarize`).
pub fn import_results(
    input: &mut dyn Read,
    directory: &Path,
    options: &ImportOptions,
    summarize: fn(&Bundle) -> Summary,
) -> Result<Summary, ImportError> {
    let mut bytes = Vec::new();
    input.take(MAX_INPUT + 1).read_to_end(&mut bytes)?;
    let mut recorded = parse(&bytes, options)?;
    options.asked.apply_questions(&mut recorded).map_err(ImportError::Unanswerable)?;
    Ok(write::write(&recorded, directory, options, summarize)?)
}

/// Reads and checks an input without writing anything.
pub fn check_input(bytes: &[u8], options: &ImportOptions) -> Result<(), ImportError> {
    let recorded = parse(bytes, options)?;
    recorded
        .threads
        .iter()
        .for_each(|thread| drop(thread.to_series_data(recorded.unit, recorded.step)));
    Ok(())
}

/// Whether a file begins with a table that the kernel's osnoise or timerlat tracer printed:
/// figures, not a trace.
pub fn is_tracer_table(head: &[u8]) -> bool {
    osnoise::recognize_tracer(&String::from_utf8_lossy(head)).is_some()
}

/// The tool whose figures a file of text holds, by its beginning.
pub fn tool_of(head: &[u8]) -> Option<Tool> {
    let input = recognize_text(&String::from_utf8_lossy(head), None).ok();
    input.filter(|input| !matches!(input, TextKind::Json(_))).map(TextKind::tool_of_text)
}

/// The kind of an input, by its content or as named by the user.
#[derive(Clone, Copy)]
enum TextKind {
    Json(Option<Tool>),
    Threads(Tool, threads::ThreadsLayout),
    Text(&'static TextReader, Tool),
    /// jitterdebugger's `results.json`.
    Results,
    /// jitterdebugger's `samples.raw`, with the size of a record.
    Samples(usize),
}

fn parse(bytes: &[u8], options: &ImportOptions) -> Result<ImportedFile, ImportError> {
    if bytes.len() as u64 > MAX_INPUT {
        return Err(ImportError::TooLarge);
    }
    if let Some(size) = jitterdebugger::record_size(bytes) {
        let input = TextKind::Samples(size);
        let input = input.unless_other(options.from).map_err(ImportError::Unrecognized)?;
        let recorded = jitterdebugger::parse_samples(bytes, size, options.nanoseconds);
        return check_recorded(recorded, input);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        ImportError::Malformed { what: "text", line, why: "it is not UTF-8".into() }
    })?;
    let input = recognize_text(text, options.from).map_err(ImportError::Unrecognized)?;
    let may_lack_unit = match input {
        TextKind::Threads(..) => true,
        TextKind::Text(reader, _) => reader.may_lack_unit,
        _ => false,
    };
    if options.nanoseconds && !may_lack_unit {
        return Err(ImportError::Unanswerable(format!(
            "--nanoseconds is about text of cyclictest, and this is {}: it has its unit",
            input.input_name()
        )));
    }
    let recorded = match input {
        TextKind::Json(from) => json::parse(text, from),
        TextKind::Threads(tool, layout) => threads::parse(text, tool, layout, options.nanoseconds),
        TextKind::Text(reader, tool) => (reader.parse)(text, tool, options.nanoseconds),
        TextKind::Results => jitterdebugger::parse_results(text),
        // Recognised above, before conversion to text.
        TextKind::Samples(size) => jitterdebugger::parse_samples(bytes, size, options.nanoseconds),
    };
    check_recorded(recorded, input)
}

fn check_recorded(
    recorded: Result<ImportedFile, Malformed>,
    input: TextKind,
) -> Result<ImportedFile, ImportError> {
    let checked = recorded.and_then(|recorded| recorded.check_size().map(|()| recorded));
    checked.map_err(|defect| {
        let Malformed { line, why } = defect.or_at(1);
        ImportError::Malformed { what: input.input_name(), line, why }
    })
}

/// The kind of the text; an error is a whole sentence.
fn recognize_text(text: &str, from: Option<Tool>) -> Result<TextKind, String> {
    if text.trim_start().starts_with('{') {
        // JSON that is not an object is reported by its reader.
        return match json::read::<others::Keys>(text) {
            Ok(keys) if keys.is_jitterdebugger() => TextKind::Results.unless_other(from),
            Ok(keys) if !keys.is_rt_tests() => Err(keys.format_refusal(&tool::all_names())),
            _ => Ok(TextKind::Json(from)),
        };
    }
    let mut texts = TEXTS.iter().rev();
    let recognized_by = |reader: &'static TextReader| Some((reader, (reader.recognize)(text)?));
    let found = if let Some((reader, tool)) = texts.find_map(recognized_by) {
        TextKind::Text(reader, tool)
    } else if from == Some(Tool::Hwlatdetect)
        || osnoise::recognize_tracer(text) == Some(Tool::Hwlatdetect)
    {
        // Nothing in its output may show it, but the table of the tracer does.
        TextKind::Text(&hwlatdetect::READER, Tool::Hwlatdetect)
    } else if let Some((tool, layout)) = threads::recognize_layout(text, from) {
        TextKind::Threads(tool, layout)
    } else {
        return Err(others::refusal_of_text(text, &tool::all_names()));
    };
    found.unless_other(from)
}

impl TextKind {
    /// `self`, unless the user named another tool.
    fn unless_other(self, from: Option<Tool>) -> Result<TextKind, String> {
        let own_tool = self.tool_of_text();
        match from.filter(|from| *from != own_tool) {
            Some(from) => {
                Err(format!("this is the output of {}, not of {}", own_tool.name(), from.name()))
            }
            None => Ok(self),
        }
    }

    fn tool_of_text(self) -> Tool {
        match self {
            TextKind::Json(from) => from.unwrap_or(Tool::Cyclictest),
            TextKind::Threads(tool, _) | TextKind::Text(_, tool) => tool,
            TextKind::Results | TextKind::Samples(_) => Tool::Jitterdebugger,
        }
    }

    /// Its name for errors.
    fn input_name(self) -> &'static str {
        match self {
            TextKind::Json(_) => "JSON of rt-tests",
            TextKind::Threads(_, threads::ThreadsLayout::Histogram) => {
                "cyclictest's histogram text"
            }
            TextKind::Threads(_, threads::ThreadsLayout::Values) => "values of `-v`",
            TextKind::Threads(_, threads::ThreadsLayout::Status) => {
                "status lines of cyclictest, cyclicdeadline or jitterdebugger"
            }
            TextKind::Text(reader, _) => reader.what,
            TextKind::Results => "results.json of jitterdebugger",
            TextKind::Samples(_) => "samples of jitterdebugger",
        }
    }
}

#[cfg(test)]
mod tests;
