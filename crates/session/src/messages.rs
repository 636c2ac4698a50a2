//! Messages during a command: the command decides on their form and whether to show them.

use punctual_plan::Problems;
use std::path::Path;

pub type Listener = &'static dyn Messages;

/// Shows messages; failure to write them ends nothing.
pub trait Messages: Sync {
    fn say(&self, text: &str);
    /// An error that does not end the command.
    fn report_error(&self, message: &str);
    fn warn(&self, problems: &Problems);
    /// A line of progress; omitted if not wanted.
    fn show_progress(&self, line: &str);
    /// A line of progress of a named source: bold on a terminal.
    fn progress_of(&self, name: &str, line: &str);
    /// The columns of the line that [`Messages::replace_line`] shows; `None`: no terminal, or no
    /// progress wanted.
    fn line_width(&self) -> Option<usize>;
    /// Replaces the last line; an empty one removes it.
    fn replace_line(&self, line: &str);
}

pub struct Silent;

impl Messages for Silent {
    fn say(&self, _: &str) {}
    fn report_error(&self, _: &str) {}
    fn warn(&self, _: &Problems) {}
    fn show_progress(&self, _: &str) {}
    fn progress_of(&self, _: &str, _: &str) {}
    fn line_width(&self) -> Option<usize> {
        None
    }
    fn replace_line(&self, _: &str) {}
}

/// A path, safe to show in a message.
pub fn display_path(path: &Path) -> String {
    punctual_core::format::escape_unsafe(&path.to_string_lossy())
}
