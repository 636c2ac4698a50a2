//! The dominant part of the time in each band of percentiles, over every sample and not only the
//! worst.

use super::{Cell, Column, Table, Tone};
use crate::format::{count_text, percent_text, span_text};
use punctual_bundle::summary::{AccountBand, AccountSummary};
use punctual_core::{CauseKind, Fact, MAIN_PARTS};

const NAME: usize = 28;
/// Parts besides the dominant one that a row names.
const NAMED_PARTS: usize = 2;
/// Smaller shares are not shown.
const WORTH: f64 = 0.02;

/// One row per band and series; `None` if no accounting was requested.
pub(crate) fn account_table<'a>(
    series: impl Iterator<Item = (String, &'a Fact<AccountSummary>)>,
) -> Option<Table> {
    let title = "time by cause: every sample, accounted in the kernel";
    let mut table = Table::new(title, account_columns()).with_row_limit(usize::MAX, 10_000);
    let mut cost = None;
    for (name, account) in series {
        match account {
            Fact::Known(account) => {
                table.rows.extend(account.bands.iter().map(|band| band_row(&name, band)));
                if let Some(missing) = unattributed_remark(&name, account) {
                    table.add_remark(Tone::Faint, missing);
                }
                cost = cost.or(account.cost.known_value());
            }
            Fact::Unavailable(why) => {
                table.add_remark(Tone::Faint, format!("{name}: no accounting: {why}"));
            }
            Fact::NotAsked => {}
        }
    }
    if let Some(cost) = cost {
        table.add_remark(
            Tone::Faint,
            format!(
                "cost of the accounting: {} of CPU time per sample, in {} BPF program runs (on an \
                 idle CPU, {} samples)",
                span_text(cost.per_sample),
                cost.runs_per_sample,
                cost.samples
            ),
        );
    }
    (!table.rows.is_empty() || !table.remarks.is_empty()).then_some(table)
}

fn account_columns() -> Vec<Column> {
    vec![
        Column::text("series", 0).at_most(NAME).with_shrinking(),
        Column::text("samples between", 0),
        Column::figures("samples", 3),
        Column::figures("from", 4),
        Column::figures("to", 4),
        Column::text("largest share", 0)
            .with_meaning("the cause with the largest share of the time of these samples"),
        Column::figures("share", 0),
        Column::figures("mean", 2).with_meaning("the mean time of that cause per sample"),
        Column::text("then", 1),
    ]
}

fn band_row(name: &str, band: &AccountBand) -> Vec<Cell> {
    let shares = cause_shares(band);
    let then = shares.iter().skip(1).filter(|(_, share)| *share >= WORTH).take(NAMED_PARTS);
    let then: Vec<String> =
        then.map(|(part, share)| format!("{} {}", part.words(), percent_text(*share))).collect();
    let [largest, share, mean] = match shares.first() {
        Some((part, share)) => [
            Cell::text(part.words()).with_strong_tone(),
            Cell::share(*share),
            Cell::time_or(band.mean_ns.get(part.id()).copied(), "none"),
        ],
        None => [Cell::text("nothing"), Cell::default(), Cell::default()],
    };
    vec![
        Cell::name(name),
        Cell::text(format!("{} – {}", band_end(band.from), band_end(band.to))),
        Cell::count(band.count.round() as u64),
        Cell::time_or(Some(band.low_ns as f64), ""),
        Cell::time_or(Some(band.high_ns as f64), ""),
        largest,
        share,
        mean,
        Cell::text(then.join(", ")).with_tone(Tone::Faint),
    ]
}

fn band_end(percentile: f64) -> String {
    match percentile {
        0.0 => "min".to_owned(),
        100.0 => "max".to_owned(),
        percentile => format!("p{percentile}"),
    }
}

/// The parts of a band with their shares of its time, the largest first.
fn cause_shares(band: &AccountBand) -> Vec<(CauseKind, f64)> {
    let total: f64 = band.mean_ns.values().sum();
    let part_share = |part: &CauseKind| Some((*part, *band.mean_ns.get(part.id())? / total));
    let mut shares: Vec<(CauseKind, f64)> =
        MAIN_PARTS.iter().filter_map(part_share).filter(|(_, share)| *share > 0.0).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

fn unattributed_remark(name: &str, account: &AccountSummary) -> Option<String> {
    if account.unattributed == 0 {
        return None;
    }
    let (unattributed, of) = (count_text(account.unattributed), count_text(account.samples));
    let lost = match account.lost {
        0 => String::new(),
        lost => format!("; {} records were lost in the kernel's buffers", count_text(lost)),
    };
    Some(format!(
        "{name}: no kernel events for {unattributed} of {of} samples: their time is not \
         attributed{lost}"
    ))
}
