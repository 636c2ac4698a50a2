//! The events of long intervals against those of ordinary ones.

use super::{Cell, Column, Table, Tone};
use crate::format::{counted, micros_f64, shortened};
use punctual_bundle::intervals::{Coincidence, Coincidences};

const NAME: usize = 32;

/// A table of each pair, function or series.
pub fn tables(all: Option<&[Coincidences]>) -> impl Iterator<Item = Table> + '_ {
    all.unwrap_or_default().iter().filter(|of| !of.kinds.is_empty()).map(table)
}

fn table(of: &Coincidences) -> Table {
    let columns = vec![
        Column::text("event", 0).at_most(NAME),
        Column::figures("long", 0).meaning("the long intervals in which it occurred"),
        Column::figures("share", 3),
        Column::figures("ordinary", 0).meaning("the ordinary intervals in which it occurred"),
        Column::figures("share", 4),
        Column::figures("by length", 2)
            .explained("the long ones that would have it if only their length mattered"),
        Column::figures("odds ratio", 0),
        Column::text("95 % interval", 1),
        Column::figures("p", 0).explained("by chance or by length, for all kinds tested"),
    ];
    let title = format!("events in long intervals: {}", shortened(&of.name, NAME, false));
    let rows = of.kinds.iter().map(row);
    let mut table = Table::new(title, columns).rows(rows).sortable().untimed().shown(8, 40);
    let above = micros_f64(of.above as f64);
    let long = format!("{} longer than {above} µs", counted(of.late, "interval"));
    let tested = counted(of.tested, "kind");
    let rest = format!("{}; {tested} of events tested", counted(of.ordinary, "ordinary one"));
    table.remark(Tone::Faint, format!("{long}, {rest}; what coincides need not be a cause"));
    if !of.kinds.iter().any(|kind| kind.associated) {
        table.remark(Tone::Plain, "no kind is associated with long intervals");
    }
    if of.left_out > 0 {
        let text = format!("{} in neither: events are missing, or too many", of.left_out);
        table.remark(Tone::Uncertain, text);
    }
    table
}

fn row(kind: &Coincidence) -> Vec<Cell> {
    let sort = if kind.kind == "tracepoint" { "" } else { kind.kind.as_str() };
    let name = match sort.is_empty() || kind.who.starts_with(sort) {
        true => kind.who.clone(),
        false => format!("{sort} {}", kind.who),
    };
    let ratio = Cell::figure(kind.odds_ratio, ratio(kind.odds_ratio));
    let p = Cell::figure(kind.p_adjusted, probability(kind.p_adjusted));
    vec![
        Cell::name(name),
        Cell::count(kind.late),
        Cell::share(kind.late_share),
        Cell::count(kind.ordinary),
        Cell::share(kind.ordinary_share),
        Cell::figure(kind.by_length, format!("{:.1}", kind.by_length)),
        if kind.associated { ratio.strong() } else { ratio },
        Cell::text(format!("{} to {}", self::ratio(kind.low), self::ratio(kind.high))),
        if kind.associated { p.strong() } else { p },
    ]
}

fn ratio(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 100.0 => format!("×{ratio:.0}"),
        _ if ratio >= 0.1 => format!("×{ratio:.2}"),
        _ => format!("×{ratio:.4}"),
    }
}

fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}
