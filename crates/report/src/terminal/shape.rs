//! The shapes of the distributions, one line per series on a common logarithmic axis, so that
//! series and phases can be compared.

use super::paint::{TextPage, Tone};
use crate::format;
use crate::tables::figures::SHOWN_SERIES;
use punctual_core::Nanos;
use punctual_stats::{Distribution, PhaseView};
use std::cmp::Reverse;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_BARS: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '@'];
const NAME_WIDTH: usize = 28;
/// The maximum width of a shape: a wider one adds no information.
const CELLS_MAX: usize = 72;
const CELLS_MIN: usize = 16;
/// The maximum ratio of the axis; smaller values are in its first cell.
const DECADES: f64 = 1e5;

/// A named distribution: for each occupied bucket its upper end and the samples up to it.
pub struct DistributionShape {
    pub name: String,
    pub curve: Vec<(Nanos, u64)>,
}

/// The common axis: latencies from `low` to `high` on a logarithmic scale.
struct ShapeAxis {
    low: f64,
    high: f64,
    cells: usize,
}

impl ShapeAxis {
    fn cell_index(&self, latency: Nanos) -> usize {
        let place = (latency.ns().max(1) as f64 / self.low).ln() / (self.high / self.low).ln();
        ((place * self.cells as f64) as usize).min(self.cells - 1)
    }
}

pub fn write(out: &mut TextPage, phases: &[PhaseView]) {
    write_all(out, phases.iter().flat_map(shapes_of).collect());
}

/// Draws the distributions; those without samples are omitted.
pub fn write_all(out: &mut TextPage, mut shapes: Vec<DistributionShape>) {
    shapes.retain(|shape| !shape.curve.is_empty());
    let omitted_count = shapes.len().saturating_sub(SHOWN_SERIES);
    if omitted_count > 0 {
        shapes.sort_by_key(|shape| Reverse(shape.curve.last().map(|(latency, _)| *latency)));
        shapes.truncate(SHOWN_SERIES);
    }
    let latencies =
        || shapes.iter().flat_map(|s| s.curve.iter().map(|(latency, _)| latency.ns().max(1)));
    let (Some(low), Some(high)) = (latencies().min(), latencies().max()) else { return };
    let names: Vec<String> =
        shapes.iter().map(|s| format::clip_name(&s.name, NAME_WIDTH, out.options.ascii)).collect();
    let name_width = names.iter().map(|name| format::width_of(name)).max().unwrap_or(0);
    let cells = out.options.width.saturating_sub(name_width + 4).clamp(CELLS_MIN, CELLS_MAX);
    // A single value still needs an axis; one sample at zero does not need four more decades.
    let low = (low as f64).max(high as f64 / DECADES);
    let axis = ShapeAxis { low, high: (high as f64).max(low * 2.0), cells };
    out.push_heading("distributions (number of samples by latency, both logarithmic)");
    for (shape, name) in shapes.iter().zip(&names) {
        let space = " ".repeat(name_width - format::width_of(name));
        let bars = draw_bars(out, &axis, &shape.curve);
        out.push_line(&format!("  {name}{space}  {bars}"));
    }
    write_axis(out, &axis, name_width + 4);
    if omitted_count > 0 {
        out.push_paragraph(
            "  ",
            "  ",
            Tone::Faint,
            &format!("and {omitted_count} more, with smaller maxima"),
        );
    }
}

fn shapes_of<'a>(phase: &'a PhaseView) -> impl Iterator<Item = DistributionShape> + 'a {
    let shape = |s: &punctual_stats::SeriesView| DistributionShape {
        name: format!("{}/{}", phase.meta.name, s.meta.name),
        curve: Distribution::from_series(&s.state.data).cumulative_curve().collect(),
    };
    phase.series.iter().map(shape)
}

/// A bar for each cell, its height by the logarithm of its count; a single sample is visible.
fn draw_bars(out: &TextPage, axis: &ShapeAxis, curve: &[(Nanos, u64)]) -> String {
    let mut counts = vec![0u64; axis.cells];
    let mut before = 0;
    for (latency, cumulative) in curve {
        counts[axis.cell_index(*latency)] += cumulative - before;
        before = *cumulative;
    }
    let fullest = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let bars = out.choose_spelling(BARS, ASCII_BARS);
    let bar = |n: &u64| match n {
        0 => ' ',
        n => {
            bars[((*n as f64).ln() / fullest.ln().max(1.0) * 7.0).round().clamp(0.0, 7.0) as usize]
        }
    };
    counts.iter().map(bar).collect::<String>().trim_end().to_owned()
}

/// Three marks: the ends and the middle of the axis.
fn write_axis(out: &mut TextPage, axis: &ShapeAxis, indent: usize) {
    let at = |share: f64| axis.low * (axis.high / axis.low).powf(share);
    let mark = |share: f64| out.format_latency(at(share).round());
    let (left, middle, right) =
        (mark(0.0), mark(0.5), format!("{} {}", mark(1.0), out.unit_name()));
    let mut line = left;
    for (text, end) in [(middle, axis.cells / 2), (right, axis.cells)] {
        let start = end.saturating_sub(format::width_of(&text)).max(format::width_of(&line) + 1);
        line += &" ".repeat(start - format::width_of(&line));
        line += &text;
    }
    let line = out.paint(Tone::Faint, &line);
    out.push_line(&format!("{}{line}", " ".repeat(indent)));
}
