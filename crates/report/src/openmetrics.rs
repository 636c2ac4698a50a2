//! The histories of a directory as OpenMetrics text: the newest run, and whether it is worse than
//! earlier runs.

use punctual_bundle::baseline::{TrendDocument, TrendFigure, TrendHistory};
use punctual_bundle::openmetrics::{Exposition, Label};
use punctual_core::Nanos;

type Labelled<V> = Vec<(Vec<Label<'static>>, V)>;

/// The metrics of all histories, with the labels `experiment`, `machine` and `kernel`; `figure` too
/// for those of one figure. Unknown values are absent.
pub fn format_trend(document: &TrendDocument) -> String {
    let mut text = Exposition::default();
    let histories = &document.histories;
    let of_each = |of: &dyn Fn(&TrendHistory) -> u64| -> Labelled<u64> {
        histories.iter().map(|history| (history_labels(history), of(history))).collect()
    };
    let kept = of_each(&|history| history.runs.len() as u64);
    text.add_gauges("punctual_trend_runs", "Runs of the history.", &kept);
    let missing = of_each(&|history| history.held.missing);
    let help = "Runs that are missing before a newest run is judged.";
    text.add_gauges("punctual_trend_missing_runs", help, &missing);
    let help = "Whether the newest run is worse than those before it; absent where none is judged.";
    text.add_gauges("punctual_trend_worse", help, &worse_figures(histories));
    let newest = |figure: &TrendFigure| figure.values.last().copied().flatten();
    let (times, counts) = by_kind(histories, newest);
    text.time_gauges("punctual_trend_value_seconds", "Times of the newest run.", &times);
    text.add_gauges("punctual_trend_value", "Counts of the newest run.", &counts);
    let level = |figure: &TrendFigure| figure.levels.last()?.median;
    let (times, counts) = by_kind(histories, level);
    let help = "Times: the median over the runs of the newest level.";
    text.time_gauges("punctual_trend_level_seconds", help, &times);
    text.add_gauges("punctual_trend_level", "Counts: the same.", &counts);
    text.finish()
}

fn history_labels(history: &TrendHistory) -> Vec<Label<'static>> {
    vec![
        ("experiment", history.experiment.clone()),
        ("machine", history.machine.clone()),
        ("kernel", history.kernel.clone()),
    ]
}

fn of_figure(history: &TrendHistory, figure: &TrendFigure) -> Vec<Label<'static>> {
    history_labels(history).into_iter().chain([("figure", figure.name.clone())]).collect()
}

/// Each figure of the histories whose newest run is judged: 1 if it is worse.
fn worse_figures(all: &[TrendHistory]) -> Labelled<u64> {
    let judged = all.iter().filter(|one| one.held.missing == 0 && one.held.not_held.is_none());
    let judged_figures = judged.flat_map(|history| {
        history.figures.iter().map(|figure| {
            let is_worse = history.held.worse.iter().any(|worse| worse.figure == figure.name);
            (of_figure(history, figure), u64::from(is_worse))
        })
    });
    judged_figures.collect()
}

fn by_kind(
    all: &[TrendHistory],
    of: impl Fn(&TrendFigure) -> Option<f64>,
) -> (Labelled<Nanos>, Labelled<u64>) {
    let (mut times, mut counts) = (Vec::new(), Vec::new());
    for (history, figure) in all.iter().flat_map(|one| one.figures.iter().map(move |f| (one, f))) {
        let Some(value) = of(figure).filter(|value| value.is_finite()) else { continue };
        match figure.is_time {
            true => times.push((of_figure(history, figure), Nanos(value.round() as i64))),
            false => counts.push((of_figure(history, figure), value.round().max(0.0) as u64)),
        }
    }
    (times, counts)
}
