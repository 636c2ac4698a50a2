//! What is wrong with an experiment file: typed, with its place and the way out.

use crate::escape::printable;
use crate::text::{Place, SourceText, Span};
use std::fmt;
use std::sync::Arc;

/// How many problems are shown of a file; the rest is counted.
pub const SHOWN_PROBLEMS: usize = 50;
/// How many are kept with their text; a hostile file can have millions.
pub(crate) const KEPT_PROBLEMS: usize = 1_000;

/// Whether the experiment can be run in spite of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Weight {
    /// It cannot.
    Error,
    /// It can, but perhaps not as meant.
    Warning,
}

/// What sort of mistake it is: it decides what becomes of the problem.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProblemKind {
    /// The file cannot be read as what it should be.
    Syntax,
    /// An unknown section or key (a warning under [`crate::LoadOptions::allow_unknown`]).
    UnknownKey,
    /// A value of the wrong type, unit or size.
    Value,
    /// A name that stands for nothing in the file, or for two things.
    Reference,
    /// What the file names is not on this system: a CPU, a program, memory.
    NotHere,
    /// Values that are right alone and wrong together, or something needed that is missing.
    Combination,
    /// It could make the system unusable: done only with `--force`.
    NeedsForce,
}

/// One thing that is wrong. Its texts quote the file with every unprintable character escaped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Error or warning.
    pub weight: Weight,
    /// Which kind.
    pub kind: ProblemKind,
    /// Where; `None` where it is about the whole file.
    pub span: Option<Span>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Other places that have to do with it, each with some words.
    pub related: Vec<(Span, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

/// Text that can hold quoted input, fit for a terminal.
fn safe(text: impl Into<String>) -> String {
    printable(&text.into()).into_owned()
}

impl Problem {
    /// An error; add help and related places with the methods below.
    pub(crate) fn error(
        kind: ProblemKind,
        span: Option<Span>,
        message: impl Into<String>,
    ) -> Problem {
        let message = safe(message);
        Problem { weight: Weight::Error, kind, span, message, related: Vec::new(), help: None }
    }
    pub(crate) fn warning(mut self) -> Problem {
        self.weight = Weight::Warning;
        self
    }
    pub(crate) fn related(mut self, span: Span, label: impl Into<String>) -> Problem {
        self.related.push((span, safe(label)));
        self
    }
    pub(crate) fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(safe(help));
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

/// A problem as programs want it: see [`Problems::rows`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProblemRow {
    /// The file as the user named it, control characters escaped.
    pub file: String,
    /// Line and column; `None` where it is about the whole file.
    pub place: Option<Place>,
    /// Error or warning.
    pub weight: Weight,
    /// What is wrong, control characters escaped.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Problems {
    /// No problem yet in this file.
    pub(crate) fn none(source: Arc<SourceText>) -> Problems {
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
    /// Whether further problems are only counted: then no work need be put into their help.
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
    /// Only those that `keep` accepts.
    pub(crate) fn filtered(self, keep: impl Fn(&Problem) -> bool) -> Problems {
        let mut some = Problems::none(self.source);
        self.kept.into_iter().filter(keep).for_each(|problem| some.push(problem));
        some
    }
    /// Without their places.
    pub(crate) fn placeless(mut self) -> Problems {
        self.kept
            .iter_mut()
            .for_each(|problem| (problem.span, problem.related) = (None, Vec::new()));
        self
    }
    pub(crate) fn sort(&mut self) {
        self.kept.sort_by_key(|problem| problem.span.map(|span| span.start));
    }

    /// The file that they are about.
    pub fn source(&self) -> &SourceText {
        &self.source
    }
    /// Those that were kept (at most 1,000), in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.kept.iter()
    }
    /// How many errors there are, with those not kept.
    pub fn errors(&self) -> usize {
        self.errors
    }
    /// How many warnings there are, with those not kept.
    pub fn warnings(&self) -> usize {
        self.warnings
    }
    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.errors + self.warnings == 0
    }
    /// Whether `--force` would let the experiment through: every error is a
    /// [`ProblemKind::NeedsForce`].
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

/// The rendering without colours.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Problems {}
