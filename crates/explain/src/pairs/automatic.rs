//! Pairs reported without a request: every scope, and every point with its successor.

use super::results::{IntervalPair, PairResult};
use super::{IntervalEnd, MatchRule, Matcher, PairFigures, PairKey};
use crate::gaps::{Gaps, LossScope};
use punctual_core::event::{Names, PointId, PointKind};
use punctual_core::{Event, EventKind, Tid};
use std::collections::{BTreeMap, HashMap};

/// The maximum number of pairs with figures; matches of others are counted.
const PAIRS: usize = 256;
/// The maximum number of threads followed.
const THREADS: usize = 1 << 17;

/// Scopes and consecutive points, thread by thread.
#[derive(Debug, Default)]
pub struct Automatic {
    scopes: BTreeMap<PointId, (Matcher, PairFigures)>,
    follows: BTreeMap<(PointId, PointId), PairFigures>,
    /// The number of times each plain point was passed.
    passed: BTreeMap<PointId, u64>,
    last: HashMap<Tid, (PointId, IntervalEnd)>,
    /// Points and matches in no pair, as a limit on pairs or threads was reached.
    pub untracked: u64,
}

impl Automatic {
    /// Takes the event if it is a test point; `point` represents its name. Returns the resulting
    /// match.
    pub fn push(
        &mut self,
        event: &Event,
        point: PointId,
        gaps: &Gaps,
    ) -> Option<(IntervalPair, super::MatchedPair)> {
        let EventKind::Point { kind, count, values, .. } = event.what else { return None };
        let value = (count > 0).then_some(values[0]);
        let interval_end = IntervalEnd { at: event.at, tid: event.tid, cpu: event.cpu, value };
        match kind {
            PointKind::Point => self.on_point(point, interval_end, gaps),
            PointKind::Begin => {
                self.track_scope(point)?.0.from(interval_end);
                None
            }
            PointKind::End => {
                let (matcher, figures) = self.track_scope(point)?;
                let from = matcher.match_end(interval_end)?;
                let interval = figures.record_interval(
                    from,
                    interval_end,
                    is_uncertain(from, interval_end, gaps),
                );
                Some((IntervalPair::Scope(point), interval))
            }
        }
    }

    fn track_scope(&mut self, point: PointId) -> Option<&mut (Matcher, PairFigures)> {
        if self.scopes.len() >= PAIRS && !self.scopes.contains_key(&point) {
            self.untracked += 1;
            return None;
        }
        let new = || (Matcher::new(PairKey::Thread, MatchRule::Nested), PairFigures::new(None));
        Some(self.scopes.entry(point).or_insert_with(new))
    }

    fn on_point(
        &mut self,
        point: PointId,
        seen: IntervalEnd,
        gaps: &Gaps,
    ) -> Option<(IntervalPair, super::MatchedPair)> {
        if self.passed.len() >= PAIRS && !self.passed.contains_key(&point)
            || self.last.len() >= THREADS && !self.last.contains_key(&seen.tid)
        {
            self.untracked += 1;
            return None;
        }
        *self.passed.entry(point).or_default() += 1;
        let (before, from) = self.last.insert(seen.tid, (point, seen))?;
        if self.follows.len() >= PAIRS && !self.follows.contains_key(&(before, point)) {
            self.untracked += 1;
            return None;
        }
        let figures = self.follows.entry((before, point)).or_insert_with(|| PairFigures::new(None));
        let interval = figures.record_interval(from, seen, is_uncertain(from, seen, gaps));
        Some((IntervalPair::Follows(before, point), interval))
    }

    /// The scopes, then the pairs of points.
    pub fn finish(self, names: &Names, lossy: bool) -> Vec<PairResult> {
        let name = |point: &PointId| {
            names
                .points
                .get(point.0 as usize)
                .cloned()
                .unwrap_or_else(|| format!("point {}", point.0))
        };
        let scopes = self.scopes.into_iter().map(|(point, (mut matcher, figures))| {
            matcher.finish();
            PairResult {
                pair: IntervalPair::Scope(point),
                name: name(&point),
                by: PairKey::Thread,
                rule: MatchRule::Nested,
                figures,
                unmatched_from: matcher.unmatched_from,
                unmatched_to: matcher.unmatched_to,
                overdue: 0,
                lossy,
            }
        });
        let passed_count = |point: &PointId| self.passed.get(point).copied().unwrap_or_default();
        let follows = self.follows.into_iter().map(|((from, to), figures)| PairResult {
            pair: IntervalPair::Follows(from, to),
            name: format!("{}->{}", name(&from), name(&to)),
            by: PairKey::Thread,
            rule: MatchRule::Next,
            unmatched_from: passed_count(&from) - figures.matched_count(),
            unmatched_to: passed_count(&to) - figures.matched_count(),
            overdue: 0,
            lossy,
            figures,
        });
        scopes.chain(follows).collect()
    }
}

fn is_uncertain(from: IntervalEnd, to: IntervalEnd, gaps: &Gaps) -> bool {
    gaps.gap_within(LossScope::of_point(to.tid, to.cpu), from.at.min(to.at), from.at.max(to.at))
        .is_some()
}
