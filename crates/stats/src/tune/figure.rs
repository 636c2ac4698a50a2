//! The figure of a tuning for each block: the worst over the series concerned.

use crate::lab::add_requirements;
use crate::summary::summarize_bundle;
use punctual_bundle::Bundle;
use punctual_bundle::lab::LabRequirement;
use punctual_bundle::meta::ATTACHED_WORKLOAD;
use punctual_bundle::summary::SeriesSummary;
use punctual_core::cycle::SeriesKind;
use punctual_core::{BoundComparison, Metric, SeriesRequirement};

/// The figure.
#[derive(Clone, PartialEq, Debug)]
pub struct TuneFigure {
    /// Its text: `p99.9`, `response p99.9`, `servo/response max`.
    text: String,
    of: SeriesRequirement,
}

impl TuneFigure {
    /// Parses a figure: a requirement, or one without its bound.
    ///
    /// # Errors
    /// The text is not a latency figure; the message says why.
    pub fn parse(text: &str) -> Result<TuneFigure, String> {
        // A bound beyond all latencies, so that the same parser reads both.
        let bound = [text.to_owned(), format!("{text} < {BEYOND_ALL}")];
        let read = bound.iter().map(|text| text.parse::<SeriesRequirement>());
        let mut read: Vec<_> = read.collect();
        let has_bound = text.contains(['<', '>', '=']);
        let requested = read.swap_remove(usize::from(!has_bound)).map_err(|why| why.to_string())?;
        let is_upper = matches!(
            requested.requirement.metric,
            Metric::Max | Metric::Mean | Metric::Percentile(_) | Metric::CorrectedPercentile(_)
        );
        let is_bound = matches!(
            requested.requirement.comparison,
            BoundComparison::Less | BoundComparison::LessOrEqual
        );
        if !is_upper {
            return Err(format!(
                "`{}` is not a figure of latencies that settings could reduce: request a \
                 percentile such as p99.9, the mean or max",
                requested.requirement.metric
            ));
        }
        if !is_bound {
            return Err(format!(
                "`{}` bounds the figure from above with < or <= alone",
                text.trim()
            ));
        }
        let text = if has_bound {
            text.split(['<', '>', '=']).next().unwrap_or_default().trim().to_owned()
        } else {
            text.trim().to_owned()
        };
        Ok(TuneFigure { text, of: requested })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads the figure from a bundle, in ns: the largest over the series concerned.
    ///
    /// # Errors
    /// No such series exists, or one lacks the figure; the message says why.
    pub fn read_figure(&self, bundle: &mut Bundle) -> Result<f64, String> {
        let requirement = format!("{} < {BEYOND_ALL}", self.of.requirement.metric);
        add_requirements(
            bundle,
            &[LabRequirement { measure: None, requirement: requirement.clone() }],
        );
        let summary = summarize_bundle(bundle);
        let of_all = summary.phases.iter().flat_map(|phase| &phase.series);
        let about: Vec<&SeriesSummary> =
            of_all.filter(|series| self.is_about(&series.name, &series.workload)).collect();
        let largest_count = about.iter().map(|series| series.count).max().unwrap_or(0);
        let is_side = |series: &SeriesSummary| {
            let is_chosen = series.workload == ATTACHED_WORKLOAD && self.of.thread.is_none();
            is_chosen && series.count.saturating_mul(SIDE) < largest_count
        };
        let mut largest: Option<f64> = None;
        for series in about.into_iter().filter(|series| !is_side(series)) {
            let mut requirements = series.requirements.iter();
            let held_requirement = requirements.find(|held| held.requirement == requirement);
            let figure = held_requirement.and_then(|held| held.figure).ok_or_else(|| {
                let reason = held_requirement.and_then(|held| held.reason.clone());
                format!("{}: {}", series.name, reason.unwrap_or_else(|| "no figure".to_owned()))
            })?;
            largest = Some(largest.map_or(figure, |largest| largest.max(figure)));
        }
        largest.ok_or_else(|| format!("nothing was measured that has the figure {}", self.text))
    }

    fn is_about(&self, name: &str, workload: &str) -> bool {
        let (thread, kind) = name.rsplit_once('/').unwrap_or((name, ""));
        match SeriesKind::from_word(kind).filter(|_| workload == ATTACHED_WORKLOAD) {
            Some(kind) => self.of.is_about(thread, kind),
            None => self.of.kind.is_none() && self.of.thread.as_ref().is_none_or(|of| of == name),
        }
    }
}

/// A thread of a program with fewer cycles than this fraction of the busiest one's is secondary: it
/// waits for a user, or writes a log. It is only measured if named.
const SIDE: u64 = 10;
/// A year, beyond any latency.
const BEYOND_ALL: &str = "31536000s";

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn only_upper_latency_figures_can_be_tuned() {
        let text = |text: &str| TuneFigure::parse(text).map(|figure| figure.text);
        for (written, kept) in [
            ("p99.9", "p99.9"),
            ("p99.9 < 80us", "p99.9"),
            (" max<=1ms", "max"),
            ("servo/response p99 < 50us", "servo/response p99"),
            ("wakeup max", "wakeup max"),
        ] {
            assert_eq!(text(written).as_deref(), Ok(kept));
        }
        for wrong in [
            "",
            "p99.9 <",
            "skipped == 0",
            "min",
            "count > 3",
            "p101",
            "stddev",
            "max > 3us",
            "p99 == 3us",
        ] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
    }

    /// The summary reads percentiles differently than requirements do.
    #[test]
    fn the_tuned_figure_of_a_bundle_equals_that_of_its_summary() {
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bundles");
        let mut compared = 0;
        for place in std::fs::read_dir(all).unwrap() {
            let Ok(mut bundle) = Bundle::open(&place.unwrap().path()) else { continue };
            let summary = summarize_bundle(&bundle);
            let series: Vec<_> = summary.phases.iter().flat_map(|phase| &phase.series).collect();
            if series.iter().any(|one| one.workload == ATTACHED_WORKLOAD || one.lost != Some(0)) {
                continue;
            }
            let p99: Option<Vec<i64>> =
                series.iter().map(|one| one.percentiles.get("99").copied()).collect();
            let figure = TuneFigure::parse("p99").unwrap().read_figure(&mut bundle);
            match (p99.and_then(|all| all.into_iter().max()), figure) {
                (Some(largest), Ok(figure)) => {
                    assert!((figure / largest as f64 - 1.0).abs() < 2e-3, "{figure} {largest}");
                    compared += 1;
                }
                // Cut off, not real-time although requested, or too few samples.
                (_, Err(why)) => assert!(!why.is_empty()),
                (None, Ok(figure)) => panic!("{figure} of a series without p99"),
            }
        }
        assert!(compared >= 1, "{compared} bundles have a p99");
    }
}
