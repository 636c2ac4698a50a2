//! Traces of LTTng and others in the Common Trace Format 1.8 or 2 (diamon.org/ctf): a directory
//! with a file `metadata`, which declares the content of the streams beside it.

mod bits;
mod class;
mod event;
mod json;
mod layout;
mod lexer;
mod metadata;
mod names;
mod parse;
mod stream;
mod text;
mod types;

use crate::decoder::Decoder;
use crate::reader::{FileStatements, Format, FormatReader};
use crate::task_state::StateBits;
use crate::{ReadAt, TraceError};
use class::Classes;
use event::CtfMachine;
use punctual_core::event::Event;
use punctual_core::{Finding, Severity};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use stream::CtfStream;
use types::{CtfType, Metadata};

pub(crate) const FORMAT: Format = Format {
    word: "CTF",
    recognizes: |head| BEGINNINGS.iter().any(|magic| head.starts_with(magic)),
    open: |_| Err(TraceError::Unsupported(ONE_FILE.to_owned())),
};
/// A stream, or its metadata in packets or as text.
const BEGINNINGS: [&[u8]; 6] = [
    b"\xc1\x1f\xfc\xc1",
    b"\xc1\xfc\x1f\xc1",
    b"\x57\x1d\xd1\x75",
    b"\x75\xd1\x1d\x57",
    b"/* CTF 1.",
    // CTF 2.
    b"\x1e{",
];
/// Why a single file of such a trace is refused.
const ONE_FILE: &str =
    "this is one file of a trace of LTTng (CTF): name the directory that it is in";
const MOST_FILES: usize = 1 << 14;
/// The number of events between two checks of the output.
const EVENTS_PER_CHECK: usize = 1024;

pub(crate) struct CtfReader {
    metadata: Metadata,
    classes: Classes,
    streams: Vec<CtfStream>,
    /// The next item of each stream, by instant.
    next: BinaryHeap<Reverse<(i64, usize)>>,
    machine: CtfMachine,
    decoder: Decoder,
    findings: Vec<Finding>,
}

/// A file of a stream, with the start of its first packet.
type BegunStream = (i64, Box<dyn ReadAt>);

impl CtfReader {
    pub(crate) fn open(
        metadata: &dyn ReadAt,
        files: Vec<Box<dyn ReadAt>>,
    ) -> Result<CtfReader, TraceError> {
        let text = text::read(metadata)?;
        let metadata = match json::is_json(&text) {
            true => json::read(&text)?,
            false => metadata::read(&text)?,
        };
        let mut decoder = Decoder::default();
        if let Some(machine) = metadata.environment.get("machine") {
            decoder.calls.set_machine(machine);
        }
        let classes = Classes::from_metadata(&metadata, &mut decoder)?;
        if !decoder.knows_any() {
            return Err(without_events(&metadata));
        }
        let machine = CtfMachine::new(state_bits(&metadata));
        let mut reader = CtfReader {
            metadata,
            classes,
            streams: Vec::new(),
            next: BinaryHeap::new(),
            machine,
            decoder,
            findings: Vec::new(),
        };
        reader.join_files(files)?;
        for place in 0..reader.streams.len() {
            reader.advance_stream(place)?;
        }
        Ok(reader)
    }

    /// Joins files to streams, ordered by time within each.
    fn join_files(&mut self, files: Vec<Box<dyn ReadAt>>) -> Result<(), TraceError> {
        let mut streams: BTreeMap<(u64, i64), Vec<BegunStream>> = BTreeMap::new();
        let (mut others, mut alone) = (0, i64::MIN);
        for file in files.into_iter().take(MOST_FILES) {
            let mut stream = CtfStream::new([file].into(), &self.classes);
            let Some((instance, began)) = stream.read_identity(&self.classes)? else {
                others += 1;
                continue;
            };
            // Without instance and CPU, each file is a separate stream.
            alone += 1;
            let key = (stream.class, if instance < 0 { alone } else { instance });
            let files = stream.into_files().into_iter().map(|file| (began, file));
            streams.entry(key).or_default().extend(files);
        }
        if others > 0 {
            // An empty file may have had all events of a CPU.
            self.decoder.unreadable += others;
            let message = format!("{others} files beside the metadata begin with no packet.");
            self.findings.push(Finding::new("trace-files", Severity::Warning, "trace", message));
        }
        for mut files in streams.into_values() {
            files.sort_by_key(|(began, _)| *began);
            let files = files.into_iter().map(|(_, file)| file).collect();
            self.streams.push(CtfStream::new(files, &self.classes));
        }
        Ok(())
    }

    fn advance_stream(&mut self, place: usize) -> Result<(), TraceError> {
        let stream = &mut self.streams[place];
        match stream.advance(&self.classes)? {
            Some(at) => self.next.push(Reverse((at, place))),
            None => self.decoder.unreadable += std::mem::take(&mut stream.unreadable),
        }
        Ok(())
    }

    fn finish_streams(&mut self) {
        let cut_off = self.streams.iter().filter(|stream| stream.cut_off).count();
        self.streams.clear();
        if cut_off > 0 {
            self.decoder.cut_off(format!("{cut_off} of its streams end within a packet"));
        }
    }

    fn is_of_lttng(&self) -> bool {
        self.environment_value("tracer_name").as_deref() == Some("lttng-modules")
    }

    fn environment_value(&self, name: &str) -> Option<String> {
        self.metadata.environment.get(name).cloned()
    }
}

/// The bits of a task's state are those of the traced kernel.
fn state_bits(metadata: &Metadata) -> StateBits {
    let release = ["kernel_release", "release"]
        .iter()
        .find_map(|name| metadata.environment.get(*name))
        .map_or("", String::as_str);
    StateBits::of_release(release)
}

fn without_events(metadata: &Metadata) -> TraceError {
    let of_programs = metadata.environment.get("domain").is_some_and(|domain| domain == "ust");
    TraceError::Unsupported(
        match of_programs {
            true => {
                "this trace of LTTng has events of programs alone (domain ust): name the one of \
                 the kernel, which is beside it where there is one"
            }
            false => "this trace in CTF declares no events of the kernel",
        }
        .to_owned(),
    )
}

/// An error at a line of the metadata.
fn metadata_error(line: u32, why: &str) -> TraceError {
    TraceError::Metadata(match line {
        0 => why.to_owned(),
        line => format!("line {line}: {why}"),
    })
}

impl FormatReader for CtfReader {
    fn fill_events(&mut self, out: &mut VecDeque<Event>) -> Result<bool, TraceError> {
        for _ in 0..EVENTS_PER_CHECK {
            let Some(Reverse((at, place))) = self.next.pop() else {
                self.finish_streams();
                return Ok(false);
            };
            let stream = &mut self.streams[place];
            stream.decode_item(at, &self.classes, &mut self.machine, &mut self.decoder, out)?;
            self.advance_stream(place)?;
        }
        Ok(true)
    }

    fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    fn decoder_mut(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    fn file_statements(&self) -> FileStatements {
        let version = ["tracer_major", "tracer_minor", "tracer_patchlevel"]
            .iter()
            .map_while(|name| self.environment_value(name))
            .collect::<Vec<_>>()
            .join(".");
        let tracer = self.environment_value("tracer_name").unwrap_or_else(|| "CTF".to_owned());
        FileStatements {
            producer: Some(format!("{tracer} {version}").trim_end().to_owned()),
            kernel: self
                .environment_value("kernel_release")
                .or_else(|| self.environment_value("release")),
            machine: self.environment_value("machine"),
            clock: self.metadata.clock.as_ref().map(|clock| clock.name.clone()),
            resolution: None,
            states_enabled: true,
            findings: self.findings.clone(),
        }
    }

    fn clock_distance(&self) -> Option<i64> {
        let clock = self.metadata.clock.as_ref()?;
        (self.is_of_lttng() && clock.name == "monotonic").then_some(0)
    }
}

#[derive(Debug)]
struct CtfScopes(Vec<HashMap<String, CtfType>>);

impl Default for CtfScopes {
    fn default() -> CtfScopes {
        CtfScopes(vec![HashMap::new()])
    }
}

impl CtfScopes {
    fn open_scope(&mut self) {
        self.0.push(HashMap::new());
    }

    fn close_scope(&mut self) {
        self.0.pop();
    }

    fn add(&mut self, name: String, declared: CtfType) {
        if let Some(scope) = self.0.last_mut() {
            scope.insert(name, declared);
        }
    }

    fn find_type(&self, name: &str) -> Option<CtfType> {
        self.0.iter().rev().find_map(|scope| scope.get(name)).cloned()
    }
}
