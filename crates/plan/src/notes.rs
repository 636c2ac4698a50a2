//! Errors of values, and the collection of problems while files are read.

use crate::context::LoadOptions;
use crate::escape::clipped;
use crate::problem::{Problem, ProblemKind, Problems};
use crate::text::{SourceText, Span};
use punctual_core::words::nearest;
use std::sync::Arc;

/// Why a value is invalid; the reader knows the place.
#[derive(Debug, PartialEq)]
pub(crate) struct Wrong {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Wrong {
    pub(crate) fn new(message: impl Into<String>) -> Wrong {
        Wrong { message: message.into(), help: None }
    }
    /// Adds the key of the value.
    pub(crate) fn about(mut self, key: &str) -> Wrong {
        self.message = format!("`{key}`: {}", self.message);
        self
    }
    pub(crate) fn help(mut self, help: impl Into<String>) -> Wrong {
        self.help = Some(help.into());
        self
    }
}

pub(crate) type Read<T> = Result<T, Wrong>;

/// The problems found so far, and the strictness.
pub(crate) struct ProblemNotes {
    pub(crate) problems: Problems,
    allow_unknown: bool,
}

impl ProblemNotes {
    pub(crate) fn new(source: Arc<SourceText>, options: &LoadOptions) -> ProblemNotes {
        ProblemNotes { problems: Problems::none(source), allow_unknown: options.allow_unknown }
    }

    /// A syntax error: the text cannot be parsed as its language.
    pub(crate) fn syntax(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.problems.push(Problem::error(ProblemKind::Syntax, Some(span), message).help(help));
    }

    /// An invalid value.
    pub(crate) fn wrong(&mut self, span: Span, wrong: Wrong) {
        let problem = Problem::error(ProblemKind::Value, Some(span), wrong.message);
        self.problems.push(match wrong.help {
            Some(help) => problem.help(help),
            None => problem,
        });
    }

    /// A missing required item.
    pub(crate) fn missing(&mut self, span: Span, message: &str, help: &str) {
        self.wrong(span, Wrong::new(message).help(help));
    }

    /// A word that is unknown in this place.
    pub(crate) fn unknown(&mut self, span: Span, word: &str, place: &str, known: &[&'static str]) {
        let message = format!("`{}` is not known in {place}", clipped(word));
        let help = match nearest(word, known.iter().copied().filter(|_| !self.problems.is_full())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known are {}", known.join(", ")),
        };
        let problem = Problem::error(ProblemKind::UnknownKey, Some(span), message).help(help);
        self.problems.push(if self.allow_unknown { problem.warning() } else { problem });
    }
}
