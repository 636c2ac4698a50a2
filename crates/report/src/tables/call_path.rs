//! The functions of one system call.

use super::{Cell, Column, Table};
use crate::format::{count_with_noun, escape_unsafe, micros_text};
use punctual_core::call_path::PathStage;
use punctual_core::{CallPath, Nanos};

/// The tree of a system call, a function a row, with its time and that of its own.
pub fn call_path(path: &CallPath) -> Table {
    let exact = path.source == "exact";
    let columns = vec![
        Column::text("stage", 0),
        Column::text("function", 0),
        Column::figures(if exact { "virtual µs" } else { "µs" }, 0),
        Column::figures("own", 0).with_meaning("without the functions that it called"),
    ];
    let time = |ns: i64| Cell::figure(ns as f64, micros_text(Nanos(ns)));
    let rows = path.functions.iter().map(|of| {
        let function = format!("{:1$}{2}", "", 2 * of.depth as usize, escape_unsafe(&of.function));
        let stage = Cell::text(of.stage.map_or("", PathStage::as_str));
        vec![stage, Cell::text(function), time(of.ns), time(of.own_ns)]
    });
    let which = match (exact, path.calls) {
        (true, _) => "every instruction in virtual time".to_owned(),
        (_, 1) => "the only whole call; the tracer's cost of each function included".to_owned(),
        (_, calls) => format!(
            "the median of {}; the tracer's cost of each function included",
            count_with_noun(calls, "whole call")
        ),
    };
    let (call, functions) =
        (escape_unsafe(&path.call), count_with_noun(path.functions.len() as u64, "function"));
    Table::new(format!("the path of {call}: {functions}; {which}"), columns)
        .with_row_limit(1_000, 1_000)
        .with_rows(rows)
}
