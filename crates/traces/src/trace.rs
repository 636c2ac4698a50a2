//! A trace of any format: events in order of time.

use crate::bridge::Bridge;
use crate::ctf::CtfReader;
use crate::decoder::Decoder;
use crate::facts::NO_MACHINE;
use crate::input::{HEAD, Input};
use crate::reader::FormatReader;
use crate::recognize::recognize_format;
use crate::reorder::Reorder;
use crate::{ReadAt, TraceClock, TraceError, TraceFacts, TraceFormat};
use punctual_core::event::{Event, Recorded};
use punctual_core::{CallPath, Finding, Missing, MonotonicNs, Nanos, Severity};
use std::collections::VecDeque;
use std::io::{self, Read};

/// A trace being read: an iterator over its events in order of time.
pub struct Trace {
    format: TraceFormat,
    reader: Box<dyn FormatReader>,
    order: Reorder,
    bridge: Bridge,
    read: VecDeque<Event>,
    ordered: VecDeque<Event>,
    ready: VecDeque<Event>,
    ended: bool,
}

impl Trace {
    pub fn open(file: impl ReadAt + 'static) -> Result<Trace, TraceError> {
        Trace::open_boxed(Box::new(file))
    }

    /// Opens a trace of LTTng, or another in the Common Trace Format 1.8: its metadata, and the
    /// files beside it.
    pub fn open_ctf(
        metadata: impl ReadAt + 'static,
        streams: Vec<Box<dyn ReadAt>>,
    ) -> Result<Trace, TraceError> {
        Ok(Trace::from_reader(TraceFormat::Ctf, Box::new(CtfReader::open(&metadata, streams)?)))
    }

    fn open_boxed(file: Box<dyn ReadAt>) -> Result<Trace, TraceError> {
        let mut head = vec![0; HEAD];
        let read = file.read_at(0, &mut head)?;
        head.truncate(read);
        let format = recognize_format(&head)?;
        Ok(Trace::from_reader(format, format.open_reader(Input::File(file))?))
    }

    /// Reads a trace from a pipe until it ends, which some formats do not allow
    /// ([`TraceError::NotStreamable`]).
    pub fn open_stream(mut stream: impl Read + 'static) -> Result<Trace, TraceError> {
        let mut head = Vec::new();
        stream.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        let format = recognize_format(&head)?;
        let whole = Box::new(io::Cursor::new(head).chain(stream));
        Ok(Trace::from_reader(format, format.open_reader(Input::Pipe(whole))?))
    }

    fn from_reader(format: TraceFormat, reader: Box<dyn FormatReader>) -> Trace {
        Trace {
            format,
            order: Reorder::new(reader.held_back()),
            bridge: Bridge::new(reader.clock_distance()),
            reader,
            read: VecDeque::new(),
            ordered: VecDeque::new(),
            ready: VecDeque::new(),
            ended: false,
        }
    }

    /// The recognised format.
    pub fn format(&self) -> TraceFormat {
        self.format
    }

    /// System calls whose functions the trace shows from their begin to their end, so far.
    pub fn call_paths(&self) -> &[CallPath] {
        &self.reader.decoder().graph.paths
    }

    /// The facts so far; complete once the last event is read.
    pub fn facts(&self) -> TraceFacts {
        let (decoder, about) = (self.reader.decoder(), self.reader.file_statements());
        let (began, ended) = decoder.covered_span().unwrap_or((0, 0));
        let clock = TraceClock {
            name: about.clock.clone(),
            relation: self.bridge.clock_relation(),
            resolution: about.resolution.unwrap_or(Nanos(1)),
        };
        let mut findings = about.findings.clone();
        findings.extend(self.list_findings(decoder, &clock));
        TraceFacts {
            format: self.format,
            producer: about.producer.clone(),
            kernel: about.kernel,
            machine: about.machine,
            clock,
            recorded: Recorded {
                recorder: about.producer.unwrap_or_else(|| self.format.word().to_owned()),
                began: MonotonicNs(began),
                ended: MonotonicNs(ended),
                cpus: decoder.cpu_set(),
                groups: decoder.complete_groups(),
                sources: decoder.recorded_sources(),
                missing: decoder.missing_events(self.order.dropped),
                moments: decoder.marks.sorted_moments(),
                findings,
                ..Recorded::default()
            },
            names: decoder.collect_names(),
            tracepoints: decoder.tracepoint_counts(),
            states_enabled: about.states_enabled,
            unreadable: decoder.unreadable_count(),
            out_of_order: self.order.dropped,
        }
    }

    fn list_findings(&self, decoder: &Decoder, clock: &TraceClock) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut add = |id: &str, severity, message: String| {
            findings.push(Finding::new(id, severity, "trace", message));
        };
        let name = clock
            .name
            .as_deref()
            .map_or("its clock".to_owned(), |name| format!("its clock `{}`", name.escape_debug()));
        if clock.relation == crate::ClockRelation::Unknown && self.bridge.has_timers() {
            let message = format!(
                "The trace does not show how {name} relates to that of timers: {} starts of timers \
                 are left out.",
                self.bridge.unconverted
            );
            add("trace-clock", Severity::Warning, message);
        }
        for missing in decoder.missing_events(self.order.dropped) {
            let (id, severity) = match missing {
                Missing::End { .. } => ("trace-cut-off", Severity::Bad),
                // Reported by the recording.
                Missing::Lost { .. } => continue,
                Missing::Unreadable { .. } | Missing::Unread { .. } => {
                    ("trace-unreadable", Severity::Warning)
                }
                Missing::OutOfOrder { .. } => ("trace-order", Severity::Warning),
                Missing::Entries { .. } => ("trace-entries", Severity::Warning),
            };
            add(id, severity, format!("The trace lacks something: {missing}."));
        }
        if decoder.lost_uncounted {
            let message = "The trace shows that events are missing, but not how many: each such \
                           place counts as one."
                .to_owned();
            add("trace-lost", Severity::Warning, message);
        }
        findings.extend(self.without_machine(decoder));
        findings
    }

    fn without_machine(&self, decoder: &Decoder) -> Option<Finding> {
        let message = "The trace does not say of which machine the numbers of its system calls \
                       are: their names are not known.";
        let finding = Finding::new(NO_MACHINE, Severity::Warning, "trace", message);
        let remedy = "put `# machine: NAME` before its first line, NAME as `uname -m` prints it \
                      there (x86_64, aarch64); `punctual recipe tracefs` records with it";
        let finding = match self.format {
            TraceFormat::FtraceText => finding.with_remedy(remedy),
            _ => finding,
        };
        decoder.has_nameless_calls().then_some(finding)
    }

    fn refill_events(&mut self) -> Result<(), TraceError> {
        if !self.reader.fill_events(&mut self.read)? {
            self.ended = true;
        }
        self.order.pass_events(&mut self.read, &mut self.ordered);
        if self.ended {
            self.order.flush(&mut self.ordered);
        }
        self.bridge.pass_events(&mut self.ordered, &mut self.ready);
        if self.ended {
            self.bridge.flush(&mut self.ready);
        }
        Ok(())
    }
}

impl Iterator for Trace {
    type Item = Result<Event, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.ended {
                return None;
            }
            if let Err(why) = self.refill_events() {
                self.ended = true;
                self.reader.decoder_mut().cut_off(why.to_string());
                return Some(Err(why));
            }
        }
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("format", &self.format).finish_non_exhaustive()
    }
}
