//! Comma-separated values (RFC 4180), times in whole ns.

use super::{ExportError, Exporter, Format, Writer, no_samples};
use crate::format::escape_unsafe;
use punctual_bundle::Bundle;
use punctual_bundle::summary::{PhaseSummary, SeriesSummary};
use std::io::{self, Write};

pub(super) const SAMPLES: Exporter = Exporter {
    is_of_samples: true,
    ..Exporter::new("csv", "every kept sample, one per row", Writer::Bundle(write_samples))
};
pub(super) const SUMMARY: Exporter = Exporter::new(
    "csv-summary",
    "the figures, one series per row",
    Writer::Bundle(|bundle, out| Ok(write_summary(bundle, out)?)),
);

/// Every kept sample, one per row.
fn write_samples(bundle: &Bundle, out: &mut dyn Write) -> Result<(), ExportError> {
    if bundle.all_series().all(|(_, series)| series.state.samples_kept == 0) {
        return Err(no_samples(bundle, Format::Csv));
    }
    writeln!(out, "phase,series,seq,due_ns,woke_ns,latency_ns,cpu,timebase")?;
    let timebase = bundle.timebase().unit_prefix().unwrap_or_default();
    for (phase, series) in bundle.all_series() {
        let (phase, name) = (quote_field(phase), quote_field(&series.meta.name));
        for s in series.load_log()?.samples {
            let latency = s.latency().ns();
            writeln!(
                out,
                "{phase},{name},{},{},{},{latency},{},{timebase}",
                s.seq,
                s.due.ns(),
                s.woke.ns(),
                s.cpu
            )?;
        }
    }
    Ok(())
}

/// The figures of every series, one per row; unknown fields are empty.
pub(crate) fn write_summary(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    let summary = punctual_stats::summarize_bundle(bundle);
    let percentiles: Vec<String> = punctual_stats::percentiles::OFFERED
        .map(punctual_stats::percentiles::percentile_key)
        .into();
    let columns: Vec<String> = percentiles.iter().map(|p| format!("p{p}_ns")).collect();
    writeln!(
        out,
        "phase,series,cpus,scheduling,real_time,count,min_ns,mean_ns,max_ns,stddev_ns,{},overruns,\
         skipped,lost,above_range,negative,timebase",
        columns.join(",")
    )?;
    for phase in &summary.phases {
        for series in &phase.series {
            let figures = format_row(phase, series, &percentiles).join(",");
            writeln!(out, "{figures},{}", bundle.timebase().unit_prefix().unwrap_or_default())?;
        }
    }
    Ok(())
}

fn format_row(phase: &PhaseSummary, series: &SeriesSummary, percentiles: &[String]) -> Vec<String> {
    let whole = |ns: Option<i64>| ns.map_or(String::new(), |ns| ns.to_string());
    let real = |ns: Option<f64>| ns.map_or(String::new(), |ns| format!("{ns:.3}"));
    let mut row = vec![
        quote_field(&phase.name),
        quote_field(&series.name),
        quote_field(&series.cpus),
        quote_field(&series.scheduling),
        series.real_time.to_string(),
        series.count.to_string(),
        whole(series.min),
        real(series.mean),
        whole(series.max),
        real(series.stddev),
    ];
    row.extend(percentiles.iter().map(|p| whole(series.percentiles.get(p).copied())));
    row.extend(
        [series.overruns, series.skipped, series.lost]
            .map(|n| n.map_or(String::new(), |n| n.to_string())),
    );
    row.extend([series.above_range, series.negative].map(|n| n.to_string()));
    row
}

/// A text as a field. Threads choose their own names, so text is escaped: spreadsheets compute a
/// text that begins like a formula, so it gets a leading apostrophe (OWASP, "CSV Injection"), and
/// terminal control characters are escaped.
pub(crate) fn quote_field(text: &str) -> String {
    let apostrophe = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    let text = escape_unsafe(text);
    if apostrophe.is_empty() && !text.contains([',', '"', ';']) {
        return text;
    }
    format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::quote_field;

    #[test]
    fn csv_fields_are_quoted_and_formulas_escaped() {
        assert_eq!(quote_field("cpu0"), "cpu0");
        assert_eq!(quote_field("a,\"b\"\nc"), "\"a,\"\"b\"\"\\nc\"");
        assert_eq!(quote_field("=1+1"), "\"'=1+1\"");
        assert_eq!(quote_field("\t=1"), "\"'\\t=1\"");
        assert_eq!(quote_field("a\u{1b}[31mb\u{202e}c"), "a\\u{1b}[31mb\\u{202e}c");
    }
}
