//! What a tail says, in sentences: first without a model, then with one or why there is none.

use super::spoken;
use crate::format::{count, micros, micros_f64, plain};
use punctual_bundle::tail::{Peaks, ReturnLevel, Seen, SeriesTail};
use punctual_core::Nanos;

/// What needs no model.
pub fn of_seen(seen: &Seen) -> Vec<String> {
    let Some(max) = seen.max.filter(|_| seen.count > 0) else { return vec!["There are no samples.".to_owned()] };
    let max = format!("{} µs", micros(Nanos(max)));
    let worth = match (seen.effective, seen.extremal_index) {
        (Some(n), Some(index)) if index < 0.95 => format!(
            "worth {} independent ones for the longest: late samples come in bursts of {:.1} on average",
            count(n.round() as u64),
            1.0 / index
        ),
        (Some(_), _) => "whose longest come singly".to_owned(),
        (None, _) => "taken as independent, which is not known".to_owned(),
    };
    let mut said = vec![format!("The longest of {} samples was {max}; {worth}.", count(seen.count))];
    if let Some(beyond) = seen.beyond {
        let often = seen.not_more_often_than.map_or(String::new(), |time| {
            format!(", and a longer burst comes less often than once in {}", spoken(time))
        });
        said.push(format!("With 95 % confidence a sample is longer than that with a probability below {beyond:.1e}{often}, as long as all stays as it was."));
    }
    said.extend(quantiles(seen, &max));
    said
}

/// `The maximum bounds p99.9 and all below; for p99.999 299,572 independent samples are needed, 5 h like these.`
fn quantiles(seen: &Seen, max: &str) -> Option<String> {
    let bounded = seen.quantiles.iter().rfind(|q| q.bounded);
    let next = seen.quantiles.iter().find(|q| !q.bounded);
    let have = seen.effective.unwrap_or(seen.count as f64).max(1.0);
    let time = |needed: u64| {
        seen.duration.map_or(String::new(), |d| format!(" ({} like this)", spoken(d as f64 * needed as f64 / have)))
    };
    let below = bounded.map(|q| format!("The true p{} is below {max} with 95 % confidence", plain(&q.percentile)));
    let open = next.map(|q| {
        format!(
            "to say so of p{}, {} independent samples are needed{}",
            plain(&q.percentile),
            count(q.needed),
            time(q.needed)
        )
    });
    match (below, open) {
        (Some(below), Some(open)) => Some(format!("{below}; {open}.")),
        (Some(below), None) => Some(format!("{below}.")),
        (None, Some(open)) => Some(format!("The maximum bounds no percentile that is asked for; {open}.")),
        (None, None) => None,
    }
}

/// What a model adds.
pub fn of_model(tail: &SeriesTail) -> Vec<String> {
    let model = &tail.model;
    if !model.accepted {
        return vec!["No model is offered for what is longer, because:".to_owned()];
    }
    let mut said: Vec<String> = model.levels.iter().map(level).collect();
    said.extend(model.peaks.as_ref().map(shape));
    said.push(
        "An estimate under the conditions of this run, not a bound: another load, state or cause is not in it."
            .to_owned(),
    );
    said
}

/// The reasons against a model, latencies in µs.
pub fn refusals(tail: &SeriesTail) -> Vec<String> {
    tail.model.refusals.iter().map(|why| plain(why)).collect()
}

/// `Once in 24 h or less: 210 µs, 95 % interval 160–390.`
fn level(level: &ReturnLevel) -> String {
    let figure = |ns: f64| micros_f64(ns);
    format!(
        "Once in {} or less: {} µs, 95 % interval {}–{}.",
        spoken(level.period as f64),
        figure(level.level),
        figure(level.low),
        figure(level.high)
    )
}

fn shape(peaks: &Peaks) -> String {
    let kind = match peaks.shape {
        shape if shape > 0.05 => "heavier than exponential: single samples far beyond are to be expected",
        shape if shape < -0.05 => "lighter than exponential",
        _ => "about exponential",
    };
    format!(
        "From {} bursts over {} µs; the tail is {kind} (shape {:+.2}).",
        count(peaks.peaks),
        micros_f64(peaks.threshold),
        peaks.shape
    )
}
