//! The events of long intervals against those of ordinary ones.

use super::{Cell, Column, Table, Tone};
use crate::format::{clip_to_width, count_with_noun, micros_f64};
use punctual_bundle::intervals::{Coincidence, Coincidences};

const NAME: usize = 32;

/// A table of each pair, function or series.
pub(crate) fn coincidence_tables(all: Option<&[Coincidences]>) -> impl Iterator<Item = Table> + '_ {
    all.unwrap_or_default().iter().filter(|of| !of.kinds.is_empty()).map(coincidence_table)
}

fn coincidence_table(of: &Coincidences) -> Table {
    let columns = vec![
        Column::text("event", 0).at_most(NAME),
        Column::figures("long", 0).with_meaning("the long intervals in which it occurred"),
        Column::figures("share", 3),
        Column::figures("ordinary", 0).with_meaning("the ordinary intervals in which it occurred"),
        Column::figures("share", 4),
        Column::figures("by length", 2)
            .with_explanation("the long ones that would have it if only their length mattered"),
        Column::figures("odds ratio", 0),
        Column::text("95 % interval", 1),
        Column::figures("p", 0).with_explanation("by chance or by length, for all kinds tested"),
    ];
    let title = format!("events in long intervals: {}", clip_to_width(&of.name, NAME, false));
    let rows = of.kinds.iter().map(kind_row);
    let mut table = Table::new(title, columns)
        .with_rows(rows)
        .with_sorting()
        .without_timebase()
        .with_row_limit(8, 40);
    let above = micros_f64(of.above as f64);
    let long = format!("{} longer than {above} µs", count_with_noun(of.late, "interval"));
    let tested = count_with_noun(of.tested, "kind");
    let rest =
        format!("{}; {tested} of events tested", count_with_noun(of.ordinary, "ordinary one"));
    table.add_remark(Tone::Faint, format!("{long}, {rest}; what coincides need not be a cause"));
    if !of.kinds.iter().any(|kind| kind.associated) {
        table.add_remark(Tone::Plain, "no kind is associated with long intervals");
    }
    if of.left_out > 0 {
        let text = format!("{} in neither: events are missing, or too many", of.left_out);
        table.add_remark(Tone::Uncertain, text);
    }
    table
}

fn kind_row(kind: &Coincidence) -> Vec<Cell> {
    let sort = if kind.kind == "tracepoint" { "" } else { kind.kind.as_str() };
    let name = match sort.is_empty() || kind.who.starts_with(sort) {
        true => kind.who.clone(),
        false => format!("{sort} {}", kind.who),
    };
    let ratio = Cell::figure(kind.odds_ratio, format_ratio(kind.odds_ratio));
    let p = Cell::figure(kind.p_adjusted, format_probability(kind.p_adjusted));
    vec![
        Cell::name(name),
        Cell::count(kind.late),
        Cell::share(kind.late_share),
        Cell::count(kind.ordinary),
        Cell::share(kind.ordinary_share),
        Cell::figure(kind.by_length, format!("{:.1}", kind.by_length)),
        if kind.associated { ratio.with_strong_tone() } else { ratio },
        Cell::text(format!(
            "{} to {}",
            self::format_ratio(kind.low),
            self::format_ratio(kind.high)
        )),
        if kind.associated { p.with_strong_tone() } else { p },
    ]
}

fn format_ratio(ratio: f64) -> String {
    match ratio {
        _ if ratio >= 100.0 => format!("×{ratio:.0}"),
        _ if ratio >= 0.1 => format!("×{ratio:.2}"),
        _ => format!("×{ratio:.4}"),
    }
}

fn format_probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}
