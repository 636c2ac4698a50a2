//! Counters of each measuring thread, as a table beside the figures of its measure.

use crate::counting;
use punctual_bundle::EventCount;
use punctual_core::{Cell, Column, Fact, PerfEvent, Table};
use punctual_record::perf::Total;

pub(crate) struct CounterThread<'a> {
    pub name: &'a str,
    /// The values of its counters, in the order of the events.
    pub totals: &'a [Result<Total, String>],
    /// The number of its samples.
    pub samples: u64,
}

/// The table; `None` if no events were requested.
pub(crate) fn counter_table(events: &[PerfEvent], threads: &[CounterThread<'_>]) -> Option<Table> {
    let rows: Vec<Vec<Cell>> =
        threads.iter().flat_map(|thread| counter_rows(events, thread)).collect();
    let columns = vec![
        Column::new("thread", ""),
        Column::new("event", ""),
        Column::new("total", "count"),
        Column::new("per-sample", "count"),
        Column::new("share", ""),
        Column::new("note", ""),
    ];
    let title = "Counters of the measuring threads, from the first sample to the last".to_owned();
    (!rows.is_empty()).then(|| Table { name: "counters".to_owned(), title, columns, rows })
}

fn counter_rows(events: &[PerfEvent], thread: &CounterThread<'_>) -> Vec<Vec<Cell>> {
    let mut counts: Vec<EventCount> = events
        .iter()
        .zip(thread.totals)
        .map(|(event, total)| counting::event_count(event, total))
        .collect();
    punctual_stats::counts::derive_shares(&mut counts);
    counts.iter().map(|count| counter_row(count, thread)).collect()
}

fn counter_row(count: &EventCount, thread: &CounterThread<'_>) -> Vec<Cell> {
    let known_count = count.count.known_value().copied();
    let name = if count.is_time { format!("{} (ns)", count.name) } else { count.name.clone() };
    let note = match &count.count {
        Fact::Unavailable(why) => format!("unavailable: {why}"),
        _ => count.format_note(),
    };
    let per_sample = known_count
        .filter(|_| thread.samples > 0)
        .map(|count| count as f64 / thread.samples as f64);
    vec![
        thread.name.into(),
        name.into(),
        known_count.map_or_else(|| "unavailable".into(), Cell::from),
        per_sample.map_or(Cell::Nothing, Cell::Number),
        count.format_relation().into(),
        note.into(),
    ]
}
