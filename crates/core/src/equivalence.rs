//! Margins of equivalence: the allowed difference of a figure between two measurements that still
//! count as equal. They are in the plan: one chosen after the figures are known shows nothing.

use crate::Nanos;
use std::fmt;
use std::str::FromStr;

/// The allowed difference of two figures.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Margin {
    Time(Nanos),
    /// In percent of the first side's figure.
    Percent(f64),
}

/// A figure with a value in each block of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockFigure {
    /// The median of a block.
    Median,
    Worst,
}

/// A figure and its margin: `median:10%`, `block-max:50us`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Equivalence {
    /// The figure of each block.
    pub figure: BlockFigure,
    /// The allowed difference of the sides.
    pub margin: Margin,
}

/// Why a text is not a margin of equivalence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EquivalenceError {
    /// Two parts are needed.
    #[error("write a figure and a margin, like `median:10%` or `block-max:50us`")]
    NoMargin,
    /// An unsupported figure.
    #[error("`{0}` cannot be equivalent: `median` and `block-max` (the worst of a block) can")]
    NoFigure(String),
    /// Not a margin.
    #[error("`{0}` is not a margin: write a time above 0 (`10us`) or a percentage (`5%`)")]
    BadMargin(String),
}

impl Margin {
    /// Parses `10us` or `5%`; `None` for anything else, and below 0.
    pub fn read(text: &str) -> Option<Margin> {
        match text.trim().strip_suffix('%') {
            Some(number) => {
                let percent: f64 = number.trim().parse().ok()?;
                (percent.is_finite() && percent >= 0.0).then_some(Margin::Percent(percent))
            }
            None => text.trim().parse().ok().map(Margin::Time),
        }
    }
    /// The margin in ns for this figure of the first side.
    pub fn margin_in_ns(self, figure: f64) -> f64 {
        match self {
            Margin::Time(time) => time.ns() as f64,
            Margin::Percent(percent) => figure.abs() * percent / 100.0,
        }
    }
}

impl fmt::Display for Margin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Margin::Time(time) => write!(f, "{time}"),
            Margin::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl BlockFigure {
    pub fn as_str(self) -> &'static str {
        match self {
            BlockFigure::Median => "median",
            BlockFigure::Worst => "block-max",
        }
    }
}

impl FromStr for Equivalence {
    type Err = EquivalenceError;

    fn from_str(text: &str) -> Result<Equivalence, EquivalenceError> {
        let (figure, margin) = text.split_once(':').ok_or(EquivalenceError::NoMargin)?;
        let shorten = |text: &str| text.trim().chars().take(40).collect::<String>();
        let known_figures = [BlockFigure::Median, BlockFigure::Worst];
        let figure = known_figures
            .into_iter()
            .find(|known| known.as_str() == figure.trim())
            .ok_or_else(|| EquivalenceError::NoFigure(shorten(figure)))?;
        let margin = Margin::read(margin)
            .filter(|margin| margin.margin_in_ns(1.0) > 0.0)
            .ok_or_else(|| EquivalenceError::BadMargin(shorten(margin)))?;
        Ok(Equivalence { figure, margin })
    }
}

impl fmt::Display for Equivalence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.figure.as_str(), self.margin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equivalence_margins_are_parsed_and_printed() {
        let read = |text: &str| text.parse::<Equivalence>().unwrap().to_string();
        assert_eq!(read("median : 10%"), "median:10%");
        assert_eq!(read("block-max:50us"), "block-max:50us");
        let wrong = |text: &str| text.parse::<Equivalence>().unwrap_err().to_string();
        assert!(wrong("median").contains("median:10%"));
        assert!(wrong("p99:10%").contains("cannot be equivalent"));
        for bad in ["median:0%", "median:0us", "median:-1us", "median:x", "median:nan%"] {
            assert!(wrong(bad).contains("not a margin"), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Equivalence>();
            let _ = format!("median:{text}").parse::<Equivalence>();
        }
    }
}
