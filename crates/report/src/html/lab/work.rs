//! The work of a lab's loads, drawn: latency over work, and both over an axis of numbers.

use crate::format::escape_unsafe;
use crate::html::plot::Plot;
use crate::html::scatter::{Scatter, ScatterSide};
use crate::tables::lab_figures::cell_figure;
use crate::tables::lab_work::{SERIES, work_name};
use punctual_bundle::lab::{CellDocument, LabDocument};
use punctual_stats::lab::{Throughput, list_throughputs, numeric_values, of_cell};

const PLOTS: usize = 24;

/// Latency over work, a dot for each cell; and work and latency over each axis of numbers.
pub(crate) fn work_plots(lab: &LabDocument) -> Vec<Plot> {
    let works = list_throughputs(lab);
    let series: Vec<(String, String)> = lab.all_series().into_iter().take(SERIES).collect();
    let per_second = |cell: &CellDocument, of: &Throughput| of_cell(cell, of)?.per_second();
    let rate_of =
        |of: &Throughput| ScatterSide::new(&format!("{} a second", work_name(lab, of)), "count");
    let time = |(_, name): &(String, String), metric: &str| {
        ScatterSide::new(&format!("{metric} of {name}"), "ns")
    };
    let mut drawn = Vec::new();
    for of in works.iter().filter(|of| !of.load.is_empty()) {
        for one in &series {
            let dots = lab.cells.iter();
            let dots = dots.filter_map(|cell| {
                Some((per_second(cell, of)?, cell_figure(cell, one, "max")? as f64))
            });
            let caption = format!("max of {} over {}: a dot is a cell", one.1, work_name(lab, of));
            drawn.push((
                escape_unsafe(&caption),
                rate_of(of),
                time(one, "max"),
                dots.collect::<Vec<_>>(),
            ));
        }
    }
    for axis in lab.axes.iter().filter(|axis| numeric_values(axis).is_some()) {
        let place = |cell: &CellDocument| cell.axes.get(&axis.name)?.parse::<f64>().ok();
        let across = || ScatterSide::new(&axis.name, "count");
        for of in &works {
            let dots =
                lab.cells.iter().filter_map(|cell| Some((place(cell)?, per_second(cell, of)?)));
            let caption = format!("{} over {}", work_name(lab, of), axis.name);
            drawn.push((escape_unsafe(&caption), across(), rate_of(of), dots.collect()));
        }
        for one in series.iter().filter(|_| !works.is_empty()) {
            let dots = lab.cells.iter();
            let dots =
                dots.filter_map(|cell| Some((place(cell)?, cell_figure(cell, one, "p99")? as f64)));
            let caption = format!("p99 of {} over {}", one.1, axis.name);
            drawn.push((escape_unsafe(&caption), across(), time(one, "p99"), dots.collect()));
        }
    }
    let plots = drawn.into_iter().filter_map(|(caption, x, y, dots)| {
        Scatter::from_points(caption, &x, &y, &dots, &[]).map(Plot::Dots)
    });
    plots.take(PLOTS).collect()
}
