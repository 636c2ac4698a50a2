//! What is to be shown while something goes on: the command decides how it looks, and whether
//! anybody sees it.

use punctual_plan::Problems;
use std::path::Path;

pub type Listener = &'static dyn Messages;

/// Shows messages; that nobody can read them ends nothing.
pub trait Messages: Sync {
    fn say(&self, text: &str);
    /// An error that does not end the command.
    fn complain(&self, message: &str);
    fn warn(&self, problems: &Problems);
    /// A line of progress; not for who wants none.
    fn progress(&self, line: &str);
    /// The same, of somebody: a bold name on a terminal.
    fn progress_of(&self, name: &str, line: &str);
    /// The columns of the line that [`Messages::replace_line`] shows; `None` where there is none:
    /// no terminal, or progress is not wanted.
    fn line_width(&self) -> Option<usize>;
    /// Shows a line in the place of the one before; an empty one takes it away.
    fn replace_line(&self, line: &str);
}

pub struct Silent;

impl Messages for Silent {
    fn say(&self, _: &str) {}
    fn complain(&self, _: &str) {}
    fn warn(&self, _: &Problems) {}
    fn progress(&self, _: &str) {}
    fn progress_of(&self, _: &str, _: &str) {}
    fn line_width(&self) -> Option<usize> {
        None
    }
    fn replace_line(&self, _: &str) {}
}

/// A path as it may stand in a message.
pub fn shown(path: &Path) -> String {
    punctual_report::format::plain(&path.to_string_lossy())
}
