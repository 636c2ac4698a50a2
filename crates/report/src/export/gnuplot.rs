//! A gnuplot script with its data in it: the picture this field recognises, latency against the number of samples on a logarithmic axis.

use super::{full_name, micros};
use crate::format;
use punctual_bundle::{Bundle, Series};
use std::io::{self, Write};

/// The script; `gnuplot -p SCRIPT` shows it, `gnuplot -e 'set terminal svg; set output "x.svg"' SCRIPT` draws it into a file.
pub fn write(bundle: &Bundle, out: &mut dyn Write) -> io::Result<()> {
    let all: Vec<(&str, &Series)> =
        bundle.series().filter(|(_, series)| series.state.data.exact.inside() > 0).collect();
    writeln!(out, "# Written by punctual: gnuplot -p FILE")?;
    if all.is_empty() {
        return writeln!(out, "print 'there is no sample within any histogram to draw'");
    }
    for (k, (_, series)) in all.iter().enumerate() {
        writeln!(out, "$series{k} << EOD")?;
        data(series, out)?;
        writeln!(out, "EOD")?;
    }
    writeln!(out, "set title {} noenhanced", quoted(&bundle.manifest.experiment))?;
    let timebase = bundle.timebase();
    let unit = timebase.unit("us");
    let mark = timebase.mark().map_or(String::new(), |mark| format!("\\n{mark}"));
    // In double quotes, so that `\n` is a line: these words are this program's own.
    writeln!(out, "set xlabel \"latency ({unit}){mark}\"\nset ylabel 'number of samples'")?;
    writeln!(out, "set logscale y\nset yrange [0.5:*]\nset grid\nset key outside below noenhanced")?;
    let lines = all.iter().enumerate().map(|(k, (phase, series))| {
        let name = format!("{} (max {} us)", full_name(phase, series), max(series));
        // An empty bin lies on the axis: a logarithm has no zero.
        format!("$series{k} using 1:($2 > 0 ? $2 : 0.5) with steps title {}", quoted(&name))
    });
    writeln!(out, "plot {}", lines.collect::<Vec<_>>().join(", \\\n     "))
}

/// The bins that are not empty, and an empty one wherever a run of empty ones begins.
fn data(series: &Series, out: &mut dyn Write) -> io::Result<()> {
    let bins = micros::occupied(&series.state.data.exact);
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

fn max(series: &Series) -> String {
    series.state.data.max.map_or("-".to_owned(), format::micros)
}

/// A string that gnuplot takes as it is: in single quotes neither backslashes nor backquotes mean anything, and a quote is doubled.
fn quoted(text: &str) -> String {
    format!("'{}'", format::clipped(text, 80, true).replace('\'', "''"))
}
