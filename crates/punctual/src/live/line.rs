//! One line about an attached program.

use super::TextFrames;
use crate::output;
use punctual_core::format;
use punctual_session::attach::watcher::{AttachWatcher, Attached};

/// The line, which overwrites itself.
pub struct LiveLine(TextFrames);

impl LiveLine {
    pub fn new() -> LiveLine {
        LiveLine(TextFrames::new(output::say))
    }
}

impl AttachWatcher<Attached> for LiveLine {
    fn refresh(&mut self, state: &Attached) {
        self.0.show(format!("\r{}\u{1b}[K", line(state)));
    }

    fn end(&mut self) {
        self.0.end();
        output::say("\r\u{1b}[K");
    }
}

fn line(state: &Attached) -> String {
    let (mut cycles, mut skipped, mut worst) = (0, 0, None);
    for thread in &state.threads {
        cycles += thread.cycles;
        skipped += thread.skipped;
        worst = worst.max(thread.worst);
    }
    let worst = worst.map_or_else(|| "-".to_owned(), |worst| worst.readable());
    let threads = format::counted(state.threads.len() as u64, "thread");
    format!(
        "{}  {threads}  {}  {skipped} skipped  longest response {worst}",
        format::duration(state.elapsed),
        format::counted(cycles, "cycle")
    )
}
