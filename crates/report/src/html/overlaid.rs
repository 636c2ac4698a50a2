//! Two distributions in one drawing: the share of samples above a latency, both axes logarithmic,
//! so that the tails are visible.

use super::drawing::{Area, AxisTick};
use super::text::clip_text;
use crate::format::{escape_unsafe, span_text};
use punctual_core::Nanos;
use serde::Serialize;
use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 260.0;
const PLOT: Area = Area { left: 64.0, right: 750.0, top: 26.0, bottom: 222.0 };

#[derive(Debug, Serialize)]
pub(crate) struct Overlaid {
    width: f64,
    height: f64,
    plot: Area,
    lines: Vec<OverlaidLine>,
    x_ticks: Vec<AxisTick>,
    y_ticks: Vec<AxisTick>,
    description: String,
}

#[derive(Debug, Serialize)]
struct OverlaidLine {
    name: String,
    d: String,
    hue: usize,
    legend_x: f64,
}

/// Draws both; `None` if a side has no distribution or no value above 0.
pub(crate) fn draw_overlaid(names: [&str; 2], curves: [&[(f64, i64)]; 2]) -> Option<Overlaid> {
    let positive = curves.map(|curve| {
        let positive_points = curve.iter().filter(|(_, ns)| *ns > 0);
        positive_points.map(|(share, ns)| (*share, *ns as f64)).collect::<Vec<_>>()
    });
    if positive.iter().any(Vec::is_empty) {
        return None;
    }
    let all_points = || positive.iter().flatten();
    let from = all_points().map(|(_, ns)| *ns).fold(f64::MAX, f64::min) * 0.9;
    let to = all_points().map(|(_, ns)| *ns).fold(0.0, f64::max) * 1.1;
    let lowest_share = all_points().map(|(share, _)| *share).fold(0.1, f64::min);
    let x = |ns: f64| PLOT.left + (ns / from).ln() / (to / from).ln() * (PLOT.right - PLOT.left);
    let y = |share: f64| PLOT.top + share.ln() / lowest_share.ln() * (PLOT.bottom - PLOT.top);
    let lines = positive.iter().zip(&names).enumerate().map(|(k, (curve, name))| OverlaidLine {
        name: clip_text(&escape_unsafe(name), 40),
        d: curve_path(curve, x, y),
        hue: k,
        legend_x: PLOT.left + k as f64 * (PLOT.right - PLOT.left) / 2.0,
    });
    let steps: &[f64] = if (to / from).log10() < 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let x_ticks = (0..19)
        .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)))
        .filter(|ns| (from..=to).contains(ns))
        .map(|ns| AxisTick { at: x(ns), label: span_text(Nanos(ns as i64)) });
    let y_ticks =
        (0..12).map(|k| 10f64.powi(-k)).filter(|share| *share >= lowest_share).map(|share| {
            let digits = (-share.log10() - 2.0).round().max(0.0) as usize;
            AxisTick { at: y(share), label: format!("{:.digits$} %", share * 100.0) }
        });
    Some(Overlaid {
        width: WIDTH,
        height: HEIGHT,
        plot: PLOT,
        lines: lines.collect(),
        x_ticks: x_ticks.collect(),
        y_ticks: y_ticks.collect(),
        description: format!(
            "Share of samples longer than a latency, of {} and {}; the table has the figures.",
            escape_unsafe(names[0]),
            escape_unsafe(names[1])
        ),
    })
}

fn curve_path(curve: &[(f64, f64)], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let mut d = String::new();
    for (k, (share, ns)) in curve.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(d, "{}{:.1} {:.1}", if k == 0 { "M" } else { "L" }, x(*ns), y(*share));
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_tail_is_drawn_farther_right() {
        let (short, long) = ([(1.0, 1_000), (0.01, 5_000)], [(1.0, 1_000), (0.01, 50_000)]);
        let names = ["6.1", "6.12"];
        let drawn = draw_overlaid(names, [&short, &long]).unwrap();
        let end = |k: usize| -> f64 {
            let d = &drawn.lines[k].d;
            d[d.rfind('L').unwrap() + 1..].split(' ').next().unwrap().parse().unwrap()
        };
        assert!(end(0) < end(1) && end(1) <= PLOT.right);
        assert_eq!(drawn.y_ticks[2].label, "1 %");
        assert!(draw_overlaid(names, [&[], &long]).is_none());
    }
}
