//! Regression, noise, or undecided: the one answer about the newest run.
//!
//! It says nothing that the judgement does not: a regression is a figure that was found worse, and
//! its probability is that of the evidence by which it was found. What was not found, but is rarer
//! than [`OPEN`], is left open with the number of further runs that would decide.

use super::scan::{self, Scored, news_of};
use super::{
    LevelStep, NewestJudgement, OF_LEAPS, OF_LEVELS, ORDERS, RunFigures, SEED, effect, leap,
    level_shift,
};
use crate::Random;
use punctual_bundle::baseline::{BaselineRun, NoiseAnswer, NoiseWord};

/// Evidence that is rarer among equal runs than this is not called noise.
const OPEN: f64 = 0.05;
/// The runs from the beginning of a level by which its probability is computed.
const OF_LEVEL: usize = 100;
/// The maximum number of further runs that is looked for.
const MOST_MORE: usize = 30;
/// The share of runs that a spread includes.
const WITHIN: f64 = 0.9;

/// The answer about the newest of these runs, which were judged. `masked`: without levels that are
/// over. `None` without any figure.
pub(crate) fn answer_newest_run(
    runs: &[&BaselineRun],
    masked: &[RunFigures],
    known: &NewestJudgement,
) -> Option<NoiseAnswer> {
    if let Some(worst) = find_worst_step(masked, &known.worse) {
        return Some(regression_answer(runs, masked, worst));
    }
    if let Some(leap) = known.leaps.iter().max_by(|a, b| a.by.total_cmp(&b.by)) {
        let figure = &masked[leap.figure];
        // The newest runs have leapt, one after the other.
        let run_count = figure.values.len();
        let newest = figure.known_values(0..run_count).len().saturating_sub(leap.before);
        let chance = chance_of_change(masked, leap.figure, run_count.saturating_sub(newest));
        let is_difference = figure.is_time && !leap.is_ratio;
        let base_answer = answer_for_figure(figure, NoiseWord::Open, leap.by, is_difference);
        let (runs, more) = (leap.before as u64, Some(leap.more as u64));
        return Some(NoiseAnswer { p: Some(chance), more, runs, ..base_answer });
    }
    let scored = Scored::from_figures(masked);
    let orders = scored.draw_orders(ORDERS, &mut Random::from_seed(SEED));
    let evidence = scored.find_evidence(&orders);
    let strongest_evidence = evidence.iter().max_by(|a, b| a.news.total_cmp(&b.news))?;
    let p = (orders.chance_of_evidence(strongest_evidence.news) / (1.0 - OF_LEAPS)).min(1.0);
    if p <= OPEN {
        return Some(open_answer(
            masked,
            strongest_evidence.figure,
            p,
            orders.needed_evidence(OF_LEVELS),
        ));
    }
    let place = highest_figure(masked)?;
    let (figure, at) = (&masked[place], masked[place].values.len() - 1);
    let step = level_shift(figure, at, at + 1);
    let before = figure.known_values(0..at);
    let as_high = before.iter().filter(|value| **value >= step.now).count() as u64;
    let base_answer =
        answer_for_figure(figure, NoiseWord::Noise, step.by, figure.is_time && !step.is_ratio);
    let is_lowest = before.iter().all(|value| *value > step.now);
    let runs = before.len() as u64;
    Some(NoiseAnswer { p: Some(p), as_high: Some(as_high), runs, is_lowest, ..base_answer })
}

fn answer_for_figure(
    figure: &RunFigures,
    word: NoiseWord,
    by: f64,
    is_difference: bool,
) -> NoiseAnswer {
    let (is_time, name) = (figure.is_time, figure.name.clone());
    let finite_step = if by.is_finite() { by } else { 0.0 };
    NoiseAnswer {
        figure: name,
        by: finite_step,
        is_time,
        is_difference,
        ..NoiseAnswer::from_word(word)
    }
}

/// The worse figure that is shown: a requested one before others, then the largest step.
fn find_worst_step<'a>(figures: &[RunFigures], worse: &'a [LevelStep]) -> Option<&'a LevelStep> {
    let size = |step: &LevelStep| match step.shift.is_ratio {
        true => step.shift.by.max(f64::MIN_POSITIVE).ln(),
        false => 0.0,
    };
    worse.iter().max_by(|a, b| {
        let main = |step: &LevelStep| figures[step.figure].is_main;
        main(a).cmp(&main(b)).then(size(a).total_cmp(&size(b)))
    })
}

fn regression_answer(
    runs: &[&BaselineRun],
    figures: &[RunFigures],
    step: &LevelStep,
) -> NoiseAnswer {
    let figure = &figures[step.figure];
    let is_difference = figure.is_time && !step.shift.is_ratio;
    let base_answer =
        answer_for_figure(figure, NoiseWord::Regression, step.shift.by, is_difference);
    let begin = runs.get(step.at);
    NoiseAnswer {
        since: begin.map(|run| run.created),
        commit: begin.and_then(|run| run.commit.clone()),
        p: Some(chance_of_change(figures, step.figure, step.at)),
        spread: spread_around_median(
            &figure.known_values(0..step.at),
            is_difference || !figure.is_time,
        ),
        runs: step.at as u64,
        ..base_answer
    }
}

/// The probability of as much evidence for any change if nothing changed, by whichever of the two
/// ways a change is found: at most [`FALSE_ALARMS`] when it is.
fn chance_of_change(figures: &[RunFigures], place: usize, at: usize) -> f64 {
    let end = figures[place].values.len().min(at + OF_LEVEL);
    let cut = |figure: &RunFigures| RunFigures {
        values: figure.values[..end.min(figure.values.len())].to_vec(),
        ..figure.clone()
    };
    let figures: Vec<RunFigures> = figures.iter().map(cut).collect();
    let scored = Scored::from_figures(&figures);
    let orders = scored.draw_orders(ORDERS, &mut Random::from_seed(SEED));
    let news = scored.find_evidence(&orders).iter().find(|of| of.figure == place).map(|of| of.news);
    let of_level = news.map_or(1.0, |news| orders.chance_of_evidence(news)) / (1.0 - OF_LEAPS);
    let (before, since) =
        (figures[place].known_values(0..at), figures[place].known_values(at..end));
    let highest = before.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let is_above = since.iter().all(|value| *value > highest);
    let of_leap = match is_above && !since.is_empty() {
        true => leap::chance_of_highest(before.len(), since.len()),
        false => 1.0,
    };
    let part = OF_LEAPS * scan::figure_share(&figures, place);
    of_level.min(of_leap / part).min(1.0)
}

/// What is too rare for noise and too frequent for an alarm, with the number of further runs like
/// its newest ones that would make it one.
fn open_answer(figures: &[RunFigures], place: usize, p: f64, needed: f64) -> NoiseAnswer {
    let figure = &figures[place];
    let end = figure.values.len();
    let at = scan::find_level_start(&figure.values).min(end - 1);
    let step = level_shift(figure, at, end);
    let bursts = scan::burst_factors(&figure.values[..at]);
    let mut values = figure.values.clone();
    let further_runs = (1..=MOST_MORE).find(|_| {
        values.push(Some(step.now));
        news_of(figures, place, &values, &bursts) >= needed
    });
    let base_answer =
        answer_for_figure(figure, NoiseWord::Open, step.by, figure.is_time && !step.is_ratio);
    let (runs, more) = (at as u64, further_runs.map(|more| more as u64));
    NoiseAnswer { p: Some(p), more, runs, ..base_answer }
}

/// The figure whose newest run stands highest among those before it; requested ones first.
fn highest_figure(figures: &[RunFigures]) -> Option<usize> {
    let standing = |figure: &RunFigures| -> Option<f64> {
        let at = figure.values.len().checked_sub(1)?;
        let newest = figure.values[at].filter(|value| value.is_finite())?;
        let before = figure.known_values(0..at);
        let below = before.iter().filter(|value| **value < newest).count();
        (!before.is_empty()).then(|| below as f64 / before.len() as f64)
    };
    let indexed_figures = figures.iter().enumerate();
    let ranked_figures =
        indexed_figures.filter_map(|(place, of)| Some((of.is_main, standing(of)?, place)));
    let best = ranked_figures.max_by(|a, b| (a.0.cmp(&b.0)).then(a.1.total_cmp(&b.1)))?;
    Some(best.2)
}

/// How far nine in ten of these runs are from their median at most: a share of it, or a difference.
fn spread_around_median(values: &[f64], is_difference: bool) -> Option<f64> {
    let median = effect::median(values);
    let mut far: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    far.sort_by(f64::total_cmp);
    let place = (WITHIN * far.len() as f64).ceil() as usize;
    let far = *far.get(place.checked_sub(1)?)?;
    let spread = if is_difference { far } else { far / median };
    spread.is_finite().then_some(spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::{FALSE_ALARMS, RunJudgement, judge_last_run};

    fn figure(values: impl IntoIterator<Item = f64>) -> RunFigures {
        let values = values.into_iter().map(Some).collect();
        RunFigures { name: "timer p99".to_owned(), values, is_time: true, is_main: true }
    }

    fn quiet(count: usize) -> impl Iterator<Item = f64> {
        (0..count).map(|run| 40_000.0 + ((run * 17) % 31) as f64 * 100.0)
    }

    fn of(figure: RunFigures) -> NoiseAnswer {
        let RunJudgement::Known(known) = judge_last_run(std::slice::from_ref(&figure)) else {
            panic!("not judged")
        };
        answer_newest_run(&[], &[figure], &known).expect("an answer")
    }

    #[test]
    fn a_step_is_a_regression_with_the_probability_of_its_evidence() {
        let found = of(figure(quiet(42).chain(quiet(6).map(|value| value * 1.31))));
        assert_eq!((found.word, found.runs), (NoiseWord::Regression, 42), "{found:?}");
        assert!((1.25..1.37).contains(&found.by), "{found:?}");
        assert!(found.p.is_some_and(|p| 0.0 < p && p <= FALSE_ALARMS), "{found:?}");
        // Nine in ten of 0 to 3,000 ns around their median.
        assert!(found.spread.is_some_and(|of| (0.02..0.04).contains(&of)), "{found:?}");
    }

    #[test]
    fn a_run_within_the_range_of_those_before_is_noise() {
        let found = of(figure(quiet(42).chain([42_300.0])));
        assert_eq!((found.word, found.runs), (NoiseWord::Noise, 42), "{found:?}");
        let as_high = quiet(42).filter(|value| *value >= 42_300.0).count() as u64;
        assert_eq!(found.as_high, Some(as_high), "{found:?}");
        assert!(!found.is_lowest && found.p.is_some_and(|p| p > OPEN), "{found:?}");
        let low = of(figure(quiet(42).chain([20_000.0])));
        assert!(low.word == NoiseWord::Noise && low.is_lowest && low.by < 1.0, "{low:?}");
    }

    /// The number of further runs is right: with that many more the change is found, and with one
    /// less it is not.
    #[test]
    fn what_is_open_is_decided_by_the_stated_number_of_runs() {
        let mut runs: Vec<f64> = quiet(42).chain([80_000.0]).collect();
        let found = of(figure(runs.clone()));
        assert_eq!(found.word, NoiseWord::Open, "{found:?}");
        let more = found.more.expect("a number");
        for number in 1..=more {
            runs.push(80_000.0);
            assert_eq!(
                judge_last_run(&[figure(runs.clone())]).is_worse(),
                number == more,
                "{number}"
            );
        }
        // Medium runs in a row, none of them outside: by levels.
        let mut runs: Vec<f64> = quiet(42).collect();
        let open = (0..10).find_map(|_| {
            runs.push(42_950.0);
            Some(of(figure(runs.clone()))).filter(|of| of.word == NoiseWord::Open)
        });
        let open = open.expect("a run that is open");
        assert!(open.p.is_some_and(|p| FALSE_ALARMS < p && p <= OPEN), "{open:?}");
        let more = open.more.expect("a number");
        let decided = (1..=more + 2).find(|_| {
            runs.push(42_950.0);
            judge_last_run(&[figure(runs.clone())]).is_worse()
        });
        assert!(decided.is_some_and(|of| of + 2 >= more), "{decided:?} of {more}");
    }
}
