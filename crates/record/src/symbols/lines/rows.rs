//! Rows of the line table.

use super::line_rows;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A row of the line table: code of one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineRow {
    /// Addresses, as in the file.
    pub code: Range<u64>,
    pub source: Arc<SourceFile>,
    pub line: u64,
}

/// A source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// Its path at compile time.
    pub path: String,
    /// The same without the compile directory: `mm/page_alloc.c`.
    pub name: String,
}

/// The lines of instructions at these ascending addresses of a program: `mm/page_alloc.c:1123`,
/// without the compile directory. Addresses without a line are omitted.
///
/// # Errors
/// The reason why line information is missing.
pub fn lines_at(
    path: &Path,
    data: &[u8],
    addresses: &[u64],
) -> Result<HashMap<u64, String>, String> {
    let single: Vec<_> = addresses.iter().map(|at| *at..at.saturating_add(1)).collect();
    let mut found = HashMap::new();
    for row in line_rows(path, data, &single)? {
        let begin = addresses.partition_point(|address| *address < row.code.start);
        for address in addresses[begin..].iter().take_while(|at| **at < row.code.end) {
            let name = || format!("{}:{}", row.source.name, row.line);
            found.entry(*address).or_insert_with(name);
        }
    }
    Ok(found)
}
