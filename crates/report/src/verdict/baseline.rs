//! A run compared with earlier ones, in sentences.

use crate::format::counted;
use crate::tables::Tone;
use crate::tables::trend::{by_words, value_words};
use punctual_bundle::baseline::{HeldAgainst, LeapingFigure, WorseFigure};

/// The verdict on the newest run, one paragraph per statement.
pub fn newest(held: &HeldAgainst) -> Vec<(Tone, String)> {
    let runs = counted(held.runs, "run");
    if let Some(why) = &held.not_held {
        return vec![(Tone::Uncertain, format!("not compared with its baseline: {why}"))];
    }
    if held.missing > 0 {
        return vec![(Tone::Uncertain, of_few(held.runs, held.missing))];
    }
    let smallest = held.smallest.as_ref().map_or_else(
        || "no step of one figure is sure to be noticed within five runs".to_owned(),
        |step| {
            let by = by_words(step.by, step.is_time, false);
            format!("a step of {by} of {} would be noticed within five runs", step.figure)
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
        let text = format!("WORSE {}: {}; {}", since(first), how.join("; "), changed(first));
        (Tone::Bad, text)
    };
    begins.iter().map(of_begin).collect()
}

/// A history that is too short.
pub(crate) fn of_few(runs: u64, missing: u64) -> String {
    format!("not judged yet: {runs} of {}", counted(runs.saturating_add(missing), "run"))
}

/// A figure far outside of the range of all earlier runs.
pub(crate) fn of_leap(leap: &LeapingFigure) -> String {
    let by = by_words(leap.by, leap.is_time, leap.is_difference);
    let more = match leap.more {
        1 => "one more such run decides".to_owned(),
        more => format!("{more} more such runs decide"),
    };
    format!("{} {by} above its median of {}; {more}", leap.figure, counted(leap.runs, "run"))
}

/// A figure that is worse than before: by how much, since when, and what else changed then.
pub(crate) fn of_worse(worse: &WorseFigure) -> String {
    let (how, since, changed) = (by_how_much(worse), since(worse), changed(worse));
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

fn since(worse: &WorseFigure) -> String {
    let runs = counted(worse.runs, "run");
    format!("since the run of {} ({runs})", worse.since.strftime("%F %R UTC"))
}

fn changed(worse: &WorseFigure) -> String {
    match worse.changed.is_empty() {
        true => "nothing else that is kept changed with it".to_owned(),
        false => format!("with it changed {}", worse.changed.join("; ")),
    }
}
