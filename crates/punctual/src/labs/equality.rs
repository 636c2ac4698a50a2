//! Whether two runs are the same to the last sample, and where they part.

use super::directory::hex;
use punctual_bundle::{Bundle, Series};
use punctual_core::Sample;
use punctual_report::format::{count, micros};
use sha2::{Digest, Sha256};

/// A sum of all samples of a bundle: equal where every series has the same ones.
pub fn digest(bundle: &Bundle) -> String {
    let mut sum = Sha256::new();
    for (phase, series) in bundle.series() {
        sum.update(format!("{}\0{}\0", phase, series.meta.name));
        let data = &series.state.data;
        sum.update(format!(
            "{} {:?} {:?} {} {:?} {:?}\0",
            data.count(),
            data.min,
            data.max,
            data.sum,
            data.sum_squares,
            data.losses
        ));
        for sample in samples(series) {
            sum.update(sample.seq.to_le_bytes());
            sum.update(sample.latency().ns().to_le_bytes());
        }
    }
    hex(&sum.finalize())
}

fn samples(series: &Series) -> Vec<Sample> {
    series.log().map(|log| log.samples).unwrap_or_default()
}

/// Where two runs part, in words: the first sample that differs.
pub fn parting(one: &Bundle, other: &Bundle) -> String {
    let mut first: Option<(i64, String)> = None;
    for ((phase, a), (_, b)) in one.series().zip(other.series()) {
        let name = format!("{}/{}", phase, a.meta.name);
        let (a, b) = (samples(a), samples(b));
        let differs = |(x, y): &(&Sample, &Sample)| x.seq != y.seq || x.latency() != y.latency();
        let found = match a.iter().zip(&b).enumerate().find(|(_, pair)| differs(pair)) {
            Some((k, (x, y))) => Some((
                x.due.ns(),
                format!(
                    "{name}, sample {}: {} µs against {} µs",
                    count(k as u64 + 1),
                    micros(x.latency()),
                    micros(y.latency())
                ),
            )),
            None if a.len() != b.len() => {
                let last = a.last().or(b.last()).map_or(0, |sample| sample.due.ns());
                Some((last, format!("{name}: {} samples against {}", count(a.len() as u64), count(b.len() as u64))))
            }
            None => None,
        };
        first = match (first, found) {
            (Some(known), Some(new)) if new.0 < known.0 => Some(new),
            (None, new) => new,
            (known, _) => known,
        };
    }
    first.map_or("in a sample that was not kept".to_owned(), |(_, words)| words)
}
