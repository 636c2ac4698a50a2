//! The effect of recording on the measurement, or why it was not measured.

use super::ReportInput;
use super::table::Table;
use super::text::{name, sentence};
use crate::tables::calibration;
use serde::Serialize;

/// The calibration of a bundle.
#[derive(Serialize)]
pub struct Section {
    table: Option<Table>,
    left_out: Option<String>,
}

/// One for each bundle in which something was recorded.
pub fn sections(inputs: &[ReportInput<'_>], labels: &[String]) -> Vec<Section> {
    let several = inputs.len() > 1;
    let of = |(input, label): (&ReportInput<'_>, &String)| {
        if let Some(why) = calibration::left_out(&input.summary.calibration) {
            let of = if several { format!("{}: ", name(label)) } else { String::new() };
            let left_out = Some(format!("{of}{}.", sentence(&why)));
            return Some(Section { table: None, left_out });
        }
        let mut table = calibration::table(&input.summary.calibration)?;
        if several {
            table.title = format!("{} ({})", table.title, name(label));
        }
        Some(Section { table: Some(table.into()), left_out: None })
    };
    inputs.iter().zip(labels).filter_map(of).collect()
}
