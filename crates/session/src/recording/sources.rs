//! Counts each source's written and unwritten events.

use super::RecordingProgress;
use punctual_bundle::BundleError;
use punctual_bundle::recording::{BlockHeader, Encoding, LaneWriter};
use punctual_core::event::RecordedSource;
use punctual_record::wire::{self, Survey};
use std::sync::atomic::Ordering;

/// The approximate size of a block: the cost of a damaged one, and a reader's memory per source.
const BLOCK: usize = 256 << 10;

/// The sources of a recording, as numbered in its document.
#[derive(Debug, Default)]
pub struct Sources {
    all: Vec<SourceCounts>,
}

#[derive(Clone, Debug)]
struct SourceCounts {
    source: RecordedSource,
    written: u64,
    unwritten: u64,
}

impl SourceCounts {
    fn block_header(&self, number: u32, encoding: Encoding, survey: &Survey) -> BlockHeader {
        BlockHeader {
            source: number,
            encoding,
            count: u32::try_from(survey.events).unwrap_or(u32::MAX),
            before: self.written + self.unwritten,
            lost: self.source.lost,
            first: survey.first,
            last: survey.last,
        }
    }
}

impl Sources {
    /// Adds a source and returns its number.
    pub fn add(&mut self, source: RecordedSource) -> u32 {
        self.all.push(SourceCounts { source, written: 0, unwritten: 0 });
        (self.all.len() - 1) as u32
    }

    /// Adds a source that is described later.
    pub(crate) fn add_unknown(&mut self) -> u32 {
        let name = format!("source {}", self.all.len());
        self.add(RecordedSource { name, ..RecordedSource::default() })
    }

    /// Describes a source, with its own losses so far.
    pub(crate) fn describe_source(&mut self, number: u32, source: RecordedSource) {
        if let Some(tally) = self.all.get_mut(number as usize) {
            tally.source = source;
        }
    }

    /// The CPU's number among them.
    pub fn of_cpu(&self, cpu: u16) -> Option<u32> {
        self.all.iter().position(|tally| tally.source.cpu == Some(cpu)).map(|place| place as u32)
    }

    /// Sets the own losses of a CPU's source.
    pub(crate) fn set_lost(&mut self, cpu: u16, lost: u64) {
        if let Some(tally) = self.all.iter_mut().find(|tally| tally.source.cpu == Some(cpu)) {
            tally.source.lost = lost;
        }
    }

    /// Appends records to the lane, or, without one, counts them as unwritten. After a failed write
    /// the rest is counted.
    pub(crate) fn append_records(
        &mut self,
        number: u32,
        encoding: Encoding,
        mut records: &[u8],
        mut lane: Option<&mut LaneWriter>,
        progress: &RecordingProgress,
    ) -> Result<(), BundleError> {
        let Some(tally) = self.all.get_mut(number as usize) else { return Ok(()) };
        let mut outcome = Ok(());
        while let Some(survey) = wire::survey_records(records, BLOCK) {
            let (these, rest) = records.split_at(survey.bytes);
            records = rest;
            let block = tally.block_header(number, encoding, &survey);
            match lane
                .as_mut()
                .filter(|_| outcome.is_ok())
                .map(|lane| lane.append_block(&block, these))
            {
                Some(Ok(appended)) => {
                    tally.written += survey.events;
                    progress.events.fetch_add(survey.events, Ordering::Relaxed);
                    progress.bytes.store(appended.bytes, Ordering::Relaxed);
                }
                failed => {
                    tally.unwritten += survey.events;
                    outcome = outcome.and(failed.map_or(Ok(()), |failed| failed.map(drop)));
                }
            }
        }
        outcome
    }

    /// The losses of all sources and all unwritten records.
    pub fn lost_count(&self) -> u64 {
        self.all.iter().map(|tally| tally.source.lost + tally.unwritten).sum()
    }

    /// The unwritten records.
    pub(crate) fn unwritten_count(&self) -> u64 {
        self.all.iter().map(|tally| tally.unwritten).sum()
    }

    /// The sources for the document.
    pub fn recorded_sources(&self) -> Vec<RecordedSource> {
        let listed = |tally: &SourceCounts| {
            let lost = tally.source.lost + tally.unwritten;
            RecordedSource { recorded: tally.written, lost, ..tally.source.clone() }
        };
        self.all.iter().map(listed).collect()
    }
}
