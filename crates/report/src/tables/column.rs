//! The columns of a table.

/// The output that a table is drawn in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Face {
    Terminal,
    Page,
}

/// A column: its heading, and how it adapts to little room.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// In lower case; a page capitalises it.
    pub heading: String,
    pub meaning: Option<String>,
    /// Whether the terminal also explains it, below the table.
    pub explained: bool,
    pub numeric: bool,
    /// In a terminal: 0 is always shown; of the others the highest is hidden first.
    pub dispensable: u8,
    /// In a terminal, the maximum width of its texts.
    pub width: Option<usize>,
    /// Whether its texts are cut further, in a terminal, if hiding columns is not enough.
    pub shrinks: bool,
    /// Whether its texts are listed below the table where a terminal has no room for it.
    pub listed: bool,
    /// Whether it holds long texts, which get more room on a page.
    pub wide: bool,
    /// Whether the heading is a foreign name, which stays unchanged.
    pub verbatim: bool,
    /// The only face that has it, if the other shows the same otherwise.
    pub only: Option<Face>,
}

impl Column {
    pub fn text(heading: impl Into<String>, dispensable: u8) -> Column {
        Column { heading: heading.into(), dispensable, ..Column::default() }
    }
    pub fn figures(heading: impl Into<String>, dispensable: u8) -> Column {
        Column { numeric: true, ..Column::text(heading, dispensable) }
    }
    /// Sets its meaning, which a page shows on hover.
    pub(crate) fn with_meaning(self, meaning: impl Into<String>) -> Column {
        Column { meaning: Some(meaning.into()), ..self }
    }
    /// Sets a meaning that cannot be guessed: the terminal shows it below the table.
    pub fn with_explanation(self, meaning: impl Into<String>) -> Column {
        Column { explained: true, ..self.with_meaning(meaning) }
    }
    pub fn at_most(self, width: usize) -> Column {
        Column { width: Some(width), ..self }
    }
    /// Never hidden: a cut text is better than none.
    pub(crate) fn with_shrinking(self) -> Column {
        Column { shrinks: true, dispensable: 0, ..self }
    }
    pub(crate) fn with_listing(self) -> Column {
        Column { listed: true, ..self }
    }
    pub(crate) fn with_wide_texts(self) -> Column {
        Column { wide: true, ..self }
    }
    pub(crate) fn with_verbatim_heading(self) -> Column {
        Column { verbatim: true, ..self }
    }
    pub(crate) fn with_only_face(self, face: Face) -> Column {
        Column { only: Some(face), ..self }
    }
    pub fn is_in(&self, face: Face) -> bool {
        self.only.is_none_or(|only| only == face)
    }
}
