//! What a run is beside those before it, in sentences.

use crate::format::counted;
use crate::tables::Tone;
use crate::tables::trend::{by_words, value_words};
use punctual_bundle::baseline::{HeldAgainst, WorseFigure};

/// What is to be said of the newest run.
pub fn newest(held: &HeldAgainst) -> (Tone, String) {
    let runs = counted(held.runs, "run");
    if let Some(why) = &held.not_held {
        return (Tone::Uncertain, format!("not held against its baseline: {why}"));
    }
    if held.missing > 0 {
        let missing = counted(held.missing, "more run");
        return (Tone::Uncertain, format!("{runs} before it: {missing} needed to judge by"));
    }
    let smallest = held.smallest.as_ref().map_or_else(
        || "no step of one figure is sure to be noticed within five runs".to_owned(),
        |step| {
            let by = by_words(step.by, step.is_time);
            format!("a step of {by} of {} would be noticed within five runs", step.figure)
        },
    );
    match held.worse.as_slice() {
        [] => (Tone::Good, format!("not worse than the {runs} before it; {smallest}")),
        worse => {
            let each: Vec<String> = worse.iter().map(of_worse).collect();
            (Tone::Bad, format!("WORSE: {}", each.join("; ")))
        }
    }
}

/// A figure that is worse than before: how far, since when, and what else changed then.
pub fn of_worse(worse: &WorseFigure) -> String {
    let unit = if worse.is_time { " µs" } else { "" };
    let [before, now] = [worse.before, worse.now].map(|value| value_words(value, worse.is_time));
    let by = by_words(worse.by, worse.is_time);
    let [low, high] = worse.interval.map(|end| by_words(end, worse.is_time));
    let changed = match worse.changed.is_empty() {
        true => "nothing else that is kept changed with it".to_owned(),
        false => format!("with it changed {}", worse.changed.join("; ")),
    };
    format!(
        "{} is worse than its baseline: {before}{unit} before, {now}{unit} now, {by} (95 %: {low} \
         to {high}), since the run of {} ({}); {changed}",
        worse.figure,
        worse.since.strftime("%F %T UTC"),
        counted(worse.runs, "run"),
    )
}
