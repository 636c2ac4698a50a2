//! Experiment files in TOML: see punctual-experiment(5).

mod measure;
mod sections;
pub(crate) mod table;

use crate::context::LoadOptions;
use crate::experiment::Experiment;
use crate::limits::{MAX_PHASES, MAX_SECTIONS};
use crate::notes::Notes;
use crate::problem::{Problem, ProblemKind, Problems};
use crate::text::{SourceFormat, SourceText, Span};
use std::sync::Arc;
use table::Table;
use toml::de::DeTable;

/// Reads what can be read, with every problem found on the way. Only without an error is the experiment whole.
pub(crate) fn read(source: Arc<SourceText>, options: &LoadOptions) -> (Experiment, Problems) {
    let mut notes = Notes::new(source.clone(), options);
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    for error in errors {
        let span = error.span().map(Span::from);
        notes.problems.push(Problem::error(ProblemKind::Syntax, span, syntax_message(error.message())));
    }
    let mut file = Table::new(document.get_ref(), Span::default(), "an experiment file");
    let settings = match file.take_table(&mut notes, "experiment", "`[experiment]`") {
        Some(table) => sections::settings(&mut notes, table),
        None => Default::default(),
    };
    let measures = file.take_sections(&mut notes, "measure", "`[[measure]]`");
    let loads = file.take_sections(&mut notes, "load", "`[[load]]`");
    let phases = file.take_sections(&mut notes, "phase", "`[[phase]]`");
    let partition = file.take_table(&mut notes, "partition", "`[partition]`");
    let record = file.take_table(&mut notes, "record", "`[record]`");
    let measures = sections::bounded(&mut notes, measures, MAX_SECTIONS);
    let loads = sections::bounded(&mut notes, loads, MAX_SECTIONS);
    let phases = sections::bounded(&mut notes, phases, MAX_PHASES);
    let experiment = Experiment {
        source: source.clone(),
        format: SourceFormat::Toml,
        settings,
        partition: partition.map(|table| sections::partition(&mut notes, table)),
        record: record.map(|table| sections::record(&mut notes, table)),
        measures: measures.into_iter().filter_map(|table| measure::measure(&mut notes, table)).collect(),
        loads: loads.into_iter().map(|table| sections::load(&mut notes, table)).collect(),
        phases: phases.into_iter().map(|table| sections::phase(&mut notes, table)).collect(),
        warnings: Vec::new(),
    };
    file.finish(&mut notes);
    (experiment, notes.problems)
}

/// The parser's words, with the one message that its users stumble over made plain.
fn syntax_message(message: &str) -> String {
    match message {
        "duplicate key" => "this key is set twice".to_owned(),
        "string values must be quoted, expected literal string" => "a string must stand in quotes".to_owned(),
        other => other.to_owned(),
    }
}
