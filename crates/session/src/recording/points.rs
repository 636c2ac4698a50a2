//! Test points of applications: read by their collector, stored like all other records.

use super::request::RecordingWanted;
use super::sink::RecordingSink;
use crate::exit::Failure;
use punctual_bundle::RecordingDocument;
use punctual_bundle::recording::Encoding;
use punctual_core::event::{Event, Names, TaskName, Tid};
use punctual_core::{Finding, Severity};
use punctual_points::{Collector, INTERRUPTS, Options, PointSource};
use punctual_record::wire;

/// The collector, and its sources in the recording.
pub struct RecordedPoints {
    collector: Collector,
    /// The recording's number for each source of the collector.
    numbers: Vec<u32>,
    bytes: Vec<u8>,
    /// The last fill level of the fullest ring, in hundredths.
    pub fill: u64,
}

impl RecordedPoints {
    /// Enables the test points, if requested. If that fails while kernel events are recorded,
    /// returns the reason.
    pub fn start(
        wanted: &RecordingWanted,
    ) -> Result<(Option<RecordedPoints>, Option<Finding>), Failure> {
        if !wanted.points {
            return Ok((None, None));
        }
        match Collector::start(Options::for_recording().limit_to_processes(&wanted.pids)) {
            Ok(collector) => Ok((
                Some(RecordedPoints { collector, numbers: Vec::new(), bytes: Vec::new(), fill: 0 }),
                None,
            )),
            Err(why) if wanted.events.is_empty() => Err(Failure::refused(why)),
            Err(why) => {
                let message = "test points are not recorded";
                let finding =
                    Finding::new("no-test-points", Severity::Warning, "recording", message);
                Ok((
                    None,
                    Some(
                        finding
                            .with_evidence(why.to_string())
                            .with_remedy("use --no-points to record without them"),
                    ),
                ))
            }
        }
    }

    pub(crate) fn drain_into(&mut self, sink: &mut RecordingSink) {
        let RecordedPoints { collector, numbers, bytes, fill } = self;
        let poll = collector
            .poll_points(&mut |source, events| append_events(numbers, bytes, sink, source, events));
        *fill = (poll.fullest * 100.0) as u64;
        for (number, source) in numbers.iter().zip(collector.point_sources()) {
            sink.describe_source(*number, source.to_source());
        }
    }

    /// Adds the names so far.
    pub(crate) fn add_names_to(&self, names: &mut Names) {
        add_names(names, self.collector.point_names(), self.collector.point_sources());
    }

    /// The number of names and sources: growth requires a renewed document.
    pub fn known_count(&self) -> usize {
        self.collector.point_names().len() + self.collector.point_sources().len()
    }

    /// Disables the points and reads the rest.
    pub fn finish(self, sink: &mut RecordingSink, document: &mut RecordingDocument) {
        let RecordedPoints { collector, mut numbers, mut bytes, .. } = self;
        let last = collector.finish(&mut |source, events| {
            append_events(&mut numbers, &mut bytes, sink, source, events)
        });
        for (place, source) in last.sources.iter().enumerate() {
            let number = source_number(&mut numbers, sink, place);
            sink.describe_source(number, source.to_source());
        }
        add_names(&mut document.names, &last.names, &last.sources);
        document.recorded.point_clock_error = last.clock_error;
        document.recorded.findings.extend(last.findings);
    }
}

/// The names of points, and of interrupts that pass points.
fn add_names(names: &mut Names, points: &[String], sources: &[PointSource]) {
    names.points = points.to_vec();
    for cpu in sources.iter().filter_map(|source| source.cpu) {
        let name = TaskName { process: 0, comm: format!("interrupts/{cpu}"), scheduling: None };
        names.tasks.insert(Tid(INTERRUPTS + u32::from(cpu)), name);
    }
}

fn append_events(
    numbers: &mut Vec<u32>,
    bytes: &mut Vec<u8>,
    sink: &mut RecordingSink,
    source: usize,
    events: &[Event],
) {
    let number = source_number(numbers, sink, source);
    bytes.clear();
    events.iter().for_each(|event| wire::encode(event, bytes));
    sink.append_records(number, Encoding::POINTS, bytes);
}

/// The number of a collector's source; new ones are added in order.
fn source_number(numbers: &mut Vec<u32>, sink: &mut RecordingSink, place: usize) -> u32 {
    while numbers.len() <= place {
        numbers.push(sink.add_source());
    }
    numbers[place]
}
