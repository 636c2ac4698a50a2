//! Interrupts of each CPU during the run: the difference of the counts after and before it.

use super::facts;
use super::table::{Cell, Column, Table};
use super::text::format_name;
use crate::format::{count_text, span_text};
use punctual_core::Nanos;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Lines in the table, the busiest first.
const MAX_LINES: usize = 40;
/// With more CPUs than this, only the sums are shown.
const MAX_CPUS: usize = 16;

/// Counts of one interrupt by CPU.
struct InterruptDifference {
    id: String,
    description: String,
    by_cpu: Vec<u64>,
    total: u64,
}

/// The differences between two readings of one system: interrupts, softirqs and steal time, if both
/// sides are known.
pub(crate) fn difference_tables(before: &Value, after: &Value) -> Vec<Table> {
    let kinds = [
        ("interrupts", "Hardware interrupts during the run"),
        ("softirqs", "Softirqs during the run"),
    ];
    let mut tables: Vec<Table> = kinds
        .iter()
        .filter_map(|(kind, title)| difference_table(before, after, kind, title))
        .collect();
    tables.extend(stolen_time(before, after));
    tables
}

fn difference_table(before: &Value, after: &Value, kind: &str, title: &str) -> Option<Table> {
    let (before, after) = (facts::value_at(before, &[kind])?, facts::value_at(after, &[kind])?);
    let cpus: Vec<u64> = after.get("cpus")?.as_array()?.iter().filter_map(Value::as_u64).collect();
    let mut difference_lines = subtract_readings(before, after)?;
    difference_lines.sort_by_key(|line| std::cmp::Reverse(line.total));
    let quiet = difference_lines.iter().filter(|line| line.total == 0).count();
    let shown_lines: Vec<InterruptDifference> =
        difference_lines.into_iter().filter(|line| line.total > 0).take(MAX_LINES).collect();
    let has_cpu_columns = cpus.len() <= MAX_CPUS;
    let mut columns = vec![Column::text("Interrupt"), Column::figures("All CPUs")];
    if has_cpu_columns {
        columns.extend(cpus.iter().map(|cpu| Column::figures(&format!("CPU {cpu}"))));
    }
    let row = |line: &InterruptDifference| {
        let mut cells = vec![Cell::text(format_name(&line.id)), Cell::count(line.total)];
        if !line.description.is_empty() {
            cells[0].sub = Some(format_name(&line.description));
        }
        // A count for the whole system has no values by CPU.
        let of_cpu = |k: usize| {
            line.by_cpu
                .get(k)
                .filter(|_| line.by_cpu.len() > 1)
                .map_or(Cell::default(), |n| Cell::count(*n))
        };
        cells.extend((0..if has_cpu_columns { cpus.len() } else { 0 }).map(of_cpu));
        cells
    };
    Some(Table {
        caption: format!(
            "{title}. {} did not occur.",
            if quiet == 1 { "One other".to_owned() } else { format!("{quiet} others") }
        ),
        columns,
        rows: shown_lines.iter().map(row).collect(),
        sortable: true,
    })
}

fn subtract_readings(before: &Value, after: &Value) -> Option<Vec<InterruptDifference>> {
    let lines = |of: &'static str, side: &Value| side.get(of).and_then(Value::as_array).cloned();
    let earlier = lines("lines", before)?;
    let earlier: HashMap<&str, Vec<u64>> =
        earlier.iter().filter_map(|l| Some((l.get("id")?.as_str()?, counts_per_cpu(l)))).collect();
    let later = lines("lines", after)?;
    let difference = |line: &Value| {
        let id = line.get("id")?.as_str()?.to_owned();
        let was = earlier.get(id.as_str());
        let since = |(k, now): (usize, u64)| {
            now.saturating_sub(was.and_then(|w| w.get(k)).copied().unwrap_or(0))
        };
        let by_cpu: Vec<u64> = counts_per_cpu(line).into_iter().enumerate().map(since).collect();
        let total = by_cpu.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
        let description =
            line.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(InterruptDifference { id, description, by_cpu, total })
    };
    Some(later.iter().filter_map(difference).collect())
}

fn counts_per_cpu(line: &Value) -> Vec<u64> {
    line.get("counts")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_u64)
        .collect()
}

/// Time that the hypervisor took, and SMIs, by CPU.
fn stolen_time(before: &Value, after: &Value) -> Option<Table> {
    let by_cpu = |side: &Value, kind: &str| -> Option<BTreeMap<u64, u64>> {
        let fields = facts::value_at(side, &[kind])?.as_object()?;
        Some(fields.iter().filter_map(|(cpu, n)| Some((cpu.parse().ok()?, n.as_u64()?))).collect())
    };
    let since = |kind: &str| {
        let (was, now) = (by_cpu(before, kind)?, by_cpu(after, kind)?);
        Some(
            now.into_iter()
                .filter_map(|(cpu, n)| Some((cpu, n.saturating_sub(*was.get(&cpu)?))))
                .collect::<BTreeMap<_, _>>(),
        )
    };
    let (steal, smi) = (since("steal"), since("smi"));
    let cpus: Vec<u64> = steal
        .iter()
        .chain(&smi)
        .flat_map(|map| map.keys().copied())
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    if cpus.is_empty() {
        return None;
    }
    let mut columns = vec![Column::text("CPU")];
    columns.extend(steal.iter().map(|_| Column::figures("Steal time")));
    columns.extend(smi.iter().map(|_| {
        Column::figures("SMIs").with_meaning(
            "system management interrupts: time that the firmware takes, invisible to the kernel",
        )
    }));
    let row = |cpu: &u64| {
        let mut cells = vec![Cell::text(format!("CPU {cpu}"))];
        let time = |ns: &u64| {
            Cell::figure(span_text(Nanos(i64::try_from(*ns).unwrap_or(i64::MAX))), *ns as f64)
        };
        cells.extend(steal.iter().map(|m| m.get(cpu).map_or(Cell::missing_value("unknown"), time)));
        cells.extend(smi.iter().map(|m| {
            m.get(cpu)
                .map_or(Cell::missing_value("unknown"), |n| Cell::figure(count_text(*n), *n as f64))
        }));
        cells
    };
    let rows = cpus.iter().take(512).map(row).collect();
    Some(Table {
        caption: "Steal time and SMIs during the run.".to_owned(),
        columns,
        rows,
        sortable: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn interrupt_counts_are_differences_over_the_run() {
        let side = |timer: [u64; 2], errors: u64| {
            json!({
                "interrupts": {"known": {
                    "cpus": [0, 1], "left_out": 0,
                    "lines": [
                        {"id": "24", "counts": [5, 5], "description": "IO-APIC 5-edge ACPI:Ged"},
                        {"id": "LOC", "counts": timer, "description": "Local timer interrupts"},
                        {"id": "ERR", "counts": [errors], "description": ""},
                    ],
                }},
                "softirqs": "not_asked", "steal": {"known": {"0": errors * 1_000_000}},
                "smi": {"unavailable": "no"},
            })
        };
        let tables = difference_tables(&side([100, 200], 0), &side([150, 1_200], 3));
        let shown = |table: &Table| {
            let rows = table
                .rows
                .iter()
                .map(|r| r.iter().map(|c| c.text.as_str()).collect::<Vec<_>>().join(" | "));
            format!("{}\n{}", table.caption, rows.collect::<Vec<_>>().join("\n"))
        };
        insta::assert_snapshot!(tables.iter().map(shown).collect::<Vec<_>>().join("\n"), @r"
        Hardware interrupts during the run. One other did not occur.
        LOC | 1,050 | 50 | 1,000
        ERR | 3 |  | 
        Steal time and SMIs during the run.
        CPU 0 | 3 ms
        ");
    }
}
