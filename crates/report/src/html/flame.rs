//! The stacks of a thread in its longest cycles as a flame graph, drawn without a script
//! (Brendan Gregg, *The Flame Graph*, CACM 59, 2016): the width of a function is its share of the
//! stacks, callers are below.

use super::ReportInput;
use super::notes::titled_measures;
use crate::format::escape_unsafe;
use punctual_core::{Cell, STACKS, Table};
use serde::Serialize;
use std::collections::BTreeMap;

const GRAPHS: usize = 24;
/// The minimum width of a drawn function, in percent.
const NARROW: f64 = 0.3;
const ROW: usize = 18;
const DEPTH: usize = 40;

/// The input of the template.
#[derive(Debug, Serialize)]
pub(crate) struct FlameGraph {
    title: String,
    height: usize,
    boxes: Vec<FlameBox>,
}

#[derive(Debug, Serialize)]
struct FlameBox {
    /// In percent of the whole.
    left: f64,
    width: f64,
    top: usize,
    name: String,
    /// The name, and the number of stacks.
    title: String,
    /// The class of its colour.
    hue: usize,
}

/// Every graph of the page's bundles.
pub(crate) fn collect_graphs(inputs: &[ReportInput<'_>], labels: &[String]) -> Vec<FlameGraph> {
    let measures = titled_measures(inputs, labels);
    let of_stacks = |(who, measure): &(String, &punctual_bundle::meta::MeasureMeta)| {
        let table = measure.notes.tables.iter().find(|table| table.name == STACKS)?;
        build_graph(who, table)
    };
    measures.iter().filter_map(of_stacks).take(GRAPHS).collect()
}

/// A function with the number of stacks that it is in.
#[derive(Default)]
struct FlameNode {
    stacks: f64,
    called: BTreeMap<String, FlameNode>,
}

fn build_graph(who: &str, table: &Table) -> Option<FlameGraph> {
    let place = |name: &str| table.columns.iter().position(|column| column.name == name);
    let columns = (place("what")?, place("stack")?, place("in longest cycles")?);
    let mut whole = FlameNode::default();
    for row in &table.rows {
        let (Some(Cell::Text(what)), Some(Cell::Text(stack)), Some(Cell::Number(stacks))) =
            (row.get(columns.0), row.get(columns.1), row.get(columns.2))
        else {
            continue;
        };
        if !stacks.is_finite() || *stacks <= 0.0 {
            continue;
        }
        whole.stacks += stacks;
        let mut node = &mut whole;
        for name in std::iter::once(what.as_str()).chain(stack.split(';')).take(DEPTH) {
            node = node.called.entry(escape_unsafe(name)).or_default();
            node.stacks += stacks;
        }
    }
    if whole.stacks <= 0.0 {
        return None;
    }
    let mut boxes = Vec::new();
    let depth = draw_called(&whole, whole.stacks, 0.0, 0, &mut boxes);
    boxes.iter_mut().for_each(|one| one.top = (depth - one.top) * ROW);
    let title = format!(
        "Stacks in the longest cycles of {who} ({}): where it was delayed or interrupted, and what \
         it did; callers below",
        crate::format::count_text(whole.stacks as u64)
    );
    Some(FlameGraph { title, height: (depth + 1) * ROW, boxes })
}

/// Draws what a function called, from `left` on; `top` is the number of its row from below. Returns
/// the highest one.
fn draw_called(
    node: &FlameNode,
    whole: f64,
    mut left: f64,
    level: usize,
    boxes: &mut Vec<FlameBox>,
) -> usize {
    let mut highest = level.saturating_sub(1);
    for (name, called) in &node.called {
        let width = 100.0 * called.stacks / whole;
        if width >= NARROW {
            let title = format!("{name}: {} of {whole} stacks", called.stacks);
            let hue = if level == 0 { 0 } else { 1 + name.len() % 3 };
            boxes.push(FlameBox { left, width, top: level, name: name.clone(), title, hue });
            highest = highest.max(draw_called(called, whole, left, level + 1, boxes));
        }
        left += width;
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::Column;

    fn table(rows: &[(&str, &str, f64)]) -> Table {
        let row = |(what, stack, count): &(&str, &str, f64)| {
            vec![Cell::from(*what), Cell::from(*stack), Cell::Number(*count)]
        };
        Table {
            name: STACKS.to_owned(),
            title: String::new(),
            columns: vec![
                Column::new("what", ""),
                Column::new("stack", ""),
                Column::new("in longest cycles", "count"),
            ],
            rows: rows.iter().map(row).collect(),
        }
    }

    #[test]
    fn widths_are_shares_of_the_stacks_and_callers_are_below() {
        let all = table(&[
            ("lock", "main;step;lock", 3.0),
            ("page fault", "main;step;fill", 1.0),
            ("preempted", "main", 0.0),
        ]);
        let graph = build_graph("servo", &all).expect("there are stacks");
        let found = |name: &str| graph.boxes.iter().filter(|one| one.name == name).count();
        assert_eq!((found("step"), found("preempted")), (2, 0), "not in a longest cycle");
        let fill = graph.boxes.iter().find(|one| one.name == "fill").expect("drawn");
        let main = graph.boxes.iter().find(|one| one.name == "main").expect("drawn");
        assert_eq!((fill.width, fill.top, main.top), (25.0, 0, 2 * ROW));
        assert!(graph.height == 4 * ROW && graph.title.contains("servo (4)"));
        let level = |top: usize| -> f64 {
            graph.boxes.iter().filter(|one| one.top == top).map(|one| one.width).sum()
        };
        assert!([0, ROW, 2 * ROW, 3 * ROW].map(level).iter().all(|of| (of - 100.0).abs() < 1e-9));
    }

    #[test]
    fn there_is_no_graph_without_stacks_of_longest_cycles() {
        assert!(build_graph("servo", &table(&[("lock", "main", 0.0)])).is_none());
        assert!(build_graph("servo", &table(&[("lock", "main", f64::NAN)])).is_none());
    }
}
