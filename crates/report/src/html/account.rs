//! The causes of the time of all samples: the histogram stacked by cause, and the table of bands of
//! percentiles.

use super::gather::{PageSeries, SeriesLine};
use super::style::CurveStyle;
use super::table::Table;
use punctual_bundle::SeriesAccount;
use punctual_core::{CauseKind, MAIN_PARTS};
use serde::Serialize;

/// Columns of the stacked histogram in each decade of latency.
const PER_DECADE: f64 = 24.0;

/// Data of the script: the parts, and each accounted series.
#[derive(Default, Serialize)]
pub(crate) struct AccountData {
    parts: Vec<PartData>,
    series: Vec<Divided>,
}

#[derive(Serialize)]
struct PartData {
    title: &'static str,
    style: CurveStyle,
}

/// A series, in columns of equal ratio: column `k` holds latencies from `first · 10^(k /
/// per_decade)` ns on.
#[derive(Serialize)]
struct Divided {
    name: String,
    /// Its index among the series of the page.
    series: usize,
    per_decade: f64,
    /// The non-empty columns: `[number, samples, ns of each part …]`.
    columns: Vec<Vec<u64>>,
}

impl AccountData {
    /// The data of all accounted series.
    pub(crate) fn from_content(content: &PageSeries<'_>) -> AccountData {
        let accounted_series = content
            .lines
            .iter()
            .enumerate()
            .filter_map(|(k, line)| Some((k, line, line.series.account.known_value()?)));
        let divided =
            accounted_series.map(|(series, line, account)| divide_account(series, line, account));
        let parts = MAIN_PARTS
            .iter()
            .map(|part| PartData { title: part.words(), style: style_of_cause(*part) });
        AccountData {
            parts: parts.collect(),
            series: divided.filter(|divided| !divided.columns.is_empty()).collect(),
        }
    }

    /// The number of plots.
    pub(crate) fn plot_count(&self) -> usize {
        usize::from(!self.series.is_empty())
    }
}

fn divide_account(series: usize, line: &SeriesLine<'_>, account: &SeriesAccount) -> Divided {
    let mut columns: Vec<Vec<u64>> = Vec::new();
    for (edge, bucket) in account.account.occupied_buckets() {
        let number = ((edge.max(1) as f64).log10() * PER_DECADE).floor() as u64;
        if columns.last().is_none_or(|last| last[0] != number) {
            columns.push([number, 0].into_iter().chain(vec![0; MAIN_PARTS.len()]).collect());
        }
        let Some(column) = columns.last_mut() else { continue };
        let parts = MAIN_PARTS.iter().map(|part| bucket.parts[*part as usize]);
        let added = [bucket.count].into_iter().chain(parts);
        column
            .iter_mut()
            .skip(1)
            .zip(added)
            .for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
    Divided { name: line.full.clone(), series, per_decade: PER_DECADE, columns }
}

/// The style of a cause: related causes share a hue; those that no account names are as unknown.
pub(crate) fn style_of_cause(part: CauseKind) -> CurveStyle {
    let (hue, strength) = match part {
        CauseKind::TimerIrqDelay => (0, 100),
        CauseKind::TimerSlack => (0, 30),
        CauseKind::Irq => (1, 100),
        CauseKind::Softirq => (4, 100),
        CauseKind::IdleExit => (5, 100),
        CauseKind::NonPreemptible => (3, 100),
        CauseKind::Preempted => (6, 100),
        CauseKind::Throttled => (6, 55),
        CauseKind::Runqueue => (3, 55),
        CauseKind::Switch => (3, 30),
        CauseKind::Lock => (4, 55),
        CauseKind::Io => (5, 55),
        CauseKind::PageFault => (7, 55),
        CauseKind::Reclaim => (7, 30),
        CauseKind::Timeout => (1, 75),
        CauseKind::Stopped => (6, 30),
        CauseKind::Waiting => (1, 50),
        CauseKind::Overrun => (2, 30),
        CauseKind::SystemCall => (2, 60),
        CauseKind::OwnExecution => (2, 100),
        CauseKind::Steal => (0, 50),
        CauseKind::Observer => (0, 15),
        _ => (7, 100),
    };
    CurveStyle { hue, dash: 0, strength }
}

/// The dominant parts of each band, one row per band and series; `None` if no accounting was
/// requested.
pub(crate) fn account_table(content: &PageSeries<'_>) -> Option<Table> {
    let series = content.lines.iter().map(|line| (line.full.clone(), &line.summary.account));
    crate::tables::account::account_table(series).map(Table::from)
}
