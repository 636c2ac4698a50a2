//! Errors of values, and the collection of problems while files are read.

use crate::context::LoadOptions;
use crate::escape::clip_text;
use crate::problem::{Problem, ProblemKind, Problems};
use crate::text::{SourceText, Span};
use punctual_core::words::nearest_word;
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
    pub(crate) fn with_key(mut self, key: &str) -> Wrong {
        self.message = format!("`{key}`: {}", self.message);
        self
    }
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Wrong {
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
        ProblemNotes { problems: Problems::new(source), allow_unknown: options.allow_unknown }
    }

    /// A syntax error: the text cannot be parsed as its language.
    pub(crate) fn report_syntax_error(
        &mut self,
        span: Span,
        message: impl Into<String>,
        help: &str,
    ) {
        self.problems
            .push(Problem::error(ProblemKind::Syntax, Some(span), message).with_help(help));
    }

    /// An invalid value.
    pub(crate) fn report_wrong_value(&mut self, span: Span, wrong: Wrong) {
        let problem = Problem::error(ProblemKind::Value, Some(span), wrong.message);
        self.problems.push(match wrong.help {
            Some(help) => problem.with_help(help),
            None => problem,
        });
    }

    /// A missing required item.
    pub(crate) fn report_missing(&mut self, span: Span, message: &str, help: &str) {
        self.report_wrong_value(span, Wrong::new(message).with_help(help));
    }

    /// A word that is unknown in this place.
    pub(crate) fn report_unknown_word(
        &mut self,
        span: Span,
        word: &str,
        place: &str,
        known: &[&'static str],
    ) {
        let message = format!("`{}` is not known in {place}", clip_text(word));
        let help =
            match nearest_word(word, known.iter().copied().filter(|_| !self.problems.is_full())) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are {}", known.join(", ")),
            };
        let problem = Problem::error(ProblemKind::UnknownKey, Some(span), message).with_help(help);
        self.problems.push(if self.allow_unknown { problem.into_warning() } else { problem });
    }
}
