//! The contents of the view: progress, a line per series with a small histogram, the CPUs, the
//! loads, warnings.

mod columns;

use super::line::{Paper, Style, TerminalLine, clipped_in_the_middle, lines_of};
use columns::{FIGURE, LiveColumns, draw_bars};
use punctual_core::format::{
    clip_name, count_text, duration_text, escape_unsafe, micros_f64, micros_text, width_of,
};
use punctual_core::{Nanos, Severity};
use punctual_session::run::watcher::Snapshot;
use punctual_session::series_store::KeptSeries;

/// All lines, at most the given number; excess ones are cut at the end of the table.
pub fn draw_snapshot(snapshot: &Snapshot, paper: Paper, height: usize) -> Vec<String> {
    let mut lines = progress_lines(snapshot, paper);
    let mut after = vec![cpu_line(snapshot, paper)];
    after.extend((!snapshot.loads.is_empty()).then(|| load_line(snapshot, paper)));
    after.push(warning_line(snapshot, paper));
    let room = height.saturating_sub(lines.len() + after.len());
    lines.extend(table_lines(snapshot, paper, room));
    lines.extend(after);
    lines.truncate(height);
    lines
}

fn progress_lines(snapshot: &Snapshot, paper: Paper) -> Vec<String> {
    let number = format!("  phase {} of {}: ", snapshot.phase_number + 1, snapshot.phases);
    let title = TerminalLine::new(paper)
        .push(&clip_name(snapshot.experiment, 40, false), Style::BOLD)
        .push(&number, Style::DIM)
        .push(
            &clip_name(&snapshot.phase.meta.name, 40, false),
            Style::BOLD.with_color(Style::CYAN),
        );
    vec![title.finish(), progress_bar(snapshot.elapsed, snapshot.planned, paper)]
}

/// The progress, over the whole width.
pub fn progress_bar(elapsed: Nanos, planned: Option<Nanos>, paper: Paper) -> String {
    match planned.filter(|planned| planned.ns() > 0) {
        Some(planned) => {
            let share = (elapsed.as_secs_f64() / planned.as_secs_f64()).clamp(0.0, 1.0);
            let left = (planned - elapsed).max(Nanos::ZERO);
            let seconds = Nanos::from_secs((left.ns() + 999_999_999) / 1_000_000_000);
            draw_gauge(
                share,
                &format!("{:.0} %, {} left", share * 100.0, duration_text(seconds)),
                paper,
            )
        }
        None => {
            let text = format!(
                "{} so far; Ctrl-C ends the run and keeps all results",
                duration_text(elapsed)
            );
            TerminalLine::new(paper).push(&text, Style::PLAIN).finish()
        }
    }
}

/// A bar over the whole width with its label in the middle. The completed part is in reverse video,
/// which needs no color.
fn draw_gauge(share: f64, label: &str, paper: Paper) -> String {
    let text = format!("{label:^width$}", width = paper.width);
    let done = (share * paper.width as f64).round() as usize;
    let split = text.char_indices().nth(done).map_or(text.len(), |(at, _)| at);
    let (done, left) = text.split_at(split);
    let line = TerminalLine::new(paper).push(done, Style::REVERSE.with_color(Style::CYAN));
    line.push(left, Style::PLAIN.with_color(Style::ON_GRAY)).finish()
}

/// A blank line, the head, a line per series, as far as there is room.
fn table_lines(snapshot: &Snapshot, paper: Paper, room: usize) -> Vec<String> {
    let columns = LiveColumns::for_width(paper.width, longest_name(snapshot));
    let series = snapshot.phase.live_series();
    let fitting = room.saturating_sub(2);
    let mut lines = vec![String::new(), head_line(&columns, paper)];
    lines.extend(lines_of(&series, fitting, paper, |series| row_line(series, &columns, paper)));
    lines.truncate(room);
    lines
}

fn longest_name(snapshot: &Snapshot) -> usize {
    snapshot
        .phase
        .live_series()
        .iter()
        .map(|series| width_of(&escape_unsafe(&series.meta.name)))
        .max()
        .unwrap_or(0)
}

fn head_line(columns: &LiveColumns, paper: Paper) -> String {
    let (what, figures, scale) = columns.head_words();
    let line = TerminalLine::new(paper).push_left(what, columns.name, Style::DIM);
    let line =
        figures.iter().fold(line, |line, word| line.push_right(word, FIGURE + 1, Style::DIM));
    line.push(" ", Style::PLAIN).push(&scale, Style::DIM).finish()
}

fn row_line(series: &KeptSeries, columns: &LiveColumns, paper: Paper) -> String {
    let data = &series.state.data;
    let format_latency = |latency: Option<Nanos>| latency.map_or("-".to_owned(), micros_text);
    let p99 =
        (data.sample_count() >= 1_000).then(|| Nanos(data.whole.value_at_percentile(99.0) as i64));
    let now = series.recent.map(|recent| recent.max);
    let loss = |n: u64| {
        (count_text(n), if n == 0 { Style::DIM } else { Style::BOLD.with_color(Style::RED) })
    };
    let figures = [
        Some((format_latency(data.min), Style::PLAIN)),
        Some((format_latency(now), Style::PLAIN)),
        Some((data.mean().map_or("-".to_owned(), micros_f64), Style::PLAIN)),
        columns.p99.then(|| (format_latency(p99), Style::PLAIN)),
        Some((format_latency(data.max), Style::BOLD)),
        columns.overruns.then(|| loss(data.losses.skipped)),
        columns.lost.then(|| loss(data.losses.dropped)),
    ];
    let name = clipped_in_the_middle(&series.meta.name, columns.name);
    let line = TerminalLine::new(paper).push_left(&name, columns.name, Style::PLAIN);
    let figures = figures.into_iter().flatten();
    let line = figures.fold(line, |line, (text, style)| line.push_right(&text, FIGURE + 1, style));
    let bars = draw_bars(series, columns.bars);
    line.push(" ", Style::PLAIN).push(&bars, Style::PLAIN.with_color(Style::GREEN)).finish()
}

/// The load of all CPUs and of each.
fn cpu_line(snapshot: &Snapshot, paper: Paper) -> String {
    let mut line = TerminalLine::new(paper);
    let Some(load) = snapshot.cpu_load else { return line.finish() };
    line = line.push(&format!("CPU {:>3.0} %  ", load.all.busy * 100.0), Style::PLAIN);
    for (cpu, shares) in &load.cpus {
        let color = match shares.busy {
            busy if busy > 0.9 => Style::RED,
            busy if busy > 0.5 => Style::YELLOW,
            _ => Style::GREEN,
        };
        line = line.push(&format!("#{cpu} "), Style::DIM);
        line =
            line.push(&format!("{:>3.0}%  ", shares.busy * 100.0), Style::PLAIN.with_color(color));
    }
    if load.all.steal >= 0.005 {
        let text = format!("steal {:.1} %", load.all.steal * 100.0);
        line = line.push(&text, Style::PLAIN.with_color(Style::YELLOW));
    }
    line.finish()
}

fn load_line(snapshot: &Snapshot, paper: Paper) -> String {
    let mut line = TerminalLine::new(paper).push("loads  ", Style::DIM);
    for load in snapshot.loads {
        line = line.push(&clip_name(&load.name, 20, false), Style::PLAIN);
        if load.starts != 1 {
            line = line.push(&format!(" ×{}", count_text(load.starts)), Style::DIM);
        }
        if load.failures > 0 {
            line = line.push(
                &format!(" {} failed", count_text(load.failures)),
                Style::PLAIN.with_color(Style::RED),
            );
        }
        line = line.push("  ", Style::PLAIN);
    }
    line.finish()
}

/// Warnings: total missed periods and lost samples, since their columns may not fit, and findings.
fn warning_line(snapshot: &Snapshot, paper: Paper) -> String {
    let series = snapshot.phase.live_series();
    let sum = |of: fn(&KeptSeries) -> u64| series.iter().map(|one| of(one)).sum::<u64>();
    let grave = snapshot.findings.iter().filter(|f| f.severity >= Severity::Warning).count();
    let parts = [
        (sum(|series| series.state.data.losses.skipped), "overrun", "overruns", ""),
        (sum(|series| series.state.data.losses.dropped), "sample lost", "samples lost", ""),
        (grave as u64, "warning", "warnings", ", shown at the end"),
    ];
    let parts = parts.iter().filter(|(n, ..)| *n > 0);
    let parts = parts.map(|(n, one, many, more)| {
        format!("{} {}{more}", count_text(*n), if *n == 1 { one } else { many })
    });
    let text = parts.collect::<Vec<_>>().join("  ");
    TerminalLine::new(paper).push(&text, Style::PLAIN.with_color(Style::YELLOW)).finish()
}
