//! Live views of a measurement.

mod line;
mod plain;
mod terminal;
mod text;

use crate::output::has_terminal;
use line::LiveLine;
pub use plain::live_figures;
use punctual_session::attach::watcher::{self as attached, Attached, Disturbed};
use punctual_session::run::watcher::{RunWatcher, Snapshot};
use terminal::TerminalView;
pub use text::TextFrames;

/// Shows nothing.
struct Nobody;

impl RunWatcher for Nobody {
    fn is_watching(&self) -> bool {
        false
    }
    fn show_snapshot(&mut self, _: &Snapshot) {}
}

/// The watcher for standard error: a live view on a terminal, lines on a pipe, nothing with
/// --quiet. Standard output is reserved for the results.
pub fn stderr_watcher(quiet: bool) -> Box<dyn RunWatcher> {
    match (quiet, has_terminal()) {
        (true, _) => Box::new(Nobody),
        (false, true) => Box::new(terminal::TerminalView::new()),
        (false, false) => Box::new(plain::PlainLines::new()),
    }
}

/// The watcher of measured CPUs, if standard error is a terminal.
pub fn cpu_watcher(quiet: bool) -> Box<dyn RunWatcher> {
    match quiet || !has_terminal() {
        true => Box::new(Nobody),
        false => Box::new(OfCpus(TerminalView::new())),
    }
}

/// The watcher of a run that attaches to a program, if standard error is a terminal: a live view,
/// or one line if a command writes to the same terminal.
pub fn attached_watcher(quiet: bool, is_command: bool) -> Box<dyn RunWatcher> {
    match (quiet || !has_terminal(), is_command) {
        (true, _) => Box::new(Nobody),
        (false, true) => Box::new(OfProgram(LiveLine::new())),
        (false, false) => Box::new(OfProgram(TerminalView::new())),
    }
}

/// Shows the attached program of a run.
struct OfProgram<W>(W);

impl<W: attached::AttachWatcher<Attached>> RunWatcher for OfProgram<W> {
    fn show_snapshot(&mut self, snapshot: &Snapshot) {
        self.0.show_state(&Attached::from_snapshot(snapshot));
    }

    fn on_run_end(&mut self) {
        self.0.on_end();
    }
}

/// Shows the attached CPUs of a run.
struct OfCpus<W>(W);

impl<W: attached::AttachWatcher<Disturbed>> RunWatcher for OfCpus<W> {
    fn show_snapshot(&mut self, snapshot: &Snapshot) {
        self.0.show_state(&Disturbed::from_snapshot(snapshot));
    }

    fn on_run_end(&mut self) {
        self.0.on_end();
    }
}
