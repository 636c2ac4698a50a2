//! `NNNN.lines`: the long plot of a series that is measured for weeks. Each line covers five
//! minutes and is kept permanently.
//!
//! File: as a log ([`crate::log`]), with blocks of kind 3. Integers as there. A line: `start`
//! (signed, ns since 1970 UTC), `clock_start` (signed, the same instant on the series' clock),
//! `length` (ns), `recorded`, `skipped`, `dropped`, `max` (0, or 1 and a signed one), `sum`
//! (signed), then the histogram: pairs of a count and the distance from the previous bucket (the
//! first from 0), terminated by a count of 0. Bucket `k` below 64 holds latencies of `k` ns; above,
//! each power of two is divided into 32 buckets of equal width.

use crate::log::{self, MAGIC};
use crate::varint::{PayloadCursor, put_signed, put_varint};
use punctual_core::series::HDR_MAX;
use punctual_core::{ClockNs, Losses, Nanos, SampleWindow, SeriesData};

/// The duration of a line; the last one of a run is shorter.
pub const LENGTH: Nanos = Nanos::from_secs(300);
/// The maximum size of the raw samples and one-second windows of all series together, in bytes; the
/// oldest are dropped.
pub const DETAIL: u64 = 128 << 20;
/// The minimum size limit of each of the two files of a series.
const MIN_DETAIL: u64 = 64 << 10;
/// Latencies below this have a bucket each.
const EXACT: u64 = 64;
/// Buckets per power of two above.
const PER_OCTAVE: u64 = 32;
/// The maximum number of lines read: more than a century.
const MAX_LINES: usize = 1 << 24;

/// The size at which a log replaces the older one, in a bundle of `series` series.
pub fn log_limit(series: usize) -> u64 {
    (DETAIL / (2 * series.max(1) as u64)).max(MIN_DETAIL)
}

/// The samples of five minutes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SampleLine {
    /// The start in ns since 1970 (UTC).
    pub start: i64,
    /// The same on the series' clock.
    pub clock_start: ClockNs,
    pub length: Nanos,
    /// Samples recorded and lost in it.
    pub losses: Losses,
    /// The longest latency; `None` without samples.
    pub max: Option<Nanos>,
    /// The sum of its latencies.
    pub sum: Nanos,
    /// The histogram: bucket and count, ascending, without empty buckets.
    pub histogram: Vec<(u64, u64)>,
}

/// The bucket of a latency in ns.
fn latency_bucket(latency: u64) -> u64 {
    let latency = latency.min(HDR_MAX);
    if latency < EXACT {
        return latency;
    }
    let octave = u64::from(latency.ilog2());
    EXACT + (octave - 6) * PER_OCTAVE + (latency >> (octave - 5)) - PER_OCTAVE
}

/// The largest latency in a bucket.
fn upper_end(bucket: u64) -> Nanos {
    let Some(above) = bucket.checked_sub(EXACT) else { return Nanos(bucket as i64) };
    let (octave, part) = (above / PER_OCTAVE + 6, above % PER_OCTAVE + PER_OCTAVE);
    Nanos((((part + 1) << (octave - 5)) - 1) as i64)
}

impl SampleLine {
    /// A percentile above 0 and up to 100: the upper end of its bucket (at most 3 % above) but at
    /// most the maximum. `None` without samples.
    pub fn percentile(&self, percentile: f64) -> Option<Nanos> {
        let total_count: u64 = self.histogram.iter().map(|(_, count)| count).sum();
        let rank =
            ((percentile / 100.0 * total_count as f64).ceil() as u64).clamp(1, total_count.max(1));
        let mut below = 0;
        let found = self.histogram.iter().find(|(_, count)| {
            below += count;
            below >= rank
        });
        found.map(|(bucket, _)| {
            self.max.map_or(upper_end(*bucket), |max| max.min(upper_end(*bucket)))
        })
    }

    /// As a window for plots over time; the smallest latency is that of its bucket.
    pub(crate) fn to_window(&self) -> Option<SampleWindow> {
        let (max, least) = (self.max?, self.histogram.first()?.0);
        let min = upper_end(least).min(max);
        let count = self.losses.recorded;
        Some(SampleWindow { start: self.clock_start, count, min, max, sum: self.sum })
    }
}

/// Appends a line as a block.
pub(crate) fn encode_line(out: &mut Vec<u8>, line: &SampleLine) {
    log::append_block(out, log::KIND_LINE, |payload| {
        put_signed(payload, line.start);
        put_signed(payload, line.clock_start.ns());
        let Losses { recorded, skipped, dropped, .. } = line.losses;
        [line.length.ns().max(0) as u64, recorded, skipped, dropped]
            .into_iter()
            .for_each(|n| put_varint(payload, n));
        put_varint(payload, line.max.is_some().into());
        line.max.iter().for_each(|max| put_signed(payload, max.ns()));
        put_signed(payload, line.sum.ns());
        let mut last = 0;
        for (bucket, count) in &line.histogram {
            put_varint(payload, *count);
            put_varint(payload, bucket - last);
            last = *bucket;
        }
        put_varint(payload, 0);
    });
}

fn decode_line(payload: &[u8]) -> Option<SampleLine> {
    let mut from = PayloadCursor(payload);
    let (start, clock_start) = (from.take_signed()?, ClockNs(from.take_signed()?));
    let length = Nanos(i64::try_from(from.take_varint()?).ok()?);
    let losses = Losses {
        recorded: from.take_varint()?,
        skipped: from.take_varint()?,
        dropped: from.take_varint()?,
        ..Losses::default()
    };
    let max = match from.take_varint()? {
        0 => None,
        _ => Some(Nanos(from.take_signed()?)),
    };
    let sum = Nanos(from.take_signed()?);
    let (mut histogram, mut last, mut all) = (Vec::new(), 0u64, 0u64);
    loop {
        let count = from.take_varint()?;
        if count == 0 {
            break;
        }
        let distance = from.take_varint()?;
        let at = last.checked_add(distance).filter(|at| *at <= latency_bucket(HDR_MAX))?;
        if distance == 0 && !histogram.is_empty() {
            return None;
        }
        all = all.checked_add(count)?;
        histogram.push((at, count));
        last = at;
    }
    Some(SampleLine { start, clock_start, length, losses, max, sum, histogram })
}

/// Reads the lines as far as the file is complete; a line being written when the writer died is
/// dropped. Fails only if the file is of another kind.
pub(crate) fn decode_lines(bytes: &[u8]) -> Result<Vec<SampleLine>, String> {
    if bytes.len() < MAGIC.len() && MAGIC.starts_with(bytes) {
        return Ok(Vec::new());
    }
    let mut rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as a file of lines")?;
    let mut lines = Vec::new();
    while let Some((kind, payload, after)) = log::next_block(rest) {
        if kind == log::KIND_LINE && lines.len() < MAX_LINES {
            let Some(line) = decode_line(payload) else { break };
            lines.push(line);
        }
        rest = after;
    }
    Ok(lines)
}

/// Makes lines from the cumulative statistics of a series.
#[derive(Default)]
pub struct LineKeeper {
    start: i64,
    clock_start: ClockNs,
    /// As of the last line: losses, sum, and the count of each bucket.
    losses: Losses,
    sum: i128,
    counts: Vec<u64>,
    /// The maximum of the current line so far.
    max: Option<Nanos>,
}

impl LineKeeper {
    /// Begins the first line now: in ns since 1970, and on the series' clock.
    pub fn new(now: i64, clock_now: ClockNs) -> LineKeeper {
        LineKeeper {
            start: now,
            clock_start: clock_now,
            counts: vec![0; latency_bucket(HDR_MAX) as usize + 1],
            ..LineKeeper::default()
        }
    }

    /// Adds the maximum of samples that the statistics took in meanwhile.
    pub fn extend(&mut self, max: Nanos) {
        self.max = Some(self.max.map_or(max, |so_far| so_far.max(max)));
    }

    /// Whether the line has its full length.
    pub fn is_due(&self, clock_now: ClockNs) -> bool {
        clock_now - self.clock_start >= LENGTH
    }

    /// Ends the line and begins the next one.
    pub fn end_line(&mut self, data: &SeriesData, now: i64, clock_now: ClockNs) -> SampleLine {
        let mut counts = vec![0u64; self.counts.len()];
        for value in data.whole.iter_recorded() {
            let latency = data.whole.lowest_equivalent(value.value_iterated_to());
            counts[latency_bucket(latency) as usize] += value.count_at_value();
        }
        let pairs = counts.iter().zip(&self.counts).enumerate();
        let histogram = pairs
            .filter(|(_, (now, before))| now > before)
            .map(|(at, (now, before))| (at as u64, now - before))
            .collect();
        let count_increase = |now: u64, before: u64| now.saturating_sub(before);
        let line = SampleLine {
            start: self.start,
            clock_start: self.clock_start,
            length: (clock_now - self.clock_start).max(Nanos::ZERO),
            losses: Losses {
                recorded: count_increase(data.losses.recorded, self.losses.recorded),
                skipped: count_increase(data.losses.skipped, self.losses.skipped),
                dropped: count_increase(data.losses.dropped, self.losses.dropped),
                ..Losses::default()
            },
            max: self.max.take(),
            sum: Nanos((data.sum - self.sum).clamp(i64::MIN.into(), i64::MAX.into()) as i64),
            histogram,
        };
        (self.start, self.clock_start) = (now, clock_now);
        (self.losses, self.sum, self.counts) = (data.losses, data.sum, counts);
        line
    }
}

#[cfg(test)]
mod tests;
