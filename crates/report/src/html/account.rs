//! Where the time of all samples went: the histogram stacked by cause, and the table of bands of
//! percentiles.

use super::gather::{Content, Line};
use super::style::Style;
use super::table::{Cell, Column, Table};
use super::text;
use crate::format::{count, micros_f64, percent};
use crate::terminal::{band_end, shares};
use punctual_bundle::SeriesAccount;
use punctual_bundle::summary::AccountBand;
use punctual_core::account::MAIN_PARTS;
use punctual_core::{Fact, MainPart};
use serde::Serialize;

/// Columns of the stacked histogram in each decade of latency.
const PER_DECADE: f64 = 24.0;

/// For the script: the parts, and each series that was divided.
#[derive(Default, Serialize)]
pub struct Data {
    parts: Vec<PartData>,
    series: Vec<Divided>,
}

#[derive(Serialize)]
struct PartData {
    title: &'static str,
    style: Style,
}

/// A series, in columns of equal ratio: column `k` holds latencies from `first · 10^(k /
/// per_decade)` ns on.
#[derive(Serialize)]
struct Divided {
    name: String,
    /// Its place among the series of the page.
    series: usize,
    per_decade: f64,
    /// The columns that are not empty: `[number, samples, ns of each part …]`.
    columns: Vec<Vec<u64>>,
}

impl Data {
    /// Of all series that were divided.
    pub fn of(content: &Content<'_>) -> Data {
        let known = content
            .lines
            .iter()
            .enumerate()
            .filter_map(|(k, line)| Some((k, line, line.series.account.known()?)));
        let divided = known.map(|(series, line, account)| divided(series, line, account));
        let parts =
            MainPart::ALL.iter().map(|part| PartData { title: part.words(), style: style(*part) });
        Data {
            parts: parts.collect(),
            series: divided.filter(|divided| !divided.columns.is_empty()).collect(),
        }
    }

    /// How many plots it makes.
    pub fn plots(&self) -> usize {
        usize::from(!self.series.is_empty())
    }
}

fn divided(series: usize, line: &Line<'_>, account: &SeriesAccount) -> Divided {
    let mut columns: Vec<Vec<u64>> = Vec::new();
    for (edge, bucket) in account.account.buckets() {
        let number = ((edge.max(1) as f64).log10() * PER_DECADE).floor() as u64;
        if columns.last().is_none_or(|last| last[0] != number) {
            columns.push([number, 0].into_iter().chain([0; MAIN_PARTS]).collect());
        }
        let Some(column) = columns.last_mut() else { continue };
        let added = [bucket.count].into_iter().chain(bucket.parts);
        column
            .iter_mut()
            .skip(1)
            .zip(added)
            .for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
    Divided { name: line.full.clone(), series, per_decade: PER_DECADE, columns }
}

/// Related parts have one hue.
fn style(part: MainPart) -> Style {
    let (hue, strength) = match part {
        MainPart::TimerIrqDelay => (0, 100),
        MainPart::Irq => (1, 100),
        MainPart::Softirq => (4, 100),
        MainPart::IdleExit => (5, 100),
        MainPart::NonPreemptible => (3, 100),
        MainPart::Preempted => (6, 100),
        MainPart::Throttled => (6, 55),
        MainPart::Runqueue => (3, 55),
        MainPart::Lock => (4, 55),
        MainPart::Io => (5, 55),
        MainPart::PageFault => (7, 55),
        MainPart::Reclaim => (7, 30),
        MainPart::Waiting => (1, 50),
        MainPart::Overrun => (2, 30),
        MainPart::SystemCall => (2, 60),
        MainPart::OwnExecution => (2, 100),
        MainPart::Steal => (0, 50),
        MainPart::Unknown => (7, 100),
    };
    Style { hue, dash: 0, strength }
}

/// What dominates in which band, a row for each band of each series; `None` where nothing was
/// divided, nor could not be.
pub fn table(content: &Content<'_>) -> Option<Table> {
    let (mut rows, mut cost) = (Vec::new(), String::new());
    for line in &content.lines {
        match &line.summary.account {
            Fact::Known(account) => {
                rows.extend(account.bands.iter().map(|band| row(line, band)));
                if let Some(measured) = account.cost.known() {
                    let per = micros_f64(measured.per_sample.ns() as f64);
                    cost = format!(
                        " Cost of the accounting: {per} µs of CPU time per sample, in {} BPF \
                         program runs.",
                        measured.runs_per_sample
                    );
                }
            }
            Fact::Unavailable(why) => {
                let mut cells = vec![Cell::text(&line.full), Cell::missing(text::name(why))];
                cells.extend((0..5).map(|_| Cell::missing("unknown")));
                rows.push(cells);
            }
            Fact::NotAsked => {}
        }
    }
    let caption = format!("Time by cause, per band of percentiles; mean per sample in µs.{cost}");
    let columns = vec![
        Column::text("Series"),
        Column::text("Samples between"),
        Column::figures("Samples"),
        Column::figures("From"),
        Column::figures("To"),
        Column::text("Largest share")
            .meaning("the cause with the largest share of the time of these samples"),
        Column::text("Then"),
    ];
    (!rows.is_empty()).then_some(Table { caption, columns, rows, sortable: false })
}

fn row(line: &Line<'_>, band: &AccountBand) -> Vec<Cell> {
    let sentence = |(part, share): &(MainPart, f64)| {
        let mean = band.mean_ns.get(part.id()).copied().unwrap_or_default();
        format!("{} {} ({} µs)", part.words(), percent(*share), micros_f64(mean))
    };
    let shares = shares(band);
    let time = |ns: u64| Cell {
        exact: Some(format!("{ns} ns")),
        ..Cell::figure(micros_f64(ns as f64), ns as f64)
    };
    vec![
        Cell::text(&line.full),
        Cell::text(format!("{} – {}", band_end(band.from), band_end(band.to))),
        Cell::figure(count(band.count.round() as u64), band.count),
        time(band.low_ns),
        time(band.high_ns),
        shares
            .first()
            .map_or_else(|| Cell::missing("nothing"), |first| Cell::text(sentence(first))),
        Cell::text(shares.iter().skip(1).take(3).map(sentence).collect::<Vec<_>>().join(", ")),
    ]
}
