//! The summary of a run, from its bundle or from the run itself.

use crate::requirements;
use crate::validity::GatedVerdict;
use crate::verdict::{self, VerdictEvidence};
use crate::{Distribution, Validity, account, findings, observed, percentiles, published};
use punctual_bundle::observed::ObservedSeries;
use punctual_bundle::state::SeriesState;
use punctual_bundle::summary::{
    CorrectedSummary, GapSummary, MechanismSummary, PhaseSummary, RequirementSummary, SCHEMA,
    SeriesSummary, Summary, TESTPOINT_COST, WorstSample,
};
use punctual_bundle::{
    Bundle, Calibration, Manifest, Phase, PhaseMeta, PlannedRequests, Series, SeriesAccount,
    SeriesMeta, Timebase,
};
use punctual_core::event::Recorded;
use punctual_core::{Fact, Finding, Nanos};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The data of a phase for the summary, borrowed from a bundle or from a run.
#[derive(Clone, Debug)]
pub struct PhaseView<'a> {
    /// Its name, times and loads.
    pub meta: &'a PhaseMeta,
    pub series: Vec<SeriesView<'a>>,
}

/// The data of a series for the summary.
#[derive(Clone, Copy, Debug)]
pub struct SeriesView<'a> {
    pub meta: &'a SeriesMeta,
    pub state: &'a SeriesState,
    /// The breakdown of its samples' time.
    pub account: Option<&'a Fact<SeriesAccount>>,
}

impl<'a> PhaseView<'a> {
    fn from_phase(phase: &'a Phase) -> PhaseView<'a> {
        PhaseView {
            meta: &phase.meta,
            series: phase.series.iter().map(SeriesView::from_series).collect(),
        }
    }
}

impl<'a> SeriesView<'a> {
    fn from_series(series: &'a Series) -> SeriesView<'a> {
        SeriesView { meta: &series.meta, state: &series.state, account: Some(&series.account) }
    }
}

/// The data of a run for the summary, borrowed from a bundle or from an ending run.
#[derive(Clone, Copy)]
pub struct RunView<'a> {
    /// Its header, with the ending if it has ended.
    pub manifest: &'a Manifest,
    /// The requests of its plan.
    pub planned: &'a PlannedRequests,
    pub phases: &'a [PhaseView<'a>],
    /// Findings from the run.
    pub found: &'a [Finding],
    /// Unreadable parts of its bundle.
    pub damage: &'a [String],
    pub recorded: Option<&'a Recorded>,
}

/// The summary of an opened bundle. Findings about figures are computed again; those of the run are
/// kept.
pub fn summarize_bundle(bundle: &Bundle) -> Summary {
    let mut found = bundle.findings.clone();
    let recorded =
        bundle.recording.iter().flat_map(|recording| recording.count_recorded().findings);
    found.extend(recorded.filter(|finding| !bundle.findings.contains(finding)));
    let recorded = bundle.recording.as_ref().map(|recording| recording.count_recorded());
    let mut damage = bundle.damage.clone();
    let planned = bundle.planned_requests().unwrap_or_else(|why| {
        damage.push(why.to_string());
        PlannedRequests::default()
    });
    summarize_run(&RunView {
        manifest: &bundle.manifest,
        planned: &planned,
        phases: &phase_views(bundle),
        found: &found,
        damage: &damage,
        recorded: recorded.as_ref(),
    })
}

/// The phases of a bundle, borrowed.
pub fn phase_views(bundle: &Bundle) -> Vec<PhaseView<'_>> {
    bundle.phases.iter().map(PhaseView::from_phase).collect()
}

/// The summary of a run from its parts, with its verdict: the only function that computes one.
pub fn summarize_run(run: &RunView) -> Summary {
    let RunView { manifest, planned, phases, found, damage, recorded } = *run;
    let validity = Validity::from_evidence(manifest, phases, recorded);
    let mut new_findings = findings::of_run(manifest, damage);
    let mut summaries = Vec::new();
    let observed = manifest.observed.iter().rev();
    let observed: HashMap<(&str, &str), &ObservedSeries> =
        observed.map(|of| ((of.phase.as_str(), of.series.as_str()), of)).collect();
    for phase in phases {
        let name = &phase.meta.name;
        let is_periodic = phase.series.iter().all(|series| series.meta.period.is_some());
        new_findings.extend(findings::of_phase(phase.meta, is_periodic));
        new_findings.extend(findings::of_heat(phase));
        // A phase that ended before the run was cut off is complete: its last checkpoint precedes
        // its duration.
        let ended = manifest.ending.is_some() || phase.meta.duration.is_some();
        // A part that was cut off lacks its last second.
        let is_whole = ended && manifest.gaps.is_empty();
        let of_source = phase.meta.missing_of_source();
        let missing = if is_whole { of_source.as_deref() } else { Some(requirements::CUT_OFF) };
        let (mut series, mut threads) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
        let absent = absent_series(phase.meta);
        for view in &phase.series {
            let mut summary = summarize_as(view, missing);
            summary
                .requirements
                .iter_mut()
                .for_each(|held| apply_validity(held, &validity, name, &view.meta.name));
            if let Some(of) = observed.get(&(name.as_str(), summary.name.as_str())) {
                let count = summary.count;
                summary
                    .requirements
                    .iter_mut()
                    .for_each(|held| observed::excuse_observer_delays(held, &of.samples, count));
                new_findings.extend(observed::report_observer_delays(of));
            }
            match absent.get(view.meta.name.as_str()).filter(|_| summary.count == 0) {
                Some(why) => new_findings.push(findings::of_absent(name, &view.meta.name, why)),
                None => {
                    let found = findings::of_series(name, view.meta, view.state, &summary);
                    // The kernel's counts of a thread are reported once for all its series.
                    let thread = view.meta.tid.map(|tid| threads.entry(tid).or_default());
                    let is_repeated =
                        thread.as_ref().is_some_and(|of| of.contains(&&view.state.usage));
                    thread.into_iter().for_each(|of| of.push(&view.state.usage));
                    new_findings.extend(
                        found
                            .into_iter()
                            .filter(|finding| !is_repeated || !findings::is_of_thread(finding)),
                    );
                }
            }
            series.push(summary);
        }
        let duration = phase.meta.duration.map(Nanos::ns);
        let PhaseMeta { cpu_load, measures, delayed_by, .. } = phase.meta.clone();
        let name = name.clone();
        summaries.push(PhaseSummary { name, duration, cpu_load, series, measures, delayed_by });
    }
    let validity_findings = findings::of_validity(&validity, found.iter().chain(&new_findings));
    new_findings.extend(validity_findings);
    let verdict = verdict::decide_verdict(&VerdictEvidence {
        manifest,
        planned,
        phases,
        figures: &summaries,
        damage,
        recorded,
        validity: &validity,
    });
    let distribution = |phase: usize, series: usize| {
        let view = phases.get(phase)?.series.get(series)?;
        Some(Distribution::from_series(&view.state.data))
    };
    Summary {
        answer: None,
        schema: SCHEMA.to_owned(),
        experiment: manifest.experiment.clone(),
        created: manifest.created,
        target: manifest.target.clone(),
        digest: run_digest(&summaries),
        ending: manifest.ending.clone(),
        verdict,
        baseline: manifest.baseline.clone(),
        validity: Some(validity.to_summary()),
        mechanisms: summarize_mechanisms(&summaries),
        published: manifest
            .published
            .as_ref()
            .map(|published| published::compare_published(published, &summaries, &distribution)),
        phases: summaries,
        findings: merge_findings(found, new_findings),
        calibration: run_calibration(manifest),
        gaps: manifest.gaps.iter().map(GapSummary::from_gap).collect(),
        recording: None,
    }
}

/// The calibration of the run. The reason for its absence in virtual time is known only here.
fn run_calibration(manifest: &Manifest) -> Fact<Calibration> {
    let time = Timebase::from_target(manifest.target.as_ref());
    match &manifest.calibration {
        Fact::Unavailable(_) if time == Timebase::Virtual => {
            Fact::Unavailable("the run took place in virtual time".to_owned())
        }
        calibration => calibration.clone(),
    }
}

/// Adapts the verdict of a requirement to the validity of the run.
fn apply_validity(held: &mut RequirementSummary, validity: &Validity, phase: &str, series: &str) {
    let GatedVerdict { verdict, reason } = validity.gate_verdict(held.verdict, phase, series);
    held.verdict = verdict;
    held.reason = reason.or(held.reason.take());
}

/// The series that could not be measured on that system, each with the reason, as the measures
/// report them.
fn absent_series(phase: &PhaseMeta) -> HashMap<&str, &str> {
    let absent_entries = phase.measures.iter().flat_map(|measure| &measure.notes.absent);
    // The first of a name is left.
    let absent_entries: Vec<_> = absent_entries.collect();
    absent_entries
        .into_iter()
        .rev()
        .map(|absent| (absent.series.as_str(), absent.why.as_str()))
        .collect()
}

/// The cost of a test point by mechanism, if measured.
fn summarize_mechanisms(phases: &[PhaseSummary]) -> Vec<MechanismSummary> {
    let series =
        phases.iter().flat_map(|phase| phase.series.iter().map(move |series| (phase, series)));
    let points = series.filter(|(_, series)| series.workload == TESTPOINT_COST);
    let summarize_point = |(phase, series): (&PhaseSummary, &SeriesSummary)| {
        let mut absent = phase.measures.iter().flat_map(|measure| &measure.notes.absent);
        MechanismSummary {
            name: series.name.rsplit('/').next().unwrap_or_default().to_owned(),
            count: series.count,
            min_ns: series.min,
            median_ns: series.median,
            p99_ns: series.percentiles.get("99").copied(),
            max_ns: series.max,
            unavailable: absent
                .find(|absent| absent.series == series.name)
                .map(|absent| absent.why.clone()),
        }
    };
    points.map(summarize_point).collect()
}

/// The digest of the run.
fn run_digest(phases: &[PhaseSummary]) -> Option<String> {
    let series =
        phases.iter().flat_map(|phase| phase.series.iter().map(move |series| (phase, series)));
    punctual_core::digest::of_run(
        series.map(|(phase, s)| (phase.name.as_str(), s.name.as_str(), s.digest.as_ref())),
    )
}

/// Findings about figures that a finding of the run replaces: the run has the kernel's answer.
const REPLACED_BY_RUN: [(&str, &str); 2] =
    [("not-real-time", "scheduling-refused"), ("samples-not-kept", "samples-not-saved")];

/// What distinguishes a finding.
fn finding_key(finding: &Finding) -> (&str, &str) {
    (&finding.id, &finding.subject)
}

/// The findings of the run and those about figures, the most severe first. A newly computed finding
/// replaces the stored one of the same kind and subject.
fn merge_findings(found: &[Finding], mut born: Vec<Finding>) -> Vec<Finding> {
    let of_run: HashSet<(&str, &str)> = found.iter().map(finding_key).collect();
    let better = |b: &Finding| {
        let mut pairs = REPLACED_BY_RUN.iter().filter(|(worse, _)| *worse == b.id);
        pairs.any(|(_, better)| of_run.contains(&(*better, b.subject.as_str())))
    };
    born.retain(|b| !better(b));
    let unwritten = |b: &Finding| {
        let mut above = b.subject.match_indices('/').map(|(end, _)| &b.subject[..end]);
        above.any(|phase| of_run.contains(&("bundle-incomplete", phase)))
    };
    for finding in born.iter_mut().filter(|b| b.id == "samples-not-kept" && unwritten(b)) {
        finding.remedy = Some(
            "data that could not be written is missing (bundle-incomplete): run again with \
             --output on a file system with free space"
                .to_owned(),
        );
    }
    let anew: HashSet<(&str, &str)> = born.iter().map(finding_key).collect();
    let mut all_findings: Vec<Finding> =
        found.iter().filter(|f| !anew.contains(&finding_key(f))).cloned().collect();
    all_findings.extend(born);
    all_findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    all_findings
}

/// The summary of a series, complete or in progress (its verdicts are then of the samples so far).
#[cfg(test)]
pub(crate) fn summarize_series(meta: &SeriesMeta, state: &SeriesState) -> SeriesSummary {
    summarize_as(&SeriesView { meta, state, account: None }, None)
}

fn summarize_as(view: &SeriesView, missing: Option<&str>) -> SeriesSummary {
    let SeriesView { meta, state, account } = *view;
    let data = &state.data;
    let plain = Distribution::from_series(data);
    let corrected = Distribution::from_corrected(data);
    let evidence = requirements::RequirementEvidence {
        meta,
        state,
        plain: &plain,
        corrected: corrected.as_ref(),
        missing,
    };
    let (supported, unsupported) = supported_percentiles(data.sample_count());
    let counted = |n: u64| meta.are_losses_known().then_some(n);
    SeriesSummary {
        name: meta.name.clone(),
        measure: meta.measure.clone(),
        workload: meta.workload.clone(),
        parameters: meta.details.clone(),
        cpus: meta.cpus.to_string(),
        scheduling: meta.scheduling.clone(),
        real_time: meta.real_time,
        count: data.sample_count(),
        min: data.min.map(Nanos::ns),
        mean: data.mean(),
        max: data.longest_latency().map(Nanos::ns),
        stddev: data.stddev(),
        median: plain.percentile(50.0).map(Nanos::ns),
        modes: data.exact.modal_bins().into_iter().map(Nanos::ns).collect(),
        percentiles: percentile_figures(&plain, &supported),
        unsupported_percentiles: unsupported,
        corrected: corrected
            .as_ref()
            .filter(|corrected| corrected.count() > plain.count())
            .and_then(|corrected| corrected_summary(corrected, view, &supported)),
        expected: counted(
            data.losses
                .recorded
                .saturating_add(data.losses.skipped)
                .saturating_add(data.losses.dropped),
        ),
        overruns: counted(data.losses.skipped)
            .and_then(|_| requirements::count_overruns(meta, data))
            .map(|range| *range.start()),
        skipped: counted(data.losses.skipped),
        lost: counted(data.losses.dropped),
        above_range: data.exact.above,
        negative: data.exact.below,
        resolution: data.exact.resolution.ns(),
        period: meta.period.map(Nanos::ns),
        digest: state.digest.clone(),
        usage: state.usage.clone(),
        worst: data.worst.iter().map(worst_sample).collect(),
        unfinished: data.hanging_sample(),
        account: account.map_or(Fact::NotAsked, account::summarize_account),
        requirements: meta
            .requirements
            .iter()
            .map(|text| requirements::evaluate_requirement(text, &evidence))
            .collect(),
    }
}

/// The offered percentiles that this many samples support, and the sample counts that the others
/// need.
pub fn supported_percentiles(count: u64) -> (Vec<f64>, BTreeMap<String, u64>) {
    let (supported, not): (Vec<f64>, Vec<f64>) =
        percentiles::OFFERED.iter().partition(|p| count >= percentiles::samples_needed(**p));
    (
        supported,
        not.into_iter()
            .map(|p| (percentiles::percentile_key(p), percentiles::samples_needed(p)))
            .collect(),
    )
}

/// The percentiles that the distribution supports.
pub fn percentile_figures(
    distribution: &Distribution,
    percentiles: &[f64],
) -> BTreeMap<String, i64> {
    let figure =
        |p: &f64| Some((percentiles::percentile_key(*p), distribution.percentile(*p)?.ns()));
    percentiles.iter().filter_map(figure).collect()
}

/// The corrected figures. The added samples are not independent, so the supported percentiles are
/// those of the plain count.
fn corrected_summary(
    corrected: &Distribution,
    view: &SeriesView,
    supported: &[f64],
) -> Option<CorrectedSummary> {
    let hdr = view.state.data.corrected.as_ref()?;
    Some(CorrectedSummary {
        count: corrected.count(),
        mean: hdr.mean(),
        median: corrected.percentile(50.0)?.ns(),
        percentiles: percentile_figures(corrected, supported),
    })
}

fn worst_sample(sample: &punctual_core::Sample) -> WorstSample {
    WorstSample {
        latency: sample.latency().ns(),
        seq: sample.seq,
        due: sample.due.ns(),
        cpu: sample.cpu,
    }
}

#[cfg(test)]
mod tests;
