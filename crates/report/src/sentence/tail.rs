//! The result of a tail analysis, in sentences: first without a model, then with one, or why there
//! is none.

use super::spoken;
use crate::format::{count, micros, micros_f64, plain};
use punctual_bundle::tail::{
    CauseShare, CauseSource, ModelFreeTail, Peaks, ReturnLevel, SeriesTail, TailCauses,
};
use punctual_core::Nanos;

pub(crate) fn of_seen(seen: &ModelFreeTail) -> Vec<String> {
    let Some(max) = seen.max.filter(|_| seen.count > 0) else {
        return vec!["There are no samples.".to_owned()];
    };
    let max = format!("{} µs", micros(Nanos(max)));
    let worth = match (seen.effective, seen.extremal_index) {
        (Some(n), Some(index)) if index < 0.95 => format!(
            "effective sample size {} for the maximum: long latencies come in bursts of {:.1} on \
             average",
            count(n.round() as u64),
            1.0 / index
        ),
        (Some(_), _) => "the longest do not come in bursts".to_owned(),
        (None, _) => "assumed to be independent, which is unknown".to_owned(),
    };
    let mut text =
        vec![format!("The longest of {} samples was {max}; {worth}.", count(seen.count))];
    if let Some(beyond) = seen.beyond {
        let often = seen.not_more_often_than.map_or(String::new(), |time| {
            format!(", and a longer burst comes less than once in {}", spoken(time))
        });
        text.push(format!(
            "Upper bound of the exceedance probability (95 % confidence): {beyond:.1e} per \
             sample{often}, under unchanged conditions."
        ));
    }
    text.extend(quantiles(seen, &max));
    text
}

/// `The maximum bounds p99.9 and all below; for p99.999 299,572 independent samples are needed, 5 h
/// like these.`
fn quantiles(seen: &ModelFreeTail, max: &str) -> Option<String> {
    let bounded = seen.quantiles.iter().rfind(|q| q.bounded);
    let next = seen.quantiles.iter().find(|q| !q.bounded);
    let have = seen.effective.unwrap_or(seen.count as f64).max(1.0);
    let time = |needed: u64| {
        seen.duration.map_or(String::new(), |d| {
            format!(" ({} like this)", spoken(d as f64 * needed as f64 / have))
        })
    };
    let below = bounded
        .map(|q| format!("The true p{} is below {max} with 95 % confidence", plain(&q.percentile)));
    let open = next.map(|q| {
        format!(
            "for p{}, {} independent samples are needed{}",
            plain(&q.percentile),
            count(q.needed),
            time(q.needed)
        )
    });
    match (below, open) {
        (Some(below), Some(open)) => Some(format!("{below}; {open}.")),
        (Some(below), None) => Some(format!("{below}.")),
        (None, Some(open)) => Some(format!("The maximum bounds no percentile; {open}.")),
        (None, None) => None,
    }
}

/// The number of causes named.
const CAUSES: usize = 6;

/// The causes of the tail, if known.
pub fn of_causes(tail: &SeriesTail) -> Vec<String> {
    tail.causes.iter().map(by_cause).collect()
}

/// `Causes of the tail, by its windows (19 of 412 samples over 60.0 µs): preempted (hog) 90 %,
/// median 310.0 µs, …; one cause makes it.`
fn by_cause(tail: &TailCauses) -> String {
    let source = match tail.source {
        CauseSource::Windows => "the explained longest samples",
        CauseSource::Account => "the accounting of all samples",
    };
    let of = match (tail.beyond, tail.threshold) {
        (Some(beyond), Some(threshold)) => {
            format!(
                "{} of {} samples over {} µs",
                count(tail.known),
                count(beyond),
                micros_f64(threshold)
            )
        }
        _ => format!("{} of {} samples", count(tail.known), count(tail.samples)),
    };
    if tail.known == 0 {
        return format!("The causes of the tail are unknown, by {source} ({of}).");
    }
    let mut causes: Vec<String> = tail.causes.iter().take(CAUSES).map(share).collect();
    let more = tail.causes.len().saturating_sub(CAUSES);
    causes.extend((more > 0).then(|| format!("{more} more")));
    let verdict = match (tail.mixture, tail.dominant) {
        (Some(true), _) => "causes of different sizes mix",
        (_, true) => "one cause dominates",
        (Some(false), _) => "their sizes do not differ significantly",
        (None, _) => "too few to decide whether they mix",
    };
    format!("Causes of the tail, by {source} ({of}): {}; {verdict}.", causes.join("; "))
}

fn share(cause: &CauseShare) -> String {
    let who = cause.who.as_ref().map_or(String::new(), |who| format!(" ({})", plain(who)));
    let percent = format!("{:.0} %", cause.share * 100.0);
    let (median, max) = (micros_f64(cause.median), micros_f64(cause.max));
    format!("{}{who} {percent}, median {median} µs, at most {max} µs", plain(&cause.cause))
}

pub fn of_model(tail: &SeriesTail) -> Vec<String> {
    let model = &tail.model;
    if !model.accepted {
        return vec!["No model is valid for longer latencies:".to_owned()];
    }
    let mut text: Vec<String> = model.levels.iter().map(level).collect();
    text.extend(model.peaks.as_ref().map(shape));
    text.push(
        "An estimate under the conditions of this run, not a guaranteed bound (no WCET): it \
         includes no other load, state or cause."
            .to_owned(),
    );
    text
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
        shape if shape > 0.05 => "heavier than exponential: expect single samples far beyond",
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

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_bundle::tail::{Model, QuantileBound};

    #[test]
    fn a_tail_model_is_reported_after_the_bounds_as_an_estimate() {
        let quantile = |percentile: &str, needed, bounded| QuantileBound {
            percentile: percentile.into(),
            needed,
            bounded,
        };
        let seen = ModelFreeTail {
            count: 600_000,
            lost: 0,
            overruns: 0,
            duration: Some(600_000_000_000),
            max: Some(131_000),
            extremal_index: Some(0.4),
            effective: Some(240_000.0),
            beyond: Some(1.248e-5),
            not_more_often_than: Some(2.003e11),
            quantiles: vec![quantile("99.99", 29_956, true), quantile("99.999", 299_572, false)],
        };
        let level = ReturnLevel {
            period: 86_400_000_000_000,
            level: 210e3,
            low: 160e3,
            high: 390e3,
            by_block_maxima: 230e3,
        };
        let peaks = Peaks { threshold: 60e3, peaks: 398, scale: 9e3, shape: 0.12, fit_p: 0.6 };
        let model =
            Model { accepted: true, levels: vec![level], peaks: Some(peaks), ..Model::default() };
        let tail = SeriesTail { series: "main/timer".into(), seen, model, causes: Vec::new() };
        insta::assert_snapshot!([of_seen(&tail.seen), of_model(&tail)].concat().join("\n"), @"
        The longest of 600,000 samples was 131.0 µs; effective sample size 240,000 for the maximum: long latencies come in bursts of 2.5 on average.
        Upper bound of the exceedance probability (95 % confidence): 1.2e-5 per sample, and a longer burst comes less than once in 3 min, under unchanged conditions.
        The true p99.99 is below 131.0 µs with 95 % confidence; for p99.999, 299,572 independent samples are needed (12 min like this).
        Once in 24 h or less: 210.0 µs, 95 % interval 160.0–390.0.
        From 398 bursts over 60.0 µs; the tail is heavier than exponential: expect single samples far beyond (shape +0.12).
        An estimate under the conditions of this run, not a guaranteed bound (no WCET): it includes no other load, state or cause.
        ");
    }

    #[test]
    fn causes_of_a_tail_are_shown_with_the_known_share() {
        let share = |cause: &str, who: Option<&str>, count: u64, median: f64| CauseShare {
            cause: cause.into(),
            who: who.map(str::to_owned),
            count,
            share: count as f64 / 20.0,
            median,
            max: median * 1.5,
        };
        let mut tail = TailCauses {
            source: CauseSource::Windows,
            threshold: Some(60e3),
            beyond: Some(412),
            samples: 20,
            known: 20,
            causes: vec![
                share("preempted", Some("rude\u{1b}hog"), 12, 310e3),
                share("page-fault", None, 8, 80e3),
            ],
            dominant: false,
            p: Some(0.001),
            mixture: Some(true),
        };
        let mixed = by_cause(&tail);
        tail.causes = vec![share("irq", None, 20, 70e3)];
        (tail.source, tail.dominant, tail.p, tail.mixture) =
            (CauseSource::Account, true, None, None);
        insta::assert_snapshot!([mixed, by_cause(&tail)].join("\n"), @r"
        Causes of the tail, by the explained longest samples (20 of 412 samples over 60.0 µs): preempted (rude\u{1b}hog) 60 %, median 310.0 µs, at most 465.0 µs; page-fault 40 %, median 80.0 µs, at most 120.0 µs; causes of different sizes mix.
        Causes of the tail, by the accounting of all samples (20 of 412 samples over 60.0 µs): irq 100 %, median 70.0 µs, at most 105.0 µs; one cause dominates.
        ");
    }
}
