//! A whole history in retrospect.

use super::levels::figure_level as level_of;
use super::{FigureLevel, collect_figures, effect, find_levels, hold_and_propose, list_changes};
use punctual_bundle::baseline::{
    BaselineRun, HeldAgainst, TrendFigure, TrendHistory, TrendLevel, TrendRun,
};

/// That bounds are asked for, perhaps with a rate of false alarms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProposedRate(pub Option<f64>);

/// The trend of one experiment, machine and kernel, runs oldest first; levels are those of the runs
/// from `from` on. The answer about the newest run considers all, as do requested bounds. `None`
/// without any run.
pub fn build_trend(
    runs: &[BaselineRun],
    from: usize,
    propose: Option<ProposedRate>,
) -> Option<TrendHistory> {
    let (newest, before) = runs.split_last().filter(|_| from < runs.len())?;
    let accepted = runs.iter().rposition(|run| run.begins);
    let before = &before[accepted.unwrap_or(0).min(before.len())..];
    let (held, proposed) = hold_and_propose(before, newest, propose);
    let first = accepted.map(|run| run.saturating_sub(from));
    let accepted = accepted.map(|run| runs[run].created);
    let runs = &runs[from..];
    let shown_runs: Vec<&BaselineRun> = runs.iter().collect();
    let figures = collect_figures(&shown_runs);
    let mut levels = find_levels(&figures);
    for (figure, levels) in figures.iter().zip(&mut levels) {
        align_levels(figure, levels, &held, runs, first);
    }
    let of_figure = |(figure, levels): (&super::RunFigures, &Vec<FigureLevel>)| TrendFigure {
        name: figure.name.clone(),
        is_time: figure.is_time,
        values: figure.values.clone(),
        levels: (0..levels.len()).map(|place| trend_level(runs, figure, levels, place)).collect(),
    };
    Some(TrendHistory {
        experiment: newest.experiment.clone(),
        machine: newest.machine.clone(),
        kernel: newest.kernel.clone(),
        held,
        accepted,
        runs: runs
            .iter()
            .map(|run| TrendRun {
                created: run.created,
                commit: run.commit.clone(),
                verdict: run.verdict,
            })
            .collect(),
        figures: figures.iter().zip(&levels).map(of_figure).collect(),
        proposed,
    })
}

/// Makes the newest levels agree with the answer: a worse figure has its new level from the run
/// that the answer names, and another one has not risen since it was accepted.
fn align_levels(
    figure: &super::RunFigures,
    levels: &mut Vec<FigureLevel>,
    held: &HeldAgainst,
    runs: &[BaselineRun],
    accepted: Option<usize>,
) {
    let end = figure.values.len();
    let level_of_runs = |runs| level_of(figure, runs);
    if let Some(worse) = held.worse.iter().find(|worse| worse.figure == figure.name) {
        let at = runs.iter().position(|run| run.created >= worse.since).filter(|at| *at > 0);
        let Some(at) = at else { return };
        levels.retain(|level| level.runs.start < at);
        if let Some(last) = levels.last_mut() {
            *last = level_of_runs(last.runs.start..at);
        }
        levels.push(level_of_runs(at..end));
    } else if held.missing == 0 {
        while let [.., before, last] = levels.as_slice() {
            let is_accepted = accepted.is_some_and(|run| last.runs.start <= run);
            if last.median <= before.median || is_accepted {
                break;
            }
            let from = before.runs.start;
            levels.truncate(levels.len() - 2);
            levels.push(level_of_runs(from..end));
        }
    }
}

fn trend_level(
    runs: &[BaselineRun],
    figure: &super::RunFigures,
    levels: &[FigureLevel],
    place: usize,
) -> TrendLevel {
    let values_of_level = |level: &FigureLevel| figure.known_values(level.runs.clone());
    let this_level = &levels[place];
    let before = place.checked_sub(1).map(|before| &levels[before]);
    let shift = before.map(|old| {
        effect::shift_between(&values_of_level(old), &values_of_level(this_level), figure.is_time)
    });
    let at = this_level.runs.start;
    TrendLevel {
        runs: [at, this_level.runs.end],
        median: this_level.median,
        by: shift.map(|shift| shift.by).filter(|by| by.is_finite()),
        is_difference: figure.is_time && shift.is_some_and(|shift| !shift.is_ratio),
        interval: shift.map(|shift| shift.interval).filter(|of| of.iter().all(|x| x.is_finite())),
        changed: if at == 0 { Vec::new() } else { list_changes(&runs[at - 1], &runs[at]) },
    }
}
