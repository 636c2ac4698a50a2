//! The picture of `punctual attach --cpus`: progress, and a line per CPU.

use super::draw::progress_bar;
use super::line::{Paper, Style, TerminalLine, lines_of};
use punctual_core::format::{clip_name, count_text, escape_unsafe, micros_text};
use punctual_session::attach::watcher::Disturbed;
use punctual_session::run::CpuRow;

const CPU: usize = 8;
const COUNT: usize = 12;
const RATE: usize = 10;
const TIME: usize = 13;
const SHARE: usize = 12;
/// Narrower terminals have no rate, and the originator before its effect, which may be cut.
const WIDE: usize = 100;

/// All lines, at most the given number; CPUs without room are counted.
pub fn draw_disturbed(state: &Disturbed, paper: Paper, height: usize) -> Vec<String> {
    let title = TerminalLine::new(paper).push(&format!("CPU {}", state.chosen), Style::BOLD);
    let title = title.push("  entries into the kernel", Style::DIM);
    let mut lines = vec![
        title.finish(),
        progress_bar(state.elapsed, state.planned, paper),
        String::new(),
        head_line(paper),
    ];
    let fitting = height.saturating_sub(lines.len());
    lines.extend(lines_of(&state.cpus, fitting, paper, |cpu| row_line(cpu, paper)));
    lines.truncate(height);
    lines
}

fn head_line(paper: Paper) -> String {
    let line = TerminalLine::new(paper).push_left("CPU", CPU, Style::DIM).push_right(
        "entries",
        COUNT,
        Style::DIM,
    );
    let line = match paper.width >= WIDE {
        true => line.push_right("a second", RATE, Style::DIM),
        false => line,
    };
    let line = line.push_right("longest, µs", TIME, Style::DIM);
    let line = line.push_right("interrupted", SHARE, Style::DIM);
    line.push("  most of the time", Style::DIM).finish()
}

fn row_line(cpu: &CpuRow, paper: Paper) -> String {
    let is_wide = paper.width >= WIDE;
    let rate = if is_wide { RATE } else { 0 };
    let fixed = CPU + COUNT + rate + TIME + SHARE + 2;
    let line = TerminalLine::new(paper).push_left(&cpu.cpu.to_string(), CPU, Style::PLAIN);
    let line = line.push_right(&count_text(cpu.entries), COUNT, Style::PLAIN);
    let line = match is_wide {
        true => line.push_right(&format!("{:.0}", cpu.a_second), RATE, Style::PLAIN),
        false => line,
    };
    let longest = cpu.longest.map_or("-".to_owned(), micros_text);
    let line = line.push_right(&longest, TIME, Style::BOLD);
    let line = line.push_right(&format!("{:.3} %", cpu.interrupted * 100.0), SHARE, Style::PLAIN);
    let top = cpu.top.as_ref().map_or(String::new(), |top| {
        let (what, by) = (escape_unsafe(&top.what), escape_unsafe(&top.originator));
        if is_wide { format!("  {what}, by {by}") } else { format!("  {by}: {what}") }
    });
    line.push(&clip_name(&top, paper.width.saturating_sub(fixed) + 2, false), Style::PLAIN).finish()
}

#[cfg(test)]
mod tests {
    use super::super::line::strip_attributes;
    use super::*;
    use punctual_core::Nanos;
    use punctual_core::format::width_of;
    use punctual_session::run::TopEntry;

    fn state(cpus: usize) -> Disturbed {
        let cpu = |cpu| CpuRow {
            cpu,
            entries: 1_234_567,
            a_second: 250.4,
            longest: Some(Nanos(317_120)),
            interrupted: 0.001_25,
            top: (cpu == 2).then(|| TopEntry {
                what: "TLB shootdown".to_owned(),
                originator: "unmapper-4713\u{1b} [001]".to_owned(),
            }),
        };
        Disturbed {
            chosen: (2..2 + cpus).collect(),
            elapsed: Nanos::from_secs(75),
            planned: None,
            cpus: (2..2 + cpus).map(cpu).collect(),
        }
    }

    fn drawn(state: &Disturbed, width: usize, height: usize) -> String {
        strip_attributes(&draw_disturbed(state, Paper { width, colored: false }, height).join("\n"))
    }

    #[test]
    fn each_cpu_line_names_the_entry_with_the_largest_total() {
        let text = drawn(&state(2), 100, 24);
        let row = "2          1,234,567       250        317.1     0.125 %  TLB shootdown, by \
                   unmapper-4713";
        assert!(text.contains(row), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.starts_with("CPU 2-3"), "{text}");
    }

    #[test]
    fn the_originator_is_not_truncated_in_80_columns() {
        let mut state = state(1);
        state.cpus[0].top = Some(TopEntry {
            what: "function call IPI smp_call_function_many_cond".to_owned(),
            // The maximum length: 15 bytes, and the largest id.
            originator: "Web Content-abc-4194303 [255]".to_owned(),
        });
        let text = drawn(&state, 80, 24);
        assert!(text.contains("  Web Content-abc-4194303 [255]:"), "{text}");
        assert!(!text.contains("a second"), "{text}");
    }

    #[test]
    fn cpus_that_do_not_fit_are_counted() {
        let text = drawn(&state(100), 80, 10);
        assert!(text.ends_with("+ 95 more"), "{text}");
        for (width, height) in [(0, 0), (10, 3), (20, 5), (80, 24)] {
            let text = drawn(&state(9), width, height);
            assert!(text.lines().count() <= height);
            assert!(text.lines().all(|line| width_of(line) <= width), "{width}: {text}");
        }
    }
}
