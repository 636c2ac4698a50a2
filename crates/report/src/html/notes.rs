//! Results of measures besides their samples: counts compared with independent counts, the cost of
//! the clock, further figures and tables.

use super::ReportInput;
use super::table::Table;
use super::text::format_name;
use crate::tables::notes;
use punctual_bundle::meta::MeasureMeta;

const TABLES: usize = 48;

/// All tables in reading order; empty without notes.
pub(crate) fn note_tables(inputs: &[ReportInput<'_>], labels: &[String]) -> Vec<Table> {
    let measures = titled_measures(inputs, labels);
    let shared = [notes::validation_table(&measures), notes::figure_table(&measures)];
    let mut tables: Vec<Table> =
        shared.into_iter().filter_map(|table| table.unless_empty().map(Table::from)).collect();
    let own_tables = measures
        .iter()
        .flat_map(|(who, measure)| measure.notes.shown_tables().map(move |table| (who, table)));
    tables.extend(own_tables.take(TABLES).map(|(who, table)| {
        let title = format!("{}, of {who}", table.title.trim_end_matches('.'));
        Table::from(notes::measure_table(title, table))
    }));
    tables
}

/// Every measure with its title: phase and name, and its bundle if there are several.
pub(crate) fn titled_measures<'a>(
    inputs: &'a [ReportInput<'_>],
    labels: &[String],
) -> Vec<(String, &'a MeasureMeta)> {
    let mut all_measures = Vec::new();
    for (input, label) in inputs.iter().zip(labels) {
        let bundle = if inputs.len() > 1 { format!("{label}: ") } else { String::new() };
        for phase in &input.bundle.phases {
            let called = |measure: &MeasureMeta| {
                format!("{bundle}{}/{}", format_name(&phase.meta.name), format_name(&measure.name))
            };
            all_measures
                .extend(phase.meta.measures.iter().map(|measure| (called(measure), measure)));
        }
    }
    all_measures
}
