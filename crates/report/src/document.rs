//! Documents, each built once as a list of sections: headings, sentences, lists, tables, plots,
//! findings.
//!
//! `terminal/document.rs` and [`page`] render them. Texts are unescaped; renderers escape
//! them.

mod comparison;
mod lab;
mod page;
mod run;
mod trend;
mod tune;

pub use comparison::build_comparison_document;
pub use lab::{build_lab_document, lab_page};
pub use run::build_run_document;
pub use trend::build_trend_document;
pub use tune::{build_tuning_document, tune_settings};

use crate::html::plot::Plot;
use crate::tables::{Face, RowLimit, Table, Tone};
use punctual_bundle::Timebase;
use punctual_core::Finding;

#[derive(Debug)]
pub struct Document {
    /// Its kind, in the words of the command line: `lab`.
    pub(crate) kind: &'static str,
    /// The title of its page.
    pub(crate) title: String,
    pub(crate) timebase: Timebase,
    /// Its sections; some are only for one face.
    pub(crate) sections: Vec<(Option<Face>, Section)>,
    face: Option<Face>,
}

#[derive(Debug)]
pub(crate) enum Section {
    Heading(String),
    /// Before all else: the verdict, the figure, what to do, each with its word.
    Answer(Vec<(&'static str, Tone, String)>),
    /// The subject: words with their values.
    About(Vec<(String, String)>),
    Text(Text),
    List(List),
    Table(Table, Title),
    /// A page draws them.
    Plots(Vec<Plot>),
    /// The plots of a page with a script.
    Curves,
    Findings(Vec<Finding>),
}

/// A paragraph.
#[derive(Debug)]
pub(crate) struct Text {
    pub tone: Tone,
    pub text: String,
    /// In a terminal: the columns before its first line, and before the others.
    pub indent: [usize; 2],
}

#[derive(Debug)]
pub(crate) struct List {
    pub items: Vec<Item>,
    /// Items beyond this are only counted.
    pub shown: RowLimit,
}

#[derive(Debug)]
pub(crate) struct Item {
    pub tone: Tone,
    pub text: String,
}

/// Where the title of a table is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Title {
    /// As a heading.
    Heading,
    /// Not shown: the heading above it is enough.
    Above,
    /// As a heading; a page shows the table when the reader opens it.
    Folded,
}

impl Document {
    pub(crate) fn new(
        kind: &'static str,
        title: impl Into<String>,
        timebase: Timebase,
    ) -> Document {
        Document { kind, title: title.into(), timebase, sections: Vec::new(), face: None }
    }

    /// Adds sections that only one face shows.
    pub(crate) fn add_for_face(&mut self, face: Face, add: impl FnOnce(&mut Document)) {
        self.face = Some(face);
        add(self);
        self.face = None;
    }

    pub(crate) fn add(&mut self, section: Section) {
        self.sections.push((self.face, section));
    }

    pub(crate) fn add_heading(&mut self, text: impl Into<String>) {
        self.add(Section::Heading(text.into()));
    }

    pub(crate) fn add_text(&mut self, tone: Tone, text: impl Into<String>) {
        self.add_paragraph(tone, text, [2, 2]);
    }

    /// Paragraphs of one tone.
    pub(crate) fn add_texts(&mut self, tone: Tone, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.add_text(tone, text));
    }

    pub(crate) fn add_paragraph(
        &mut self,
        tone: Tone,
        text: impl Into<String>,
        indent: [usize; 2],
    ) {
        self.add(Section::Text(Text { tone, text: text.into(), indent }));
    }

    /// Items; without any, nothing.
    pub(crate) fn add_list(&mut self, shown: usize, items: impl IntoIterator<Item = Item>) {
        let items: Vec<Item> = items.into_iter().collect();
        if !items.is_empty() {
            let row_limit = RowLimit { terminal: shown, ..RowLimit::default() };
            self.add(Section::List(List { items, shown: row_limit }));
        }
    }

    /// A table; without rows, nothing.
    pub(crate) fn add_table(&mut self, title: Title, table: Table) {
        if let Some(table) = table.unless_empty() {
            self.add(Section::Table(table, title));
        }
    }

    pub(crate) fn add_plots(&mut self, plots: impl IntoIterator<Item = Plot>) {
        let plots: Vec<Plot> = plots.into_iter().collect();
        if !plots.is_empty() {
            self.add(Section::Plots(plots));
        }
    }

    /// The sections of one face.
    pub(crate) fn sections_of(&self, face: Face) -> impl Iterator<Item = &Section> {
        let is_in = move |only: &Option<Face>| only.is_none_or(|only| only == face);
        self.sections.iter().filter(move |(only, _)| is_in(only)).map(|(_, section)| section)
    }
}

impl Item {
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Item {
        Item { tone, text: text.into() }
    }
}
