//! The results of one pass over the events: each match, and the figures of each pair.

use super::{MatchRule, MatchedPair, PairFigures, PairKey};
use crate::functions::FunctionFigures;
use crate::scopes::ScopeReport;
use crate::values::PointCurve;
use punctual_core::Nanos;
use punctual_core::event::{FunctionId, PointId};
use std::collections::BTreeMap;

/// The pair that an interval belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntervalPair {
    /// The requested one with this index.
    Asked(usize),
    /// A begin and its end.
    Scope(PointId),
    /// A point and the next one of its thread.
    Follows(PointId, PointId),
    /// The calls of a function.
    Function(FunctionId),
}

/// A match.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PairMatch {
    pub pair: IntervalPair,
    pub interval: MatchedPair,
    /// For calls and scopes: the time without called functions or inner scopes, if known.
    pub exclusive: Option<Nanos>,
    /// For calls of functions: whether it was left without a return.
    pub left: bool,
}

/// The result of a pair.
#[derive(Clone, Debug)]
pub struct PairResult {
    pub pair: IntervalPair,
    /// `A->B`, or the name of the scope.
    pub name: String,
    /// The common key of A and B.
    pub by: PairKey,
    /// The A that a B was matched with.
    pub rule: MatchRule,
    pub figures: PairFigures,
    pub unmatched_from: u64,
    pub unmatched_to: u64,
    /// With a limit: A's that were open for longer at the end of the recording.
    pub overdue: u64,
    /// Whether any end of this kind may be missing.
    pub lossy: bool,
}

/// All results.
#[derive(Clone, Debug)]
pub struct Results {
    /// The requested ones in order, then scopes, then pairs of points.
    pub pairs: Vec<PairResult>,
    /// The figures of each called probed function.
    pub functions: BTreeMap<FunctionId, FunctionFigures>,
    /// The scopes of test points: all if any was requested, as exclusive times depend on each
    /// other.
    pub scopes: ScopeReport,
    /// The values of points over time.
    pub curves: Vec<PointCurve>,
    /// Points, matches, calls and values in no figure, as a limit on pairs, functions or threads
    /// was reached.
    pub untracked: u64,
}
