//! A whole history, for looking back.

use super::{changed, effect, figures, hold, levels};
use punctual_bundle::baseline::{BaselineRun, TrendFigure, TrendHistory, TrendLevel, TrendRun};

/// What the runs of one experiment, machine and kernel show, from the oldest to the newest. `None`
/// without any.
pub fn trend(runs: &[BaselineRun]) -> Option<TrendHistory> {
    let (newest, before) = runs.split_last()?;
    let all: Vec<&BaselineRun> = runs.iter().collect();
    let accepted = runs.iter().rposition(|run| run.begins).unwrap_or(0);
    let figures = figures(&all);
    let levels = levels(&figures);
    let of_figure = |(figure, levels): (&super::Figure, &Vec<super::Level>)| TrendFigure {
        name: figure.name.clone(),
        is_time: figure.is_time,
        values: figure.values.clone(),
        levels: (0..levels.len()).map(|place| level(runs, figure, levels, place)).collect(),
    };
    Some(TrendHistory {
        experiment: newest.experiment.clone(),
        machine: newest.machine.clone(),
        kernel: newest.kernel.clone(),
        held: hold(&before[accepted.min(before.len())..], newest),
        runs: runs
            .iter()
            .map(|run| TrendRun {
                created: run.created,
                commit: run.commit.clone(),
                verdict: run.verdict,
            })
            .collect(),
        figures: figures.iter().zip(&levels).map(of_figure).collect(),
    })
}

fn level(
    runs: &[BaselineRun],
    figure: &super::Figure,
    levels: &[super::Level],
    place: usize,
) -> TrendLevel {
    let known = |level: &super::Level| -> Vec<f64> {
        figure.values[level.runs.clone()].iter().copied().flatten().collect()
    };
    let this = &levels[place];
    let before = place.checked_sub(1).map(|before| &levels[before]);
    let shift = before.map(|old| effect::between(&known(old), &known(this), figure.is_time));
    let at = this.runs.start;
    TrendLevel {
        runs: [at, this.runs.end],
        median: this.median,
        by: shift.map(|shift| shift.by).filter(|by| by.is_finite()),
        interval: shift.map(|shift| shift.interval).filter(|of| of.iter().all(|x| x.is_finite())),
        changed: if at == 0 { Vec::new() } else { changed(&runs[at - 1], &runs[at]) },
    }
}
