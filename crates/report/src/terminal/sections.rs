//! The longest non-preemptible sections of a kernel.

use super::ShowOptions;
use super::exact::format_stack;
use super::paint::{TextPage, Tone};
use super::table;
use crate::format;
use crate::sentence::exact as words;
use crate::tables::RowLimit;
use crate::tables::exact as tables;
use punctual_bundle::sections::SectionsDocument;
use punctual_bundle::summary::VerdictWord;

/// Sections of each kind shown with their calls.
const WITH_CALLS: usize = 3;

/// The whole page, with at most `worst` sections of each kind.
pub fn show_sections(document: &SectionsDocument, worst: usize, options: &ShowOptions) -> String {
    let mut out = TextPage::new(options);
    let insn_ns = document.ns_per_instruction;
    out.push_heading(&format!(
        "non-preemptible sections (kernel {}, {insn_ns} virtual ns an instruction)",
        format::escape_unsafe(&document.kernel)
    ));
    out.push_paragraph("  ", "  ", Tone::Plain, &words::looked_in(document));
    let model = words::explain_preemption_model(document.preemption.as_deref());
    out.push_paragraph("  ", "  ", Tone::Plain, &model);
    for required in &document.required {
        let tone = match required.verdict {
            VerdictWord::Met => Tone::Plain,
            _ => Tone::Bad,
        };
        out.push_paragraph("  ", "    ", tone, &words::format_requirement(required));
    }
    for (disabled, sections) in tables::section_kinds(document.sections.by_kind()) {
        let mut table = tables::section_table(disabled, sections, insn_ns);
        table.shown = RowLimit { terminal: worst, ..table.shown };
        table::write_section(&mut out, &table);
        for (place, section) in sections.iter().take(WITH_CALLS.min(worst)).enumerate() {
            let text =
                words::format_longest_section(section, insn_ns, &format_stack(&section.stack));
            out.push_paragraph(&format!("  {}  ", place + 1), "     ", Tone::Plain, &text);
        }
    }
    if !document.findings.is_empty() {
        super::findings::write(&mut out, &document.findings);
    }
    out.finish()
}
