//! Which part of the time dominates in which band of percentiles, of every sample and not only of
//! the worst.

use super::paint::{Page, Tone};
use super::table::{self, Cell, Column};
use crate::format;
use punctual_bundle::summary::{AccountBand, AccountSummary, Summary};
use punctual_core::{Fact, MainPart};

const NAME_WIDTH: usize = 28;
/// Parts beside the dominant one that are named in a row.
const NAMED: usize = 2;
/// Smaller shares are not shown.
const WORTH: f64 = 0.02;

pub fn write(out: &mut Page, summary: &Summary) {
    let (mut rows, mut remarks, mut cost) = (Vec::new(), Vec::new(), None);
    for phase in &summary.phases {
        for series in &phase.series {
            let name = format::clipped(
                &format!("{}/{}", phase.name, series.name),
                NAME_WIDTH,
                out.options.ascii,
            );
            match &series.account {
                Fact::Known(account) => {
                    rows.extend(
                        account.bands.iter().enumerate().map(|(k, band)| row(out, k, &name, band)),
                    );
                    remarks.extend(remark(&name, account));
                    cost = cost.or(account.cost.known());
                }
                Fact::Unavailable(why) => {
                    remarks.push(format!("{name}: no accounting: {}", format::plain(why)))
                }
                Fact::NotAsked => {}
            }
        }
    }
    if rows.is_empty() && remarks.is_empty() {
        return;
    }
    out.heading("time by cause (every sample, accounted in the kernel)");
    if !rows.is_empty() {
        let columns = vec![
            Column::left("series", 0),
            Column::left("samples between", 0),
            Column::right("samples", 2),
            Column::right(&format!("from {}", out.unit()), 3),
            Column::right("to", 3),
            Column::left("largest share", 0),
            Column::left("then", 1),
        ];
        let _ = table::write(out, columns, rows);
    }
    if let Some(cost) = cost {
        let per = out.latency(cost.per_sample.ns() as f64);
        remarks.push(format!(
            "cost: {per} {} of CPU time per sample, in {} BPF program runs (on an idle CPU, {} \
             samples)",
            out.unit(),
            cost.runs_per_sample,
            cost.samples
        ));
    }
    remarks.iter().for_each(|remark| out.paragraph("  ", "    ", Tone::Faint, remark));
}

fn row(out: &Page, place: usize, name: &str, band: &AccountBand) -> Vec<Cell> {
    let mut shares = shares(band);
    let first = (!shares.is_empty()).then(|| shares.remove(0));
    let text =
        |(part, share): &(MainPart, f64)| format!("{} {}", part.words(), format::percent(*share));
    let then: Vec<String> =
        shares.iter().filter(|(_, share)| *share >= WORTH).take(NAMED).map(text).collect();
    vec![
        Cell::plain(if place == 0 { name } else { "" }),
        Cell::plain(format!(
            "{} {} {}",
            band_end(band.from),
            out.either("–", "-"),
            band_end(band.to)
        )),
        Cell::plain(format::count(band.count.round() as u64)),
        Cell::plain(out.latency(band.low_ns as f64)),
        Cell::plain(out.latency(band.high_ns as f64)),
        Cell(first.as_ref().map_or_else(|| "nothing".to_owned(), text), Tone::Strong),
        Cell(then.join(", "), Tone::Faint),
    ]
}

/// An end of a band of percentiles.
pub fn band_end(percentile: f64) -> String {
    if percentile == 0.0 {
        "min".to_owned()
    } else if percentile == 100.0 {
        "max".to_owned()
    } else {
        format!("p{percentile}")
    }
}

/// The parts of a band with their shares of its time, the largest first.
pub fn shares(band: &AccountBand) -> Vec<(MainPart, f64)> {
    let total: f64 = band.mean_ns.values().sum();
    let of = |part: &MainPart| Some((*part, *band.mean_ns.get(part.id())? / total));
    let mut shares: Vec<(MainPart, f64)> =
        MainPart::ALL.iter().filter_map(of).filter(|(_, share)| *share > 0.0).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

/// What is missing from the figures.
fn remark(name: &str, account: &AccountSummary) -> Option<String> {
    if account.unattributed == 0 {
        return None;
    }
    let (unattributed, of) = (format::count(account.unattributed), format::count(account.samples));
    let lost = match account.lost {
        0 => String::new(),
        lost => format!("; {} records were lost in the kernel's buffers", format::count(lost)),
    };
    Some(format!(
        "{name}: no kernel events for {unattributed} of {of} samples: their time is not \
         attributed{lost}"
    ))
}
