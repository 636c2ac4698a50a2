//! Errors of an experiment file: typed, with their places and remedies.

use crate::escape::escape_unprintable;
use crate::text::{SourceText, Span, TextPlace};
use std::fmt;
use std::sync::Arc;

/// Problems of a file that are shown; the rest are counted.
pub(crate) const SHOWN_PROBLEMS: usize = 50;
/// Problems kept with their text; a hostile file can have millions.
pub(crate) const KEPT_PROBLEMS: usize = 1_000;

/// Whether the experiment can be run despite the problem.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Weight {
    /// It cannot be run.
    Error,
    /// It can be run, but perhaps not as intended.
    Warning,
}

/// The kind of problem, which decides on its treatment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProblemKind {
    /// The file cannot be parsed.
    Syntax,
    /// An unknown section or key (a warning under [`crate::LoadOptions::allow_unknown`]).
    UnknownKey,
    /// A value of the wrong type, unit or size.
    Value,
    /// A name that refers to nothing in the file, or to two things.
    Reference,
    /// Something named in the file that this system lacks: a CPU, a program, memory.
    NotHere,
    /// Values that are valid alone but not together, or a missing required item.
    Combination,
    /// It could make the system unusable: only accepted with `--force`.
    NeedsForce,
}

/// One problem. Its texts quote the file with every unprintable character escaped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Error or warning.
    pub weight: Weight,
    /// The kind.
    pub kind: ProblemKind,
    /// The place; `None` if it concerns the whole file.
    pub span: Option<Span>,
    /// The error, in one sentence.
    pub message: String,
    /// Related places, each with an explanation.
    pub related: Vec<(Span, String)>,
    /// The remedy.
    pub help: Option<String>,
}

/// Text that can hold quoted input, safe for a terminal.
fn escape_text(text: impl Into<String>) -> String {
    escape_unprintable(&text.into()).into_owned()
}

impl Problem {
    /// An error; add help and related places with the methods below.
    pub(crate) fn error(
        kind: ProblemKind,
        span: Option<Span>,
        message: impl Into<String>,
    ) -> Problem {
        let message = escape_text(message);
        Problem { weight: Weight::Error, kind, span, message, related: Vec::new(), help: None }
    }
    pub(crate) fn into_warning(mut self) -> Problem {
        self.weight = Weight::Warning;
        self
    }
    pub(crate) fn with_related(mut self, span: Span, label: impl Into<String>) -> Problem {
        self.related.push((span, escape_text(label)));
        self
    }
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(escape_text(help));
        self
    }
}

/// The problems of one file, in the order of their places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problems {
    source: Arc<SourceText>,
    kept: Vec<Problem>,
    errors: usize,
    warnings: usize,
}

/// A problem for programs: see [`Problems::problem_rows`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProblemRow {
    /// The file as the user named it, control characters escaped.
    pub file: String,
    /// Line and column; `None` if it concerns the whole file.
    pub place: Option<TextPlace>,
    /// Error or warning.
    pub weight: Weight,
    /// The error, with control characters escaped.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl Problems {
    /// The empty list of problems of this file.
    pub(crate) fn new(source: Arc<SourceText>) -> Problems {
        Problems { source, kept: Vec::new(), errors: 0, warnings: 0 }
    }
    pub(crate) fn push(&mut self, problem: Problem) {
        match problem.weight {
            Weight::Error => self.errors += 1,
            Weight::Warning => self.warnings += 1,
        }
        if !self.is_full() {
            self.kept.push(problem);
        }
    }
    /// Whether further problems are only counted: then their help need not be computed.
    pub(crate) fn is_full(&self) -> bool {
        self.kept.len() >= KEPT_PROBLEMS
    }
    pub(crate) fn append(&mut self, other: Problems) {
        let unkept = (other.errors + other.warnings).saturating_sub(other.kept.len());
        let lost_errors =
            other.errors - other.kept.iter().filter(|p| p.weight == Weight::Error).count();
        other.kept.into_iter().for_each(|problem| self.push(problem));
        self.errors += lost_errors;
        self.warnings += unkept - lost_errors;
    }
    /// Keeps only the problems that `keep` accepts.
    pub(crate) fn into_filtered(self, keep: impl Fn(&Problem) -> bool) -> Problems {
        let mut accepted = Problems::new(self.source);
        self.kept.into_iter().filter(keep).for_each(|problem| accepted.push(problem));
        accepted
    }
    /// Removes the places.
    pub(crate) fn strip_places(mut self) -> Problems {
        self.kept
            .iter_mut()
            .for_each(|problem| (problem.span, problem.related) = (None, Vec::new()));
        self
    }
    pub(crate) fn sort(&mut self) {
        self.kept.sort_by_key(|problem| problem.span.map(|span| span.start));
    }

    /// The file of the problems.
    pub fn source_text(&self) -> &SourceText {
        &self.source
    }
    /// The kept problems (at most 1,000), in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.kept.iter()
    }
    /// The number of errors, including those not kept.
    pub fn error_count(&self) -> usize {
        self.errors
    }
    /// The number of warnings, including those not kept.
    pub(crate) fn warning_count(&self) -> usize {
        self.warnings
    }
    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.errors + self.warnings == 0
    }
    /// Whether `--force` would accept the experiment: every error is a [`ProblemKind::NeedsForce`].
    pub fn force_suffices(&self) -> bool {
        let forceable =
            |p: &&Problem| p.weight == Weight::Error && p.kind == ProblemKind::NeedsForce;
        self.errors > 0 && self.kept.iter().filter(forceable).count() == self.errors
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Weight::Error => "error",
            Weight::Warning => "warning",
        })
    }
}

/// Formats without colours.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Problems {}
