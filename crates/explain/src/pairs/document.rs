//! The results as a document: figures, verdicts on limits, the worst intervals with the activity
//! meanwhile.

use super::{MatchedPair, PairFigures, PairResult, Results, ran};
use crate::functions::FunctionFigures;
use crate::probes;
use crate::scopes::{ScopeFigures, ScopeReport};
use crate::threads::WindowLanes;
use crate::values::PointCurve;
use punctual_bundle::intervals::{
    Covered, FunctionSummary, IntervalFigures, LimitSummary, PAIRS_SCHEMA, PairSummary,
    PairsDocument, ScopeSummary, UncertainSummary, ValueCurve, ValueSummary, WorstInterval,
};
use punctual_bundle::summary::VerdictWord;
use punctual_core::event::{FunctionId, PointId, Recorded};
use punctual_core::{Missing, MonotonicNs, Names, Nanos, SeriesData};
use punctual_stats::Distribution;
use punctual_stats::summary::{percentile_figures, supported_percentiles};
use punctual_stats::validity::{GatedVerdict, Validity};

/// The number of worst intervals with details.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorstDetail {
    /// The number listed per pair and function.
    pub worst: usize,
    /// The number of those with the activity meanwhile, each of which needs a window.
    pub explained: usize,
}

/// The windows around the worst, in the order expected by [`build_document`].
pub fn worst_windows(results: &Results, detail: WorstDetail) -> Vec<(MonotonicNs, MonotonicNs)> {
    let pair_figures = results.pairs.iter().map(|pair| &pair.figures);
    let all_figures =
        pair_figures.chain(results.functions.values().map(|function| &function.calls));
    all_figures
        .flat_map(|figures| figures.worst.iter().take(detail.explained.min(detail.worst)))
        .map(MatchedPair::time_window)
        .collect()
}

/// The document, without coincidences. `lanes` are those of [`worst_windows`], or empty: then no
/// tasks are named.
pub fn build_document(
    results: &Results,
    detail: WorstDetail,
    lanes: &[WindowLanes],
    names: &Names,
    recorded: &Recorded,
) -> PairsDocument {
    let missing = recorded.missing.first();
    let mut writer = PairWriter { names, detail, lanes: lanes.iter(), missing };
    let pairs: Vec<PairSummary> =
        results.pairs.iter().map(|pair| writer.summarize_pair(pair)).collect();
    let functions = results
        .functions
        .iter()
        .map(|(function, figures)| writer.summarize_function(*function, figures));
    let functions: Vec<FunctionSummary> = functions.collect();
    let limits = pairs
        .iter()
        .map(|pair| &pair.limit)
        .chain(functions.iter().map(|function| &function.limit));
    PairsDocument {
        schema: PAIRS_SCHEMA.to_owned(),
        covered: Covered {
            began: recorded.began.ns(),
            ended: recorded.ended.ns(),
            lost: recorded.lost_count(),
            untracked: results.untracked,
        },
        verdict: VerdictWord::gravest_verdict(limits.flatten().map(|limit| limit.verdict)),
        pairs,
        scopes: summarize_scopes(&results.scopes, names),
        functions,
        values: results.curves.iter().map(|curve| summarize_values(curve, names)).collect(),
        coincidences: None,
        findings: recorded
            .findings
            .iter()
            .cloned()
            .chain(probes::probe_findings(names, &results.functions))
            .collect(),
    }
}

struct PairWriter<'a> {
    names: &'a Names,
    detail: WorstDetail,
    lanes: std::slice::Iter<'a, WindowLanes>,
    missing: Option<&'a Missing>,
}

impl PairWriter<'_> {
    fn summarize_pair(&mut self, pair: &PairResult) -> PairSummary {
        let pair_figures = &pair.figures;
        PairSummary {
            name: pair.name.clone(),
            by: pair.by.to_string(),
            rule: pair.rule.to_string(),
            figures: interval_figures(&pair_figures.data),
            unmatched_from: pair.unmatched_from,
            unmatched_to: pair.unmatched_to,
            uncertain: UncertainSummary {
                count: pair_figures.uncertain.count,
                max: pair_figures.uncertain.max.map(Nanos::ns),
            },
            limit: judge_limit(pair_figures, pair.overdue, pair.lossy, self.missing),
            worst: self.summarize_worst(pair_figures),
            histogram: build_histogram(&pair_figures.data),
        }
    }

    fn summarize_function(
        &mut self,
        function: FunctionId,
        of: &FunctionFigures,
    ) -> FunctionSummary {
        let name = self.names.functions.get(function.0 as usize);
        FunctionSummary {
            name: name.map_or_else(|| format!("function {}", function.0), |name| name.name.clone()),
            object: name.map(|name| name.object.clone()).unwrap_or_default(),
            figures: interval_figures(&of.calls.data),
            exclusive: interval_figures(&of.exclusive),
            exclusive_unknown: of.exclusive_unknown,
            period: interval_figures(&of.period),
            left: of.left,
            limit: judge_limit(&of.calls, 0, of.lossy, self.missing),
            worst: self.summarize_worst(&of.calls),
            histogram: build_histogram(&of.calls.data),
        }
    }

    fn summarize_worst(&mut self, of: &PairFigures) -> Vec<WorstInterval> {
        let WorstDetail { worst, explained } = self.detail;
        let mut worst_intervals = Vec::new();
        for (place, interval) in of.worst.iter().take(worst).enumerate() {
            let lanes = if place < explained { self.lanes.next() } else { None };
            let (tid, ends) = (interval.end_tid(), [interval.from.cpu, interval.to.cpu]);
            worst_intervals.push(WorstInterval {
                latency: interval.duration().ns(),
                seq: interval.seq,
                from: interval.from.at.ns(),
                to: interval.to.at.ns(),
                tid: tid.0,
                task: self.names.task_name(tid),
                value: interval.to.value,
                states: lanes.map(|lanes| ran::state_shares(lanes, tid)).unwrap_or_default(),
                ran: lanes
                    .map(|lanes| ran::tasks_in_window(lanes, tid, ends, self.names))
                    .unwrap_or_default(),
            });
        }
        worst_intervals
    }
}

/// Ordered by exclusive time, the longest first.
fn summarize_scopes(report: &ScopeReport, names: &Names) -> Vec<ScopeSummary> {
    let summary = |(point, of): (&PointId, &ScopeFigures)| ScopeSummary {
        name: names
            .points
            .get(point.0 as usize)
            .cloned()
            .unwrap_or_else(|| format!("point {}", point.0)),
        figures: interval_figures(&of.inclusive),
        exclusive: interval_figures(&of.exclusive),
        total: of.total.ns(),
        exclusive_total: of.exclusive_total.ns(),
        share: report.share_of_time(of),
        threads: of.threads.len() as u64,
        recursive: of.recursive,
        overlapping: of.overlapping,
        open: of.open,
        uncertain: of.uncertain,
    };
    let mut scopes: Vec<ScopeSummary> = report.scopes.iter().map(summary).collect();
    scopes.sort_by_key(|scope| std::cmp::Reverse(scope.exclusive_total));
    scopes
}

fn interval_figures(data: &SeriesData) -> IntervalFigures {
    let distribution = Distribution::from_series(data);
    let (offered, unsupported_percentiles) = supported_percentiles(data.sample_count());
    IntervalFigures {
        count: data.sample_count(),
        min: data.min.map(Nanos::ns),
        mean: data.mean(),
        median: distribution.percentile(50.0).map(Nanos::ns),
        max: data.max.map(Nanos::ns),
        stddev: data.stddev(),
        percentiles: percentile_figures(&distribution, &offered),
        unsupported_percentiles,
    }
}

fn build_histogram(data: &SeriesData) -> Vec<(i64, u64)> {
    let mut before = 0;
    let curve = Distribution::from_series(data);
    let bucket = |(edge, cumulative): (Nanos, u64)| {
        let count = cumulative - before;
        before = cumulative;
        (edge.ns(), count)
    };
    curve.cumulative_curve().map(bucket).collect()
}

/// Applies the validity of the run: a measurement that was not as requested decides no limit.
pub fn apply_validity(document: &mut PairsDocument, validity: &Validity) {
    let of_pairs = document.pairs.iter_mut().filter_map(|pair| pair.limit.as_mut());
    let of_functions = document.functions.iter_mut().filter_map(|function| function.limit.as_mut());
    let mut verdicts = Vec::new();
    for limit in of_pairs.chain(of_functions) {
        let GatedVerdict { verdict, reason } = validity.gate_recording(limit.verdict);
        limit.verdict = verdict;
        limit.reason = reason.or(limit.reason.take());
        verdicts.push(verdict);
    }
    document.verdict = VerdictWord::gravest_verdict(verdicts);
}

/// The verdict on a limit. One certain violation decides; without one, it is met only if no event
/// was lost.
fn judge_limit(
    of: &PairFigures,
    overdue: u64,
    lossy: bool,
    missing: Option<&Missing>,
) -> Option<LimitSummary> {
    let limit = of.limit?;
    let undecided = if of.violations > 0 {
        None
    } else if of.uncertain.violations > 0 {
        Some("only uncertain matches, which span lost events, exceed it".to_owned())
    } else if lossy {
        Some("events were lost: a violation may be among them".to_owned())
    } else if let Some(missing) = missing {
        Some(format!("a violation may be hidden: {missing}"))
    } else if overdue > 0 {
        Some(format!(
            "{overdue} were still open at the end of the recording, for longer than the limit"
        ))
    } else if of.data.sample_count() == 0 {
        Some("no interval was measured".to_owned())
    } else {
        None
    };
    let verdict = match &undecided {
        _ if of.violations > 0 => VerdictWord::NotMet,
        Some(_) => VerdictWord::Undecided,
        None => VerdictWord::Met,
    };
    Some(LimitSummary {
        limit: limit.to_string(),
        verdict,
        violations: of.violations,
        reason: undecided,
    })
}

fn summarize_values(curve: &PointCurve, names: &Names) -> ValueCurve {
    let segment = |bucket: &crate::values::ValueBucket| ValueSummary {
        start: bucket.start.ns(),
        count: bucket.count,
        min: bucket.min,
        mean: bucket.mean,
        max: bucket.max,
    };
    let point = curve.point.0;
    ValueCurve {
        point: names
            .points
            .get(point as usize)
            .cloned()
            .unwrap_or_else(|| format!("point {point}")),
        index: curve.index,
        width: curve.width.ns(),
        buckets: curve.buckets.iter().map(segment).collect(),
    }
}
