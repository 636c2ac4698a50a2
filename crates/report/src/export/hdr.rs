//! HdrHistogram's interval log, version 2: one interval per series over its whole phase, tagged
//! with its name, in ns.

use super::{Exporter, Writer, full_name};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use punctual_bundle::Bundle;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

pub(super) const EXPORTER: Exporter = Exporter {
    is_of_samples: true,
    ..Exporter::new(
        "hdr",
        "HdrHistogram V2 interval log, one tag per series",
        Writer::Bundle(|bundle, out| Ok(write(bundle, out)?)),
    )
};

/// Maxima in the log are for human readers: in ms, as in other tools of the format.
const MAX_DIVISOR: f64 = 1e6;

/// The log of all series; series corrected for coordinated omission follow the plain ones, with
/// `/corrected` after their name.
pub fn write(bundle: &Bundle, mut out: &mut dyn Write) -> io::Result<()> {
    let base = SystemTime::from(bundle.manifest.created);
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Latencies in ns, negative ones counted as 0; maxima in ms]");
    if let Some(mark) = bundle.timebase().short_meaning() {
        builder.add_comment(&format!("[{mark}]"));
    }
    builder.with_start_time(base).with_base_time(base).with_max_value_divisor(MAX_DIVISOR);
    let mut log = builder.begin_log_with(&mut out, &mut serializer)?;
    for phase in &bundle.phases {
        let started = SystemTime::from(phase.meta.started).duration_since(base).unwrap_or_default();
        let length = phase.meta.duration.map_or(Duration::ZERO, |length| length.to_std());
        for series in &phase.series {
            let name = full_name(&phase.meta.name, series);
            let corrected =
                series.state.data.corrected.as_ref().map(|hdr| (format!("{name}/corrected"), hdr));
            for (name, hdr) in [(name, &series.state.data.whole)].into_iter().chain(corrected) {
                let name = to_tag(&name);
                log.write_histogram(hdr, started, length, Tag::new(&name)).map_err(|error| {
                    match error {
                        IntervalLogWriterError::IoError(error) => error,
                        IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
                    }
                })?;
            }
        }
    }
    Ok(())
}

/// A name as a tag, without blanks, commas and line breaks.
fn to_tag(name: &str) -> String {
    crate::format::escape_unsafe(name)
        .chars()
        .map(|c| if c == ',' || c.is_whitespace() { '_' } else { c })
        .collect()
}
