//! The summary as JSON: the document that every command prints with `--json`.

use super::{ExportError, Exporter, Writer};
use punctual_bundle::Bundle;
use std::io::{self, Write};

pub(super) const EXPORTER: Exporter = Exporter {
    answers: true,
    ..Exporter::new("json", "the summary as JSON (docs/reference/json.md)", Writer::Bundle(write))
};

pub fn write(bundle: &Bundle, out: &mut dyn Write) -> Result<(), ExportError> {
    serde_json::to_writer_pretty(&mut *out, &punctual_stats::summarize_bundle(bundle))
        .map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}
