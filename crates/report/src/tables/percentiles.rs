//! Columns and cells of percentiles: those that the number of samples supports.

use super::{Cell, Column};
use crate::format::{count_text, short_count};
use std::collections::BTreeMap;

/// The maximum number of columns: a hostile summary may hold any number.
const COLUMNS: usize = 12;

/// The keys that are percentiles, ascending. A hostile summary may hold any text.
pub(crate) fn sort_keys<'a>(keys: impl Iterator<Item = &'a String>) -> Vec<String> {
    let number = |key: &str| key.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
    let mut numbered_keys: Vec<(f64, &String)> =
        keys.filter(|key| key.len() <= 8).filter_map(|key| Some((number(key)?, key))).collect();
    numbered_keys.sort_by(|a, b| a.0.total_cmp(&b.0));
    numbered_keys.dedup();
    numbered_keys.into_iter().take(COLUMNS).map(|(_, key)| key.clone()).collect()
}

/// The column of a percentile; the highest percentiles and the common ones are hidden last.
pub(crate) fn percentile_column(percentile: &str) -> Column {
    let dispensable = match percentile {
        "75" | "95" => 9,
        "90" => 7,
        "99.99" => 5,
        "99.9" => 4,
        "50" => 3,
        _ => 1,
    };
    Column::figures(format!("p{percentile}"), dispensable)
        .with_meaning(format!("{percentile} % are at or below this"))
}

/// The cell of a percentile for this number of samples.
pub(crate) fn percentile_cell(
    percentile: &str,
    supported: &BTreeMap<String, i64>,
    needed: &BTreeMap<String, u64>,
    of: u64,
) -> Cell {
    match (supported.get(percentile), needed.get(percentile)) {
        (Some(ns), _) => Cell::time(*ns),
        (None, Some(needed)) => Cell::absent(format!("needs {}", short_count(*needed))).with_exact(
            format!("needs {} samples; there are {}", count_text(*needed), count_text(of)),
        ),
        (None, None) => Cell::absent("none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_percentiles_are_columns() {
        let keys = ["99.9", "50", "x", "101", "99.9", "9", "NaN"].map(str::to_owned);
        assert_eq!(sort_keys(keys.iter()), ["9", "50", "99.9"]);
    }
}
