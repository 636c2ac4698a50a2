//! A gnuplot script with its data: the usual picture of this field, latency against the number of
//! samples on a logarithmic axis.

use super::{Exporter, Writer, full_name, micros};
use crate::format;
use punctual_bundle::{Bundle, Series, Timebase};
use std::io::{self, Write};

pub(super) const EXPORTER: Exporter = Exporter::new(
    "gnuplot",
    "a script with its data that draws the histograms",
    Writer::Bundles(write),
);

/// The script; `gnuplot -p SCRIPT` shows it, `gnuplot -e 'set terminal svg; set output "x.svg"'
/// SCRIPT` draws it into a file. All series of several bundles are drawn into one picture, prefixed
/// with the name of their bundle.
pub fn write(bundles: &[&Bundle], out: &mut dyn Write) -> io::Result<()> {
    let named = |bundle: &Bundle, phase: &str, series: &Series| {
        let bundle_name = bundle.directory.file_name().filter(|_| bundles.len() > 1);
        let prefix =
            bundle_name.map(|name| format!("{}: ", name.to_string_lossy())).unwrap_or_default();
        format!("{prefix}{}", full_name(phase, series))
    };
    let titled_series = bundles.iter().flat_map(|bundle| {
        bundle
            .all_series()
            .map(move |(phase, series)| (named(bundle, phase, series), series))
            .collect::<Vec<_>>()
    });
    let drawn_series: Vec<(String, &Series)> =
        titled_series.filter(|(_, series)| series.state.data.exact.inside_count() > 0).collect();
    writeln!(out, "# Written by punctual: gnuplot -p FILE")?;
    if drawn_series.is_empty() {
        return writeln!(out, "print 'there is no sample within any histogram to draw'");
    }
    for (k, (_, series)) in drawn_series.iter().enumerate() {
        writeln!(out, "$series{k} << EOD")?;
        write_data(series, out)?;
        writeln!(out, "EOD")?;
    }
    let mut titles: Vec<&str> =
        bundles.iter().map(|bundle| bundle.manifest.experiment.as_str()).collect();
    titles.dedup();
    writeln!(out, "set title {} noenhanced", quote_text(&titles.join(", ")))?;
    // Bundles of different timebases are not drawn together.
    let timebase = bundles.first().map_or_else(Timebase::default, |bundle| bundle.timebase());
    let unit = timebase.format_unit("us");
    let mark = timebase.short_meaning().map_or(String::new(), |mark| format!("\\n{mark}"));
    // In double quotes, so that `\n` is a line break: these words are constant.
    writeln!(out, "set xlabel \"latency ({unit}){mark}\"\nset ylabel 'number of samples'")?;
    writeln!(
        out,
        "set logscale y\nset yrange [0.5:*]\nset grid\nset key outside below noenhanced"
    )?;
    let lines = drawn_series.iter().enumerate().map(|(k, (name, series))| {
        let name = format!("{name} (max {} us)", format_max(series));
        // An empty bin is drawn on the axis: a logarithm has no zero.
        format!("$series{k} using 1:($2 > 0 ? $2 : 0.5) with steps title {}", quote_text(&name))
    });
    writeln!(out, "plot {}", lines.collect::<Vec<_>>().join(", \\\n     "))
}

/// The non-empty bins, and one empty bin at the beginning of each run of empty ones.
fn write_data(series: &Series, out: &mut dyn Write) -> io::Result<()> {
    let bins = micros::occupied_bins(&series.state.data.exact);
    for (k, (us, count)) in bins.iter().enumerate() {
        writeln!(out, "{us} {count}")?;
        if bins.get(k + 1).is_none_or(|(next, _)| *next > us + 1) {
            writeln!(out, "{} 0", us + 1)?;
        }
        if let Some((next, _)) = bins.get(k + 1).filter(|(next, _)| *next > us + 2) {
            writeln!(out, "{} 0", next - 1)?;
        }
    }
    Ok(())
}

fn format_max(series: &Series) -> String {
    series.state.data.max.map_or("-".to_owned(), format::micros_text)
}

/// A literal gnuplot string: in single quotes, backslashes and backquotes have no meaning and a
/// quote is doubled.
fn quote_text(text: &str) -> String {
    format!("'{}'", format::clip_name(text, 80, true).replace('\'', "''"))
}
