//! The tables of a lab's report, with their links.

use crate::html::table::Table;
use crate::html::text::clip;
use crate::tables::lab_figures;
use punctual_bundle::lab::LabDocument;

/// Rows of a table; lab.json has the rest, which a note says.
const ROWS: usize = 2_000;

/// The anchor of the figures of a series of a cell, by index; `None` if the table has no room for
/// them.
pub fn figures_place(lab: &LabDocument, cell: usize, series: usize) -> Option<String> {
    let row = lab.cells[..cell].iter().map(|before| before.series.len()).sum::<usize>() + series;
    (row < ROWS).then(|| format!("figures-{row}"))
}

/// The anchor of a cell's verdict and bundle.
fn cell_place(number: usize) -> Option<String> {
    (number < ROWS).then(|| format!("cell-{number}"))
}

/// Every figure of every cell.
pub fn figures(lab: &LabDocument) -> Table {
    let mut table = Table::from(lab_figures::all(lab, ROWS));
    let each = lab.cells.iter().enumerate();
    let cells = each.flat_map(|(cell, of)| std::iter::repeat_n(cell, of.series.len()));
    for ((row, cell), number) in table.rows.iter_mut().zip(cells).zip(0..) {
        row[0].place = Some(format!("figures-{number}"));
        row[0].leads_to = cell_place(cell);
    }
    table
}

/// Each published table with its setup.
pub fn published(lab: &LabDocument) -> Vec<(String, Table)> {
    let known = lab.published.iter().filter(|published| !published.rows.is_empty());
    let setup = |text: &str| clip(&crate::format::plain(text), 1_000);
    let judged = crate::tables::lab::judgements(lab).unless_empty().map(Table::from);
    let judged = judged.map(|table| {
        let about = "Reproduced: as large as published or larger; weaker: smaller; absent: \
                     nothing, where as much as was published would have shown; reversed: the \
                     opposite. Equivalent: the 90 % interval of the difference is within the \
                     margin that the plan states.";
        (about.to_owned(), table)
    });
    let beside = known.map(|one| (setup(&one.setup), lab_figures::published(lab, one).into()));
    beside.chain(judged).collect()
}

/// The spread between the seeds of each cell.
pub fn seeds(lab: &LabDocument, directory: &str) -> Option<Table> {
    lab_figures::seeds(lab, directory, ROWS).unless_empty().map(Table::from)
}

/// Verdict, digest and time of each cell; `pages` are links to their pages.
pub fn cells(lab: &LabDocument, directory: &str, pages: &[Option<String>]) -> Table {
    let mut table = Table::from(lab_figures::cells(lab, directory, ROWS));
    table.rows.iter_mut().zip(0..).for_each(|(row, number)| row[0].place = cell_place(number));
    for (row, page) in table.rows.iter_mut().zip(pages) {
        row[0].file = page.as_deref().map(address);
    }
    table
}

/// The causes of the worst sample of each cell; each links to its page, or to its verdict.
pub fn worst(lab: &LabDocument, pages: &[Option<String>]) -> Option<Table> {
    let mut table = crate::tables::lab::worst(lab, ROWS).unless_empty().map(Table::from)?;
    let with_sample = lab.cells.iter().enumerate().filter(|(_, cell)| cell.worst.is_some());
    for (row, (number, _)) in table.rows.iter_mut().zip(with_sample) {
        row[0].leads_to = cell_place(number);
        row[0].file = pages.get(number).and_then(Option::as_deref).map(address);
    }
    Some(table)
}

/// A path as a link: no part of it is parsed as a scheme, a query or a fragment.
fn address(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'~' => text.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
            byte => text += &format!("%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn link_addresses_are_percent_encoded() {
        assert_eq!(super::address("cells/6.1_rt/r1/report.html"), "cells/6.1_rt/r1/report.html");
        assert_eq!(super::address("javascript:x?#é"), "javascript%3Ax%3F%23%C3%A9");
    }
}
