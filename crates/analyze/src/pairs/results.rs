//! What one pass over the events finds: each match, and the figures of each pair.

use super::{By, Figures, Interval, Rule};
use crate::functions::FunctionFigures;
use crate::scopes::ScopeReport;
use crate::values::Curve;
use punctual_core::Nanos;
use punctual_core::event::{FunctionId, PointId};
use std::collections::BTreeMap;

/// Which pair an interval belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pair {
    /// The one requested at this place.
    Asked(usize),
    /// A begin and its end.
    Scope(PointId),
    /// A point and the next one of its thread.
    Follows(PointId, PointId),
    /// The calls of a function.
    Function(FunctionId),
}

/// One match, as it is found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Found {
    pub pair: Pair,
    pub interval: Interval,
    /// For calls and scopes: without the functions that they called, or the scopes within them,
    /// where that is known.
    pub exclusive: Option<Nanos>,
    /// For calls of functions: whether it was left otherwise than by returning.
    pub left: bool,
}

/// What became of a pair.
#[derive(Clone, Debug)]
pub struct PairResult {
    pub pair: Pair,
    /// `A->B`, or the name of the scope.
    pub name: String,
    /// What A and B had in common.
    pub by: By,
    /// Which A a B belonged to.
    pub rule: Rule,
    pub figures: Figures,
    pub unmatched_from: u64,
    pub unmatched_to: u64,
    /// With a limit: A's that had been open for longer when the recording ended.
    pub overdue: u64,
    /// Whether any end of this kind may be missing.
    pub lossy: bool,
}

/// What became of everything.
#[derive(Clone, Debug)]
pub struct Results {
    /// Those requested in their order, then scopes, then pairs of points.
    pub pairs: Vec<PairResult>,
    /// The figures of each probed function that was called.
    pub functions: BTreeMap<FunctionId, FunctionFigures>,
    /// Scopes of test points, all of them where any was asked for: their exclusive times need each
    /// other.
    pub scopes: ScopeReport,
    /// The values of points over time.
    pub curves: Vec<Curve>,
    /// Points, matches, calls and values that are in no figure, because there are more pairs,
    /// functions or threads than are followed.
    pub untracked: u64,
}
