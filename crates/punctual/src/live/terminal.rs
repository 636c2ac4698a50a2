//! The view on a terminal: drawn in place below the prompt; earlier output stays in the scrollback.
//!
//! The terminal is never queried: one that does not answer, as many serial consoles, works as well.
//! No raw mode: Ctrl-C stays a signal. The cursor waits below the view and stays visible, so a
//! killed run leaves the terminal usable.

mod attached;
mod disturbed;
mod draw;
mod line;

use super::text::END_TIMEOUT;
use crate::output;
use line::Paper;
use punctual_core::format::clip_name;
use punctual_session::attach::watcher::{self, Attached, Disturbed};
use punctual_session::frames::FrameWriter;
use punctual_session::run::watcher::{RunWatcher, Snapshot};
use std::io::{self, Write};

/// The assumed size of a terminal that does not know it (a serial console).
const USUAL_SIZE: (usize, usize) = (80, 24);

/// The view; the terminal is restored when it ends.
pub struct TerminalView {
    screen: ScreenWriter,
    width: usize,
    colored: bool,
}

/// The writer of pictures: their lines, and the width of the terminal.
enum ScreenWriter {
    /// Before measuring.
    Here(Screen),
    /// While something is measured, which never waits for a terminal.
    Thread(FrameWriter<Picture>),
    Ended,
}

type Picture = (Vec<String>, usize);

/// The picture on the terminal.
#[derive(Default)]
struct Screen {
    shown: Vec<String>,
    width: usize,
}

impl Screen {
    fn show_picture(&mut self, (lines, width): Picture) {
        let kept: &[String] = if width == self.width { &self.shown } else { &[] };
        let text = redraw_text(self.shown.len(), kept, &lines);
        // A closed terminal (a closed window) does not end the measurement.
        let _ = io::stderr().lock().write_all(text.as_bytes());
        (self.shown, self.width) = (lines, width);
    }
}

impl TerminalView {
    pub fn new() -> TerminalView {
        let screen = ScreenWriter::Here(Screen::default());
        TerminalView { screen, width: 0, colored: output::is_colored(&io::stderr()) }
    }

    /// Clears the view, for the summary that follows.
    fn clear(&mut self) {
        self.show_lines(Vec::new(), self.width);
        if let ScreenWriter::Thread(writer) =
            std::mem::replace(&mut self.screen, ScreenWriter::Ended)
        {
            writer.finish(END_TIMEOUT);
        }
    }

    /// Draws the view for the terminal's current size, from now on on a thread of its own.
    fn draw_picture(&mut self, draw: impl FnOnce(Paper, usize) -> Vec<String>) {
        if let ScreenWriter::Here(screen) = &mut self.screen {
            let mut screen = std::mem::take(screen);
            self.screen = match FrameWriter::start(move |picture| screen.show_picture(picture)) {
                Ok(writer) => ScreenWriter::Thread(writer),
                Err(_) => ScreenWriter::Ended,
            };
        }
        let (width, height) = output::terminal_size(io::stderr()).unwrap_or(USUAL_SIZE);
        // The cursor's line is not part of the view.
        self.show_lines(
            draw(Paper { width, colored: self.colored }, height.saturating_sub(1)),
            width,
        );
    }

    fn show_lines(&mut self, lines: Vec<String>, width: usize) {
        self.width = width;
        match &mut self.screen {
            ScreenWriter::Here(screen) => screen.show_picture((lines, width)),
            ScreenWriter::Thread(writer) => writer.put_frame((lines, width)),
            ScreenWriter::Ended => {}
        }
    }
}

/// The text that updates a picture of this height to these lines: only changed lines are written,
/// for slow serial lines. The cursor is at the beginning of the line below the picture, before and
/// after. Control sequences of ECMA-48: CUU, EL, ED.
fn redraw_text(height: usize, kept: &[String], lines: &[String]) -> String {
    // A count of 0 would mean 1.
    let mut text = if height > 0 { format!("\r\u{1b}[{height}A") } else { String::new() };
    for (number, line) in lines.iter().enumerate() {
        if kept.get(number) != Some(line) {
            // Erased first: at the right margin the cursor is on the last character.
            text += &format!("\u{1b}[2K{line}\r");
        }
        text.push('\n');
    }
    if height > lines.len() {
        text += "\u{1b}[J";
    }
    text
}

impl RunWatcher for TerminalView {
    fn show_preparation(&mut self, what: &str) {
        let (width, _) = output::terminal_size(io::stderr()).unwrap_or(USUAL_SIZE);
        self.show_lines(vec![clip_name(&format!("{what} …"), width, false)], width);
    }

    fn show_snapshot(&mut self, snapshot: &Snapshot) {
        self.draw_picture(|paper, height| draw::draw_snapshot(snapshot, paper, height));
    }

    fn on_run_end(&mut self) {
        self.clear();
    }
}

impl watcher::AttachWatcher<Attached> for TerminalView {
    fn show_state(&mut self, state: &Attached) {
        self.draw_picture(|paper, height| attached::draw_attached(state, paper, height));
    }

    fn on_end(&mut self) {
        self.clear();
    }
}

impl watcher::AttachWatcher<Disturbed> for TerminalView {
    fn show_state(&mut self, state: &Disturbed) {
        self.draw_picture(|paper, height| disturbed::draw_disturbed(state, paper, height));
    }

    fn on_end(&mut self) {
        self.clear();
    }
}

impl Drop for TerminalView {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal emulation for these control sequences, without a right margin.
    struct Emulator {
        lines: Vec<String>,
        row: usize,
        written: usize,
    }

    impl Emulator {
        fn write(&mut self, text: &str) {
            let mut rest = text;
            while let Some(c) = rest.chars().next() {
                if let Some(control) = rest.strip_prefix("\u{1b}[") {
                    let end = control.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                    match (&control[..end], &control[end..=end]) {
                        (n, "A") => {
                            self.row =
                                self.row.checked_sub(n.parse().unwrap()).expect("above the screen")
                        }
                        ("2", "K") => self.lines[self.row].clear(),
                        ("", "J") => {
                            self.lines.truncate(self.row);
                            self.lines.push(String::new());
                        }
                        other => panic!("{other:?}"),
                    }
                    rest = &control[end + 1..];
                    continue;
                }
                match c {
                    '\r' => {}
                    '\n' => {
                        self.row += 1;
                        self.lines.resize(self.lines.len().max(self.row + 1), String::new());
                    }
                    c => {
                        self.lines[self.row].push(c);
                        self.written += 1;
                    }
                }
                rest = &rest[c.len_utf8()..];
            }
        }
    }

    #[test]
    fn redrawing_replaces_only_the_previous_picture() {
        let mut screen = Emulator {
            lines: vec!["$ punctual run".to_owned(), String::new()],
            row: 1,
            written: 0,
        };
        let pictures: [&[&str]; 5] =
            [&["a", "b", "c"], &["a", "B", "c"], &["longer", "", "c", "d"], &["x"], &[]];
        let mut last: Vec<String> = Vec::new();
        for picture in pictures {
            let lines: Vec<String> = picture.iter().map(|line| (*line).to_owned()).collect();
            screen.write(&redraw_text(last.len(), &last, &lines));
            assert_eq!(screen.lines[0], "$ punctual run");
            assert_eq!(screen.lines[1..screen.lines.len() - 1], lines);
            assert_eq!(screen.lines.last().map(String::as_str), Some(""));
            assert_eq!(screen.row, lines.len() + 1);
            last = lines;
        }
        // Unchanged lines cost nothing.
        let before = screen.written;
        let same = ["stays".to_owned()];
        screen.write(&redraw_text(0, &[], &same));
        screen.write(&redraw_text(1, &same, &same));
        assert_eq!(screen.written - before, "stays".len());
    }
}
