//! What the view shows: progress, a line a series with a small histogram, the CPUs, the loads, doubts.

use super::super::Snapshot;
use crate::conduct::SeriesRun;
use punctual_core::{Nanos, Severity};
use punctual_report::format::{clipped, count, duration, micros, micros_f64};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Gauge, Paragraph, Row, Table};

const FIGURE: u16 = 9;
const NAME: u16 = 22;
/// The small histograms reach from 1 µs to 100 ms in steps of a quarter of a decade and less, whatever is measured: rows can be
/// compared at a glance, and a glance at the same row later too.
const BARS: u16 = 40;
const DECADES: f64 = 5.0;

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
    let heads = ["latency in µs", "min", "now", "avg", "p99", "max", "overruns", "lost"];
    let mut head: Vec<Cell> = heads.iter().enumerate().map(|(k, text)| right(*text, k > 0)).collect();
    head.push(Cell::from(scale()));
    let rows = snapshot.phase.series.iter().map(|series| row(series));
    let mut widths = vec![Constraint::Length(NAME)];
    widths.extend([Constraint::Length(FIGURE); 7]);
    widths.push(Constraint::Length(BARS));
    let table = Table::new(rows, widths).header(Row::new(head).style(dim()).top_margin(1)).column_spacing(1);
    frame.render_widget(table, area);
}

fn right(text: impl Into<String>, to_the_right: bool) -> Cell<'static> {
    let line = Line::from(text.into());
    Cell::from(if to_the_right { line.right_aligned() } else { line })
}

fn row(series: &SeriesRun) -> Row<'static> {
    let data = &series.state.data;
    let shown = |latency: Option<Nanos>| latency.map_or("-".to_owned(), micros);
    let p99 = (data.count() >= 1_000).then(|| Nanos(data.whole.value_at_percentile(99.0) as i64));
    let now = series.recent.map(|recent| recent.max);
    let loss = |n: u64| {
        let style = if n == 0 { dim() } else { Style::new().fg(Color::Red).add_modifier(Modifier::BOLD) };
        right(count(n), true).style(style)
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Row::new(vec![
        right(clipped(&series.meta.name, NAME.into(), false), false),
        right(shown(data.min), true),
        right(shown(now), true),
        right(data.mean().map_or("-".to_owned(), micros_f64), true),
        right(shown(p99), true),
        right(shown(data.max), true).style(bold),
        loss(data.losses.overruns),
        loss(data.losses.dropped),
        Cell::from(bars(series)).style(Style::new().fg(Color::Green)),
    ])
}

/// `1 µs ···· 10 µs ···` over the bars.
fn scale() -> String {
    let width = usize::from(BARS / DECADES as u16);
    ["1µs", "10µs", "100µs", "1ms", "10ms"].iter().map(|label| format!("{label:·<width$}")).collect()
}

/// Counts by latency, both on a logarithmic scale: a single late sample is as visible as a million early ones.
fn bars(series: &SeriesRun) -> String {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut counts = [0u64; BARS as usize];
    for value in series.state.data.whole.iter_recorded() {
        let decades = (value.value_iterated_to().max(1) as f64 / 1_000.0).log10() / DECADES;
        let place = (decades * f64::from(BARS)).clamp(0.0, f64::from(BARS - 1)) as usize;
        counts[place] += value.count_since_last_iteration();
    }
    let fullest = counts.iter().copied().max().unwrap_or(0).max(1);
    let level = |n: u64| match n {
        0 => 0,
        n => 1 + (7.0 * (n as f64).ln_1p() / (fullest as f64).ln_1p()).round() as usize,
    };
    counts.iter().map(|n| LEVELS[level(*n).min(8)]).collect()
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

fn doubt_line(snapshot: &Snapshot) -> Paragraph<'static> {
    let grave = snapshot.findings.iter().filter(|f| f.severity >= Severity::Warning).count();
    let text = match grave {
        0 => String::new(),
        1 => "1 warning, shown at the end".to_owned(),
        n => format!("{n} warnings, shown at the end"),
    };
    Paragraph::new(text).style(Style::new().fg(Color::Yellow))
}
