//! Changes detected so far: the runs before a change remain its reference until the figure has
//! returned.

use super::effect::{chance_of_above, median};
use super::{
    LevelStep, MIN_RUNS, NewestJudgement, RunFigures, RunJudgement, find_new_levels, leap,
    level_shift,
};
use std::ops::Range;

/// Numbers of newest runs by which a return is tested.
const RETURNS: [usize; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 25, 40, 65, 100];
/// The probability that the newest runs are that far below the middle of both levels by chance.
const RETURNED: f64 = 0.0001;
/// The minimum number of runs at the new level before those that have returned, and the maximum
/// ratio of the latter: fewer are too uncertain.
const SHORTEST: usize = 3;
const LONGER: usize = 5;

/// The changes after a run, with figures by index.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct RunChanges {
    /// The first run of each new level.
    open: Vec<(usize, usize)>,
    /// Long levels that are over: they are no reference for later runs.
    over: Vec<(usize, Range<usize>)>,
}

impl RunChanges {
    /// Takes the worse figures of a run, with the first run of their new levels.
    pub(crate) fn found_in(&mut self, run: usize, open: Vec<(usize, usize)>) {
        let inside = |(_, at): &(usize, usize)| 0 < *at && *at <= run;
        let open: Vec<_> = open.into_iter().filter(inside).collect();
        let begin_of = |place: usize| open.iter().find(|(of, _)| *of == place).map(|(_, at)| *at);
        for (place, at) in std::mem::take(&mut self.open) {
            let is_over = begin_of(place).is_none_or(|begin| begin > at);
            if is_over && run - at >= MIN_RUNS {
                self.over.push((place, at..run));
            }
        }
        self.open = open;
    }

    /// Judges the newest of these runs, and updates the changes.
    pub fn judge_newest(&mut self, figures: &[RunFigures]) -> RunJudgement {
        let runs = figures.iter().map(|figure| figure.values.len()).max().unwrap_or(0);
        let judgement = self.newest_judgement(figures, runs);
        if judgement.worse.is_empty() && (runs <= MIN_RUNS || figures.is_empty()) {
            return RunJudgement::TooFew((MIN_RUNS + 1).saturating_sub(runs).max(1));
        }
        let open = judgement.worse.iter().map(|step| (step.figure, step.at)).collect();
        self.found_in(runs.saturating_sub(1), open);
        RunJudgement::Known(judgement)
    }

    fn newest_judgement(&self, figures: &[RunFigures], runs: usize) -> NewestJudgement {
        let masked = self.mask_ended_levels(figures);
        let mut judgement = NewestJudgement::default();
        let mut add = |figure: usize, at: usize| {
            let shift = level_shift(&masked[figure], at, runs);
            judgement.worse.push(LevelStep { figure, at, shift });
        };
        let has_both = |(place, at): &&(usize, usize)| {
            let has_values = |range| {
                masked.get(*place).is_some_and(|of: &RunFigures| !of.known_values(range).is_empty())
            };
            has_values(0..*at) && has_values(*at..runs)
        };
        let open: Vec<_> = self.open.iter().filter(has_both).copied().collect();
        open.iter()
            .filter(|(place, at)| !has_returned(&masked[*place], *at))
            .for_each(|(f, at)| add(*f, *at));
        if runs <= MIN_RUNS {
            return judgement;
        }
        // A figure with an open change or a return in this run is not tested again.
        let is_open = |place: &usize| open.iter().any(|(of, _)| of == place);
        let places: Vec<usize> = (0..figures.len()).filter(|place| !is_open(place)).collect();
        let watched: Vec<RunFigures> = places.iter().map(|place| masked[*place].clone()).collect();
        let (leapt, mut leaps) = leap::find_leaps(&watched);
        let mut found = find_new_levels(&watched);
        found.retain(|(place, _)| !leapt.iter().any(|(of, _)| of == place));
        found.extend(leapt);
        found.sort_unstable();
        leaps.retain(|leap| !found.iter().any(|(place, _)| *place == leap.figure));
        found.into_iter().for_each(|(place, at)| add(places[place], at));
        leaps.iter_mut().for_each(|leap| leap.figure = places[leap.figure]);
        judgement.worse.sort_by_key(|step| step.figure);
        NewestJudgement { leaps, ..judgement }
    }

    /// The figures without the levels that are over.
    pub(crate) fn mask_ended_levels(&self, figures: &[RunFigures]) -> Vec<RunFigures> {
        let mut figures = figures.to_vec();
        for (place, runs) in &self.over {
            let values = figures.get_mut(*place).and_then(|of| of.values.get_mut(runs.clone()));
            values.into_iter().for_each(|values| values.fill(None));
        }
        figures
    }
}

/// Whether the newest runs, few or many, are below the middle of the level before `at` and the one
/// from there to them, with a false alarm rate of 1 in 10,000. The levels are assumed to be as near
/// as their medians allow: the first runs of a detected change are those that happened to be high.
fn has_returned(figure: &RunFigures, at: usize) -> bool {
    let (runs, before) = (figure.values.len(), figure.known_values(0..at));
    let Some([_, highest]) = around_median(&before, 0.82) else { return false };
    RETURNS.iter().any(|count| {
        let from = runs.saturating_sub(*count);
        if from < at + SHORTEST || *count > LONGER * (from - at) {
            return false;
        }
        let newest = figure.known_values(from..runs);
        let level =
            around_median(&figure.known_values(at..from), 1.55).filter(|_| newest.len() == *count);
        let Some([lowest, _]) = level else { return false };
        let is_ratio = figure.is_time && before.iter().all(|value| *value > 0.0);
        let middle = |value: &f64| match is_ratio {
            true => value * (lowest / highest).max(1.0).sqrt(),
            false => value + (lowest - highest).max(0.0) / 2.0,
        };
        let middle: Vec<f64> = before.iter().map(middle).collect();
        // Most runs of a lasting level need no ranks.
        median(&newest) < median(&middle) && chance_of_above(&newest, &middle) <= RETURNED
    })
}

/// The interval of the median by order statistics: 90 % with a reach of 0.82 roots of their number,
/// 99.8 % with 1.55.
fn around_median(values: &[f64], reach: f64) -> Option<[f64; 2]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let reach = reach * (sorted.len() as f64).sqrt();
    let low = (sorted.len() as f64 / 2.0 - reach).floor().max(0.0) as usize;
    Some([*sorted.get(low)?, sorted[sorted.len() - 1 - low]])
}
