//! The columns of the table: few on a narrow terminal, with names of series still distinguishable.

use punctual_session::series_store::KeptSeries;

/// Columns of a figure: up to 9,999,999 µs.
pub const FIGURE: usize = 9;
/// The minimum width of names before other columns are dropped.
const SHORT_NAME: usize = 16;
const LONG_NAME: usize = 40;
/// The small histograms range from 1 µs to 100 ms for every workload: rows can be compared at a
/// glance, also over time.
const DECADES: usize = 5;
const LABELS: [&str; DECADES] = ["1µs", "10µs", "100µs", "1ms", "10ms"];
const FEWEST_BARS: usize = 25;
const MOST_BARS: usize = 40;

/// The columns beside name, min, now, avg and max, which are always shown.
pub struct LiveColumns {
    /// The width of the names.
    pub name: usize,
    pub p99: bool,
    pub overruns: bool,
    pub lost: bool,
    /// The width of the small histogram, 0: hidden.
    pub bars: usize,
}

impl LiveColumns {
    /// The columns that fit: the histogram is dropped first, then the columns of problems.
    pub fn for_width(width: usize, longest_name: usize) -> LiveColumns {
        let longest = longest_name.clamp(2, LONG_NAME);
        let name = longest.min(SHORT_NAME);
        let mut left = width.saturating_sub(name + 4 * (FIGURE + 1));
        let mut take = |columns: usize| {
            let fits = left > columns;
            left -= if fits { columns + 1 } else { 0 };
            fits
        };
        let bars = if take(FEWEST_BARS) { FEWEST_BARS } else { 0 };
        let [overruns, p99, lost] = [take(FIGURE), take(FIGURE), take(FIGURE)];
        let name = name + left.min(longest - name);
        left -= left.min(longest - SHORT_NAME.min(longest));
        let extra_bars = left.min(MOST_BARS - FEWEST_BARS) / DECADES * DECADES;
        LiveColumns {
            name,
            p99,
            overruns,
            lost,
            bars: if bars > 0 { bars + extra_bars } else { 0 },
        }
    }

    /// The words above names, figures and bars.
    pub fn head_words(&self) -> (&'static str, Vec<&'static str>, String) {
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
        let figures =
            figures.into_iter().filter(|(_, there)| *there).map(|(word, _)| word).collect();
        (what, figures, format_scale(self.bars))
    }
}

/// The scale `1µs····10µs···` over the bars; empty without bars.
fn format_scale(width: usize) -> String {
    let decade = width / DECADES;
    let labels = LABELS.iter().filter(|_| decade > 0);
    labels.map(|label| format!("{label:·<decade$}")).collect()
}

/// Counts by latency, both on a logarithmic scale: a single outlier is as visible as a million
/// short latencies.
pub fn draw_bars(series: &KeptSeries, width: usize) -> String {
    const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if width == 0 {
        return String::new();
    }
    let mut counts = vec![0u64; width];
    for value in series.state.data.whole.iter_recorded() {
        let decades = (value.value_iterated_to().max(1) as f64 / 1_000.0).log10() / DECADES as f64;
        let place = (decades * width as f64).clamp(0.0, width as f64 - 1.0) as usize;
        counts[place] += value.count_since_last_iteration();
    }
    let fullest = counts.iter().copied().max().unwrap_or(0).max(1);
    let level = |n: u64| match n {
        0 => 0,
        n => 1 + (7.0 * (n as f64).ln_1p() / (fullest as f64).ln_1p()).round() as usize,
    };
    counts.iter().map(|n| LEVELS[level(*n).min(8)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_use_the_width_without_exceeding_it() {
        for width in 0..250 {
            for longest in [0, 1, 10, 16, 17, 35, 64, 100_000] {
                let columns = LiveColumns::for_width(width, longest);
                let (_, figures, scale) = columns.head_words();
                let bars = scale.chars().count();
                assert_eq!(bars, columns.bars);
                let needed = columns.name
                    + figures.len() * (FIGURE + 1)
                    + if bars > 0 { bars + 1 } else { 0 };
                let least = columns.name + 4 * (FIGURE + 1);
                assert!(needed <= width.max(least), "{width} {longest}: {needed}");
            }
        }
        let shown = |width, longest| {
            let c = LiveColumns::for_width(width, longest);
            (c.name, c.bars, c.overruns, c.p99, c.lost)
        };
        assert_eq!(shown(60, 10), (10, 0, true, false, false));
        assert_eq!(shown(80, 10), (10, 25, false, false, false));
        assert_eq!(shown(160, 10), (10, 40, true, true, true));
        assert_eq!(shown(100, 35), (24, 25, true, false, false));
    }
}
