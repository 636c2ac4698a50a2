//! The view on a terminal: drawn in place below the prompt, so that what was there before stays to be scrolled back to.

mod draw;

use super::{Snapshot, Watcher};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::{cursor, execute};
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::io::{self, Stderr};

/// The view; the terminal is given back when it ends. No raw mode: Ctrl-C stays a signal.
pub struct View {
    terminal: Option<Terminal<CrosstermBackend<Stderr>>>,
    height: u16,
}

impl View {
    /// Fails where the terminal does not answer.
    pub fn open() -> io::Result<View> {
        execute!(io::stderr(), cursor::Hide)?;
        Ok(View { terminal: None, height: 0 })
    }

    /// A viewport that is high enough for what there is to show.
    fn terminal(&mut self, wanted: u16) -> io::Result<&mut Terminal<CrosstermBackend<Stderr>>> {
        let rows = ratatui::crossterm::terminal::size()?.1;
        let height = wanted.min(rows.saturating_sub(1)).max(1);
        if self.height != height {
            self.give_back();
        }
        if self.terminal.is_none() {
            let options = TerminalOptions { viewport: Viewport::Inline(height) };
            self.terminal = Some(Terminal::with_options(CrosstermBackend::new(io::stderr()), options)?);
            self.height = height;
        }
        self.terminal.as_mut().ok_or_else(|| io::Error::other("there is no terminal"))
    }

    fn give_back(&mut self) {
        if let Some(mut terminal) = self.terminal.take() {
            // The last picture makes room for the summary that follows.
            let _ = terminal.clear();
        }
    }
}

impl Watcher for View {
    fn refresh(&mut self, snapshot: &Snapshot) {
        let drawn = self
            .terminal(draw::height(snapshot))
            .and_then(|terminal| terminal.draw(|frame| draw::draw(frame, snapshot)).map(drop));
        // A terminal that went away (a closed window) does not end the measurement.
        if drawn.is_err() {
            self.terminal = None;
        }
    }

    fn end(&mut self) {
        self.give_back();
        let _ = execute!(io::stderr(), cursor::Show);
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.end();
    }
}
