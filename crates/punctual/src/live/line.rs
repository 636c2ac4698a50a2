//! One line about an attached program.

use super::TextFrames;
use crate::output;
use punctual_core::format;
use punctual_session::attach::watcher::{AttachWatcher, Attached};

/// The line, which overwrites itself.
pub struct LiveLine(TextFrames);

impl LiveLine {
    pub fn new() -> LiveLine {
        LiveLine(TextFrames::new(output::print_stderr))
    }
}

impl AttachWatcher<Attached> for LiveLine {
    fn show_state(&mut self, state: &Attached) {
        self.0.show_text(format!("\r{}\u{1b}[K", format_attached(state)));
    }

    fn on_end(&mut self) {
        self.0.finish();
        output::print_stderr("\r\u{1b}[K");
    }
}

fn format_attached(state: &Attached) -> String {
    let (mut cycles, mut skipped, mut worst) = (0, 0, None);
    for thread in &state.threads {
        cycles += thread.cycles;
        skipped += thread.skipped;
        worst = worst.max(thread.worst);
    }
    let worst = worst.map_or_else(|| "-".to_owned(), |worst| worst.to_readable());
    let threads = format::count_with_noun(state.threads.len() as u64, "thread");
    format!(
        "{}  {threads}  {}  {skipped} skipped  longest response {worst}",
        format::duration_text(state.elapsed),
        format::count_with_noun(cycles, "cycle")
    )
}
