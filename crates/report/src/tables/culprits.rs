//! The causes of all explained samples combined.

use super::{Cell, Column, Table};
use crate::sentence::explain::{cause_title, culprit_name};
use punctual_explain::explain::Ranking;

/// Causes with their culprits, the longest time first; `title` is the table's.
pub fn culprit_table(heading: String, ranking: &Ranking) -> Table {
    let columns = vec![
        Column::text("cause", 0),
        Column::text("who", 0).at_most(24),
        Column::figures("share", 0),
        Column::figures("time", 1),
        Column::figures("samples", 2),
        Column::figures("longest in", 4).with_meaning("samples of which it was the longest part"),
        Column::figures("longest", 3),
    ];
    let rows = ranking.culprits.iter().map(|culprit| {
        vec![
            Cell::text(cause_title(culprit.cause)),
            Cell::text(culprit_name(culprit)),
            Cell { bar: Some(culprit.share), ..Cell::share(culprit.share).with_strong_tone() },
            Cell::time(culprit.time.ns()),
            Cell::count(culprit.samples),
            Cell::count(culprit.leads),
            Cell::time(culprit.longest.ns()),
        ]
    });
    Table::new(heading, columns).with_rows(rows).with_sorting().with_row_limit(12, 20)
}
