//! The result files of systress: two columns (latency in µs, count) from 0 to the range, then `#`
//! lines with the summary, so that existing scripts can plot them.
//!
//! One file per series if a directory can be written. In a single stream, each series is headed by
//! a comment with its name and separated by two blank lines: gnuplot reads them by `index 0`,
//! `index 1`, ….

use super::{Exporter, Writer, full_name, micros};
use crate::terminal::LiveFigures;
use punctual_bundle::load::CpuLoad;
use punctual_bundle::state::SeriesState;
use punctual_bundle::{Bundle, Series, SeriesMeta, Timebase};
use punctual_core::Nanos;
use std::io::{self, Write};

pub(super) const TXT: Exporter = Exporter {
    files: Some(|bundle| series_files(bundle, SystressLayout::Txt)),
    ..Exporter::new(
        "systress",
        "histogram and summary in the layout of systress, one file per series with -o DIR",
        Writer::Bundle(|bundle, out| Ok(write(bundle, SystressLayout::Txt, out)?)),
    )
};
pub(super) const CSV: Exporter = Exporter {
    files: Some(|bundle| series_files(bundle, SystressLayout::Csv)),
    ..Exporter::new(
        "systress-csv",
        "the same with commas",
        Writer::Bundle(|bundle, out| Ok(write(bundle, SystressLayout::Csv, out)?)),
    )
};

/// The separator of columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SystressLayout {
    /// By blanks (`stats.format txt`).
    Txt,
    /// By commas (`stats.format csv`).
    Csv,
}

const COLUMNS: [&str; 11] = [
    "Index",
    "TID",
    "Samples",
    "L_min",
    "L_max",
    "L_avg",
    "Samples_H",
    "L_avg_H",
    "L_med_H",
    "L_std_H",
    "L_mode_H",
];

/// The name that systress gives the file of a timer thread without a name of its own.
pub fn file_name(index: usize, layout: SystressLayout) -> String {
    let ending = if layout == SystressLayout::Csv { "csv" } else { "txt" };
    format!("timer_thread{index:02}.{ending}")
}

/// The block that systress shows at each refresh: a line for each thread, in whole µs, and the load
/// of each CPU and of all if it is measured.
pub fn format_block(threads: &[LiveFigures], load: Option<&CpuLoad>) -> String {
    const LIVE: [&str; 7] = ["Index", "TID", "Samples", "L_min", "L_max", "L_cur", "L_avg"];
    let line = |cells: [String; 7]| {
        cells.iter().map(|cell| format!(" {cell:>10}")).collect::<String>() + "\n"
    };
    let mut text = line(LIVE.map(str::to_owned));
    for of in threads {
        text += &line([
            of.index.to_string(),
            format_cell(Some(of.tid).filter(|tid| *tid > 0).map(|tid| tid.to_string())),
            of.samples.to_string(),
            format_whole_micros(of.min),
            format_whole_micros(of.max),
            format_whole_micros(of.current),
            format_whole_micros(of.mean.map(|ns| Nanos(ns.round() as i64))),
        ]);
    }
    if let Some(load) = load {
        for (cpu, shares) in &load.cpus {
            text += &format!("CPU#{cpu} : {:.1}%\n", shares.busy * 100.0);
        }
        text += &format!("CPU : {:.1}%\n", load.all.busy * 100.0);
    }
    text
}

/// The value, or `-`.
fn format_cell(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

/// In whole µs.
fn format_whole_micros(latency: Option<Nanos>) -> String {
    format_cell(latency.map(|latency| latency.ns().div_euclid(1_000).to_string()))
}

/// Every series in one stream.
pub fn write(bundle: &Bundle, layout: SystressLayout, out: &mut dyn Write) -> io::Result<()> {
    for (k, (phase, series)) in bundle.all_series().enumerate() {
        if k > 0 {
            out.write_all(b"\n\n")?;
        }
        writeln!(out, "# {}", crate::format::escape_unsafe(&full_name(phase, series)))?;
        write_series(k, series, bundle.timebase(), layout, out)?;
    }
    Ok(())
}

/// One file per series: `timer_thread00.txt`, or with several phases `000-timer_thread00.txt`,
/// prefixed with the number of the phase.
pub(crate) fn series_files(
    bundle: &Bundle,
    layout: SystressLayout,
) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for (place, phase) in bundle.phases.iter().enumerate() {
        for (index, series) in phase.series.iter().enumerate() {
            let prefix =
                if bundle.phases.len() > 1 { format!("{place:03}-") } else { String::new() };
            let mut bytes = Vec::new();
            write_series(index, series, bundle.timebase(), layout, &mut bytes)?;
            files.push((format!("{prefix}{}", file_name(index, layout)), bytes));
        }
    }
    Ok(files)
}

/// One series: its histogram and its summary.
pub fn write_series(
    index: usize,
    series: &Series,
    timebase: Timebase,
    layout: SystressLayout,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (meta, state) = (&series.meta, &series.state);
    let bins = micros::occupied_bins(&state.data.exact);
    let between = if layout == SystressLayout::Csv { "," } else { " " };
    let mut occupied = bins.iter().copied().peekable();
    for us in micros::rows_of_bins(&state.data.exact) {
        let count = occupied.next_if(|(bin, _)| *bin == us).map_or(0, |(_, n)| n);
        writeln!(out, "{us}{between}{count}")?;
    }
    let row = summary_cells(index, meta, state, &bins);
    writeln!(
        out,
        "#\n# SUMMARY (latencies in us; columns ending in _H are of the samples within the \
         histogram)"
    )?;
    if let Some(mark) = timebase.short_meaning() {
        writeln!(out, "# {mark}")?;
    }
    match layout {
        SystressLayout::Csv => writeln!(out, "# {}\n# {}", COLUMNS.join(","), row.join(",")),
        SystressLayout::Txt => {
            let line = |cells: &[String]| {
                cells.iter().map(|cell| format!(" {cell:>10}")).collect::<String>()
            };
            writeln!(out, "#{}\n#{}", line(&COLUMNS.map(String::from)), line(&row))
        }
    }
}

/// The cells of the summary row; `-` for a missing value.
fn summary_cells(
    index: usize,
    meta: &SeriesMeta,
    state: &SeriesState,
    bins: &[(u64, u64)],
) -> Vec<String> {
    let data = &state.data;
    let inside = Inside::from_bins(bins);
    // Commas would separate columns.
    let modes = inside.modes.iter().map(u64::to_string).collect::<Vec<_>>().join("/");
    vec![
        index.to_string(),
        format_cell(meta.tid.map(|tid| tid.to_string())),
        data.sample_count().to_string(),
        format_whole_micros(data.min),
        format_whole_micros(data.max),
        format_cell(data.mean().map(|ns| format!("{:.2}", ns / 1e3))),
        inside.count.to_string(),
        format_cell(inside.mean.map(|us| format!("{us:.2}"))),
        format_cell(inside.median.map(|us| us.to_string())),
        format_cell(inside.stddev.map(|us| format!("{us:.2}"))),
        format_cell(Some(modes).filter(|modes| !modes.is_empty())),
    ]
}

/// Figures over the bins, in µs.
struct Inside {
    count: u64,
    mean: Option<f64>,
    median: Option<u64>,
    stddev: Option<f64>,
    modes: Vec<u64>,
}

impl Inside {
    fn from_bins(bins: &[(u64, u64)]) -> Inside {
        let count: u64 = bins.iter().map(|(_, n)| n).sum();
        let weighted = |value: &dyn Fn(f64) -> f64| {
            bins.iter().map(|(us, n)| value(*us as f64) * *n as f64).sum::<f64>()
        };
        let mean = (count > 0).then(|| weighted(&|us| us) / count as f64);
        let stddev = mean.map(|mean| (weighted(&|us| (us - mean).powi(2)) / count as f64).sqrt());
        let fullest = bins.iter().map(|(_, n)| *n).max();
        let mut below = 0;
        let mut median = None;
        for (us, n) in bins {
            below += n;
            // The lower of the two middle values, as in all of punctual's percentiles.
            if median.is_none() && below >= count.div_ceil(2) {
                median = Some(*us);
            }
        }
        let modes = bins.iter().filter(|(_, n)| Some(*n) == fullest).map(|(us, _)| *us).collect();
        Inside { count, mean, median, stddev, modes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_binned_samples_match_their_definition() {
        let inside = Inside::from_bins(&[(2, 1), (4, 3), (5, 2), (7, 1), (9, 1)]);
        assert_eq!((inside.count, inside.mean, inside.stddev), (8, Some(5.0), Some(2.0)));
        assert_eq!((inside.median, inside.modes), (Some(4), vec![4]));
        let nothing = Inside::from_bins(&[]);
        assert_eq!(
            (nothing.count, nothing.mean, nothing.median, nothing.stddev),
            (0, None, None, None)
        );
        assert_eq!(Inside::from_bins(&[(3, 2), (8, 2)]).modes, [3, 8]);
    }
}
