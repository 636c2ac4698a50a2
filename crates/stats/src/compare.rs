//! `punctual compare`: finds the significant differences between runs.
//!
//! Reading order: the pairing of series ([`partners`]), the data kept of a run ([`run`],
//! [`ladder`]), the interval of a percentile's difference ([`quantile`]) and of the maxima's
//! ([`extreme`]), the tests of whole and tail ([`whole`]), all of it for one series ([`series`]),
//! the family-wise error rate ([`multiple`]), requirements ([`gate`]), warnings ([`warnings`]).
//! docs/reference/compare.md explains the results and the measured error rates.

mod equal;
pub(crate) mod extreme;
pub mod gate;
mod index;
pub(crate) mod ladder;
pub mod multiple;
mod partners;
pub(crate) mod quantile;
pub mod run;
pub mod series;
mod warnings;
pub mod whole;

pub use gate::GateError;
use gate::{DifferenceGate, GateKind};
use index::Indexed;
use partners::pair_series;
use punctual_bundle::comparison::{self, Comparison, GateResult, SeriesComparison};
use punctual_bundle::summary::VerdictWord;
use punctual_bundle::{Bundle, BundleError, Timebase};
use punctual_core::{Finding, Severity};
use run::{ComparedRun, ComparedView, SideRuns};
use series::{ERROR, SeriesPair};

/// One side: a run, or several equivalent ones.
#[derive(Clone, Debug)]
pub struct SideInput<'a> {
    /// A unique label.
    pub label: String,
    /// The bundles, each with the name by which it was given; at least one.
    pub runs: Vec<(String, &'a Bundle)>,
}

/// Further requests to the comparison.
#[derive(Clone, Debug, Default)]
pub struct CompareOptions {
    pub gates: Vec<DifferenceGate>,
    /// Series matched by hand: `phase/series` of the first side and of the others.
    pub matches: Vec<(String, String)>,
}

/// Why a comparison is impossible.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Nothing to compare with.
    #[error("a comparison needs two sides, each with a bundle")]
    TooFewSides,
    /// No series has a partner.
    #[error(
        "no series of {first} has a partner in {other}: {have}; series are matched by phase and \
         name, those of an import by CPU; to match these, add {matches}"
    )]
    NoPartner {
        first: String,
        other: String,
        /// The series that exist.
        have: String,
        /// The options that pair them.
        matches: String,
    },
    /// A series matched by hand does not exist.
    #[error("{side} has no series `{name}`; it has: {known}")]
    NoSuchSeries {
        /// The side concerned.
        side: String,
        name: String,
        known: String,
    },
    /// The samples are unreadable.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// Compares the first side with each of the others, series by series. Reads the logs; memory is
/// that of one series and its partner.
pub fn compare_sides(
    sides: &[SideInput],
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    let [first, others @ ..] = sides else { return Err(CompareError::TooFewSides) };
    if others.is_empty() || sides.iter().any(|side| side.runs.is_empty()) {
        return Err(CompareError::TooFewSides);
    }
    let mut findings: Vec<Finding> = sides.iter().flat_map(warnings::of_side).collect();
    let (mut series, mut gates) = (Vec::new(), Vec::new());
    let mut plan = Vec::new();
    let indexed: Vec<Indexed> = sides.iter().map(Indexed::from_side).collect();
    for (number, other) in others.iter().enumerate() {
        let found = pair_series(&indexed[0], &indexed[number + 1], &options.matches)?;
        let open = &found.without;
        gates
            .extend(open.iter().flat_map(|name| undecided_gates(&options.gates, name, number + 1)));
        let alone =
            |name: &String| warnings::no_partner(name, first, other, found.proposal.as_deref());
        findings.extend(open.iter().map(alone));
        findings.extend(found.by_cpu.iter().map(|(one, two)| warnings::paired_by_cpu(one, two)));
        plan.extend(found.matched.into_iter().map(|(name, partner)| (number + 1, name, partner)));
    }
    let tested =
        options.gates.iter().filter(|gate| gate.kind == GateKind::FailIfWorse).count() * plan.len();
    for (number, name, partner) in plan {
        let named_sides = [(&indexed[0], name.as_str()), (&indexed[number], partner.as_str())];
        let view = choose_view(named_sides);
        let [a, b] = named_sides.map(|(of, name)| read_side(of, name, view));
        let pair = SeriesPair { a: a?, b: b? };
        let compared = pair.compare_series(number, &name, &partner);
        findings.extend(warnings::of_pair(&pair, &compared));
        let unequal = named_sides.iter().find_map(|(of, name)| of.find_inequality(name));
        findings.extend(unequal.iter().map(|why| warnings::warn_of_inequality(&name, why)));
        gates.extend(options.gates.iter().map(|gate| match &unequal {
            None => judge_gate(gate, &pair, &compared, tested),
            Some(why) => undecided_gate(gate, &name, number, why),
        }));
        gates.extend(equal::judge_margins(
            named_sides,
            [&pair.a, &pair.b],
            number,
            unequal.as_deref(),
        ));
        series.push(compared);
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(Comparison {
        schema: comparison::SCHEMA.to_owned(),
        answer: None,
        sides: sides.iter().map(describe_side).collect(),
        confidence: 1.0 - ERROR,
        error_rate: ERROR,
        tests: multiple::decide_differences(&mut series),
        series,
        verdict: VerdictWord::gravest_verdict(gates.iter().map(|gate| gate.verdict)),
        gates,
        findings,
    })
}

fn describe_side(side: &SideInput) -> comparison::ComparisonSide {
    let times = side.runs.iter().map(|(_, bundle)| bundle.timebase());
    comparison::ComparisonSide {
        label: side.label.clone(),
        runs: side.runs.iter().map(|(name, _)| name.clone()).collect(),
        timebase: Timebase::common_timebase(times),
    }
}

fn judge_gate(
    gate: &DifferenceGate,
    pair: &SeriesPair,
    compared: &SeriesComparison,
    tested: usize,
) -> GateResult {
    let (verdict, bound, margin, reason) = pair.judge_gate(gate, tested);
    GateResult {
        gate: gate.to_string(),
        series: compared.series.clone(),
        side: compared.side,
        verdict,
        bound,
        margin,
        reason,
    }
}

/// A requirement on a series that is not on both sides is undecided.
fn undecided_gates<'a>(
    gates: &'a [DifferenceGate],
    name: &'a str,
    side: usize,
) -> impl Iterator<Item = GateResult> + 'a {
    gates.iter().map(move |gate| undecided_gate(gate, name, side, "the series is on one side only"))
}

fn undecided_gate(gate: &DifferenceGate, name: &str, side: usize, reason: &str) -> GateResult {
    GateResult {
        gate: gate.to_string(),
        series: name.to_owned(),
        side,
        verdict: VerdictWord::Undecided,
        bound: None,
        margin: None,
        reason: reason.to_owned(),
    }
}

/// The distribution to compare: corrected for missed periods if either side missed some.
fn choose_view(pair: [(&Indexed, &str); 2]) -> ComparedView {
    let has_hidden = pair.iter().any(|(side, name)| {
        side.find_series(name).any(|(_, series)| run::has_hidden(&series.state.data))
    });
    if has_hidden { ComparedView::Corrected } else { ComparedView::Measured }
}

/// Every run of a side's series.
fn read_side(of: &Indexed, name: &str, view: ComparedView) -> Result<SideRuns, CompareError> {
    let runs = of
        .find_series(name)
        .map(|(phase, series)| ComparedRun::of_series(series, phase.meta.duration, view));
    Ok(SideRuns::new(runs.collect::<Result<Vec<ComparedRun>, BundleError>>()?))
}

/// The severity of findings about a misleading comparison.
const MISLEADS: Severity = Severity::Warning;

#[cfg(test)]
mod tests;
