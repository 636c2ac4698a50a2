//! Stores the events of a trace as the recording of a bundle.

use super::{TraceExtent, TraceReader};
use crate::exit::Failure;
use crate::recording::{RecordingProgress, Sources};
use punctual_bundle::RecordingWriter;
use punctual_bundle::recording::{Encoding, Keeps, LaneWriter, RecordingDocument};
use punctual_core::event::{Names, Recorded, RecordedSource};
use punctual_core::{Event, Missing, MonotonicNs};
use punctual_record::wire;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The buffered bytes of all CPUs together; beyond that they are written.
const BUFFERED: usize = 8 << 20;
/// The maximum input from a pipe: traces are files of some hundred megabytes.
const SPOOLED: u64 = 8 << 30;

/// Writes all events, up to where the trace breaks off. How many records each tracepoint has.
pub(super) fn store_events(
    directory: &Path,
    trace: &mut dyn TraceReader,
) -> Result<BTreeMap<String, u64>, Failure> {
    let begun = Recorded::without_events("a trace", MonotonicNs(0));
    let document = RecordingDocument::new(Keeps::All, begun, Names::default());
    let writer = RecordingWriter::create(directory, &document).map_err(Failure::failed)?;
    let mut store = TraceStore::new(writer.new_lane(0, None));
    let mut cut_off = None;
    while let Some(event) = trace.next_event() {
        match event {
            Ok(event) => store.push(&event)?,
            Err(why) => {
                cut_off = Some(why);
                break;
            }
        }
    }
    store.flush()?;
    let TraceExtent { mut recorded, names, seen } = trace.trace_extent();
    let is_end = |missing: &Missing| matches!(missing, Missing::End { .. });
    let is_end_known = recorded.missing.iter().any(is_end);
    recorded.missing.extend(cut_off.filter(|_| !is_end_known).map(|why| Missing::End { why }));
    let stated = std::mem::take(&mut recorded.sources);
    for source in stated {
        if let Some(number) = source.cpu.and_then(|cpu| store.numbers.get(&cpu)) {
            store.sources.describe_source(*number, source);
        }
    }
    recorded.sources = store.sources.recorded_sources();
    let mut document = RecordingDocument::new(Keeps::All, recorded, names);
    document.complete = true;
    writer.finish(&document).map_err(Failure::failed)?;
    Ok(seen)
}

struct TraceStore {
    lane: LaneWriter,
    sources: Sources,
    progress: RecordingProgress,
    numbers: BTreeMap<u16, u32>,
    pending: BTreeMap<u16, Vec<u8>>,
    buffered: usize,
}

impl TraceStore {
    fn new(lane: LaneWriter) -> TraceStore {
        TraceStore {
            lane,
            sources: Sources::default(),
            progress: RecordingProgress::default(),
            numbers: BTreeMap::new(),
            pending: BTreeMap::new(),
            buffered: 0,
        }
    }

    fn push(&mut self, event: &Event) -> Result<(), Failure> {
        let records = self.pending.entry(event.cpu).or_default();
        let before = records.len();
        wire::encode(event, records);
        self.buffered += records.len() - before;
        if self.buffered >= BUFFERED { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.buffered = 0;
        for (cpu, records) in &mut self.pending {
            let number = *self.numbers.entry(*cpu).or_insert_with(|| {
                let (name, cpu) = (format!("cpu {cpu}"), Some(*cpu));
                self.sources.add(RecordedSource { name, cpu, ..RecordedSource::default() })
            });
            let lane = Some(&mut self.lane);
            self.sources
                .append_records(number, Encoding::KERNEL, records, lane, &self.progress)
                .map_err(Failure::failed)?;
            records.clear();
        }
        Ok(())
    }
}

/// Copies a pipe to an anonymous file: most formats are read from their end, too.
pub(super) fn spool_pipe(from: &mut dyn Read) -> Result<File, Failure> {
    let mut file = tempfile::tempfile()
        .map_err(|why| Failure::failed(format!("cannot make a temporary file: {why}")))?;
    let cannot = |why: io::Error| Failure::failed(format!("cannot keep standard input: {why}"));
    let copied = io::copy(&mut from.take(SPOOLED + 1), &mut file).map_err(cannot)?;
    if copied > SPOOLED {
        let limit_gib = SPOOLED >> 30;
        return Err(Failure::refused(format!("standard input has more than {limit_gib} GiB")));
    }
    file.flush().and_then(|()| file.seek(SeekFrom::Start(0))).map_err(cannot)?;
    Ok(file)
}
