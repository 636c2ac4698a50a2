//! The work of a lab's loads, drawn: latency over work, and both over an axis of numbers.

use crate::format::plain;
use crate::html::plot::Plot;
use crate::html::scatter::{Scatter, ScatterSide};
use crate::tables::lab_figures::figure;
use crate::tables::lab_work::{SERIES, what};
use punctual_bundle::lab::{CellDocument, LabDocument};
use punctual_stats::lab::{Throughput, numbers, of_cell, throughputs};

const PLOTS: usize = 24;

/// Latency over work, a dot for each cell; and work and latency over each axis of numbers.
pub(crate) fn plots(lab: &LabDocument) -> Vec<Plot> {
    let works = throughputs(lab);
    let series: Vec<(String, String)> = lab.series().into_iter().take(SERIES).collect();
    let per_second = |cell: &CellDocument, of: &Throughput| of_cell(cell, of)?.per_second();
    let rate_of =
        |of: &Throughput| ScatterSide::new(&format!("{} a second", what(lab, of)), "count");
    let time = |(_, name): &(String, String), metric: &str| {
        ScatterSide::new(&format!("{metric} of {name}"), "ns")
    };
    let mut drawn = Vec::new();
    for of in works.iter().filter(|of| !of.load.is_empty()) {
        for one in &series {
            let dots = lab.cells.iter();
            let dots = dots
                .filter_map(|cell| Some((per_second(cell, of)?, figure(cell, one, "max")? as f64)));
            let caption = format!("max of {} over {}: a dot is a cell", one.1, what(lab, of));
            drawn.push((plain(&caption), rate_of(of), time(one, "max"), dots.collect::<Vec<_>>()));
        }
    }
    for axis in lab.axes.iter().filter(|axis| numbers(axis).is_some()) {
        let place = |cell: &CellDocument| cell.axes.get(&axis.name)?.parse::<f64>().ok();
        let across = || ScatterSide::new(&axis.name, "count");
        for of in &works {
            let dots =
                lab.cells.iter().filter_map(|cell| Some((place(cell)?, per_second(cell, of)?)));
            let caption = format!("{} over {}", what(lab, of), axis.name);
            drawn.push((plain(&caption), across(), rate_of(of), dots.collect()));
        }
        for one in series.iter().filter(|_| !works.is_empty()) {
            let dots = lab.cells.iter();
            let dots =
                dots.filter_map(|cell| Some((place(cell)?, figure(cell, one, "p99")? as f64)));
            let caption = format!("p99 of {} over {}", one.1, axis.name);
            drawn.push((plain(&caption), across(), time(one, "p99"), dots.collect()));
        }
    }
    let plots = drawn.into_iter().filter_map(|(caption, x, y, dots)| {
        Scatter::of(caption, &x, &y, &dots, &[]).map(Plot::Dots)
    });
    plots.take(PLOTS).collect()
}
