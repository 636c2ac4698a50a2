//! A line of the view: text in styles, never wider than the terminal.

use punctual_core::format::{escape_unsafe, width_of};

/// How text looks: an attribute and a color of Select Graphic Rendition (ECMA-48, 8.3.117).
#[derive(Clone, Copy, Default)]
pub struct Style {
    pub attribute: Option<u8>,
    pub color: Option<u8>,
}

impl Style {
    pub const PLAIN: Style = Style { attribute: None, color: None };
    pub const BOLD: Style = Style { attribute: Some(1), color: None };
    pub const DIM: Style = Style { attribute: Some(2), color: None };
    pub const REVERSE: Style = Style { attribute: Some(7), color: None };
    pub const RED: u8 = 31;
    pub const GREEN: u8 = 32;
    pub const YELLOW: u8 = 33;
    pub const CYAN: u8 = 36;
    /// The background.
    pub const ON_GRAY: u8 = 100;

    pub const fn with_color(self, color: u8) -> Style {
        Style { color: Some(color), ..self }
    }
}

/// The limits of a line.
#[derive(Clone, Copy)]
pub struct Paper {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether colors are allowed (no-color.org).
    pub colored: bool,
}

/// A line in progress.
pub struct TerminalLine {
    text: String,
    left: usize,
    colored: bool,
}

impl TerminalLine {
    pub fn new(paper: Paper) -> TerminalLine {
        TerminalLine { text: String::new(), left: paper.width, colored: paper.colored }
    }

    /// Adds as much of the text as fits. Names from outside are harmless only after `clipped` or
    /// `plain`.
    pub fn push(mut self, text: &str, style: Style) -> TerminalLine {
        let fitting = as_much_as_fits(text.chars(), self.left);
        self.left -= width_of(&fitting);
        let codes = [style.attribute, style.color.filter(|_| self.colored)];
        let codes: Vec<String> = codes.into_iter().flatten().map(|code| code.to_string()).collect();
        match codes.is_empty() || fitting.is_empty() {
            true => self.text += &fitting,
            false => self.text += &format!("\u{1b}[{}m{fitting}\u{1b}[0m", codes.join(";")),
        }
        self
    }

    /// Adds the text at the right end of a column of this width.
    pub fn push_right(self, text: &str, width: usize, style: Style) -> TerminalLine {
        let before = " ".repeat(width.saturating_sub(width_of(text)));
        self.push(&before, Style::PLAIN).push(text, style)
    }

    /// Adds the text at the left end of a column of this width.
    pub fn push_left(self, text: &str, width: usize, style: Style) -> TerminalLine {
        let after = " ".repeat(width.saturating_sub(width_of(text)));
        self.push(text, style).push(&after, Style::PLAIN)
    }

    pub fn finish(self) -> String {
        self.text
    }
}

/// A name of at most this width, shortened in the middle: series of one measure differ at the end.
pub fn clipped_in_the_middle(name: &str, width: usize) -> String {
    let name = escape_unsafe(name);
    if width_of(&name) <= width {
        return name;
    }
    let room = width.saturating_sub(1);
    let end =
        as_much_as_fits(name.chars().rev(), room - room / 2).chars().rev().collect::<String>();
    as_much_as_fits(name.chars(), room - width_of(&end)) + "…" + &end
}

fn as_much_as_fits(characters: impl Iterator<Item = char>, width: usize) -> String {
    let mut text = String::new();
    let mut used = 0;
    for c in characters {
        used += width_of(c.encode_utf8(&mut [0; 4]));
        if used > width {
            break;
        }
        text.push(c);
    }
    text
}

/// A line for each, with the number of those without room.
pub fn lines_of<T>(
    all: &[T],
    room: usize,
    paper: Paper,
    line: impl Fn(&T) -> String,
) -> Vec<String> {
    let shown_rows = if all.len() <= room { all.len() } else { room.saturating_sub(1) };
    let mut lines: Vec<String> = all.iter().take(shown_rows).map(line).collect();
    if shown_rows < all.len() {
        let rest_text = format!("+ {} more", all.len() - shown_rows);
        lines.push(TerminalLine::new(paper).push(&rest_text, Style::DIM).finish());
    }
    lines
}

/// A drawn text without its attributes.
#[cfg(test)]
pub fn strip_attributes(text: &str) -> String {
    let mut bare = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        bare += &rest[..at];
        let end = rest[at..].find('m').expect("the end of an attribute");
        rest = &rest[at + end + 1..];
    }
    bare + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_never_wider_than_the_terminal() {
        let line = |width, colored| {
            let line = TerminalLine::new(Paper { width, colored });
            let line = line.push_left("日本語", 8, Style::BOLD).push_right(
                "12.0",
                6,
                Style::DIM.with_color(Style::RED),
            );
            line.push("!", Style::PLAIN).finish()
        };
        assert_eq!(line(20, true), "\u{1b}[1m日本語\u{1b}[0m    \u{1b}[2;31m12.0\u{1b}[0m!");
        assert_eq!(line(20, false), "\u{1b}[1m日本語\u{1b}[0m    \u{1b}[2m12.0\u{1b}[0m!");
        assert_eq!(line(11, true), "\u{1b}[1m日本語\u{1b}[0m    \u{1b}[2;31m1\u{1b}[0m");
        assert_eq!(line(5, true), "\u{1b}[1m日本\u{1b}[0m ");
        assert_eq!(line(0, true), "");
    }

    #[test]
    fn long_names_are_truncated_in_the_middle() {
        assert_eq!(clipped_in_the_middle("timer/cpu0", 10), "timer/cpu0");
        assert_eq!(clipped_in_the_middle("a rather long name/12", 10), "a ra…me/12");
        assert_eq!(clipped_in_the_middle("日本語日本語", 6), "日…語");
        assert_eq!(clipped_in_the_middle("abc\u{1b}[2J", 1), "…");
        assert_eq!(clipped_in_the_middle("abc", 0), "…");
    }
}
