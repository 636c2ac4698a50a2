//! Colour, dash and strength of curves: the same on screen, in print and in the drawing without
//! script.
//!
//! Eight hues that people with any of the common colour vision deficiencies can distinguish (after
//! Okabe and Ito, "Color Universal Design", 2008, without its black and yellow), then the same
//! dashed. Each group of several series has one hue, and its series get gradually paler.

use serde::Serialize;

/// Hues, `--c0` … in report.css.
const HUES: usize = 8;
/// Dash patterns; the first is a solid line.
pub(crate) const DASHES: [&str; 3] = ["", "7 3", "2 2"];

/// The style of a curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct CurveStyle {
    pub hue: usize,
    pub dash: usize,
    /// Its strength, in percent.
    pub strength: usize,
}

impl CurveStyle {
    /// The style of the `n`th curve, each with its own.
    pub(crate) fn from_curve_index(n: usize) -> CurveStyle {
        CurveStyle { hue: n % HUES, dash: n / HUES % DASHES.len(), strength: 100 }
    }

    /// The style of the `n`th of `of` series in a group.
    pub(crate) fn in_group(group: usize, n: usize, of: usize) -> CurveStyle {
        let paler = if of < 2 { 0 } else { 55 * n / (of - 1) };
        CurveStyle { strength: 100 - paler, ..CurveStyle::from_curve_index(group) }
    }
}
