//! The worst samples of all series, with links to what else happened at those instants.

use super::gather::{PageSeries, SeriesLine};
use super::table::{Cell, Column, Show, Table};
use super::text::name;
use crate::format::micros;
use punctual_bundle::meta::is_latency;
use punctual_core::Sample;

/// The worst `rows` samples of all series; `shown` of each series are marked in the plot over time.
pub fn table(content: &PageSeries<'_>, rows: usize, shown: usize) -> Option<Table> {
    let of_line = |(k, line): (usize, &'_ SeriesLine<'_>)| {
        line.worst()
            .iter()
            .enumerate()
            .map(move |(place, sample)| (*sample, k, place))
            .collect::<Vec<_>>()
    };
    let is_latency = |(_, line): &(usize, &SeriesLine<'_>)| {
        is_latency(&line.series.meta.workload, &line.series.meta.name)
    };
    let lines = content.lines.iter().enumerate();
    let mut all: Vec<(Sample, usize, usize)> = lines.filter(is_latency).flat_map(of_line).collect();
    all.sort_by_key(|(sample, ..)| std::cmp::Reverse(sample.latency()));
    all.truncate(rows);
    let row = |(sample, k, place): &(Sample, usize, usize)| {
        let line = &content.lines[*k];
        let since = line.time(sample.due).as_secs_f64();
        let latency = sample.latency();
        let exact = format!(
            "{} ns; due at {} ns on {}",
            latency.ns(),
            sample.due.ns(),
            line.series.meta.clock
        );
        let show = (*place < shown).then_some(Show { series: *k, sample: *place });
        let utc = match line.instant(sample.due) {
            Some(at) => {
                Cell::figure(at.strftime("%H:%M:%S%.6f").to_string(), at.as_microsecond() as f64)
            }
            None => Cell::missing("unknown"),
        };
        vec![
            Cell { exact: Some(exact), show, ..Cell::figure(micros(latency), latency.ns() as f64) },
            Cell::text(name(&line.full)),
            Cell::figure(format!("{since:.6}"), since),
            utc,
            Cell::figure(sample.cpu.to_string(), f64::from(sample.cpu)),
            Cell::count(sample.seq),
        ]
    };
    let rows: Vec<Vec<Cell>> = all.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        caption: format!("The {} worst samples of all series; latency in µs.", rows.len()),
        columns: vec![
            Column::figures("Latency"),
            Column::text("Series"),
            Column::figures("Due, s")
                .meaning("since the phase began (of imports: since the series did)"),
            Column::figures("Due, UTC"),
            Column::figures("CPU"),
            Column::figures("Sample").meaning("index in the series, from 0"),
        ],
        rows,
        sortable: true,
    })
}
