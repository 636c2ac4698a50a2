//! Finds where two runs that should be identical diverge.

use punctual_bundle::{Bundle, BundleError, Series};
use punctual_core::Sample;
use std::fmt;

/// The first difference of two runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Divergence {
    /// A sample: the earliest due among the differing series.
    Sample {
        /// The series with its phase.
        series: String,
        /// The sample in the first run; none if the series ends before it.
        first: Option<Sample>,
        /// The sample in the second run.
        second: Option<Sample>,
    },
    /// The runs do not have the same series.
    Series(String),
    /// All kept samples are the same: the difference is in counts, or after the last kept one.
    BeyondKept(String),
}

/// Compares two runs sample by sample; `None` without a difference. Phases and series are matched
/// by index and name.
pub fn first_divergence(
    first: &Bundle,
    second: &Bundle,
) -> Result<Option<Divergence>, BundleError> {
    let (ours, theirs): (Vec<_>, Vec<_>) =
        (first.all_series().collect(), second.all_series().collect());
    let mut earliest: Option<(i64, Divergence)> = None;
    let mut beyond = None;
    for (place, (phase, series)) in ours.iter().enumerate() {
        let name = format!("{phase}/{}", series.meta.name);
        let their_series = theirs
            .get(place)
            .filter(|(their, other)| their == phase && other.meta.name == series.meta.name);
        let Some((_, other)) = their_series else { return Ok(Some(Divergence::Series(name))) };
        if series.state.digest.is_some() && series.state.digest == other.state.digest {
            continue;
        }
        match first_sample(series, other)? {
            Some((one, two)) => {
                let due = [one, two]
                    .iter()
                    .flatten()
                    .map(|sample| sample.due.ns())
                    .min()
                    .unwrap_or(i64::MAX);
                if earliest.as_ref().is_none_or(|(so_far, _)| due < *so_far) {
                    earliest =
                        Some((due, Divergence::Sample { series: name, first: one, second: two }));
                }
            }
            None if series.state.digest != other.state.digest => {
                beyond = beyond.or(Some(Divergence::BeyondKept(name)))
            }
            None => {}
        }
    }
    let unmatched = theirs
        .get(ours.len())
        .map(|(phase, series)| Divergence::Series(format!("{phase}/{}", series.meta.name)));
    Ok(earliest.map(|(_, divergence)| divergence).or(beyond).or(unmatched))
}

/// The samples at one index of two series.
type SamplePair = (Option<Sample>, Option<Sample>);

/// The first pair of kept samples that differ.
fn first_sample(one: &Series, two: &Series) -> Result<Option<SamplePair>, BundleError> {
    let (ours, theirs) = (one.load_log()?.samples, two.load_log()?.samples);
    let same = |a: &Sample, b: &Sample| (a.seq, a.due, a.woke) == (b.seq, b.due, b.woke);
    let place = ours.iter().zip(&theirs).take_while(|(a, b)| same(a, b)).count();
    let pair = (ours.get(place).copied(), theirs.get(place).copied());
    Ok((pair != (None, None)).then_some(pair))
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Divergence::Sample { series, first: Some(one), second: Some(two) }
                if (one.seq, one.due) == (two.seq, two.due) =>
            {
                write!(f, "sample {} of {series}, due at {} ns: ", one.seq, one.due.ns())?;
                write!(
                    f,
                    "latency {} ns in one, {} ns in the other",
                    one.latency().ns(),
                    two.latency().ns()
                )
            }
            Divergence::Sample { series, first: Some(one), second: Some(two) } => {
                write!(f, "{series}: sample {} due at {} ns in one, ", one.seq, one.due.ns())?;
                write!(f, "sample {} due at {} ns in the other", two.seq, two.due.ns())
            }
            Divergence::Sample { series, first, second } => {
                let last = first.or(*second).map_or(0, |sample| sample.seq);
                write!(f, "{series}: one of the two has no sample {last}")
            }
            Divergence::Series(series) => write!(f, "{series}: one of the two has no such series"),
            Divergence::BeyondKept(series) => {
                write!(
                    f,
                    "{series}: the logged samples are equal: the difference is in samples outside \
                     the log"
                )
            }
        }
    }
}
