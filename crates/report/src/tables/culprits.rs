//! The causes of all explained samples combined.

use super::{Cell, Column, Table};
use crate::sentence::explain::{blamed, title};
use punctual_explain::explain::Ranking;

/// Causes with their culprits, the longest time first; `title` is the table's.
pub fn table(heading: String, ranking: &Ranking) -> Table {
    let columns = vec![
        Column::text("cause", 0),
        Column::text("who", 0).at_most(24),
        Column::figures("share", 0),
        Column::figures("time", 1),
        Column::figures("samples", 2),
        Column::figures("longest in", 4).meaning("samples of which it was the longest part"),
        Column::figures("longest", 3),
    ];
    let rows = ranking.culprits.iter().map(|culprit| {
        vec![
            Cell::text(title(culprit.cause)),
            Cell::text(blamed(culprit)),
            Cell { bar: Some(culprit.share), ..Cell::share(culprit.share).strong() },
            Cell::time(culprit.time.ns()),
            Cell::count(culprit.samples),
            Cell::count(culprit.leads),
            Cell::time(culprit.longest.ns()),
        ]
    });
    Table::new(heading, columns).rows(rows).sortable().shown(12, 20)
}
