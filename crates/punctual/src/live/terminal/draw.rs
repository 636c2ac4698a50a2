//! What the view shows: progress, a line a series with a small histogram, the CPUs, the loads, doubts.

mod columns;

use super::super::Snapshot;
use crate::conduct::SeriesRun;
use columns::{Columns, bars, clipped_in_the_middle};
use punctual_core::{Nanos, Severity};
use punctual_report::format::{clipped, count, duration, micros, micros_f64, plain, width_of};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Gauge, Paragraph, Row, Table};

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// Rows that the view wants.
pub fn height(snapshot: &Snapshot) -> u16 {
    let rows = 2 + 2 + snapshot.phase.series.len() + 1 + usize::from(!snapshot.loads.is_empty()) + 1;
    u16::try_from(rows).unwrap_or(u16::MAX)
}

/// Draws everything; what does not fit is cut at the end of the table.
pub fn draw(frame: &mut Frame, snapshot: &Snapshot) {
    let loads = u16::from(!snapshot.loads.is_empty());
    let parts = [
        Constraint::Length(2),
        Constraint::Fill(1),
        Constraint::Length(1),
        Constraint::Length(loads),
        Constraint::Length(1),
    ];
    let [progress, table, cpus, load, doubts] = Layout::vertical(parts).areas(frame.area());
    draw_progress(frame, progress, snapshot);
    draw_table(frame, table, snapshot);
    frame.render_widget(cpu_line(snapshot), cpus);
    frame.render_widget(load_line(snapshot), load);
    frame.render_widget(doubt_line(snapshot), doubts);
}

fn draw_progress(frame: &mut Frame, area: Rect, snapshot: &Snapshot) {
    let [title, bar] = Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    let phase = clipped(&snapshot.phase.meta.name, 40, false);
    let number = format!("  phase {} of {}: ", snapshot.phase_number + 1, snapshot.phases);
    let spans = vec![
        Span::styled(clipped(snapshot.experiment, 40, false), Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(number, dim()),
        Span::styled(phase, Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD)),
    ];
    frame.render_widget(Paragraph::new(Line::from(spans)), title);
    match snapshot.planned.filter(|planned| planned.ns() > 0) {
        Some(planned) => {
            let share = (snapshot.elapsed.as_secs_f64() / planned.as_secs_f64()).clamp(0.0, 1.0);
            let left = (planned - snapshot.elapsed).max(Nanos::ZERO);
            let seconds = Nanos::from_secs((left.ns() + 999_999_999) / 1_000_000_000);
            let label = format!("{:.0} %, {} left", share * 100.0, duration(seconds));
            let gauge = Gauge::default().ratio(share).label(label).use_unicode(true);
            frame.render_widget(gauge.gauge_style(Style::new().fg(Color::Cyan).bg(Color::DarkGray)), bar);
        }
        None => {
            let text = format!("{} so far; Ctrl-C ends it with full results", duration(snapshot.elapsed));
            frame.render_widget(Paragraph::new(text), bar);
        }
    }
}

fn draw_table(frame: &mut Frame, area: Rect, snapshot: &Snapshot) {
    let columns = Columns::for_width(area.width, longest_name(snapshot));
    let series = &snapshot.phase.series;
    // Two lines of the area are the header's.
    let fitting = usize::from(area.height.saturating_sub(2));
    let shown = if series.len() <= fitting { series.len() } else { fitting.saturating_sub(1) };
    let mut rows: Vec<Row> = series.iter().take(shown).map(|series| row(series, &columns)).collect();
    if shown < series.len() {
        rows.push(Row::new([format!("+ {} more", series.len() - shown)]).style(dim()));
    }
    let head = Row::new(columns.head()).style(dim()).top_margin(1);
    frame.render_widget(Table::new(rows, columns.widths()).header(head).column_spacing(1), area);
}

fn longest_name(snapshot: &Snapshot) -> usize {
    snapshot.phase.series.iter().map(|series| width_of(&plain(&series.meta.name))).max().unwrap_or(0)
}

fn right(text: impl Into<String>, to_the_right: bool) -> Cell<'static> {
    let line = Line::from(text.into());
    Cell::from(if to_the_right { line.right_aligned() } else { line })
}

fn row(series: &SeriesRun, columns: &Columns) -> Row<'static> {
    let data = &series.state.data;
    let shown = |latency: Option<Nanos>| latency.map_or("-".to_owned(), micros);
    let p99 = (data.count() >= 1_000).then(|| Nanos(data.whole.value_at_percentile(99.0) as i64));
    let now = series.recent.map(|recent| recent.max);
    let loss = |n: u64| {
        let style = if n == 0 { dim() } else { Style::new().fg(Color::Red).add_modifier(Modifier::BOLD) };
        right(count(n), true).style(style)
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut cells = vec![
        right(clipped_in_the_middle(&series.meta.name, columns.name.into()), false),
        right(shown(data.min), true),
        right(shown(now), true),
        right(data.mean().map_or("-".to_owned(), micros_f64), true),
    ];
    cells.extend(columns.p99.then(|| right(shown(p99), true)));
    cells.push(right(shown(data.max), true).style(bold));
    cells.extend(columns.overruns.then(|| loss(data.losses.overruns)));
    cells.extend(columns.lost.then(|| loss(data.losses.dropped)));
    if columns.bars > 0 {
        cells.push(Cell::from(bars(series, columns.bars)).style(Style::new().fg(Color::Green)));
    }
    Row::new(cells)
}

/// The load of all CPUs and of each, as small bars.
fn cpu_line(snapshot: &Snapshot) -> Paragraph<'static> {
    let Some(load) = snapshot.cpu_load else { return Paragraph::default() };
    let mut spans = vec![Span::raw(format!("CPU {:>3.0} %  ", load.all.busy * 100.0))];
    for (cpu, shares) in &load.cpus {
        let color = match shares.busy {
            busy if busy > 0.9 => Color::Red,
            busy if busy > 0.5 => Color::Yellow,
            _ => Color::Green,
        };
        spans.push(Span::styled(format!("#{cpu} "), dim()));
        spans.push(Span::styled(format!("{:>3.0}%  ", shares.busy * 100.0), Style::new().fg(color)));
    }
    if load.all.steal >= 0.005 {
        let text = format!("stolen by the hypervisor {:.1} %", load.all.steal * 100.0);
        spans.push(Span::styled(text, Style::new().fg(Color::Yellow)));
    }
    Paragraph::new(Line::from(spans))
}

fn load_line(snapshot: &Snapshot) -> Paragraph<'static> {
    let mut spans = vec![Span::styled("loads  ", dim())];
    for load in snapshot.loads {
        spans.push(Span::raw(clipped(&load.name, 20, false)));
        if load.starts != 1 {
            spans.push(Span::styled(format!(" ×{}", count(load.starts)), dim()));
        }
        if load.failures > 0 {
            spans.push(Span::styled(format!(" {} failed", count(load.failures)), Style::new().fg(Color::Red)));
        }
        spans.push(Span::raw("  "));
    }
    Paragraph::new(Line::from(spans))
}

/// What to mind: periods missed and samples lost in all, since their columns may not fit, and doubts.
fn doubt_line(snapshot: &Snapshot) -> Paragraph<'static> {
    let sum = |of: fn(&SeriesRun) -> u64| snapshot.phase.series.iter().map(of).sum::<u64>();
    let grave = snapshot.findings.iter().filter(|f| f.severity >= Severity::Warning).count();
    let parts = [
        (sum(|series| series.state.data.losses.overruns), "overrun", "overruns", ""),
        (sum(|series| series.state.data.losses.dropped), "sample lost", "samples lost", ""),
        (grave as u64, "warning", "warnings", ", shown at the end"),
    ];
    let said = parts.iter().filter(|(n, ..)| *n > 0);
    let said = said.map(|(n, one, many, more)| format!("{} {}{more}", count(*n), if *n == 1 { one } else { many }));
    let text = said.collect::<Vec<_>>().join("  ");
    Paragraph::new(text).style(Style::new().fg(Color::Yellow))
}
