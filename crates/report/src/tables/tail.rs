//! The tail of a series: the levels that a model predicts, and the conditions of the model.

use super::{Cell, Column, Table, Tone, Value};
use crate::sentence::{p_is, spoken};
use punctual_bundle::tail::{ModelGate, ReturnLevel};

/// The levels expected once in a period, by both models.
pub fn levels(levels: &[ReturnLevel]) -> Table {
    let columns = vec![
        Column::text("once in", 0),
        Column::figures("level", 0).meaning("by peaks over a threshold"),
        Column::figures("from", 1).meaning("lower end of the 95 % interval"),
        Column::figures("to", 1).meaning("upper end of the 95 % interval"),
        Column::figures("by block maxima", 2).meaning("the other model, which must agree"),
    ];
    let row = |level: &ReturnLevel| {
        let period = level.period as f64;
        let times = [level.level, level.low, level.high, level.by_block_maxima];
        let times = times.into_iter().map(|ns| Cell::from(Value::Time(ns)));
        [Cell::figure(period, spoken(period))].into_iter().chain(times).collect()
    };
    Table::new("return levels of bursts, with 95 % intervals", columns).rows(levels.iter().map(row))
}

/// Whether each condition of the model holds.
pub(crate) fn conditions(gates: &[ModelGate]) -> Table {
    let columns = vec![
        Column::text("condition", 0),
        Column::text("verdict", 0),
        Column::figures("probability", 0).meaning("of a test that the condition holds"),
    ];
    let row = |gate: &ModelGate| {
        let verdict = match gate.open {
            true => Cell::verdict("✓", "met", Tone::Good),
            false => Cell::verdict("✗", "not met", Tone::Uncertain),
        };
        let p = gate.p.map_or_else(Cell::default, |p| Cell::figure(p, p_is(p)));
        vec![Cell::text(&gate.what), verdict, p]
    };
    Table::new("conditions of the model", columns).rows(gates.iter().map(row)).untimed()
}
