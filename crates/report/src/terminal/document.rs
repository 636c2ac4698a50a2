//! A document in a terminal.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::{answer, findings, table};
use crate::document::{Document, Item, List, Section, Title};
use crate::format;
use crate::tables::Face;

/// Headings are cut at this many columns.
const HEADING: usize = 200;

impl Document {
    /// The text for a terminal.
    pub fn to_terminal_text(&self, options: &ShowOptions) -> String {
        let options = &options.in_time(self.timebase);
        let mut out = TextPage::new(options);
        let mut sections = self.sections_of(Face::Terminal).peekable();
        while let Some(section) = sections.next() {
            write(&mut out, section, sections.peek().copied());
        }
        out.finish()
    }
}

fn write(out: &mut TextPage, section: &Section, next: Option<&Section>) {
    match section {
        Section::Heading(text) => {
            let of_times = matches!(next, Some(Section::Table(of, Title::Above)) if of.has_times());
            let unit = if of_times { format!(" ({})", out.unit_name()) } else { String::new() };
            let text = format::clip_name(text, HEADING, out.options.ascii);
            out.push_heading(&(text + &unit));
        }
        Section::Answer(lines) => answer::write_lines(out, lines),
        Section::About(lines) => {
            out.push_gap();
            for (word, text) in lines {
                let word = out.paint(Tone::Strong, &format::escape_unsafe(word));
                out.push_line(&format!("{word}  {}", format::escape_unsafe(text)));
            }
        }
        Section::Text(text) => {
            let [first, hang] = text.indent.map(|columns| " ".repeat(columns));
            out.push_paragraph(&first, &hang, text.tone, &text.text);
        }
        Section::List(list) => write_list(out, list),
        Section::Table(table, Title::Heading | Title::Folded) => table::write_section(out, table),
        Section::Table(table, Title::Above) => table::write_body(out, table),
        Section::Plots(_) | Section::Curves => {}
        Section::Findings(all) => findings::write(out, all),
    }
}

fn write_list(out: &mut TextPage, list: &List) {
    for Item { tone, text } in list.items.iter().take(list.shown.terminal) {
        out.push_paragraph("  ", "    ", *tone, text);
    }
    let omitted_count = list.items.len().saturating_sub(list.shown.terminal);
    if omitted_count > 0 {
        out.push_paragraph(
            "  ",
            "  ",
            Tone::Faint,
            &format!("and {omitted_count} more: see --json"),
        );
    }
}
