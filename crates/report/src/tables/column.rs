//! The columns of a table.

/// Where a table is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Face {
    Terminal,
    Page,
}

/// A column: its heading, and what becomes of it where there is little room.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// In lower case; a page begins it with a capital.
    pub heading: String,
    pub meaning: Option<String>,
    /// Whether the terminal shows what it means too, below the table.
    pub explained: bool,
    pub numeric: bool,
    /// In a terminal, 0: always shown; of the others the highest is hidden first.
    pub dispensable: u8,
    /// In a terminal, the columns that its texts take at most.
    pub width: Option<usize>,
    /// Whether its texts are cut further, in a terminal, where hiding columns is not enough.
    pub shrinks: bool,
    /// Whether it holds long texts, to which a page gives room.
    pub wide: bool,
    /// Whether the heading is a name from outside, which stays as it is.
    pub verbatim: bool,
    /// The only one that has it, where the other shows the same otherwise.
    pub only: Option<Face>,
}

impl Column {
    pub fn text(heading: impl Into<String>, dispensable: u8) -> Column {
        Column { heading: heading.into(), dispensable, ..Column::default() }
    }
    pub fn figures(heading: impl Into<String>, dispensable: u8) -> Column {
        Column { numeric: true, ..Column::text(heading, dispensable) }
    }
    /// With its meaning, which a page shows when pointed at.
    pub fn meaning(self, meaning: impl Into<String>) -> Column {
        Column { meaning: Some(meaning.into()), ..self }
    }
    /// With a meaning that is not to be guessed: the terminal has it below the table.
    pub fn explained(self, meaning: impl Into<String>) -> Column {
        Column { explained: true, ..self.meaning(meaning) }
    }
    pub fn at_most(self, width: usize) -> Column {
        Column { width: Some(width), ..self }
    }
    /// Never hidden: what it says is worth more, cut, than not at all.
    pub fn shrinking(self) -> Column {
        Column { shrinks: true, dispensable: 0, ..self }
    }
    pub fn wide(self) -> Column {
        Column { wide: true, ..self }
    }
    pub fn verbatim(self) -> Column {
        Column { verbatim: true, ..self }
    }
    pub fn only(self, face: Face) -> Column {
        Column { only: Some(face), ..self }
    }
    pub fn is_in(&self, face: Face) -> bool {
        self.only.is_none_or(|only| only == face)
    }
}
