//! Which columns the table has: on a narrow terminal few, and the names of series can still be told apart.

use crate::conduct::SeriesRun;
use punctual_report::format::{plain, width_of};
use ratatui::layout::Constraint;
use ratatui::text::Line;
use ratatui::widgets::Cell;

/// Columns of a figure: up to 9,999,999 µs.
const FIGURE: u16 = 9;
/// A name is never cut to less than this to make room for what can be left out.
const SHORT_NAME: u16 = 16;
const LONG_NAME: u16 = 40;
/// The small histograms reach from 1 µs to 100 ms, whatever is measured: rows can be compared at a glance, and a glance at the same
/// row later too.
const DECADES: u16 = 5;
const LABELS: [&str; DECADES as usize] = ["1µs", "10µs", "100µs", "1ms", "10ms"];
const FEWEST_BARS: u16 = 25;
const MOST_BARS: u16 = 40;

/// The columns beside name, min, now, avg and max, which are always there.
pub struct Columns {
    /// How wide the names are.
    pub name: u16,
    pub p99: bool,
    pub overruns: bool,
    pub lost: bool,
    /// How wide the small histogram is, 0: not there.
    pub bars: u16,
}

impl Columns {
    /// What fits: first the histogram, then what tells of trouble.
    pub fn for_width(width: u16, longest_name: usize) -> Columns {
        let longest = u16::try_from(longest_name).unwrap_or(LONG_NAME).clamp(2, LONG_NAME);
        let name = longest.min(SHORT_NAME);
        let mut left = width.saturating_sub(name + 4 * (FIGURE + 1));
        let mut take = |columns: u16| {
            let fits = left > columns;
            left -= if fits { columns + 1 } else { 0 };
            fits
        };
        let bars = if take(FEWEST_BARS) { FEWEST_BARS } else { 0 };
        let [overruns, p99, lost] = [take(FIGURE), take(FIGURE), take(FIGURE)];
        let name = name + left.min(longest - name);
        left -= left.min(longest - SHORT_NAME.min(longest));
        let more = left.min(MOST_BARS - FEWEST_BARS) / DECADES * DECADES;
        Columns { name, p99, overruns, lost, bars: if bars > 0 { bars + more } else { 0 } }
    }

    /// The line above the figures.
    pub fn head(&self) -> Vec<Cell<'static>> {
        let what = if self.name < 13 { "in µs" } else { "latency in µs" };
        let figures = [
            ("min", true),
            ("now", true),
            ("avg", true),
            ("p99", self.p99),
            ("max", true),
            ("overruns", self.overruns),
            ("lost", self.lost),
        ];
        let mut cells = vec![Cell::from(what)];
        cells.extend(
            figures.iter().filter(|(_, there)| *there).map(|(text, _)| Cell::from(Line::from(*text).right_aligned())),
        );
        if self.bars > 0 {
            cells.push(Cell::from(scale(self.bars)));
        }
        cells
    }

    /// How wide each is.
    pub fn widths(&self) -> Vec<Constraint> {
        let figures = 4 + [self.p99, self.overruns, self.lost].iter().filter(|there| **there).count();
        let mut widths = vec![Constraint::Length(self.name)];
        widths.extend(vec![Constraint::Length(FIGURE); figures]);
        if self.bars > 0 {
            widths.push(Constraint::Length(self.bars));
        }
        widths
    }
}

/// `1µs····10µs···` over the bars.
fn scale(width: u16) -> String {
    let decade = usize::from(width / DECADES);
    LABELS.iter().map(|label| format!("{label:·<decade$}")).collect()
}

/// Counts by latency, both on a logarithmic scale: a single late sample is as visible as a million early ones.
pub fn bars(series: &SeriesRun, width: u16) -> String {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut counts = vec![0u64; usize::from(width)];
    for value in series.state.data.whole.iter_recorded() {
        let decades = (value.value_iterated_to().max(1) as f64 / 1_000.0).log10() / f64::from(DECADES);
        let place = (decades * f64::from(width)).clamp(0.0, f64::from(width) - 1.0) as usize;
        counts[place] += value.count_since_last_iteration();
    }
    let fullest = counts.iter().copied().max().unwrap_or(0).max(1);
    let level = |n: u64| match n {
        0 => 0,
        n => 1 + (7.0 * (n as f64).ln_1p() / (fullest as f64).ln_1p()).round() as usize,
    };
    counts.iter().map(|n| LEVELS[level(*n).min(8)]).collect()
}

/// A name at most so wide. What is left out is taken from its middle: series of one measure differ at the end.
pub fn clipped_in_the_middle(name: &str, width: usize) -> String {
    let name = plain(name);
    if width_of(&name) <= width {
        return name;
    }
    let room = width.saturating_sub(1);
    let end = taken(name.chars().rev(), room - room / 2).chars().rev().collect::<String>();
    taken(name.chars(), room - width_of(&end)) + "…" + &end
}

/// As many characters as fit.
fn taken(characters: impl Iterator<Item = char>, width: usize) -> String {
    let mut text = String::new();
    for c in characters {
        if width_of(&text) + width_of(c.encode_utf8(&mut [0; 4])) > width {
            break;
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_shown_and_never_more_than_fits() {
        for width in 0..250 {
            for longest in [0, 1, 10, 16, 17, 35, 64, 100_000] {
                let columns = Columns::for_width(width, longest);
                let lengths = columns.widths();
                assert_eq!(lengths.len(), columns.head().len());
                let needed: u16 = lengths.iter().map(|c| if let Constraint::Length(n) = c { n + 1 } else { 0 }).sum();
                let least = columns.name + 4 * (FIGURE + 1) + 1;
                assert!(needed <= width.max(least) + 1, "{width} {longest}: {needed}");
            }
        }
        let shown = |width, longest| {
            let c = Columns::for_width(width, longest);
            (c.name, c.bars, c.overruns, c.p99, c.lost)
        };
        assert_eq!(shown(60, 10), (10, 0, true, false, false));
        assert_eq!(shown(80, 10), (10, 25, false, false, false));
        assert_eq!(shown(160, 10), (10, 40, true, true, true));
        assert_eq!(shown(100, 35), (24, 25, true, false, false));
    }

    #[test]
    fn names_keep_both_ends() {
        assert_eq!(clipped_in_the_middle("timer/cpu0", 10), "timer/cpu0");
        assert_eq!(clipped_in_the_middle("a rather long name/12", 10), "a ra…me/12");
        assert_eq!(clipped_in_the_middle("日本語日本語", 6), "日…語");
        assert_eq!(clipped_in_the_middle("abc\u{1b}[2J", 1), "…");
        assert_eq!(clipped_in_the_middle("abc", 0), "…");
    }
}
