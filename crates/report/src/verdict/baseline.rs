//! A run compared with earlier ones, in sentences.

use crate::format::{count_text, count_with_noun, escape_unsafe, micros_text, percent_text};
use crate::sentence::format_p_value;
use crate::tables::Tone;
use crate::tables::trend::{by_words, value_words};
use punctual_bundle::baseline::{
    BoundModel, HeldAgainst, LeapingFigure, NoiseAnswer, NoiseWord, ProposedBound, WorseFigure,
};
use punctual_core::Nanos;

/// Regression, noise, or undecided: one line, the same in every output. `None` for a
/// bundle of an older version.
pub(crate) fn one_line(held: &HeldAgainst) -> Option<String> {
    if let Some(why) = &held.not_held {
        return Some(escape_unsafe(&format!("cannot be told: {why}")));
    }
    if held.missing > 0 {
        return Some(format!("cannot be told: {}", decided_by(Some(held.missing))));
    }
    let answer = held.answer.as_ref()?;
    let NoiseAnswer { figure, runs, .. } = answer;
    let step_words = format_step(answer);
    let (p, all) = (format_p_value(answer.p), count_with_noun(*runs, "run"));
    let text = match (answer.word, answer.as_high) {
        (NoiseWord::Regression, _) => {
            let date = answer.since.map(|of| of.strftime("%F").to_string());
            let since = answer.commit.clone().or(date).unwrap_or_default();
            let spread = answer.spread.map_or(String::new(), |of| {
                format!(": runs before differ by {}", spread_words(answer, of))
            });
            format!("regression: {figure} {step_words} since {since}{p}, not noise{spread}")
        }
        (NoiseWord::Open, _) => {
            format!("cannot be told: {figure} {step_words}{p}; {}", decided_by(answer.more))
        }
        (NoiseWord::Noise, _) if answer.is_lowest => {
            format!("no regression: {figure} {step_words}, below all {all} before")
        }
        (NoiseWord::Noise, Some(0)) => format!(
            "noise: {figure} {step_words} is within what these runs do: the highest of {}, as one \
             of them always is",
            runs.saturating_add(1)
        ),
        (NoiseWord::Noise, as_high) => {
            let high_count = format!("{} of {all}", as_high.unwrap_or_default());
            format!(
                "noise: {figure} {step_words} is within what these runs do: {high_count} before \
                 were as high"
            )
        }
    };
    Some(escape_unsafe(&text))
}

/// A proposed bound with what it promises: `p99 < 43.1us: at most one false alarm in 43 runs …`.
pub(crate) fn of_bound(bound: &ProposedBound) -> String {
    let ProposedBound { require, runs, false_alarms, .. } = bound;
    let which = match (bound.before_change, bound.model) {
        (true, _) => format!("the {runs} before it became worse"),
        (_, Some(BoundModel::LogNormal)) => {
            format!("these {runs}, if their logarithms are normal (the upper 95 % limit)")
        }
        (false, None) => format!("these {runs}"),
    };
    let runs_per_alarm = count_text((1.0 / false_alarms).round() as u64);
    let needed = bound.needed.map_or(String::new(), |needed| {
        let rarer = count_text(needed.saturating_add(1));
        format!("; {runs} runs cannot bear 1 in {rarer}; {} can", count_text(needed))
    });
    let share = |of: f64| format!("{:.0} %", (of * 100.0).floor());
    let noticed = bound.noticed.map_or(String::new(), |of| {
        format!("; a run 30 % worse is noticed within 3 runs in {}", share(of))
    });
    let surely = match bound.surely.filter(|_| bound.noticed.is_some_and(|of| of < 0.98)) {
        Some(by) => format!(" (in 98 %: from {} on)", by_words(by, true, false)),
        None => String::new(),
    };
    escape_unsafe(&format!(
        "{require}: at most one false alarm in {runs_per_alarm} runs like \
         {which}{needed}{noticed}{surely}"
    ))
}

fn decided_by(more: Option<u64>) -> String {
    match more {
        Some(1) => "1 more run decides".to_owned(),
        Some(more) => format!("{} decide", count_with_noun(more, "more run")),
        None => "30 more runs like it would not decide".to_owned(),
    }
}

/// `+31 %`, `×12`, or a difference.
fn format_step(answer: &NoiseAnswer) -> String {
    match answer.is_time && !answer.is_difference && answer.by < 10.0 {
        true => format!("{:+.0} %", (answer.by - 1.0) * 100.0),
        false => by_words(answer.by, answer.is_time, answer.is_difference),
    }
}

fn spread_words(answer: &NoiseAnswer, spread: f64) -> String {
    match (answer.is_time, answer.is_difference) {
        (true, false) if spread >= 0.0095 => format!("{:.0} %", spread * 100.0),
        (true, false) => percent_text(spread),
        (true, true) => format!("{} µs", micros_text(Nanos(spread as i64))),
        (false, _) => format!("{spread:.0}"),
    }
}

/// The verdict on the newest run, one paragraph per statement.
pub fn judge_newest(held: &HeldAgainst) -> Vec<(Tone, String)> {
    let rest = in_detail(held);
    let tone = rest.first().map_or(Tone::Plain, |(tone, _)| *tone);
    one_line(held).map(|line| (tone, line)).into_iter().chain(rest).collect()
}

fn in_detail(held: &HeldAgainst) -> Vec<(Tone, String)> {
    let runs = count_with_noun(held.runs, "run");
    if let Some(why) = &held.not_held {
        return vec![(Tone::Uncertain, format!("not compared with its baseline: {why}"))];
    }
    if held.missing > 0 {
        return vec![(Tone::Uncertain, of_few(held.runs, held.missing))];
    }
    let smallest = held.smallest.as_ref().map_or_else(
        || "no step of one figure is sure to be noticed within five runs".to_owned(),
        |step| {
            let step_size = by_words(step.by, step.is_time, false);
            format!("a step of {step_size} of {} would be noticed within five runs", step.figure)
        },
    );
    if held.worse.is_empty() {
        let well = (Tone::Good, format!("not worse than the {runs} before it; {smallest}"));
        let leaps = held.leaps.iter().map(|leap| (Tone::Uncertain, of_leap(leap)));
        return leaps.chain([well]).collect();
    }
    // Figures that changed in the same run have one cause.
    let mut begins: Vec<&WorseFigure> = Vec::new();
    for worse in &held.worse {
        if !begins.iter().any(|other| other.since == worse.since) {
            begins.push(worse);
        }
    }
    let of_begin = |first: &&WorseFigure| {
        let same = held.worse.iter().filter(|other| other.since == first.since);
        let how: Vec<String> = same.map(by_how_much).collect();
        let text =
            format!("WORSE {}: {}; {}", format_start(first), how.join("; "), format_changes(first));
        (Tone::Bad, text)
    };
    begins.iter().map(of_begin).collect()
}

/// A history that is too short.
pub(crate) fn of_few(runs: u64, missing: u64) -> String {
    format!("not judged yet: {runs} of {}", count_with_noun(runs.saturating_add(missing), "run"))
}

/// A figure far outside of the range of all earlier runs.
pub(crate) fn of_leap(leap: &LeapingFigure) -> String {
    let step_words = by_words(leap.by, leap.is_time, leap.is_difference);
    let further_runs = match leap.more {
        1 => "one more such run decides".to_owned(),
        more => format!("{more} more such runs decide"),
    };
    format!(
        "{} {step_words} above its median of {}; {further_runs}",
        leap.figure,
        count_with_noun(leap.runs, "run")
    )
}

/// A figure that is worse than before: by how much, since when, and what else changed then.
pub(crate) fn of_worse(worse: &WorseFigure) -> String {
    let (how, since, changed) = (by_how_much(worse), format_start(worse), format_changes(worse));
    format!("worse than its baseline {since}: {how}; {changed}")
}

fn by_how_much(worse: &WorseFigure) -> String {
    let unit = if worse.is_time { " µs" } else { "" };
    let [before, now] = [worse.before, worse.now].map(|value| value_words(value, worse.is_time));
    let words = |by: f64| by_words(by, worse.is_time, worse.is_difference);
    let (by, [low, high]) = (words(worse.by), worse.interval.map(words));
    let figure = &worse.figure;
    format!("{figure} {before} before, {now}{unit} now, {by} (95 %: {low} to {high})")
}

fn format_start(worse: &WorseFigure) -> String {
    let runs = count_with_noun(worse.runs, "run");
    format!("since the run of {} ({runs})", worse.since.strftime("%F %R UTC"))
}

fn format_changes(worse: &WorseFigure) -> String {
    match worse.changed.is_empty() {
        true => "nothing else that is kept changed with it".to_owned(),
        false => format!("with it changed {}", worse.changed.join("; ")),
    }
}
