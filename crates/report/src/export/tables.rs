//! The tables of a run as the terminal shows them, with exact figures: times in ns, shares of 1.

use super::csv::field;
use crate::tables::figures::{self, Row, named};
use crate::tables::requirements::{self, Stated};
use crate::tables::{Cell, Table, Value, account, notes, published};
use punctual_bundle::Bundle;
use punctual_bundle::meta::MeasureMeta;
use punctual_bundle::summary::Summary;
use serde_json::{Value as Json, json};
use std::io::{self, Write};

/// The tables of a run, in the order of reading.
fn of_run(summary: &Summary) -> Vec<Table> {
    let mut tables = Vec::new();
    for phase in &summary.phases {
        let rows = phase.series.iter().map(|series| Row {
            name: series.name.clone(),
            summary: series,
            cut_off: false,
        });
        tables.push(figures::table(format!("phase {}", phase.name), rows));
        let name = |measure: &MeasureMeta| format!("{}/{}", phase.name, measure.name);
        let measures: Vec<_> = phase.measures.iter().map(|one| (name(one), one)).collect();
        let shared = [notes::validations(&measures), notes::figures(&measures)];
        tables.extend(shared.into_iter().filter_map(Table::unless_empty));
        for (name, measure) in &measures {
            let title = |table: &punctual_core::Table| format!("{name}: {}", table.title);
            let own = measure.notes.tables.iter();
            tables.extend(own.map(|table| notes::own(title(table), table)));
        }
    }
    tables.extend(account::table(named(summary).map(|(name, series)| (name, &series.account))));
    tables.extend(summary.published.as_ref().map(published::table));
    let stated = named(summary).flat_map(|(name, series)| {
        let stated = move |result| Stated { series: name.clone(), result };
        series.requirements.iter().map(stated)
    });
    tables.extend(requirements::each(stated.collect()).unless_empty());
    tables
}

/// `{"schema", "timebase", "tables": [{"title", "columns", "rows", "remarks"}]}`; a cell is a text,
/// `null`, or an object that names what it holds.
pub fn write_json(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    let table = |table: &Table| {
        let columns = table.columns.iter();
        let columns = columns.map(|c| json!({"heading": c.heading, "meaning": c.meaning}));
        let rows = table.rows.iter().map(|row| row.iter().map(json_cell).collect());
        let remarks = table.remarks.iter().map(|remark| remark.text.as_str());
        json!({
            "title": table.title,
            "columns": columns.collect::<Vec<_>>(),
            "rows": rows.collect::<Vec<Vec<Json>>>(),
            "remarks": remarks.collect::<Vec<_>>(),
        })
    };
    let tables = of_run(&punctual_analyze::summarize(bundle));
    let document = json!({
        "schema": "punctual-tables/1",
        "timebase": bundle.timebase().mark(),
        "tables": tables.iter().map(table).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

fn json_cell(cell: &Cell) -> Json {
    let mut value = json_value(&cell.value);
    if let (Json::Object(fields), Some(second)) = (&mut value, &cell.beside) {
        fields.insert("corrected".to_owned(), json_value(second));
    }
    value
}

fn json_value(value: &Value) -> Json {
    match value {
        Value::Nothing => Json::Null,
        Value::Name(text) | Value::Text(text) | Value::Command(text) => json!(text),
        Value::Time(ns) | Value::Latency(ns) => json!({ "ns": number(*ns) }),
        Value::Interval(low, high) => json!({ "ns": [low.map(number), high.map(number)] }),
        Value::Span(ns) => json!({ "ns": ns }),
        Value::Count(n) => json!({ "count": n }),
        Value::Share(share) => json!({ "share": share }),
        Value::Figure(value, words) => json!({ "value": number(*value), "text": words }),
        Value::Verdict(_, word) => json!({ "verdict": word }),
        Value::Absent(why) => json!({ "absent": why }),
        Value::Unknown => json!({ "absent": "unknown" }),
    }
}

/// Whole numbers without a point.
fn number(value: f64) -> Json {
    if value.fract() == 0.0 && value.abs() < 2f64.powi(53) {
        json!(value as i64)
    } else {
        json!(value)
    }
}

/// One table after the other, with its title in a line before it and an empty line after it; what
/// is not known is empty.
pub fn write_csv(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    let mark = bundle.timebase().mark().map_or(String::new(), |mark| format!(" ({mark})"));
    for table in of_run(&punctual_analyze::summarize(bundle)) {
        writeln!(out, "{}", field(&format!("# {}{mark}", table.title)))?;
        let headings = table.columns.iter().map(|column| field(&column.heading));
        writeln!(out, "{}", headings.collect::<Vec<_>>().join(","))?;
        for row in &table.rows {
            let cells = row.iter().map(|cell| csv_value(&cell.value));
            writeln!(out, "{}", cells.collect::<Vec<_>>().join(","))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn csv_value(value: &Value) -> String {
    let end = |ns: &Option<f64>| ns.map_or(String::new(), |ns| ns.to_string());
    match value {
        Value::Nothing | Value::Absent(_) | Value::Unknown => String::new(),
        Value::Name(text) | Value::Text(text) | Value::Command(text) => field(text),
        Value::Verdict(_, word) => field(word),
        Value::Time(value) | Value::Latency(value) | Value::Share(value) => value.to_string(),
        Value::Figure(value, _) => value.to_string(),
        Value::Interval(low, high) => format!("{} to {}", end(low), end(high)),
        Value::Span(ns) => ns.to_string(),
        Value::Count(n) => n.to_string(),
    }
}
