//! `NNNN.state.json`: the final statistics of a series, from which [`SeriesData`] is restored
//! completely. During the run they are kept in a [`checkpoint`](crate::checkpoint).

use crate::hdr::{HdrCounts, Pairs};
use punctual_core::{
    ClockNs, Fact, LinearHistogram, Losses, Nanos, Sample, SeriesData, Sha256Digest, Unfinished,
};
use serde::{Deserialize, Serialize, Serializer};
use std::io::{self, Write};

/// The maximum number of exact histogram bins accepted from a file.
pub const MAX_BINS: usize = 1 << 24;

/// The kernel's counts for the measuring thread between its first and last sample (getrusage(2),
/// RUSAGE_THREAD).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

/// The whole state of a series.
#[derive(Clone, Debug)]
pub struct SeriesState {
    pub data: SeriesData,
    /// The kernel's counts for the thread, once it has ended.
    pub usage: Fact<ThreadUsage>,
    /// The digest of all samples, once the series has ended.
    pub digest: Option<Sha256Digest>,
    /// The number of samples in the log; others are only in the statistics.
    pub samples_kept: u64,
    /// The size in bytes of the log that belongs to this state.
    pub log_bytes: u64,
}

/// The JSON of [`SeriesState`]: histograms are borrowed for writing and read as unchecked pairs.
#[derive(Serialize, Deserialize)]
struct StateDoc<E, H> {
    period: Option<Nanos>,
    exact: E,
    /// (lower edge in ns, count) of the non-empty buckets.
    hdr: H,
    corrected_hdr: Option<H>,
    min: Option<Nanos>,
    max: Option<Nanos>,
    /// As texts: JSON's numbers end at 2^53 in most readers.
    sum: String,
    sum_squares: Option<String>,
    worst: Vec<(u64, i64, i64, u32)>,
    losses: Losses,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unfinished: Option<Unfinished>,
    usage: Fact<ThreadUsage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<Sha256Digest>,
    samples_kept: u64,
    log_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct ExactDoc<C> {
    resolution: Nanos,
    bins: usize,
    above: u64,
    below: u64,
    /// (bin, count) of the non-empty bins.
    counts: C,
}

/// The non-empty bins, written without being collected.
struct StateBins<'a>(&'a [u64]);

impl Serialize for StateBins<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().enumerate().filter(|(_, n)| **n > 0))
    }
}

impl ExactDoc<StateBins<'_>> {
    fn from_histogram(exact: &LinearHistogram) -> ExactDoc<StateBins<'_>> {
        let (resolution, above, below) = (exact.resolution, exact.above, exact.below);
        ExactDoc {
            resolution,
            bins: exact.bins.len(),
            above,
            below,
            counts: StateBins(&exact.bins),
        }
    }
}

impl ExactDoc<Vec<(usize, u64)>> {
    fn into_histogram(self) -> Result<LinearHistogram, String> {
        if self.bins == 0 || self.bins > MAX_BINS || self.resolution < Nanos(1) {
            return Err(format!("{} bins of {} are not a histogram", self.bins, self.resolution));
        }
        let mut bins = vec![0; self.bins];
        for (k, n) in self.counts {
            *bins.get_mut(k).ok_or(format!("bin {k} lies beyond the last"))? = n;
        }
        Ok(LinearHistogram {
            resolution: self.resolution,
            bins,
            above: self.above,
            below: self.below,
        })
    }
}

impl SeriesState {
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let d = &self.data;
        let doc = StateDoc {
            period: d.period,
            exact: ExactDoc::from_histogram(&d.exact),
            hdr: HdrCounts(&d.whole),
            corrected_hdr: d.corrected.as_ref().map(HdrCounts),
            min: d.min,
            max: d.max,
            sum: d.sum.to_string(),
            sum_squares: d.sum_squares.map(|s| s.to_string()),
            worst: d.worst.iter().map(|s| (s.seq, s.due.ns(), s.woke.ns(), s.cpu)).collect(),
            losses: d.losses,
            unfinished: d.unfinished,
            usage: self.usage.clone(),
            digest: self.digest.clone(),
            samples_kept: self.samples_kept,
            log_bytes: self.log_bytes,
        };
        Ok(serde_json::to_writer(out, &doc)?)
    }

    /// Reads the JSON text; any inconsistency is an error, never a default.
    pub fn from_json(text: &str) -> Result<SeriesState, String> {
        let doc: StateDoc<ExactDoc<Vec<(usize, u64)>>, Pairs> =
            serde_json::from_str(text).map_err(|e| e.to_string())?;
        let worst = doc.worst.into_iter().map(|(seq, due, woke, cpu)| Sample {
            seq,
            due: ClockNs(due),
            woke: ClockNs(woke),
            cpu,
        });
        let data = SeriesData {
            period: doc.period,
            exact: doc.exact.into_histogram()?,
            whole: doc.hdr.into_histogram()?,
            corrected: doc.corrected_hdr.map(Pairs::into_histogram).transpose()?,
            min: doc.min,
            max: doc.max,
            sum: doc.sum.parse().map_err(|_| "the sum is not a number")?,
            sum_squares: doc
                .sum_squares
                .map(|s| s.parse())
                .transpose()
                .map_err(|_| "the sum is not a number")?,
            worst: worst.collect(),
            losses: doc.losses,
            unfinished: doc.unfinished,
        };
        check_consistency(&data)?;
        let (samples_kept, log_bytes) = (doc.samples_kept, doc.log_bytes);
        Ok(SeriesState { data, usage: doc.usage, digest: doc.digest, samples_kept, log_bytes })
    }
}

/// Checks that the parts of a state agree, so that no derived figure overflows or contradicts
/// another.
pub(crate) fn check_consistency(data: &SeriesData) -> Result<(), String> {
    let recorded = data.losses.recorded;
    let (whole, exact) = (data.whole.len(), checked_total(&data.exact));
    // A source that records only minimum, mean and maximum (an import) has no distribution.
    let undistributed = whole == 0 && exact == Some(0);
    if !undistributed && (whole != recorded || exact != Some(recorded)) {
        let exact = exact.map_or("too many".to_owned(), |n| n.to_string());
        return Err(format!(
            "{recorded} samples counted, {whole} in the HDR histogram, {exact} in the exact one"
        ));
    }
    let expected =
        recorded.checked_add(data.losses.skipped).and_then(|n| n.checked_add(data.losses.dropped));
    expected.ok_or("the losses are more than can be counted")?;
    if let Some(one) = data.unfinished.filter(|one| one.at_least > one.lasted) {
        return Err(format!(
            "an unfinished sample of at least {} lasted {}",
            one.at_least, one.lasted
        ));
    }
    match (data.min, data.max) {
        (None, None) if recorded == 0 => Ok(()),
        // Some imports do not state the minimum.
        (min, Some(max)) if recorded > 0 && min.is_none_or(|min| min <= max) => Ok(()),
        (min, max) => {
            Err(format!("minimum {min:?} and maximum {max:?} do not fit {recorded} samples"))
        }
    }
}

/// [`LinearHistogram::total_count`] for data from a possibly hostile file.
fn checked_total(exact: &LinearHistogram) -> Option<u64> {
    exact
        .bins
        .iter()
        .chain([&exact.above, &exact.below])
        .try_fold(0u64, |sum, n| sum.checked_add(*n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::SeriesShape;

    fn encoded(state: &SeriesState) -> String {
        let mut text = Vec::new();
        state.write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    proptest! {
        #[test]
        fn a_state_comes_back_whole(
            latencies in proptest::collection::vec(-500i64..5_000_000, 0..100),
        ) {
            let shape = SeriesShape {
                range: Nanos::MILLI,
                resolution: Nanos::MICRO,
                period: Some(Nanos::MILLI),
            };
            let mut data = SeriesData::new(shape);
            for (k, latency) in latencies.iter().enumerate() {
                let due = k as i64 * 1_000_000;
                let sample = Sample {
                    seq: k as u64,
                    due: ClockNs(due),
                    woke: ClockNs(due + latency),
                    cpu: 3,
                };
                data.record_sample(&sample, (latency / 1_000_000).max(0) as u64);
            }
            let (usage, digest) = (Fact::NotAsked, None);
            let state = SeriesState { data, usage, digest, samples_kept: 7, log_bytes: 99 };
            let back = SeriesState::from_json(&encoded(&state)).unwrap();
            prop_assert_eq!(&back.data.exact, &state.data.exact);
            prop_assert_eq!(&back.data.whole, &state.data.whole);
            prop_assert_eq!(&back.data.corrected, &state.data.corrected);
            prop_assert_eq!(&back.data.worst, &state.data.worst);
            prop_assert_eq!(
                (back.data.min, back.data.max, back.data.sum),
                (state.data.min, state.data.max, state.data.sum)
            );
            prop_assert_eq!(
                (back.data.sum_squares, back.data.losses),
                (state.data.sum_squares, state.data.losses)
            );
            prop_assert_eq!((back.samples_kept, back.log_bytes), (7, 99));
        }
        #[test]
        fn no_text_panics(text in "\\PC{0,200}") {
            let _ = SeriesState::from_json(&text);
        }
    }
}
