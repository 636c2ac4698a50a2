//! CPU usage: CPUs, processes with their busiest threads, interrupts.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::table;
use crate::tables::occupancy::{
    OccupancyRows, cpu_table, interrupt_table, list_contradictions, task_table,
};
use punctual_bundle::intervals::{AllocatorUse, OccupancyDocument};

/// Requests to the kernel's allocators.
pub fn show_allocator(of: &AllocatorUse, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    crate::tables::allocator::allocator_tables(of)
        .iter()
        .for_each(|of| table::write_section(&mut out, of));
    out.finish()
}

/// The whole page; `threads` shows every thread instead of their processes.
pub fn show_occupancy(
    document: &OccupancyDocument,
    threads: bool,
    options: &ShowOptions,
) -> String {
    let mut out = TextPage::new(options);
    table::write_section(&mut out, &cpu_table(document));
    let rows = if threads { OccupancyRows::Threads } else { OccupancyRows::Processes };
    table::write_section(&mut out, &task_table(document, rows));
    if !document.interrupts.is_empty() {
        table::write_section(&mut out, &interrupt_table(document, false));
    }
    let warnings = list_contradictions(document);
    if !warnings.is_empty() {
        out.push_gap();
        warnings.iter().for_each(|text| out.push_paragraph("", "", Tone::Uncertain, text));
    }
    if !document.findings.is_empty() {
        super::findings::write(&mut out, &document.findings);
    }
    out.finish()
}
