//! A document as Markdown, for comments and summaries of CI systems: one screen.
//!
//! Names come from files and programs: nothing in them may become a link, a mention of a person, or
//! HTML (GitHub Flavored Markdown, 6.1 and 6.10).

use super::ShowOptions;
use super::paint::TextPage;
use super::table::{format_title as table_title, paint_cell};
use crate::document::{Document, Item, Section, Title};
use crate::format;
use crate::tables::{Cell, Face, Table};
use punctual_core::Severity;

/// Rows of a table, and items of a list.
const ROWS: usize = 12;

impl Document {
    /// The text, with the first line of its answer in bold.
    pub fn to_markdown(&self) -> String {
        let options = ShowOptions { whole: true, ..ShowOptions::default() };
        let options = options.in_time(self.timebase);
        let page = TextPage::new(&options);
        let mut text = String::new();
        for section in self.sections_of(Face::Terminal) {
            let part = section_text(&page, section);
            if !part.is_empty() {
                text += if text.is_empty() { "" } else { "\n" };
                text += &part;
            }
        }
        text
    }
}

fn section_text(page: &TextPage, section: &Section) -> String {
    match section {
        Section::Heading(text) => format!("### {}\n", escape_markdown(text)),
        Section::Answer(lines) => {
            let line = |(number, (word, _, text)): (usize, &(&str, _, String))| match number {
                0 => format!("**{}**\n\n", escape_markdown(text)),
                _ => format!("- {}: {}\n", escape_markdown(word), escape_markdown(text)),
            };
            lines.iter().enumerate().map(line).collect()
        }
        Section::About(lines) => {
            let line = |(word, text): &(String, String)| {
                format!("- {}: {}\n", escape_markdown(word), escape_markdown(text))
            };
            lines.iter().map(line).collect()
        }
        Section::Text(text) => format!("{}\n", escape_markdown(&text.text)),
        Section::List(list) => {
            let shown_count = list.shown.terminal.min(ROWS);
            let mut text: String = list.items.iter().take(shown_count).map(format_item).collect();
            text += &format_remainder(list.items.len().saturating_sub(shown_count));
            text
        }
        Section::Table(of, title) => format_table(page, of, *title),
        Section::Plots(_) | Section::Curves => String::new(),
        Section::Findings(all) => {
            let grave = all.iter().filter(|of| of.severity >= Severity::Warning);
            grave.take(ROWS).map(|of| format!("- {}\n", escape_markdown(&of.message))).collect()
        }
    }
}

fn format_item(item: &Item) -> String {
    format!("- {}\n", escape_markdown(&item.text))
}

fn format_remainder(number: usize) -> String {
    if number > 0 { format!("\nand {number} more\n") } else { String::new() }
}

fn format_table(page: &TextPage, table: &Table, title: Title) -> String {
    let (columns, rows, left) = table.contents_for(Face::Terminal);
    let title = match title {
        Title::Heading | Title::Folded => {
            format!("{}\n\n", escape_markdown(&table_title(page, table)))
        }
        Title::Above => String::new(),
    };
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let heads = columns.iter().map(|column| escape_markdown(&column.heading)).collect();
    let rules = columns.iter().map(|column| if column.numeric { "--:" } else { "---" }.to_owned());
    let cells = |row: &Vec<&Cell>| {
        row.iter().map(|cell| escape_markdown(&paint_cell(page, cell).0)).collect()
    };
    let body: String = rows.iter().take(ROWS).map(|row| line(cells(row))).collect();
    let left = left + rows.len().saturating_sub(ROWS);
    format!("{title}{}{}{body}{}", line(heads), line(rules.collect()), format_remainder(left))
}

/// A text that stays what it is, on one line.
fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in format::escape_unsafe(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("&#64;"),
            '#' => out.push_str("&#35;"),
            '|' => out.push_str("&#124;"),
            '~' => out.push_str("&#126;"),
            '!' => out.push_str("&#33;"),
            ':' => out.push_str("&#58;"),
            '*' | '_' | '[' | ']' | '`' | '\\' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    // A plain colon is no address.
    out.replace("&#58; ", ": ").replace("www.", "www&#46;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Column, Tone};
    use punctual_bundle::Timebase;

    #[test]
    fn names_of_others_become_neither_links_nor_html() {
        let hostile = "<img src=x> [a](http://b) @root #1 | `c` *d* www.e.f";
        let mut document = Document::new("run", "x", Timebase::Own);
        document.add(Section::Answer(vec![
            ("baseline", Tone::Bad, format!("noise: {hostile}")),
            ("verdict", Tone::Bad, "NOT MET".to_owned()),
        ]));
        let columns = vec![Column::text("series", 0), Column::figures("p99", 0)];
        let rows = (0..20).map(|_| vec![Cell::name(hostile), Cell::time(41_500)]);
        document.add_table(Title::Heading, Table::new("figures", columns).with_rows(rows));
        let text = document.to_markdown();
        for wrong in ["<img", "](", "@root", " #1", "://", "`c", "www."] {
            assert!(!text.replace("\\`", "").replace("\\]", "").contains(wrong), "{wrong}: {text}");
        }
        assert!(text.starts_with("**noise: &lt;img"), "{text}");
        assert!(
            text.contains(
                "\n- verdict: NOT MET\n\nfigures (µs)\n\n| series | p99 |\n| --- | --: |"
            )
        );
        let row = text.lines().find(|line| line.ends_with("| 41.5 |")).expect(&text);
        assert_eq!(row.matches('|').count(), 3, "{row}");
        assert!(text.ends_with("and 8 more\n"), "{text}");
    }
}
