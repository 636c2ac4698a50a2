//! A document in a terminal.

use super::ShowOptions;
use super::paint::{TextPage, Tone};
use super::{answer, findings, table};
use crate::document::{Document, Item, List, Mark, Section, Title};
use crate::format;
use crate::tables::Face;

/// Headings are cut at this many columns.
const HEADING: usize = 200;

impl Document {
    /// The text for a terminal.
    pub fn terminal(&self, options: &ShowOptions) -> String {
        let options = &options.in_time(self.timebase);
        let mut out = TextPage::new(options);
        let mut sections = self.of(Face::Terminal).peekable();
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
            let unit = if of_times { format!(" ({})", out.unit()) } else { String::new() };
            let text = format::clipped(text, HEADING, out.options.ascii);
            out.heading(&(text + &unit));
        }
        Section::Answer(lines) => answer::write_lines(out, lines),
        Section::About(lines) => {
            out.gap();
            for (word, text) in lines {
                let word = out.paint(Tone::Strong, &format::plain(word));
                out.line(&format!("{word}  {}", format::plain(text)));
            }
        }
        Section::Text(text) => {
            if text.is_apart {
                out.gap();
            }
            let [first, hang] = text.indent.map(|columns| " ".repeat(columns));
            out.paragraph(&first, &hang, text.tone, &text.text);
        }
        Section::List(list) => write_list(out, list),
        Section::Table(table, Title::Heading | Title::Folded) => table::section(out, table),
        Section::Table(table, Title::Above) => table::body(out, table),
        Section::Plots(_) | Section::Curves => {}
        Section::Findings(all) => findings::write(out, all),
    }
}

fn write_list(out: &mut TextPage, list: &List) {
    for Item { mark, tone, text, commands } in list.items.iter().take(list.shown.terminal) {
        let first = match mark {
            Mark::None => "  ".to_owned(),
            Mark::Number(number) => format!("  {number}  "),
        };
        let hang = " ".repeat(format::width_of(&first).max(4));
        out.paragraph(&first, &hang, *tone, text);
        commands.iter().for_each(|command| out.line(&format!("{hang}{}", format::plain(command))));
    }
    let more = list.items.len().saturating_sub(list.shown.terminal);
    if more > 0 {
        out.paragraph("  ", "  ", Tone::Faint, &format!("and {more} more: see --json"));
    }
}
