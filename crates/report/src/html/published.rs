//! Published results beside those of the run.

use super::ReportInput;
use super::table::Table;
use super::text::name;
use crate::tables::published;

/// A table for each bundle whose experiment has published figures.
pub fn tables(inputs: &[ReportInput<'_>], labels: &[String]) -> Vec<Table> {
    let known = inputs.iter().zip(labels);
    let of = known.filter_map(|(input, label)| Some((label, input.summary.published.as_ref()?)));
    let table = |(label, results): (&String, _)| {
        let mut table = published::table(results);
        if inputs.len() > 1 {
            table.title = format!("{} of {}", table.title, name(label));
        }
        table.into()
    };
    of.map(table).collect()
}
