//! Converts the records of runs to figures, and the results back.

use super::ProposedRate;
use super::noise::answer_newest_run;
use super::propose::propose_bounds;
use super::{Leap, LevelStep, MIN_RUNS, RunChanges, RunFigures, RunJudgement, smallest_step};
use punctual_bundle::baseline::{
    BaselineRun, FoundChange, HeldAgainst, KeptFigure, LeapingFigure, ProposedBound, SmallestStep,
    WorseFigure,
};
use punctual_bundle::summary::{SeriesSummary, Summary};
use std::collections::BTreeMap;

/// The maximum number of figures per run: those of further series are dropped, in the order of the
/// run.
const MOST_FIGURES: usize = 400;
/// The maximum number of environment changes named.
const MOST_CHANGES: usize = 8;
/// The maximum number of older records without a state whose runs are judged again.
const JUDGED_AGAIN: usize = 200;
/// The maximum value of a figure, in ns or as a count.
const LARGEST: f64 = 1e18;
/// The percentiles kept, by their names in the summary.
const PERCENTILES: [&str; 2] = ["99", "99.9"];

/// The figures kept of a run: for each series the median, p99 and p99.9 as far as its count
/// supports them, its missed periods, and samples beyond its requirements.
pub fn figures_to_keep(summary: &Summary) -> Vec<KeptFigure> {
    let mut kept_figures = Vec::new();
    for phase in &summary.phases {
        for series in &phase.series {
            of_series(&format!("{}/{}", phase.name, series.name), series, &mut kept_figures);
        }
    }
    kept_figures.truncate(MOST_FIGURES);
    kept_figures
}

fn of_series(place: &str, series: &SeriesSummary, all: &mut Vec<KeptFigure>) {
    let named = |word: &str| {
        let mut stated = series.requirements.iter();
        stated.any(|held| held.requirement.split_whitespace().any(|part| part == word))
    };
    let begin = all.len();
    let mut add = |word: &str, value: Option<f64>, is_time: bool| {
        let name = format!("{place} {word}");
        let is_main = named(word);
        all.extend(value.map(|value| KeptFigure { name, value, is_time, is_main }));
    };
    add("median", series.median.map(|ns| ns as f64), true);
    for number in PERCENTILES {
        let value = series.percentiles.get(number).map(|ns| *ns as f64);
        add(&format!("p{number}"), value, true);
    }
    add("missed periods", series.skipped.map(|count| count as f64), false);
    let beyond = series.requirements.iter().filter_map(|held| held.beyond).max();
    add("late samples", beyond.map(|count| count as f64), false);
    let of_this = &mut all[begin..];
    if !of_this.iter().any(|figure| figure.is_main) {
        // p99, or the next best percentile below p99.9.
        let by_default = of_this.iter_mut().filter(|figure| figure.is_time).take(2).last();
        by_default.into_iter().for_each(|figure| figure.is_main = true);
    }
}

/// The figures of these runs, oldest first. One that the newest run lacks is dropped, unless it was
/// worse in the previous run.
pub(crate) fn collect_figures(runs: &[&BaselineRun]) -> Vec<RunFigures> {
    let Some((newest, before)) = runs.split_last() else { return Vec::new() };
    let by_name: Vec<BTreeMap<&str, &KeptFigure>> = runs
        .iter()
        .map(|run| run.figures.iter().map(|kept| (kept.name.as_str(), kept)).collect())
        .collect();
    let to_run_figures = |kept: &KeptFigure| {
        let value = |run: &BTreeMap<&str, &KeptFigure>| {
            let value = run.get(kept.name.as_str()).map(|of| of.value);
            value.filter(|value| value.abs() <= LARGEST)
        };
        let values = by_name.iter().map(value).collect();
        RunFigures { name: kept.name.clone(), values, is_time: kept.is_time, is_main: kept.is_main }
    };
    let open = before.last().and_then(|run| run.found.as_ref()).into_iter().flatten();
    let lacking = open.filter_map(|change| {
        let name = change.figure.as_str();
        let is_missing = !by_name.last()?.contains_key(name);
        by_name.iter().rev().find_map(|run| run.get(name)).filter(|_| is_missing).copied()
    });
    newest.figures.iter().chain(lacking).take(MOST_FIGURES).map(to_run_figures).collect()
}

/// Compares a run with those before it, oldest first, of the same experiment.
pub fn compare_with_baseline(before: &[BaselineRun], this: &BaselineRun) -> HeldAgainst {
    hold_and_propose(before, this, None).0
}

/// [`compare_with_baseline`], with the bounds that all runs bear if they are asked for
/// ([`propose`]).
pub(crate) fn hold_and_propose(
    before: &[BaselineRun],
    this: &BaselineRun,
    asked: Option<ProposedRate>,
) -> (HeldAgainst, Vec<ProposedBound>) {
    let runs: Vec<&BaselineRun> = before.iter().chain([this]).collect();
    let figures = collect_figures(&runs);
    let mut comparison = HeldAgainst { runs: before.len() as u64, ..HeldAgainst::default() };
    let mut changes = changes_before(before, &figures);
    let mut steps = Vec::new();
    match changes.judge_newest(&figures) {
        // Without any figure, no more runs are needed and nothing is met.
        RunJudgement::TooFew(_) => {
            comparison.missing = (MIN_RUNS.saturating_sub(before.len())).max(1) as u64;
        }
        RunJudgement::Known(known) => {
            comparison.worse =
                known.worse.iter().map(|step| worse_figure(&runs, &figures, step)).collect();
            comparison.leaps =
                known.leaps.iter().map(|leap| leaping_figure(&figures, leap)).collect();
            comparison.answer =
                answer_newest_run(&runs, &changes.mask_ended_levels(&figures), &known);
            let commit = comparison.answer.iter_mut().filter_map(|of| of.commit.as_mut());
            commit.for_each(|commit| *commit = shorten_commit(commit));
            steps = known.worse;
        }
    }
    let proposed =
        asked.map_or_else(Vec::new, |ProposedRate(rate)| propose_bounds(&figures, &steps, rate));
    comparison.bound = main_bound(&figures, &comparison);
    if comparison.missing == 0 {
        comparison.smallest = figures.iter().position(|figure| figure.is_main).and_then(|place| {
            let RunFigures { name, is_time, .. } = figures[place].clone();
            let step_size = smallest_step(&figures, place)?;
            Some(SmallestStep { figure: name, by: step_size, is_time })
        });
    }
    (comparison, proposed)
}

/// The bound of the requested figure of the first series, unless it is worse.
fn main_bound(figures: &[RunFigures], held: &HeldAgainst) -> Option<ProposedBound> {
    let first = figures.iter().find(|figure| figure.is_main)?;
    let is_worse = held.worse.iter().any(|worse| worse.figure == first.name);
    let main_figure = std::slice::from_ref(first);
    propose_bounds(main_figure, &[], None).into_iter().next().filter(|_| !is_worse)
}

/// The changes that the last of these runs left open: from its record if possible, else judged
/// again.
fn changes_before(before: &[BaselineRun], figures: &[RunFigures]) -> RunChanges {
    let mut changes = RunChanges::default();
    for (number, run) in before.iter().enumerate() {
        let place = |found: &FoundChange| {
            let place = figures.iter().position(|figure| figure.name == found.figure)?;
            let at = before.iter().position(|other| other.created >= found.since)?;
            Some((place, at))
        };
        match &run.found {
            // An accepted level is not a change.
            Some(found) if number > 0 => {
                let open = found.iter().take(MOST_FIGURES).filter_map(place).collect();
                changes.found_in(number, open);
            }
            None if number >= MIN_RUNS && before.len() - number <= JUDGED_AGAIN => {
                let until = |figure: &RunFigures| RunFigures {
                    values: figure.values[..=number].to_vec(),
                    ..figure.clone()
                };
                changes.judge_newest(&figures.iter().map(until).collect::<Vec<RunFigures>>());
            }
            _ => {}
        }
    }
    changes
}

fn leaping_figure(figures: &[RunFigures], leap: &Leap) -> LeapingFigure {
    let RunFigures { name, is_time, .. } = figures[leap.figure].clone();
    LeapingFigure {
        figure: name,
        runs: leap.before as u64,
        before: leap.median,
        by: leap.by,
        is_time,
        is_difference: is_time && !leap.is_ratio,
        more: leap.more as u64,
    }
}

fn worse_figure(runs: &[&BaselineRun], figures: &[RunFigures], step: &LevelStep) -> WorseFigure {
    let figure = &figures[step.figure];
    WorseFigure {
        figure: figure.name.clone(),
        before: step.shift.before,
        now: step.shift.now,
        by: step.shift.by,
        interval: step.shift.interval,
        is_time: figure.is_time,
        is_difference: figure.is_time && !step.shift.is_ratio,
        since: runs[step.at].created,
        runs: (runs.len() - step.at) as u64,
        changed: list_changes(runs[step.at - 1], runs[step.at]),
    }
}

/// A commit for display: of a hash, its beginning.
fn shorten_commit(commit: &str) -> String {
    let is_hash = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { commit[..12].to_owned() } else { commit.to_owned() }
}

/// The other differences between two runs: commit and environment.
pub(crate) fn list_changes(before: &BaselineRun, after: &BaselineRun) -> Vec<String> {
    let differs = |what: &str, a: Option<&String>, b: Option<&String>| {
        let word = |text: Option<&String>| text.map_or("nothing", String::as_str).to_owned();
        (a != b).then(|| format!("{what}: {} -> {}", word(a), word(b)))
    };
    let [from, to] = [before, after].map(|run| run.commit.as_deref().map(shorten_commit));
    let mut change_lines: Vec<String> =
        differs("commit", from.as_ref(), to.as_ref()).into_iter().collect();
    let names: std::collections::BTreeSet<&String> =
        before.environment.keys().chain(after.environment.keys()).collect();
    change_lines.extend(names.into_iter().filter_map(|name| {
        differs(name, before.environment.get(name), after.environment.get(name))
    }));
    if change_lines.len() > MOST_CHANGES {
        let omitted_changes = change_lines.len() - MOST_CHANGES;
        change_lines.truncate(MOST_CHANGES);
        change_lines.push(format!("and {omitted_changes} more"));
    }
    change_lines
}
