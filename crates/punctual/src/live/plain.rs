//! Lines on a pipe: one per series at each refresh.

use super::TextFrames;
use crate::output;
use punctual_core::format::{duration_text, escape_unsafe};
use punctual_report::terminal::{LiveFigures, live_header, live_line};
use punctual_session::run::watcher::{RunWatcher, Snapshot};
use std::time::{Duration, Instant};

/// The minimum time between lines: a log file needs no more than one per second and series.
const AT_MOST_EVERY: Duration = Duration::from_millis(990);

/// Writes lines to standard error.
pub struct PlainLines {
    frames: TextFrames,
    last: Option<Instant>,
    phase: Option<usize>,
}

impl PlainLines {
    pub fn new() -> PlainLines {
        PlainLines { frames: TextFrames::new(output::print_stderr), last: None, phase: None }
    }
}

/// The title: `[loaded] 3.0 s of 8.0 s  CPU 54.3 %  CPU#0 51.0 % …`
fn format_title(snapshot: &Snapshot) -> String {
    let planned_part =
        snapshot.planned.map_or(String::new(), |planned| format!(" of {}", duration_text(planned)));
    let mut text = format!(
        "[{}] {}{planned_part}",
        escape_unsafe(&snapshot.phase.meta.name),
        duration_text(snapshot.elapsed)
    );
    if let Some(load) = snapshot.cpu_load {
        text += &format!("  CPU : {:.1}%", load.all.busy * 100.0);
        load.cpus.iter().for_each(|(cpu, shares)| {
            text += &format!("  CPU#{cpu} : {:.1}%", shares.busy * 100.0)
        });
    }
    text
}

/// The figures of each series.
pub fn live_figures(snapshot: &Snapshot) -> Vec<LiveFigures> {
    let live = snapshot.phase.live_series();
    let figures = live.iter().enumerate().map(|(index, series)| {
        let current = series.recent.map(|recent| recent.last);
        LiveFigures::from_series(index, series.meta.tid, &series.state.data, current)
    });
    figures.collect()
}

impl RunWatcher for PlainLines {
    fn show_snapshot(&mut self, snapshot: &Snapshot) {
        let new_phase = self.phase != Some(snapshot.phase_number);
        if !new_phase && self.last.is_some_and(|last| last.elapsed() < AT_MOST_EVERY) {
            return;
        }
        (self.last, self.phase) = (Some(Instant::now()), Some(snapshot.phase_number));
        let mut text = format_title(snapshot) + "\n";
        if new_phase {
            text += &(live_header() + "\n");
        }
        for (series, figures) in snapshot.phase.live_series().iter().zip(live_figures(snapshot)) {
            text += &(live_line(&figures, &series.meta.name) + "\n");
        }
        self.frames.show_text(text);
    }

    fn on_run_end(&mut self) {
        self.frames.finish();
    }
}
