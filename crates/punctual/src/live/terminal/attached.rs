//! The picture of `punctual attach`: progress, a line per thread, the top culprit.

use super::draw::progress_bar;
use super::line::{Paper, Style, TerminalLine, clipped_in_the_middle, lines_of};
use punctual_core::Nanos;
use punctual_core::format::{
    clip_name, count_text, count_with_noun, escape_unsafe, micros_text, width_of,
};
use punctual_session::attach::watcher::Attached;
use punctual_session::cycles::rows::ThreadRow;

const KIND: usize = 12;
const COUNT: usize = 11;
/// Columns for up to 9,999,999 µs.
const TIME: usize = 10;
const PROBLEM: usize = 9;
const LEAST_NAME: usize = 12;
const LONGEST_NAME: usize = 40;

/// All lines, at most the given number; threads without room are counted.
pub fn draw_attached(attached: &Attached, paper: Paper, height: usize) -> Vec<String> {
    let title = TerminalLine::new(paper).push(&clip_name(&attached.name, 40, false), Style::BOLD);
    let threads = count_with_noun(attached.threads.len() as u64, "thread");
    let title = title.push(&format!("  {threads} with cycles"), Style::DIM);
    let mut lines = vec![title.finish(), progress_bar(attached.elapsed, attached.planned, paper)];
    let after = [String::new(), culprit_line(attached, paper)];
    let room = height.saturating_sub(lines.len() + after.len());
    lines.extend(table_lines(attached, paper, room));
    lines.extend(after);
    lines.truncate(height);
    lines
}

/// A blank line, the head, a line per thread, as far as there is room.
fn table_lines(attached: &Attached, paper: Paper, room: usize) -> Vec<String> {
    let thread_rows = &attached.threads;
    let longest =
        thread_rows.iter().map(|row| width_of(&escape_unsafe(&row.name))).max().unwrap_or(0);
    let fixed = KIND + COUNT + 2 * TIME + 2 * PROBLEM;
    let widest = paper.width.saturating_sub(fixed).clamp(LEAST_NAME, LONGEST_NAME);
    let name = longest.clamp(LEAST_NAME, widest);
    let fitting = room.saturating_sub(2 + usize::from(attached.others > 0));
    let mut lines = vec![String::new(), head_line(name, paper)];
    lines.extend(lines_of(thread_rows, fitting, paper, |thread| row_line(thread, name, paper)));
    if attached.others > 0 {
        let other_threads = count_with_noun(attached.others as u64, "thread");
        let text = format!("+ {other_threads} without cycles so far");
        lines.push(TerminalLine::new(paper).push(&text, Style::DIM).finish());
    }
    lines.truncate(room);
    lines
}

fn head_line(name: usize, paper: Paper) -> String {
    let line = TerminalLine::new(paper).push_left("response, µs", name, Style::DIM);
    let line = line.push(" ", Style::PLAIN).push_left("cycle", KIND - 1, Style::DIM);
    let line = line.push_right("cycles", COUNT, Style::DIM).push_right("last", TIME, Style::DIM);
    let line =
        line.push_right("worst", TIME, Style::DIM).push_right("skipped", PROBLEM, Style::DIM);
    line.push_right("overruns", PROBLEM, Style::DIM).finish()
}

fn row_line(thread: &ThreadRow, name: usize, paper: Paper) -> String {
    let time = |response: Option<Nanos>| response.map_or("-".to_owned(), micros_text);
    let style = |n: u64| if n == 0 { Style::DIM } else { Style::BOLD.with_color(Style::RED) };
    let line = TerminalLine::new(paper);
    let line = line.push_left(&clipped_in_the_middle(&thread.name, name), name, Style::PLAIN);
    let line = line.push(" ", Style::PLAIN).push_left(thread.kind, KIND - 1, Style::PLAIN);
    let line = line.push_right(&count_text(thread.cycles), COUNT, Style::PLAIN);
    let line = line.push_right(&time(thread.last), TIME, Style::PLAIN);
    let line = line.push_right(&time(thread.worst), TIME, Style::BOLD);
    let line = line.push_right(&count_text(thread.skipped), PROBLEM, style(thread.skipped));
    line.push_right(&count_text(thread.overruns), PROBLEM, style(thread.overruns)).finish()
}

fn culprit_line(attached: &Attached, paper: Paper) -> String {
    let line = TerminalLine::new(paper).push("last minute  ", Style::DIM);
    let Some(culprit) = &attached.culprit else {
        return line.push("nothing delayed a cycle", Style::DIM).finish();
    };
    let what = if culprit.is_task { "task " } else { "" };
    let text =
        format!(": {} in {}", culprit.time.to_readable(), count_with_noun(culprit.cycles, "cycle"));
    line.push(what, Style::PLAIN)
        .push(&clip_name(&culprit.name, 32, false), Style::BOLD)
        .push(&text, Style::PLAIN)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::super::line::strip_attributes;
    use super::*;
    use punctual_session::cycles::rows::TopCulprit;

    fn attached() -> Attached {
        let thread = |name: &str, kind, cycles, worst| ThreadRow {
            name: name.to_owned(),
            kind,
            cycles,
            last: Some(Nanos(123_456)),
            worst: Some(Nanos(worst)),
            skipped: 0,
            overruns: 0,
        };
        let servo = ThreadRow {
            skipped: 12,
            overruns: 3_456,
            ..thread("servo-thread", "absolute", 1_234_567, 9_999_999_000)
        };
        let started = ThreadRow {
            last: None,
            worst: None,
            ..thread("a name that is longer than any", "posix-timer", 0, 0)
        };
        Attached {
            name: "linuxcnc".to_owned(),
            elapsed: Nanos::from_secs(75),
            planned: Some(Nanos::from_secs(600)),
            threads: vec![servo, thread("base", "timerfd", 42, 250_000), started],
            others: 2,
            culprit: Some(TopCulprit {
                name: "kworker/1:2".to_owned(),
                is_task: true,
                time: Nanos(12_345_000),
                cycles: 31,
            }),
        }
    }

    fn drawn(attached: &Attached, width: usize, height: usize) -> String {
        let lines = draw_attached(attached, Paper { width, colored: false }, height);
        assert!(lines.len() <= height);
        // Attributes take no columns.
        let plain = strip_attributes(&lines.join("\n"));
        assert!(plain.lines().all(|line| width_of(line) <= width), "{plain}");
        plain
    }

    #[test]
    fn the_live_view_of_threads_fits_into_80_columns() {
        let expected = "\
linuxcnc  3 threads with cycles
                             12 %, 8 min 45 s left                              

response, µs        cycle           cycles      last     worst  skipped overruns
servo-thread        absolute     1,234,567     123.5 9,999,999       12    3,456
base                timerfd             42     123.5     250.0        0        0
a name th… than any posix-timer          0         -         -        0        0
+ 2 threads without cycles so far

last minute  task kworker/1:2: 12.35 ms in 31 cycles";
        assert_eq!(drawn(&attached(), 80, 24), expected);
    }

    #[test]
    fn threads_that_do_not_fit_are_counted() {
        let text = drawn(&attached(), 80, 8);
        assert!(text.contains("+ 3 more") && text.contains("last minute"), "{text}");
        for (width, height) in [(0, 0), (10, 3), (20, 5), (200, 100)] {
            drawn(&attached(), width, height);
        }
        let mut cause = attached();
        let culprit = cause.culprit.as_mut().unwrap();
        (culprit.name, culprit.is_task) = ("exit from idle\u{1b}[2J".to_owned(), false);
        let text = draw_attached(&cause, Paper { width: 80, colored: true }, 24).join("\n");
        assert!(text.contains("exit from idle\\u{1b}[2J"), "{text:?}");
        cause.culprit = None;
        assert!(drawn(&cause, 80, 24).ends_with("nothing delayed a cycle"));
    }
}
