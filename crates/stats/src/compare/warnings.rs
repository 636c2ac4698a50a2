//! Warnings about a comparison.

use super::run::SideRuns;
use super::series::SeriesPair;
use super::{MISLEADS, SideInput};
use crate::dispersion::{block_length, correlation_of_neighbours, counts_above};
use punctual_bundle::Completeness;
use punctual_bundle::comparison::{Basis, SeriesComparison};
use punctual_core::{Finding, Severity};

/// The correlation of blocks' shares above which they depend on their neighbours: twice the
/// standard error for 24 blocks.
const CORRELATED: f64 = 0.41;
/// The maximum ratio of lengths between runs of one side.
const LENGTHS: f64 = 1.1;

/// Warnings about the bundles of a side.
pub fn of_side(side: &SideInput) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, bundle) in &side.runs {
        if bundle.completeness == Completeness::CutOff {
            let message = format!("the run {name} was cut off: its last checkpoint is compared");
            findings.push(
                Finding::new("cut-off", MISLEADS, &side.label, message)
                    .with_remedy("compare runs that reached their end"),
            );
        }
        findings.extend(bundle.damage.iter().map(|what| {
            Finding::new(
                "bundle-damaged",
                Severity::Bad,
                &side.label,
                "a part of a bundle could not be read",
            )
            .with_evidence(what.clone())
            .with_remedy("use another copy of the bundle, or measure again")
        }));
    }
    findings
}

/// A side that was not measured as requested: its differences decide nothing.
pub(crate) fn warn_of_inequality(name: &str, why: &str) -> Finding {
    let message = "a side was not measured as requested: this may explain the difference, so no \
                   requirement is decided";
    Finding::new("unequal-sides", Severity::Bad, name, message).with_evidence(why).with_remedy(
        "measure that side again; `punctual show` reports what is missing (docs/invalid.md)",
    )
}

/// A series that is not in every run of both sides.
pub(crate) fn no_partner(
    name: &str,
    first: &SideInput,
    other: &SideInput,
    proposal: Option<&str>,
) -> Finding {
    let message = format!(
        "it is not in every run of both {} and {}, and is not compared",
        first.label, other.label
    );
    let options = proposal.unwrap_or("--match ONE=OTHER");
    Finding::new("no-partner", MISLEADS, name, message).with_remedy(format!(
        "series are matched by phase and name, those of an import by CPU; to match others, add \
         {options}"
    ))
}

/// Two series with different names.
pub(crate) fn paired_by_cpu(name: &str, partner: &str) -> Finding {
    let message = "an import names its series as its tool does: it is compared with what was \
                   measured on the same CPU";
    Finding::new("paired-by-cpu", Severity::Note, name, message)
        .with_evidence(format!("its partner is {partner}"))
}

/// Warnings about a series and its partner.
pub(crate) fn of_pair(pair: &SeriesPair, compared: &SeriesComparison) -> Vec<Finding> {
    let subject = &compared.series;
    let mut findings = Vec::new();
    match compared.basis {
        Basis::Unknown if pair.a.count() == 0 || pair.b.count() == 0 => {}
        Basis::Unknown => findings.push(order_unknown(subject)),
        Basis::Blocks => {
            findings.push(one_run(subject));
            findings.extend(find_drift(subject, pair));
        }
        Basis::Runs => findings.extend(find_unequal_lengths(subject, pair)),
    }
    if compared.corrected {
        findings.push(note_correction(subject, compared));
    }
    for (label, side) in [("the first side", &compared.a), ("the other side", &compared.b)] {
        if side.lost > 0 {
            let message = format!("{label} lost samples: any of them may have been the maximum");
            findings.push(
                Finding::new("samples-lost", MISLEADS, subject, message)
                    .with_evidence(format!("{} lost, {} recorded", side.lost, side.count)),
            );
        }
        if side.overruns > 0 && !compared.corrected {
            let message = format!(
                "{label} missed periods (coordinated omission): its percentiles are too optimistic"
            );
            findings.push(
                Finding::new("overruns", MISLEADS, subject, message)
                    .with_evidence(format!("{} periods were missed", side.overruns))
                    .with_remedy(
                        "no period is known, so they cannot be corrected: measure with a fixed \
                         period",
                    ),
            );
        }
    }
    findings
}

fn note_correction(subject: &str, compared: &SeriesComparison) -> Finding {
    let message = "periods were missed (coordinated omission): the percentiles that are compared \
                   include what these would have had";
    let [a, b] = [compared.a.overruns, compared.b.overruns];
    Finding::new("overruns", Severity::Note, subject, message)
        .with_evidence(format!("missed periods: {a} on the first side, {b} on the other"))
}

fn order_unknown(subject: &str) -> Finding {
    let message = "the dependence between its samples is unknown: intervals and p-values assume \
                   independent samples, and intervals are too narrow if long latencies come in \
                   bursts";
    Finding::new("autocorrelation-unknown", MISLEADS, subject, message)
        .with_evidence(
            "at least one side holds a histogram and no samples in order of time (an import, or \
             keep_samples = false)",
        )
        .with_remedy(
            "give several runs for each side, whose differences show it, or measure with \
             keep_samples",
        )
}

fn one_run(subject: &str) -> Finding {
    let message = "one run per side: the variation between runs (memory layout, boot, \
                   temperature) is not in the intervals";
    Finding::new("one-run", Severity::Note, subject, message)
        .with_remedy("give several runs for each side: --a A1 A2 A3 --b B1 B2 B3")
}

/// Blocks that resemble their neighbours.
fn find_drift(subject: &str, pair: &SeriesPair) -> Option<Finding> {
    let worst =
        [&pair.a, &pair.b].into_iter().filter_map(neighbour_correlation).fold(0.0, f64::max);
    (worst > CORRELATED).then(|| {
        let message = "its median drifts, or samples depend on each other beyond one block: \
                       intervals may be too narrow";
        Finding::new("drift", MISLEADS, subject, message)
            .with_evidence(format!("neighbouring blocks of time are correlated by {worst:.2}"))
            .with_remedy(
                "measure longer, after the machine has warmed up, or give several runs for each \
                 side",
            )
    })
}

fn neighbour_correlation(side: &SideRuns) -> Option<f64> {
    let run = side.runs.first()?;
    let median = side.ladder.at_rank(side.count() / 2)?.0;
    correlation_of_neighbours(&counts_above(&run.samples, median, block_length(run.samples.len())?))
}

fn find_unequal_lengths(subject: &str, pair: &SeriesPair) -> Option<Finding> {
    let counts = || pair.a.runs.iter().chain(&pair.b.runs).map(|run| run.ladder.count());
    let (least, most) = (counts().min()?, counts().max()?);
    (most as f64 > least as f64 * LENGTHS).then(|| {
        let message = "its runs differ in length: longer runs have larger maxima";
        Finding::new("unequal-runs", MISLEADS, subject, message)
            .with_evidence(format!("from {least} to {most} samples"))
            .with_remedy("compare maxima of runs of one length")
    })
}
