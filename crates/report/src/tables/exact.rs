//! Samples in virtual time by the instructions of their parts.

use super::{Cell, Column, Face, Table, Tone};
use crate::format::{count_text, count_with_noun, escape_unsafe, micros_text};
use crate::sentence::exact::{pair_title, part_title, raised_by, without_change};
use punctual_bundle::exact::{DisabledSection, ExactDocument, ExactPair, ExplainedExactSample};
use punctual_core::Nanos;

/// Functions named beside a part.
const NAMED_FUNCTIONS: usize = 3;

fn in_micros(insn_ns: u32, instructions: u64) -> Cell {
    let ns = instructions.saturating_mul(insn_ns.into());
    let text = micros_text(Nanos(i64::try_from(ns).unwrap_or(i64::MAX)));
    Cell::figure(instructions as f64, text)
}

/// The parts of a sample's path from release to arrival, which add up.
pub(crate) fn part_table(document: &ExactDocument, sample: &ExplainedExactSample) -> Table {
    let columns = vec![
        Column::text("part", 0),
        Column::figures("instructions", 0),
        Column::figures("virtual µs", 0),
        Column::figures("share", 1),
        Column::text("largest shares", 0).with_shrinking(),
    ];
    let most_instructions = sample.parts.iter().map(|part| part.instructions).max();
    let rows = sample.parts.iter().map(|part| {
        let share = part.instructions as f64 / sample.instructions.max(1) as f64;
        let named = part.functions.iter().take(NAMED_FUNCTIONS);
        let named =
            named.map(|(name, own)| format!("{} {}", escape_unsafe(name), count_text(*own)));
        let named = named.collect::<Vec<_>>().join(", ");
        let strong = |cell: Cell| {
            if Some(part.instructions) == most_instructions {
                cell.with_strong_tone()
            } else {
                cell
            }
        };
        vec![
            Cell::text(part_title(&part.kind)),
            strong(Cell::count(part.instructions)),
            strong(in_micros(document.ns_per_instruction, part.instructions)),
            Cell { bar: Some(share), ..Cell::share(share) },
            Cell::text(named),
        ]
    });
    let title = "the way from release to arrival; the parts add up";
    let mut table = Table::new(title, columns).with_rows(rows);
    table.remark_in(Face::Page, Tone::Plain, count_with_noun(sample.instructions, "instruction"));
    table
}

/// T1 to T4 of the response to an interrupt, of the worst samples and the ordinary one.
pub(crate) fn response_table(document: &ExactDocument, samples: usize) -> Option<Table> {
    let parts = ["T1 controller", "T2 masked", "T3 entry", "T4 system"];
    let meanings = [
        "from the release until the interrupt is pending: timer and controller",
        "interrupts are disabled until it is accepted",
        "from its acceptance to the first instruction of its handler",
        "from there to the first instruction of the thread",
    ];
    let columns = parts
        .iter()
        .zip(meanings)
        .map(|(part, meaning)| Column::figures(*part, 0).with_meaning(meaning));
    let columns = std::iter::once(Column::text("sample", 0)).chain(columns);
    let columns = columns.chain([Column::figures("all", 0)]).collect();
    let worst = document.worst.iter().take(samples).enumerate();
    let worst = worst.map(|(place, sample)| (format!("{}.", place + 1), sample));
    let ordinary = document.ordinary.iter().map(|sample| ("ordinary".to_owned(), sample));
    let row = |(name, sample): (String, &ExplainedExactSample)| {
        let instruction_counts = sample.response?.into_iter().chain([sample.instructions]);
        let response_cells = instruction_counts
            .map(|instructions| in_micros(document.ns_per_instruction, instructions));
        Some(std::iter::once(Cell::text(name)).chain(response_cells).collect())
    };
    let title = "response to the interrupt, virtual µs";
    Table::new(title, columns).with_rows(worst.chain(ordinary).filter_map(row)).unless_empty()
}

/// Instructions here and there, and the difference. A path without the item has none.
fn here_and_there(here: u64, there: u64) -> [Cell; 3] {
    let count_cell = |instructions| match instructions {
        0 => Cell::absent("–"),
        instructions => Cell::count(instructions),
    };
    let sign = if here < there { "-" } else { "+" };
    let difference = Cell::figure(
        here as f64 - there as f64,
        format!("{sign}{}", count_text(here.abs_diff(there))),
    );
    [
        count_cell(here),
        count_cell(there),
        if here == there { Cell::count(0) } else { difference.with_strong_tone() },
    ]
}

/// Headings of [`here_and_there`].
fn run_columns() -> [Column; 3] {
    [
        Column::figures("here", 0).with_meaning("instructions in this run; – where there are none"),
        Column::figures("there", 0).with_meaning("instructions in the other run"),
        Column::figures("difference", 0),
    ]
}

/// Two tables for the samples of two runs: the parts of their paths, and the functions that differ.
pub(crate) fn difference_tables(of: &ExactPair) -> [Table; 2] {
    let columns = [Column::text("part", 0)].into_iter().chain(run_columns()).collect();
    let all_parts = std::iter::once(("all", of.here, of.there));
    let rows = of
        .parts
        .iter()
        .map(|part| (part_title(&part.kind), part.here, part.there))
        .chain(all_parts);
    let rows = rows.map(|(name, here, there)| {
        std::iter::once(Cell::text(name)).chain(here_and_there(here, there)).collect()
    });
    let parts =
        Table::new(format!("{}: instructions by part", pair_title(of)), columns).with_rows(rows);
    let columns = [Column::text("function", 0).with_shrinking(), Column::text("part", 0)];
    let columns = columns.into_iter().chain(run_columns()).collect();
    let rows = of.functions.iter().map(|one| {
        let names = [Cell::name(&one.function), Cell::text(part_title(&one.kind))];
        names.into_iter().chain(here_and_there(one.here, one.there)).collect()
    });
    let mut functions = Table::new(format!("{}: functions that differ", pair_title(of)), columns)
        .with_rows(rows)
        .with_sorting()
        .with_row_limit(12, 200);
    functions.add_remark(Tone::Faint, without_change(of));
    [parts, functions]
}

/// The kind of a listed section.
#[derive(Clone, Copy)]
pub enum Disabled {
    /// An expiring timer waits for its end.
    Interrupts,
    /// A woken task waits for its end.
    Preemption,
    /// A task was woken, and waited for its end.
    Resched,
    /// A task cannot move to another CPU.
    Migration,
    /// A task waits for a lock.
    Lock,
}

/// The sections of a run by what they disable, without empty kinds.
pub(crate) fn section_kinds(
    all: [&[DisabledSection]; 5],
) -> impl Iterator<Item = (Disabled, &[DisabledSection])> {
    let disabled = [
        Disabled::Interrupts,
        Disabled::Preemption,
        Disabled::Resched,
        Disabled::Migration,
        Disabled::Lock,
    ];
    disabled.into_iter().zip(all).filter(|(_, sections)| !sections.is_empty())
}

/// Sections with interrupts or preemption disabled, or with a task waiting for the scheduler.
pub(crate) fn section_table(
    disabled: Disabled,
    sections: &[DisabledSection],
    insn_ns: u32,
) -> Table {
    let mut columns = vec![
        Column::figures("instructions", 0).with_meaning("of the longest"),
        Column::figures("virtual µs", 0),
        Column::figures("times", 0),
        Column::figures("all instructions", 3).with_meaning("of all together"),
        Column::text("begins in", 0),
        Column::text("the longest ends in", 1).with_shrinking(),
    ];
    let (title, text) = match disabled {
        Disabled::Interrupts => (
            "longest sections with interrupts disabled",
            "a timer that expires at the start of one waits for all of it",
        ),
        Disabled::Preemption => {
            columns.push(Column::text("by", 2).with_meaning("what raised preempt_count above 0"));
            (
                "longest sections with preemption disabled",
                "a task that is woken at the start of one waits for all of it",
            )
        }
        Disabled::Resched => {
            columns[4] = Column::text("set in", 0)
                .with_meaning("the function that ran, or that the interrupt interrupted");
            columns
                .push(Column::text("by", 2).with_meaning("who marked the task for rescheduling"));
            (
                "longest times from need_resched to __schedule",
                "a task was woken, and the scheduler was not called before their end",
            )
        }
        Disabled::Migration => (
            "longest sections with migration disabled",
            "of a task that cannot move to another CPU; others may run meanwhile",
        ),
        Disabled::Lock => {
            columns[4] = Column::text("taken in", 0);
            columns.push(Column::text("by", 2));
            ("longest waits for a lock", "of a task; others run meanwhile")
        }
    };
    let rows = sections.iter().map(|section| {
        let mut row = vec![
            Cell::count(section.longest).with_strong_tone(),
            in_micros(insn_ns, section.longest),
            Cell::count(section.count),
            Cell::count(section.total),
            Cell::name(&section.function),
            Cell::name(&section.ended_in),
        ];
        match disabled {
            Disabled::Interrupts | Disabled::Migration => {}
            Disabled::Lock => row.push(section.by.as_deref().map_or(Cell::absent("–"), Cell::name)),
            Disabled::Preemption => row.push(Cell::text(raised_by(&section.context))),
            Disabled::Resched => row.push(Cell::text(section.context.clone())),
        }
        row
    });
    let mut table = Table::new(title, columns).with_rows(rows).with_sorting().with_row_limit(8, 20);
    table.add_remark(Tone::Faint, text);
    table
}
