//! The cells of a table: values, not their formatting.

use punctual_bundle::summary::VerdictWord;
use punctual_core::Severity;

/// The value of a cell.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Value {
    #[default]
    Nothing,
    /// A name, possibly foreign: a page limits it, and marks an empty one.
    Name(String),
    /// A sentence, or constant words.
    Text(String),
    Command(String),
    /// A time in ns, in the unit of the whole table.
    Time(f64),
    /// A time in ns with the same unit, in a table with other units.
    Latency(f64),
    /// An interval of a time, in ns; `None` is infinity.
    Interval(Option<f64>, Option<f64>),
    /// A duration in ns, in a suitable unit.
    Span(i64),
    Count(u64),
    /// A share of 1.
    Share(f64),
    /// A figure with its own text.
    Figure(f64, String),
    /// A sign that needs no colour, and the word.
    Verdict(&'static str, String),
    /// There is no value; a short reason.
    Absent(String),
    /// There is a value, but it is unknown.
    Unknown,
}

/// The meaning of a text: colours in a terminal, classes on a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tone {
    /// To be noticed first.
    Strong,
    Faint,
    Good,
    Uncertain,
    Bad,
    #[default]
    Plain,
    /// On a background of this colour, 0 to 7: bands of a bar.
    Band(u8),
}

impl From<Severity> for Tone {
    fn from(severity: Severity) -> Tone {
        match severity {
            Severity::Note => Tone::Plain,
            Severity::Advice => Tone::Strong,
            Severity::Warning => Tone::Uncertain,
            Severity::Bad => Tone::Bad,
        }
    }
}

impl From<VerdictWord> for Tone {
    fn from(verdict: VerdictWord) -> Tone {
        match verdict {
            VerdictWord::Met => Tone::Good,
            VerdictWord::NotMet | VerdictWord::Invalid => Tone::Bad,
            VerdictWord::Undecided => Tone::Uncertain,
        }
    }
}

/// A sign that needs no colour, and the word.
pub(crate) fn verdict_words(verdict: VerdictWord) -> (&'static str, &'static str) {
    match verdict {
        VerdictWord::Met => ("✓", "met"),
        VerdictWord::NotMet => ("✗", "not met"),
        VerdictWord::Undecided => ("?", "undecided"),
        VerdictWord::Invalid => ("!", "invalid"),
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Cell {
    pub value: Value,
    pub tone: Tone,
    /// The same figure in a second view, which the table names.
    pub beside: Option<Value>,
    /// On a page: a second, smaller line; the exact figure, shown on hover; labels; a share as a
    /// bar; shares of one bar, each with its colour class.
    pub sub: Option<String>,
    pub exact: Option<String>,
    pub labels: Vec<(String, Tone)>,
    pub bar: Option<f64>,
    pub parts: Vec<(&'static str, f64)>,
    /// On a page: its anchor, and the address that its text links to.
    pub place: Option<String>,
    pub link: Option<String>,
}

impl From<Value> for Cell {
    fn from(value: Value) -> Cell {
        Cell { value, ..Cell::default() }
    }
}

impl From<VerdictWord> for Cell {
    fn from(verdict: VerdictWord) -> Cell {
        let (sign, word) = verdict_words(verdict);
        Cell::verdict(sign, word, verdict.into())
    }
}

impl Cell {
    /// Whether it has content.
    pub(crate) fn has_content(&self) -> bool {
        let is_empty = match &self.value {
            Value::Nothing => true,
            Value::Name(text) | Value::Text(text) => text.is_empty(),
            _ => false,
        };
        !is_empty
            || self.sub.is_some()
            || self.beside.is_some()
            || self.bar.is_some()
            || !self.labels.is_empty()
            || !self.parts.is_empty()
    }
    pub fn name(name: impl Into<String>) -> Cell {
        Value::Name(name.into()).into()
    }
    pub fn text(text: impl Into<String>) -> Cell {
        Value::Text(text.into()).into()
    }
    pub fn time(ns: i64) -> Cell {
        Value::Time(ns as f64).into()
    }
    /// A time; without one, the reason.
    pub(crate) fn time_or(ns: Option<f64>, why: &str) -> Cell {
        ns.map_or_else(|| Cell::absent(why), |ns| Value::Time(ns).into())
    }
    pub fn count(n: u64) -> Cell {
        Value::Count(n).into()
    }
    /// A count that should be 0; `None`: unknown.
    pub(crate) fn loss_count(n: Option<u64>) -> Cell {
        match n {
            Some(n) if n > 0 => Cell::count(n).with_tone(Tone::Uncertain),
            Some(n) => Cell::count(n),
            None => Cell::from(Value::Unknown),
        }
    }
    pub fn share(share: f64) -> Cell {
        Value::Share(share).into()
    }
    pub fn figure(value: f64, words: impl Into<String>) -> Cell {
        Value::Figure(value, words.into()).into()
    }
    pub fn verdict(sign: &'static str, word: impl Into<String>, tone: Tone) -> Cell {
        Cell { tone, ..Value::Verdict(sign, word.into()).into() }
    }
    pub fn absent(why: impl Into<String>) -> Cell {
        Value::Absent(why.into()).into()
    }
    pub(crate) fn with_tone(self, tone: Tone) -> Cell {
        Cell { tone, ..self }
    }
    pub(crate) fn with_strong_tone(self) -> Cell {
        self.with_tone(Tone::Strong)
    }
    pub fn sub(self, sub: impl Into<String>) -> Cell {
        Cell { sub: Some(sub.into()), ..self }
    }
    pub(crate) fn with_exact(self, exact: impl Into<String>) -> Cell {
        Cell { exact: Some(exact.into()), ..self }
    }
    pub(crate) fn with_label(mut self, text: impl Into<String>, tone: Tone) -> Cell {
        self.labels.push((text.into(), tone));
        self
    }
}
