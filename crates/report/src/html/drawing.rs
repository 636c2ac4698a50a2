//! The histograms as a small drawing without a script: for mail previews, browsers without script,
//! and print.

use super::curve::{Bin, Curve, merge_curves, widen_bins};
use super::embedded::has_too_many_curves;
use super::gather::PageSeries;
use super::scale::Scale;
use super::style::{CurveStyle, DASHES};
use super::text::clip_text;
use crate::format::{short_count, span_text};
use punctual_bundle::Timebase;
use punctual_core::Nanos;
use serde::Serialize;
use std::fmt::Write;

pub(super) const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 310.0;
pub(super) const LEFT: f64 = 48.0;
pub(super) const BOTTOM: f64 = 34.0;
pub(super) const TOP: f64 = 22.0;
pub(super) const RIGHT: f64 = 10.0;
/// Columns of the drawing; each shows its highest bin.
const COLUMNS: usize = 340;
const NAMES: usize = 24;

/// The input of the template.
#[derive(Serialize)]
pub struct PlotDrawing {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) plot: Area,
    pub(super) paths: Vec<PathOf>,
    pub(super) names: usize,
    pub(super) more: usize,
    pub(super) x_ticks: Vec<AxisTick>,
    pub(super) y_ticks: Vec<AxisTick>,
    pub(super) x_title: String,
    pub(super) y_title: String,
    /// A second vertical axis; empty: none.
    pub(super) right_ticks: Vec<AxisTick>,
    pub(super) right_title: String,
    /// Horizontal ranges that are shaded: place and width.
    pub(super) bands: Vec<(f64, f64)>,
    /// A text alternative for screen readers.
    pub(super) description: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

#[derive(Serialize)]
pub(super) struct PathOf {
    pub(super) name: String,
    pub(super) d: String,
    pub(super) hue: usize,
    pub(super) dash: &'static str,
    pub(super) opacity: f64,
    pub(super) legend_x: f64,
    pub(super) legend_y: f64,
}

#[derive(Debug, Serialize)]
pub(super) struct AxisTick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// An axis, mostly of latencies.
pub(super) struct PlotAxis {
    log: bool,
    from: f64,
    to: f64,
}

/// The logarithmic axis of counts. Its floor is half a sample, so that a single sample is visible.
pub(super) struct CountAxis {
    floor: f64,
    ceiling: f64,
}

impl CountAxis {
    /// An axis up to the highest of these columns.
    pub(super) fn from_columns(columns: &[Vec<Option<u64>>]) -> CountAxis {
        let highest = columns.iter().flatten().flatten().copied().max().unwrap_or(1);
        CountAxis { floor: 0.5f64.log10(), ceiling: (highest as f64 * 1.3).log10().max(1.0) }
    }

    /// The vertical position of a count.
    pub(super) fn y(&self, count: f64, plot: &Area) -> f64 {
        let share = (count.log10() - self.floor) / (self.ceiling - self.floor);
        plot.bottom - share * (plot.bottom - plot.top)
    }

    /// The powers of ten on the axis.
    pub(super) fn decades(&self) -> impl Iterator<Item = f64> + use<> {
        (0..=self.ceiling.floor() as i32).map(|power| 10f64.powi(power))
    }
}

impl PlotAxis {
    pub(super) fn from_curves(scale: &Scale, curves: &[Curve]) -> PlotAxis {
        let lowest =
            curves.iter().filter_map(|c| c.bins.first()).map(|bin| bin.low).min().unwrap_or(0)
                as f64;
        let half = scale.width as f64 / 2.0;
        let from = if scale.log { (lowest * 0.9).max(half) } else { 0.0 };
        PlotAxis { log: scale.log, from, to: (scale.max as f64 * 1.02).max(from * 1.1 + 1.0) }
    }

    /// A linear axis from 0 to slightly above `largest`.
    pub(super) fn from_zero(largest: f64) -> PlotAxis {
        PlotAxis { log: false, from: 0.0, to: (largest * 1.02).max(1.0) }
    }

    pub(super) fn end(&self) -> f64 {
        self.to
    }

    /// The position of a latency on the axis, 0 to 1.
    pub(super) fn relative_position(&self, ns: f64) -> f64 {
        let share = if self.log {
            (ns.max(self.from) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (ns - self.from) / (self.to - self.from)
        };
        share.clamp(0.0, 1.0)
    }

    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.log {
            let decades = (self.to / self.from).log10();
            let steps: &[f64] = if decades < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let round_values =
                (0..19).flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
            return round_values.filter(|ns| (self.from..=self.to).contains(ns)).collect();
        }
        let rough = (self.to - self.from) / 7.0;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|s| s * decade)
            .into_iter()
            .find(|s| *s >= rough)
            .unwrap_or(rough);
        (0..10).map(|k| f64::from(k) * step).filter(|ns| *ns <= self.to).collect()
    }
}

/// Draws all curves, or one per group if there are many.
pub(crate) fn draw_curves(
    content: &PageSeries<'_>,
    curves: &[Curve],
    scale: &Scale,
) -> PlotDrawing {
    let named: Vec<(String, Curve, CurveStyle)> = if has_too_many_curves(content) {
        let of_group = |group| {
            content
                .lines
                .iter()
                .zip(curves)
                .filter(move |(line, _)| line.group == group)
                .map(|(_, c)| c)
        };
        let group = |(k, group): (usize, &super::gather::PhaseGroup)| {
            (group.name.clone(), merge_curves(of_group(k)), CurveStyle::from_curve_index(k))
        };
        content.groups.iter().enumerate().map(group).collect()
    } else {
        content
            .lines
            .iter()
            .zip(curves)
            .map(|(line, curve)| (line.full.clone(), curve.clone(), line.style))
            .collect()
    };
    let axis = PlotAxis::from_curves(scale, curves);
    let column_counts: Vec<Vec<Option<u64>>> = named
        .iter()
        .map(|(_, curve, _)| column_peaks(curve, scale.width, &axis, COLUMNS))
        .collect();
    let plot = Area { left: LEFT, right: WIDTH - RIGHT, top: TOP, bottom: HEIGHT - BOTTOM };
    let counts = CountAxis::from_columns(&column_counts);
    let y = |count: f64| counts.y(count, &plot);
    let x = |share: f64| plot.left + share * (plot.right - plot.left);
    let paths =
        named.iter().zip(&column_counts).enumerate().map(|(k, ((name, _, style), columns))| {
            PathOf {
                name: clip_text(name, 52),
                d: step_path(columns, x, |count| y(count as f64), plot.bottom),
                hue: style.hue,
                dash: DASHES[style.dash],
                opacity: style.strength as f64 / 100.0,
                legend_x: LEFT + (k % 2) as f64 * (WIDTH - LEFT) / 2.0,
                legend_y: HEIGHT + 18.0 + (k / 2) as f64 * 18.0,
            }
        });
    let x_ticks = axis.ticks().into_iter().map(|ns| AxisTick {
        at: x(axis.relative_position(ns)),
        label: span_text(Nanos(ns as i64)),
    });
    let y_ticks = counts.decades().map(|n| AxisTick { at: y(n), label: short_count(n as u64) });
    let entries = named.len().min(NAMES).div_ceil(2) + usize::from(named.len() > NAMES);
    PlotDrawing {
        width: WIDTH,
        height: HEIGHT + 12.0 + entries as f64 * 18.0,
        paths: paths.collect(),
        names: NAMES,
        more: named.len().saturating_sub(NAMES),
        x_ticks: x_ticks.collect(),
        y_ticks: y_ticks.collect(),
        right_ticks: Vec::new(),
        right_title: String::new(),
        bands: Vec::new(),
        x_title: latency_title(content.timebase),
        y_title: format!("samples per {}", span_text(Nanos(scale.width))),
        description: format!(
            "Histogram of {} {}: samples per {} over latency, both from {} to {}; the figures are \
             in the summary table.",
            named.len(),
            if named.len() == 1 { "series" } else { "curves" },
            span_text(Nanos(scale.width)),
            span_text(Nanos(axis.from as i64)),
            span_text(Nanos(scale.max)),
        ),
        plot,
    }
}

/// The title of every axis of latencies; the script uses the same.
fn latency_title(timebase: Timebase) -> String {
    timebase.unit_prefix().map_or("latency".to_owned(), |word| format!("latency ({word})"))
}

/// The highest bin in each of `number` columns; `None` if it has no samples.
pub(super) fn column_peaks(
    curve: &Curve,
    width: i64,
    axis: &PlotAxis,
    number: usize,
) -> Vec<Option<u64>> {
    let mut columns = vec![None; number];
    let column = |ns: i64| (axis.relative_position(ns as f64) * number as f64) as usize;
    for Bin { low, width, count } in widen_bins(&curve.bins, width) {
        let first = column(low).min(number.saturating_sub(1));
        let last = column(low.saturating_add(width)).clamp(first + 1, number);
        for slot in &mut columns[first..last] {
            *slot = (*slot).max(Some(count));
        }
    }
    columns
}

/// A step line; it falls to the floor where the samples end and is not drawn along it.
pub(super) fn step_path(
    columns: &[Option<u64>],
    x: impl Fn(f64) -> f64,
    y: impl Fn(u64) -> f64,
    floor: f64,
) -> String {
    let mut d = String::new();
    let at = |column: usize| x(column as f64 / columns.len() as f64);
    let mut before = None;
    for (k, count) in columns.iter().chain([&None]).enumerate() {
        if *count == before {
            continue;
        }
        let left = at(k);
        // Writing to a string cannot fail.
        let _ = match (before, count) {
            (None, Some(n)) => write!(d, "M{left:.1} {floor:.1}V{:.1}", y(*n)),
            (Some(_), Some(n)) => write!(d, "H{left:.1}V{:.1}", y(*n)),
            (_, None) => write!(d, "H{left:.1}V{floor:.1}"),
        };
        before = *count;
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_outlier_is_drawn() {
        let bins = vec![
            Bin { low: 10_000, width: 1_000, count: 5_000 },
            Bin { low: 6_000_000, width: 512, count: 1 },
        ];
        let curve = Curve { resolution: 1_000, body_width: 1_000, bins, negative: 0 };
        let axis = PlotAxis { log: false, from: 0.0, to: 6_100_000.0 };
        let columns = column_peaks(&curve, 1_000, &axis, COLUMNS);
        assert_eq!(columns.iter().flatten().collect::<Vec<_>>(), [&5_000, &1]);
        let d = step_path(&columns, |x| x * 340.0, |n| n as f64, 0.0);
        assert_eq!(d, "M0.0 0.0V5000.0H1.0V0.0M334.0 0.0V1.0H335.0V0.0");
    }

    #[test]
    fn axis_ticks_are_round_numbers() {
        let axis = PlotAxis { log: false, from: 0.0, to: 183_000.0 };
        let ticks: Vec<String> =
            axis.ticks().into_iter().map(|ns| span_text(Nanos(ns as i64))).collect();
        assert_eq!(ticks, ["0 ns", "50 µs", "100 µs", "150 µs"]);
        let axis = PlotAxis { log: true, from: 5_000.0, to: 6_000_000.0 };
        assert_eq!(axis.ticks(), [1e4, 1e5, 1e6]);
    }
}
