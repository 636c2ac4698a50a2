//! The worst samples of all series, with links to what else happened at those instants.

use super::gather::{PageSeries, SeriesLine};
use super::table::{Cell, Column, Show, Table};
use super::text::format_name;
use crate::format::micros_text;
use punctual_bundle::meta::is_latency;
use punctual_core::Sample;

/// The worst `rows` samples of all series; `shown` of each series are marked in the plot over time.
pub(crate) fn worst_table(content: &PageSeries<'_>, rows: usize, shown: usize) -> Option<Table> {
    let of_line = |(k, line): (usize, &'_ SeriesLine<'_>)| {
        line.worst_samples()
            .iter()
            .enumerate()
            .map(move |(place, sample)| (*sample, k, place))
            .collect::<Vec<_>>()
    };
    let is_latency = |(_, line): &(usize, &SeriesLine<'_>)| {
        is_latency(&line.series.meta.workload, &line.series.meta.name)
    };
    let lines = content.lines.iter().enumerate();
    let mut worst_samples: Vec<(Sample, usize, usize)> =
        lines.filter(is_latency).flat_map(of_line).collect();
    worst_samples.sort_by_key(|(sample, ..)| std::cmp::Reverse(sample.latency()));
    worst_samples.truncate(rows);
    let row = |(sample, k, place): &(Sample, usize, usize)| {
        let line = &content.lines[*k];
        let since = line.time_since_zero(sample.due).as_secs_f64();
        let latency = sample.latency();
        let exact = format!(
            "{} ns; due at {} ns on {}",
            latency.ns(),
            sample.due.ns(),
            line.series.meta.clock
        );
        let show = (*place < shown).then_some(Show { series: *k, sample: *place });
        let utc = match line.to_utc(sample.due) {
            Some(at) => {
                Cell::figure(at.strftime("%H:%M:%S%.6f").to_string(), at.as_microsecond() as f64)
            }
            None => Cell::missing_value("unknown"),
        };
        vec![
            Cell {
                exact: Some(exact),
                show,
                ..Cell::figure(micros_text(latency), latency.ns() as f64)
            },
            Cell::text(format_name(&line.full)),
            Cell::figure(format!("{since:.6}"), since),
            utc,
            Cell::figure(sample.cpu.to_string(), f64::from(sample.cpu)),
            Cell::count(sample.seq),
        ]
    };
    let rows: Vec<Vec<Cell>> = worst_samples.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        caption: format!("The {} worst samples of all series; latency in µs.", rows.len()),
        columns: vec![
            Column::figures("Latency"),
            Column::text("Series"),
            Column::figures("Due, s")
                .with_meaning("since the phase began (of imports: since the series did)"),
            Column::figures("Due, UTC"),
            Column::figures("CPU"),
            Column::figures("Sample").with_meaning("index in the series, from 0"),
        ],
        rows,
        sortable: true,
    })
}
