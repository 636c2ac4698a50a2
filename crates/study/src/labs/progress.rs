//! The progress of a lab: a line that changes on a terminal, a line for each run on a pipe.

use crate::process::to_nanos;
use punctual_core::Nanos;
use punctual_core::format::{clip_name, count_with_noun, duration_text, rough_span_text};
use punctual_session::messages::Messages;
use std::time::Duration;

pub struct LabProgress<'a> {
    messages: &'a dyn Messages,
    total: usize,
    /// Runs that are over, including earlier ones.
    over: usize,
    failed: usize,
    shown: String,
}

impl<'a> LabProgress<'a> {
    /// The progress of this many runs, some of which are over already.
    pub fn new(total: usize, over: usize, messages: &'a dyn Messages) -> LabProgress<'a> {
        let progress = LabProgress { messages, total, over, failed: 0, shown: String::new() };
        if over > 0 {
            progress.show_line(&format!(
                "already done: {over} of {}",
                count_with_noun(total as u64, "run")
            ));
        }
        progress
    }

    pub fn on_run_end(
        &mut self,
        name: &str,
        took: Duration,
        failure: Option<&str>,
        left: Option<Nanos>,
    ) {
        self.over += 1;
        self.failed += usize::from(failure.is_some());
        let took = duration_text(to_nanos(took));
        let line = match failure {
            None => format!("{name}  {took}  {}", self.format_standing(left)),
            Some(why) => {
                format!("{name}  FAILED after {took}: {why}  {}", self.format_standing(left))
            }
        };
        // On a terminal the changing line shows successes.
        if failure.is_some() || self.messages.line_width().is_none() {
            self.show_line(&line);
        }
    }

    /// Shows the current state on a terminal.
    pub fn refresh(&mut self, running: &[String], left: Option<Nanos>) {
        let Some(width) = self.messages.line_width() else { return };
        let failed =
            if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        let standing = self.format_standing(left);
        let line = format!("{standing}{failed}  running: {}", running.join(", "));
        let line = clip_name(&line, width.max(20) - 1, false);
        if line != self.shown {
            self.messages.replace_line(&line);
            self.shown = line;
        }
    }

    /// Restores the terminal.
    pub(crate) fn restore_terminal(&mut self) {
        if !self.shown.is_empty() {
            self.messages.replace_line("");
            self.shown.clear();
        }
    }

    /// Shows a separate line.
    pub(crate) fn show_line(&self, line: &str) {
        if !self.shown.is_empty() {
            self.messages.replace_line("");
        }
        self.messages.show_progress(line);
    }

    fn format_standing(&self, left: Option<Nanos>) -> String {
        let left = match left {
            None => String::new(),
            Some(_) if self.over == self.total => String::new(),
            // The estimate has passed: the rest is unknown.
            Some(left) if left < Nanos::SECOND => ", longer than expected".to_owned(),
            Some(left) => format!(", about {} left", rough_span_text(left)),
        };
        format!("[{} of {}{left}]", self.over, self.total)
    }
}
