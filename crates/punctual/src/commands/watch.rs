//! `punctual watch`: shows a run of another process, by its bundle.

use super::bundle::{open_bundle, show_options_of};
use crate::exit::{Ending, Exit};
use crate::output;
use punctual_bundle::{Bundle, writer};
use punctual_core::Nanos;
use punctual_report::terminal::{self, RunState};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Show the progress of a run from another terminal
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual watch punctual-nightly-20261103-141500\n  punctual \
                        watch --once BUNDLE\n\npunctual watch only reads the bundle: Ctrl-C ends \
                        the display, not the run. For a run that has ended, the last state is \
                        shown.")]
pub struct WatchArgs {
    /// The bundle
    bundle: PathBuf,
    /// How often to read the bundle
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_interval)]
    interval: Nanos,
    /// Show the current state and exit
    #[arg(long)]
    once: bool,
}

/// The shortest interval: reading loads a CPU that may be measured.
const MIN_INTERVAL: Nanos = Nanos::from_millis(100);
/// A run saves its figures about once a second. One silent for this long has died, or a disk is
/// slow.
const SILENT: Duration = Duration::from_secs(10);

fn parse_interval(text: &str) -> Result<Nanos, String> {
    let interval: Nanos = text.parse().map_err(|why| format!("{why}"))?;
    match interval >= MIN_INTERVAL {
        true => Ok(interval),
        false => Err(format!("`{text}` is too short: at least {MIN_INTERVAL}")),
    }
}

/// Shows the bundle until its run has ended.
pub fn run(args: WatchArgs) -> Ending {
    let mut drawn = 0;
    loop {
        let bundle = open_bundle(&args.bundle)?;
        let state = run_state(&bundle);
        let text = terminal::show_watched(&bundle, &state, &show_options_of(&bundle));
        drawn = draw_text(&text, drawn)?;
        if args.once || matches!(state, RunState::Ended(_) | RunState::Killed) {
            return Ok(Exit::Done);
        }
        std::thread::sleep(args.interval.to_std());
    }
}

/// On a terminal, overwrites the earlier output: at most its number of lines. Elsewhere states
/// follow one another. Returns the number of lines.
fn draw_text(text: &str, before: usize) -> Result<usize, crate::exit::Failure> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| output::terminal_size(&stdout)).flatten();
    let Some((_, height)) = size else {
        output::print_to_reader(text)?;
        return Ok(0);
    };
    let lines: Vec<&str> = text.lines().take(height.saturating_sub(1)).collect();
    let back = if before > 0 { format!("\u{1b}[{before}A") } else { String::new() };
    let body: String = lines.iter().map(|line| format!("{line}\u{1b}[K\n")).collect();
    output::print_to_reader(&format!("{back}\r{body}\u{1b}[J"))?;
    Ok(lines.len())
}

fn run_state(bundle: &Bundle) -> RunState {
    if let Some(ending) = &bundle.manifest.ending {
        return RunState::Ended(ending.outcome.clone());
    }
    // The last part of a continued run is being written.
    let part = bundle.parts.last().unwrap_or(&bundle.directory);
    match last_saved(part) {
        Some(ago) if ago < SILENT => RunState::GoesOn(Nanos(ago.as_nanos() as i64)),
        // The writer holds its lock.
        _ if writer::lock_bundle(part).is_ok() => RunState::Killed,
        Some(ago) => {
            RunState::Silent(Some(Nanos(i64::try_from(ago.as_nanos()).unwrap_or(i64::MAX))))
        }
        None => RunState::Silent(None),
    }
}

/// The time since figures were saved.
fn last_saved(directory: &Path) -> Option<Duration> {
    let phases = std::fs::read_dir(directory.join("phases")).ok()?.flatten();
    let files = phases.filter_map(|phase| std::fs::read_dir(phase.path()).ok()).flatten().flatten();
    let newest = files.filter_map(|file| file.metadata().ok()?.modified().ok()).max()?;
    Some(SystemTime::now().duration_since(newest).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_would_disturb_is_refused() {
        assert_eq!(parse_interval("2s"), Ok(Nanos::from_secs(2)));
        assert!(parse_interval("1ms").is_err_and(|why| why.contains("at least 100ms")));
        assert!(parse_interval("soon").is_err());
    }
}
