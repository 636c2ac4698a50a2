//! The worst sample of a cell and its cause: by instruction if its run was replayed, else from the
//! kept kernel events around it.

use crate::replay;
use punctual_bundle::lab::{LabDocument, SeedDocument, WorstCellSample};
use punctual_bundle::{Bundle, Member};
use punctual_core::Nanos;
use punctual_report::sentence;
use punctual_session::explanation::{self, Wanted};
use std::path::Path;

/// Fills in new results: for a lab of an earlier version, or with runs explained since.
pub fn refresh_worst(lab: &mut LabDocument, directory: &Path) {
    for cell in &mut lab.cells {
        if cell.worst.as_ref().is_some_and(|worst| worst.exact) {
            continue;
        }
        let Some(name) = cell.bundle.clone() else { continue };
        let member = Member::from_root(directory).join(&name);
        if !member.is_directory() {
            continue;
        }
        let is_it = |seed: &&SeedDocument| {
            seed.runs.first().is_some_and(|run| run.bundle.as_ref() == Some(&name))
        };
        let seed = cell.seeds.iter().find(is_it).and_then(|seed| seed.seed);
        let Ok(bundle) = Bundle::open(member.path()) else { continue };
        let found = worst_sample(&bundle, &name, seed);
        let better_sample = found.filter(|found| cell.worst.is_none() || found.cause.is_some());
        cell.worst = better_sample.or(cell.worst.take());
    }
}

/// The worst sample of a bundle, `bundle` in the lab's directory. `None` without any measurement.
pub fn worst_sample(run: &Bundle, bundle: &str, seed: Option<u64>) -> Option<WorstCellSample> {
    let series_maxima = run
        .all_series()
        .filter_map(|(phase, series)| Some((series.state.data.max?, phase, series)));
    // Of equal ones the first, as everywhere.
    let (latency, phase, series) =
        series_maxima.reduce(|worst, one| if one.0 > worst.0 { one } else { worst })?;
    let place = (phase, series.meta.name.as_str());
    let mut cell_sample = WorstCellSample {
        series: format!("{}/{}", place.0, place.1),
        latency: latency.ns(),
        seed,
        bundle: bundle.to_owned(),
        cause: None,
        exact: false,
        calls: Vec::new(),
        unexplained: None,
    };
    let digest = punctual_stats::summarize_bundle(run).digest;
    if let Some(sample) = replay::replayed_sample(run, digest.as_deref(), place, latency) {
        cell_sample.exact = true;
        cell_sample.cause = sentence::exact::main_delay(&sample);
        cell_sample.calls =
            sample.longest_part().map(|part| part.stack.clone()).unwrap_or_default();
    } else if run.windows.is_some() {
        cell_sample.cause = from_events(run, place, latency);
    }
    Some(cell_sample)
}

fn from_events(
    run: &Bundle,
    (phase, series): (&str, &str),
    latency: Nanos,
) -> Option<punctual_bundle::answer::AnsweredDelay> {
    let wanted = Wanted { worst: Some(1), ..Wanted::default() };
    let explanations = explanation::explain_samples(run, &wanted).ok()?;
    let sample = explanations.samples.iter().find(|one| {
        (one.phase.as_str(), one.series.as_str()) == (phase, series)
            && one.explanation.latency() == latency
    })?;
    sentence::explain::main_delay(&sample.explanation, &explanations.names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
    }

    /// The lab was recorded before its document had causes; its worst run was replayed later.
    #[test]
    fn an_explanation_added_later_is_shown_in_the_lab() {
        let directory = fixture("labs/quick");
        let mut lab = punctual_bundle::lab::read(&directory).expect("a lab");
        assert!(lab.cells.iter().all(|cell| cell.worst.is_none()));
        refresh_worst(&mut lab, &directory);
        let worst = lab.cells[0].worst.as_ref().expect("a worst sample");
        assert_eq!((worst.latency, worst.exact), (27_158_544, true));
        let cause = worst.cause.as_ref().expect("a cause");
        assert_eq!(cause.words, "interrupts disabled");
        assert_eq!(cause.who.as_deref(), Some("__free_one_page"));
        // 3,386,843 of the 3,394,818 instructions that fit into 27,158,544 ns.
        assert!((cause.share - 3_386_843.0 / 3_394_818.0).abs() < 1e-6, "{}", cause.share);
        assert_eq!(worst.calls.last().map(String::as_str), Some("__free_one_page"));
        let other = lab.cells[1].worst.as_ref().expect("a worst sample");
        assert_eq!((other.exact, other.cause.is_none()), (false, true));
    }

    /// The largest part of the worst sample in `punctual explain`.
    #[test]
    fn the_cause_of_a_lab_cell_matches_that_of_explain() {
        let bundle = Bundle::open(&fixture("bundles/explained")).expect("a bundle");
        let worst = worst_sample(&bundle, "r1", Some(7)).expect("a worst sample");
        let wanted = Wanted { worst: Some(1), ..Wanted::default() };
        let explained = explanation::explain_samples(&bundle, &wanted).expect("explanations");
        let all = explained.samples.iter().map(|one| &one.explanation);
        let longest = all.max_by_key(|one| one.latency()).expect("a sample");
        assert_eq!(worst.latency, longest.latency().ns());
        let cause = worst.cause.expect("a cause");
        let of_cause = longest.parts.iter().filter(|part| part.cause.id() == cause.cause);
        let time: i64 = of_cause.map(|part| part.duration().ns()).sum();
        assert!(cause.share * worst.latency as f64 <= time as f64 + 1.0, "{cause:?}");
        assert!(cause.share > 0.0 && !worst.exact);
    }
}
