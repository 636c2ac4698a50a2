//! Intervals of a recording between any two points, or of functions, instead of samples.

use super::recording::EventsAround;
use super::request::Wanted;
use crate::coincidence;
use crate::exit::Failure;
use crate::playback;
use punctual_bundle::Bundle;
use punctual_core::event::FunctionId;
use punctual_explain::Explanations;
use punctual_explain::coincidence::KeptIntervals;
use punctual_explain::explain::{LatencyInterval, StartKind};
use punctual_explain::pairs::{
    MatchedPair, PairFigures, PairRequest, Pairing, PairingOptions, PreparedPairing, RequestTarget,
};

/// The default number of explained intervals of each.
const USUAL: usize = 20;

/// The defaults without a named pair: explained intervals of each, and the number of pairs, scopes
/// and functions, those with the longest interval first.
const UNNAMED: (usize, usize) = (3, 8);

/// Explains the longest intervals of the requested pairs and functions; by default of all that
/// `punctual pairs` finds.
pub(crate) fn explain_intervals(bundle: &Bundle, wanted: &Wanted) -> Result<Explanations, Failure> {
    let opened = playback::require_recording(bundle)?;
    let names = opened.names();
    let requests = wanted.pairs.iter().map(|text| PairRequest::from_text(text, names, None, None));
    let requests: Vec<PairRequest> =
        requests.collect::<Result<_, _>>().map_err(Failure::refused)?;
    let everything = requests.is_empty();
    let options = PairingOptions { everything, requests: requests.clone() };
    let prepared = match PreparedPairing::is_needed(&opened.recorded, &requests) {
        true => PreparedPairing::from_events(opened.events(), &requests),
        false => PreparedPairing::default(),
    };
    let gaps = prepared.gaps.clone();
    let mut kept = KeptIntervals::default();
    let mut pairing = Pairing::new(options, prepared, names, &opened.recorded);
    opened.events().for_each(|event| pairing.push(&event, |found| kept.record_match(&found)));
    let mut results = pairing.finish(names);
    let is_requested = |id: &FunctionId| {
        let of_it = |r: &PairRequest| match &r.target {
            RequestTarget::Function { functions, .. } => functions.contains(id),
            _ => false,
        };
        everything || requests.iter().any(of_it)
    };
    results.functions.retain(|id, _| is_requested(id));
    let counted = || coincidence::of_pairs(&opened, kept, &results, &gaps);
    let coincidences = wanted.coincidences.then(counted).flatten();
    let functions = results.functions.iter().map(|(id, function)| {
        let name = names
            .functions
            .get(id.0 as usize)
            .map_or_else(|| format!("function {}", id.0), |name| name.name.clone());
        (name, &function.calls)
    });
    let of_pairs = results.pairs.iter().map(|pair| (pair.name.clone(), &pair.figures));
    let mut all_figures: Vec<(String, &PairFigures)> = of_pairs.chain(functions).collect();
    let mut worst_count = wanted.worst.unwrap_or(USUAL);
    if everything {
        all_figures.retain(|(_, figures)| !figures.worst.is_empty());
        all_figures.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.data.max));
        all_figures.truncate(UNNAMED.1);
        worst_count = wanted.worst.unwrap_or(UNNAMED.0);
    }

    let around = EventsAround::from_recording(&opened);
    let mut samples = Vec::new();
    for (name, figures) in &all_figures {
        let long =
            figures.worst.iter().filter(|interval| interval.duration() >= wanted.min_latency);
        for interval in long.take(worst_count) {
            samples.push(around.explain_interval("", name, interval_of(interval)));
        }
    }
    Ok(around.of_samples(samples, coincidences, opened.recorded.findings.clone()))
}

fn interval_of(interval: &MatchedPair) -> LatencyInterval {
    let (due, woke) = interval.time_window();
    LatencyInterval {
        tid: interval.end_tid(),
        cpu: interval.to.cpu,
        due,
        woke,
        kind: StartKind::Interval,
    }
}
