//! Experiment files in TOML: see punctual-experiment(5).

mod measure;
mod target;

use crate::context::LoadOptions;
use crate::experiment::Experiment;
use crate::limits::{MAX_PHASES, MAX_SECTIONS};
use crate::notes::ProblemNotes;
use crate::problem::{Problem, ProblemKind, Problems};
use crate::section::{FileSection, limit_sections};
use crate::table::TomlTable;
use crate::text::{SourceFormat, SourceText, Span};
use std::sync::Arc;
pub(crate) use target::parse_short_target as short_target;
use toml::de::DeTable;

/// Reads as much as possible and notes every problem. The experiment is complete only without
/// errors.
pub(crate) fn read(source: Arc<SourceText>, options: &LoadOptions) -> (Experiment, Problems) {
    let mut notes = ProblemNotes::new(source.clone(), options);
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    for error in errors {
        let span = error.span().map(Span::from);
        notes.problems.push(Problem::error(
            ProblemKind::Syntax,
            span,
            syntax_message(error.message()),
        ));
    }
    let mut file = TomlTable::new(document.get_ref(), Span::default(), "an experiment file");
    let settings = match file.take_table(&mut notes, "experiment", "`[experiment]`") {
        Some(table) => FileSection::read_whole(&mut notes, table),
        None => Default::default(),
    };
    let measures = file.take_sections(&mut notes, "measure", "`[[measure]]`");
    let loads = file.take_sections(&mut notes, "load", "`[[load]]`");
    let phases = file.take_sections(&mut notes, "phase", "`[[phase]]`");
    let partition = file.take_table(&mut notes, "partition", "`[partition]`");
    let record = file.take_table(&mut notes, "record", "`[record]`");
    let explain = file.take_table(&mut notes, "explain", "`[explain]`");
    let target = file.take_table(&mut notes, "target", "`[target]`");
    let published = file.take_table(&mut notes, "published", "`[published]`");
    let measures = limit_sections(&mut notes, measures, MAX_SECTIONS);
    let loads = limit_sections(&mut notes, loads, MAX_SECTIONS);
    let phases = limit_sections(&mut notes, phases, MAX_PHASES);
    let experiment = Experiment {
        source: source.clone(),
        format: SourceFormat::Toml,
        settings,
        target: target.map(|table| FileSection::read_whole(&mut notes, table)),
        partition: partition.map(|table| FileSection::read_whole(&mut notes, table)),
        record: record.map(|table| FileSection::read_whole(&mut notes, table)),
        explain: explain.map(|table| FileSection::read_whole(&mut notes, table)),
        published: published.map(|table| FileSection::read_whole(&mut notes, table)),
        measures: measures
            .into_iter()
            .filter_map(|table| measure::read_measure(&mut notes, table))
            .collect(),
        loads: loads.into_iter().map(|table| FileSection::read_whole(&mut notes, table)).collect(),
        phases: phases
            .into_iter()
            .map(|table| FileSection::read_whole(&mut notes, table))
            .collect(),
        warnings: Vec::new(),
    };
    file.finish(&mut notes);
    (experiment, without_consequences(notes.problems))
}

/// Removes consequences of a syntax error: from its line on, values and headers may be misread, and
/// missing items may be present.
fn without_consequences(problems: Problems) -> Problems {
    let syntax = problems.iter().filter(|problem| problem.kind == ProblemKind::Syntax);
    let Some(first) = syntax.filter_map(|problem| problem.span).map(|span| span.start).min() else {
        return problems;
    };
    let line = problems.source_text().text[..first].rfind('\n').map_or(0, |end| end + 1);
    if problems.is_full() {
        return problems;
    }
    problems.into_filtered(|problem| match problem.kind {
        ProblemKind::Syntax => true,
        ProblemKind::Combination | ProblemKind::Reference => false,
        _ => problem.span.is_some_and(|span| span.start < line),
    })
}

/// The parser's message, with the most confusing one clarified.
fn syntax_message(message: &str) -> String {
    match message {
        "duplicate key" => "this key is set twice".to_owned(),
        "string values must be quoted, expected literal string" => {
            "a string must be quoted".to_owned()
        }
        other => other.to_owned(),
    }
}
