//! One pass over the events for every requested pair, or every existing one.

use super::automatic::Automatic;
use super::results::{IntervalPair, PairMatch, PairResult, Results};
use super::{
    Endpoint, IntervalEnd, MatchRule, Matcher, PairFigures, PairKey, PairRequest, RequestTarget,
};
use crate::functions::{FunctionFigures, Functions, RecordedCall};
use crate::gaps::Gaps;
use crate::scopes::ScopeReader;
use crate::values::{BUCKETS, Curves};
use punctual_core::event::{FunctionId, Names, PointId, Recorded};
use punctual_core::{Event, EventKind, MonotonicNs, Nanos};
use std::collections::HashMap;

/// The maximum number of function entries kept for pairs with such an end; others are counted.
const ENTRIES: usize = 1 << 22;

/// The result of the preparatory pass: gaps in the events, and entries of functions, which are
/// recorded only at the end of calls.
#[derive(Clone, Debug, Default)]
pub struct PreparedPairing {
    pub gaps: Gaps,
    /// In order of time: the request, whether it is its B, and the entry.
    entries: Vec<(usize, bool, IntervalEnd)>,
    left_out: u64,
}

impl PreparedPairing {
    /// Whether preparation needs a separate pass.
    pub fn is_needed(recorded: &Recorded, requests: &[PairRequest]) -> bool {
        recorded.lost_count() > 0
            || requests
                .iter()
                .any(|request| request_ends(request).iter().any(|(_, end)| end.is_entry()))
    }

    pub fn from_events(
        events: impl IntoIterator<Item = Event>,
        requests: &[PairRequest],
    ) -> PreparedPairing {
        let entries = requests.iter().enumerate().flat_map(|(place, request)| {
            request_ends(request)
                .into_iter()
                .filter(|(_, end)| end.is_entry())
                .map(move |(is_to, end)| (place, is_to, end))
        });
        let required: Vec<(usize, bool, &Endpoint)> = entries.collect();
        let mut prepared = PreparedPairing::default();
        for event in events {
            prepared.gaps.add(&event);
            for (place, is_to, end) in &required {
                match end.match_entry(&event) {
                    Some(_) if prepared.entries.len() >= ENTRIES => prepared.left_out += 1,
                    Some(seen) => prepared.entries.push((*place, *is_to, seen)),
                    None => {}
                }
            }
        }
        prepared.gaps.sort_gaps();
        // A B precedes an A of the same instant, as for events.
        prepared.entries.sort_by_key(|(_, is_to, seen)| (seen.at, !is_to));
        prepared
    }
}

fn request_ends(request: &PairRequest) -> Vec<(bool, &Endpoint)> {
    match &request.target {
        RequestTarget::Pair { from, to, .. } => vec![(false, from), (true, to)],
        RequestTarget::Function { .. } => Vec::new(),
    }
}

/// The selection of results.
#[derive(Clone, Debug, Default)]
pub struct PairingOptions {
    /// The requested pairs and functions, with their limits.
    pub requests: Vec<PairRequest>,
    /// Also all scopes, all points with their successors, all functions, and curves of values.
    pub everything: bool,
}

/// Reads events in order of time.
pub struct Pairing {
    asked: Vec<(PairRequest, Matcher, PairFigures)>,
    automatic: Option<(Automatic, Curves)>,
    functions: Option<Functions>,
    scopes: Option<ScopeReader>,
    prepared: PreparedPairing,
    entries_read: usize,
    began: MonotonicNs,
    ended: MonotonicNs,
    /// Points and functions of one name count as the first of them.
    points: HashMap<PointId, PointId>,
    same_function: HashMap<FunctionId, FunctionId>,
    /// Whether points are source lines: the kernel timestamps them, so its losses apply.
    has_lines: bool,
}

impl Pairing {
    pub fn new(
        options: PairingOptions,
        prepared: PreparedPairing,
        names: &Names,
        recorded: &Recorded,
    ) -> Pairing {
        let PairingOptions { requests, everything } = options;
        let same_function =
            first_of_name(names.functions.iter().map(|f| (&f.name, &f.object)), FunctionId);
        let limits = requests.iter().filter_map(|request| match &request.target {
            RequestTarget::Function { functions, .. } => {
                Some(functions.iter().map(|f| (*f, request.limit)))
            }
            RequestTarget::Pair { .. } => None,
        });
        let limits: Vec<_> = limits
            .flatten()
            .filter_map(|(f, limit)| Some((canonical_id(&same_function, f), limit?)))
            .collect();
        let wants_functions = everything
            || requests.iter().any(|r| matches!(r.target, RequestTarget::Function { .. }));
        let wants_scopes =
            everything || requests.iter().any(|r| !r.target.scope_points().is_empty());
        let asked_pairs = requests.into_iter().map(|request| {
            let (by, rule) = match &request.target {
                RequestTarget::Pair { by, rule, .. } => (*by, *rule),
                RequestTarget::Function { .. } => (PairKey::Thread, MatchRule::Nested),
            };
            let figures = PairFigures::new(request.limit);
            (request, Matcher::new(by, rule), figures)
        });
        let automatic =
            || (Automatic::default(), Curves::new(recorded.began, recorded.ended, BUCKETS));
        let entries_read =
            prepared.entries.partition_point(|(_, _, seen)| seen.at < recorded.began);
        Pairing {
            asked: asked_pairs.collect(),
            automatic: everything.then(automatic),
            functions: wants_functions.then(|| Functions::new(limits)),
            scopes: wants_scopes.then(ScopeReader::default),
            prepared,
            entries_read,
            began: recorded.began,
            ended: recorded.ended,
            points: first_of_name(names.points.iter(), PointId),
            same_function,
            has_lines: !names.lines.is_empty(),
        }
    }

    /// Reads one event; `found` takes the resulting matches. Events before the start of the
    /// recording match nothing: recorders are attached one by one, so some kinds of events begin
    /// earlier than others, and the running tasks are unknown.
    pub fn push(&mut self, event: &Event, mut found: impl FnMut(PairMatch)) {
        if event.at < self.began {
            return;
        }
        self.entries_until(event, &mut found);
        let exclusive = self.on_scope_end(event);
        for place in 0..self.asked.len() {
            let RequestTarget::Pair { from, to, .. } = &self.asked[place].0.target else {
                continue;
            };
            let (from, to) = (from.match_end(event), to.match_end(event));
            if let Some(to) = to {
                let exclusive =
                    exclusive.filter(|_| !self.asked[place].0.target.scope_points().is_empty());
                self.on_pair_end(place, to, exclusive, &mut found);
            }
            if let Some(from) = from {
                self.asked[place].1.from(from);
            }
        }
        match event.what {
            EventKind::Point { point, .. } => {
                let Some((automatic, curves)) = &mut self.automatic else { return };
                let point = canonical_id(&self.points, point);
                curves.push(event, point);
                if let Some((pair, interval)) = automatic.push(event, point, &self.prepared.gaps) {
                    found(PairMatch { pair, interval, exclusive, left: false });
                }
            }
            EventKind::Call { .. } => self.on_call(event, &mut found),
            _ => {}
        }
    }

    fn entries_until(&mut self, event: &Event, found: &mut impl FnMut(PairMatch)) {
        while let Some((place, is_to, seen)) = self.prepared.entries.get(self.entries_read).copied()
        {
            if seen.at > event.at {
                return;
            }
            self.entries_read += 1;
            if is_to {
                self.on_pair_end(place, seen, None, found);
            } else if let Some((_, matcher, _)) = self.asked.get_mut(place) {
                matcher.from(seen);
            }
        }
    }

    fn on_pair_end(
        &mut self,
        place: usize,
        to: IntervalEnd,
        exclusive: Option<Nanos>,
        found: &mut impl FnMut(PairMatch),
    ) {
        let Some((request, matcher, figures)) = self.asked.get_mut(place) else { return };
        let Some(from) = matcher.match_end(to) else { return };
        let RequestTarget::Pair { from: a, to: b, .. } = &request.target else { return };
        let (by, gaps) = (matcher.by, &self.prepared.gaps);
        let (since, until) = (from.at.min(to.at), from.at.max(to.at));
        let uncertain = !gaps.is_empty()
            && [a.loss_scope(by, from), b.loss_scope(by, to)]
                .iter()
                .any(|scope| gaps.gap_within(*scope, since, until).is_some());
        let interval = figures.record_interval(from, to, uncertain);
        found(PairMatch { pair: IntervalPair::Asked(place), interval, exclusive, left: false });
    }

    /// The exclusive time of the scope that the event ends.
    fn on_scope_end(&mut self, event: &Event) -> Option<Nanos> {
        let EventKind::Point { point, .. } = event.what else { return None };
        self.scopes.as_mut()?.push(event, canonical_id(&self.points, point), &self.prepared.gaps)
    }

    fn on_call(&mut self, event: &Event, found: &mut impl FnMut(PairMatch)) {
        let Some(functions) = &mut self.functions else { return };
        let mut event = *event;
        if let EventKind::Call { function, .. } = &mut event.what {
            *function = canonical_id(&self.same_function, *function);
        }
        if let Some(RecordedCall { function, interval, exclusive, left }) =
            functions.push(&event, &self.prepared.gaps)
        {
            found(PairMatch { pair: IntervalPair::Function(function), interval, exclusive, left });
        }
    }

    pub fn finish(self, names: &Names) -> Results {
        let (functions, untracked_calls) =
            self.functions.map(Functions::finish).unwrap_or_default();
        let scopes = self.scopes.map(ScopeReader::finish).unwrap_or_default();
        let (ended, gaps) = (self.ended, self.prepared.gaps);
        let mut untracked = untracked_calls + self.prepared.left_out;
        let asked_results = self.asked.into_iter().enumerate().filter_map(
            |(place, (request, mut matcher, figures))| {
                let overdue = request.limit.map_or(0, |limit| matcher.overdue_count(limit, ended));
                matcher.finish();
                let RequestTarget::Pair { by, rule, ref from, ref to } = request.target else {
                    return None;
                };
                let lossy = [from, to].iter().any(|end| end.may_be_missing(&gaps))
                    || self.has_lines && gaps.any_of_kernel();
                Some(PairResult {
                    pair: IntervalPair::Asked(place),
                    name: request.target.to_string(),
                    by,
                    rule,
                    figures,
                    unmatched_from: matcher.unmatched_from,
                    unmatched_to: matcher.unmatched_to,
                    overdue,
                    lossy,
                })
            },
        );
        let mut pairs: Vec<PairResult> = asked_results.collect();
        let mut curves = Vec::new();
        if self.automatic.is_none() {
            untracked += scopes.untracked;
        }
        if let Some((automatic, values)) = self.automatic {
            untracked += automatic.untracked;
            let mut found = automatic
                .finish(names, gaps.any_of_points() || self.has_lines && gaps.any_of_kernel());
            // A requested pair, with its limit, is not reported twice.
            found.retain(|pair| !pairs.iter().any(|asked| asked.name == pair.name));
            pairs.extend(found);
            let (all, left_out) = values.finish();
            untracked += left_out;
            curves = all;
        }
        let lossy = gaps.any_of_kernel();
        let functions = functions
            .into_iter()
            .map(|(id, figures)| (id, FunctionFigures { lossy, ..figures }))
            .collect();
        Results { pairs, functions, scopes, curves, untracked }
    }
}

/// The representative of each number with a repeated name.
fn first_of_name<N: std::hash::Hash + Eq, I: std::hash::Hash + Eq + Copy>(
    names: impl Iterator<Item = N>,
    id: impl Fn(u32) -> I,
) -> HashMap<I, I> {
    let mut first: HashMap<N, I> = HashMap::new();
    let mut same = HashMap::new();
    for (place, name) in (0u32..).zip(names) {
        let before = *first.entry(name).or_insert(id(place));
        if before != id(place) {
            same.insert(id(place), before);
        }
    }
    same
}

fn canonical_id<I: std::hash::Hash + Eq + Copy>(same: &HashMap<I, I>, id: I) -> I {
    if same.is_empty() { id } else { same.get(&id).copied().unwrap_or(id) }
}
