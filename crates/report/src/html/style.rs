//! Which colour, dash and strength a curve has: the same on screen, in print and in the drawing
//! without script.
//!
//! Eight hues that people with any of the usual colour-blindnesses tell apart (after Okabe and Ito,
//! "Color Universal Design", 2008, without its black and yellow), then the same dashed. Groups of
//! several series take a hue each, and their series get paler one by one.

use serde::Serialize;

/// Hues, `--c0` … in report.css.
pub const HUES: usize = 8;
/// Dash patterns; the first is a whole line.
pub const DASHES: [&str; 3] = ["", "7 3", "2 2"];

/// The looks of a curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Style {
    pub hue: usize,
    pub dash: usize,
    /// How strong it is drawn, in percent.
    pub strength: usize,
}

impl Style {
    /// The `n`th of curves that each have their own looks.
    pub fn nth(n: usize) -> Style {
        Style { hue: n % HUES, dash: n / HUES % DASHES.len(), strength: 100 }
    }

    /// Of the `n`th series among `of` in a group.
    pub fn in_group(group: usize, n: usize, of: usize) -> Style {
        let paler = if of < 2 { 0 } else { 55 * n / (of - 1) };
        Style { strength: 100 - paler, ..Style::nth(group) }
    }
}
