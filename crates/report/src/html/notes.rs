//! Results of measures besides their samples: counts compared with independent counts, the cost of
//! the clock, further figures and tables.

use super::ReportInput;
use super::table::Table;
use super::text::name;
use crate::tables::notes;
use punctual_bundle::meta::MeasureMeta;

const TABLES: usize = 48;

/// All tables in reading order; empty without notes.
pub fn tables(inputs: &[ReportInput<'_>], labels: &[String]) -> Vec<Table> {
    let measures = measures(inputs, labels);
    let shared = [notes::validations(&measures), notes::figures(&measures)];
    let mut tables: Vec<Table> =
        shared.into_iter().filter_map(|table| table.unless_empty().map(Table::from)).collect();
    let own = measures
        .iter()
        .flat_map(|(who, measure)| measure.notes.shown_tables().map(move |table| (who, table)));
    tables.extend(own.take(TABLES).map(|(who, table)| {
        let title = format!("{}, of {who}", table.title.trim_end_matches('.'));
        Table::from(notes::own(title, table))
    }));
    tables
}

/// Every measure with its title: phase and name, and its bundle if there are several.
pub fn measures<'a>(
    inputs: &'a [ReportInput<'_>],
    labels: &[String],
) -> Vec<(String, &'a MeasureMeta)> {
    let mut all = Vec::new();
    for (input, label) in inputs.iter().zip(labels) {
        let bundle = if inputs.len() > 1 { format!("{label}: ") } else { String::new() };
        for phase in &input.bundle.phases {
            let called = |measure: &MeasureMeta| {
                format!("{bundle}{}/{}", name(&phase.meta.name), name(&measure.name))
            };
            all.extend(phase.meta.measures.iter().map(|measure| (called(measure), measure)));
        }
    }
    all
}
