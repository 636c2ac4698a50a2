//! Published results of an experiment, and the trend that must be reproduced.
//!
//! Absolute figures depend on the machine. The relations between figures do not: forced writes are
//! slower than buffered ones. So a result has, beside the published text, the figure to read here
//! and a [`PublishedShape`] that holds or does not.

use crate::{BoundComparison, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The published results of an experiment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PublishedResults {
    /// The publication and the measured system.
    pub source: String,
    /// The results in the order of the file.
    pub results: Vec<PublishedResult>,
}

/// One published result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PublishedResult {
    /// The description of the figure, for display.
    pub what: String,
    /// The published value with its unit.
    pub value: String,
    /// The same figure here, as a [`Term`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<String>,
    /// The trend that must be reproduced on any system, as a [`PublishedShape`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
}

/// A figure of this run: `writes/open: p99`, `shared-sum: round-median`, `timer@loaded: max`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Term {
    /// A measure or a series, with `@` and the phase if it is ambiguous; `*` matches any part
    /// between slashes.
    pub of: String,
    /// A figure of a series (as in requirements), or one stated by the measure.
    pub figure: String,
}

/// A relation between figures: `forces/whole: p50 > 2 * writes/whole: p50`, `heap: pages ~ 257`.
/// A text may have several, of each figure to the next: [`PublishedShape::parse_chain`].
#[derive(Clone, PartialEq, Debug)]
pub struct PublishedShape {
    pub left: Term,
    /// The relation of the left to the right figure.
    pub relation: Relation,
    pub right: Right,
}

/// A relation of two figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    Is(BoundComparison),
    /// Within 10 % of the right one.
    About,
}

/// The right side of a relation.
#[derive(Clone, PartialEq, Debug)]
pub enum Right {
    /// A multiple of another figure.
    Times(f64, Term),
    /// A number: nanoseconds if written as a time.
    Number(f64),
}

/// The outcome of a published trend here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trend {
    /// The effect exists and is at least as large as published.
    Reproduced,
    /// The effect exists and is smaller than published.
    Weaker,
    /// No effect exists, and one as large as published would have been visible.
    Absent,
    Reversed,
    /// The figures show neither.
    Undecided,
}

impl Trend {
    /// The outcome for a ratio published as `published` with this 95 % interval here. 1 is no
    /// effect.
    pub fn from_interval((low, high): (f64, f64), published: f64) -> Trend {
        // Inverted if necessary, so that the published effect is an increase.
        let (low, high, published) = match published < 1.0 {
            true => (1.0 / high, 1.0 / low, 1.0 / published),
            false => (low, high, published),
        };
        if !(low.is_finite() && high.is_finite() && published > 1.0) {
            return Trend::Undecided;
        }
        match (low > 1.0, high < 1.0, high >= published) {
            (true, _, true) => Trend::Reproduced,
            (true, _, false) => Trend::Weaker,
            (_, true, _) => Trend::Reversed,
            (false, false, false) => Trend::Absent,
            (false, false, true) => Trend::Undecided,
        }
    }
    /// Its name in output and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Trend::Reproduced => "reproduced",
            Trend::Weaker => "weaker",
            Trend::Absent => "absent",
            Trend::Reversed => "reversed",
            Trend::Undecided => "undecided",
        }
    }
}

/// Why a text is not a term or a shape.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ShapeError {
    /// No colon.
    #[error("`{0}` is not a figure of this run: write `SERIES: FIGURE`, like `writes/open: p99`")]
    NoFigure(String),
    /// No comparison.
    #[error(
        "a shape is a figure, one of < <= > >= ~, and a figure or a number, like `forces/whole: \
         p50 > 2 * writes/whole: p50`"
    )]
    NoRelation,
    /// An invalid factor.
    #[error("`{0}` is not a factor above 0")]
    BadFactor(String),
}

const RELATIONS: [(&str, Relation); 5] = [
    (" <= ", Relation::Is(BoundComparison::LessOrEqual)),
    (" >= ", Relation::Is(BoundComparison::GreaterOrEqual)),
    (" < ", Relation::Is(BoundComparison::Less)),
    (" > ", Relation::Is(BoundComparison::Greater)),
    (" ~ ", Relation::About),
];

impl Relation {
    /// Whether the left figure has this relation to the right one.
    pub fn is_satisfied(self, left: f64, right: f64) -> bool {
        match self {
            Relation::Is(comparison) => comparison.is_satisfied(left, right),
            Relation::About => (left - right).abs() <= right.abs() / 10.0,
        }
    }
    /// Its sign between two figures: `<`.
    pub fn sign_text(self) -> &'static str {
        RELATIONS
            .iter()
            .find(|(_, relation)| *relation == self)
            .map_or("?", |(sign, _)| sign.trim())
    }
}

fn clip_input(text: &str) -> String {
    text.chars().take(60).collect()
}

impl FromStr for Term {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Term, ShapeError> {
        let parts = text.rsplit_once(": ").map(|(of, figure)| (of.trim(), figure.trim()));
        let (of, figure) = parts
            .filter(|(of, figure)| !of.is_empty() && !figure.is_empty())
            .ok_or_else(|| ShapeError::NoFigure(clip_input(text.trim())))?;
        Ok(Term { of: of.to_owned(), figure: figure.to_owned() })
    }
}

/// The first relation of a text: where it is, its length, which.
fn find_relation(text: &str) -> Option<(usize, usize, Relation)> {
    let places = RELATIONS
        .iter()
        .filter_map(|(sign, relation)| Some((text.find(sign)?, sign.len(), *relation)));
    places.min_by_key(|(at, _, _)| *at)
}

impl PublishedShape {
    /// The relations of an order, `a: p50 < b: p50 < c: p50`, two figures each; mostly one.
    pub fn parse_chain(mut text: &str) -> Result<Vec<PublishedShape>, ShapeError> {
        let mut shapes = Vec::new();
        loop {
            let end = find_relation(text).map_or(text.len(), |(at, length, _)| at + length);
            let next = find_relation(&text[end..]).map(|(at, _, _)| end + at);
            shapes.push(text[..next.unwrap_or(text.len())].parse()?);
            match next {
                Some(_) => text = &text[end..],
                None => return Ok(shapes),
            }
        }
    }
}

impl FromStr for PublishedShape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<PublishedShape, ShapeError> {
        let (at, length, relation) = find_relation(text).ok_or(ShapeError::NoRelation)?;
        let left: Term = text[..at].parse()?;
        let rest = text[at + length..].trim();
        if let Some(number) = parse_number(rest) {
            return Ok(PublishedShape { left, relation, right: Right::Number(number) });
        }
        let (factor, term) = match rest.split_once(" * ") {
            Some((factor, term)) => {
                let wrong = || ShapeError::BadFactor(clip_input(factor));
                let factor: f64 = factor.trim().parse().map_err(|_| wrong())?;
                (Some(factor).filter(|f| f.is_finite() && *f > 0.0).ok_or_else(wrong)?, term)
            }
            None => (1.0, rest),
        };
        Ok(PublishedShape { left, relation, right: Right::Times(factor, term.parse()?) })
    }
}

/// A plain number, or a time in nanoseconds.
fn parse_number(text: &str) -> Option<f64> {
    let plain = text.parse::<f64>().ok().filter(|n| n.is_finite());
    plain.or_else(|| text.parse::<Nanos>().ok().map(|span| span.ns() as f64))
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.of, self.figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_shapes_are_parsed() {
        let shape: PublishedShape = "forces/whole: p50 > 2 * writes/whole: p50".parse().unwrap();
        assert_eq!(shape.left.to_string(), "forces/whole: p50");
        assert_eq!(shape.relation, Relation::Is(BoundComparison::Greater));
        assert_eq!(shape.right, Right::Times(2.0, "writes/whole: p50".parse().unwrap()));
        let right = |text: &str| text.parse::<PublishedShape>().unwrap().right;
        assert_eq!(right("a: b ~ 257"), Right::Number(257.0));
        assert_eq!(right("a: max < 100us"), Right::Number(100_000.0));
        assert_eq!(right("a: max <= b@c: max"), Right::Times(1.0, "b@c: max".parse().unwrap()));
    }

    #[test]
    fn an_order_is_a_relation_of_each_figure_to_the_next() {
        let order = PublishedShape::parse_chain("a: p50 < b: p50 <= 2 * c: p50").unwrap();
        let pairs = ["a: p50 < b: p50", "b: p50 <= 2 * c: p50"].map(|text| text.parse().unwrap());
        assert_eq!(order, pairs);
        assert!(PublishedShape::parse_chain("a: p50 < b < c: p50").is_err());
        assert!(PublishedShape::parse_chain("a: p50").is_err());
    }

    #[test]
    fn an_invalid_shape_is_refused_with_the_reason() {
        let wrong = |text: &str| text.parse::<PublishedShape>().unwrap_err().to_string();
        assert!(wrong("a: b").contains("one of < <="));
        assert!(wrong("a > b: c").contains("`a` is not a figure"));
        assert!(wrong("a: b > 0 * b: c").contains("factor"));
        assert!(wrong("a: b > nan").contains("not a figure"));
    }

    #[test]
    fn about_is_within_a_tenth() {
        assert!(
            Relation::About.is_satisfied(91.0, 100.0) && !Relation::About.is_satisfied(89.0, 100.0)
        );
        assert!(Relation::About.is_satisfied(0.0, 0.0) && !Relation::About.is_satisfied(1.0, 0.0));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = PublishedShape::parse_chain(&text);
        }
    }
}
