//! How values of parameters are read, each with its bounds.

use crate::notes::{Read, Wrong};
use crate::table::{boolean, integer, mismatch, text};
use crate::values;
use crate::words::Word;
use punctual_core::{Bytes, Nanos};
use std::path::PathBuf;
use toml::de::DeValue;

/// One of a closed list of words; `what` completes "… is not".
pub(super) fn word<W: Word>(what: &'static str) -> impl Fn(&DeValue<'_>) -> Read<W> {
    move |v| values::word(text(v)?, what)
}

/// A whole number.
pub(super) fn count<N: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&DeValue<'_>) -> Read<N> {
    move |v| {
        let number = values::count(integer(v)?, least, most)?;
        N::try_from(number)
            .map_err(|_| Wrong::new(format!("{number} is out of bounds: {least} to {most}")))
    }
}

/// Any whole number of 64 bits.
pub(super) fn number(v: &DeValue<'_>) -> Read<i64> {
    integer(v)
}

/// A span of time.
pub(super) fn span(least: Nanos, most: Nanos) -> impl Fn(&DeValue<'_>) -> Read<Nanos> {
    move |v| values::duration(text(v)?, least, most)
}

/// A size: `"4KiB"`, or a number of bytes.
pub(super) fn bytes(least: Bytes, most: Bytes) -> impl Fn(&DeValue<'_>) -> Read<Bytes> {
    move |v| {
        let size = match v {
            DeValue::Integer(_) => Bytes(values::count(integer(v)?, 0, i64::MAX as u64)?),
            _ => text(v)?
                .parse()
                .map_err(|why: punctual_core::bytes::BytesError| Wrong::new(why.to_string()))?,
        };
        match (least..=most).contains(&size) {
            true => Ok(size),
            false => Err(Wrong::new(format!("{size} is out of bounds: {least} to {most}"))),
        }
    }
}

/// A path.
pub(super) fn path(v: &DeValue<'_>) -> Read<PathBuf> {
    values::path(text(v)?).map(PathBuf::from)
}

/// `true` or `false`.
pub(super) fn flag(v: &DeValue<'_>) -> Read<bool> {
    boolean(v)
}

/// Something that may be left out.
pub(super) fn some<T>(
    read: impl Fn(&DeValue<'_>) -> Read<T>,
) -> impl Fn(&DeValue<'_>) -> Read<Option<T>> {
    move |v| read(v).map(Some)
}

/// An array of this many values.
pub(super) fn list<T>(
    least: usize,
    most: usize,
    read: impl Fn(&DeValue<'_>) -> Read<T>,
) -> impl Fn(&DeValue<'_>) -> Read<Vec<T>> {
    move |v| {
        let DeValue::Array(items) = v else { return Err(mismatch(v, "an array")) };
        if !(least..=most).contains(&items.len()) {
            return Err(Wrong::new(format!(
                "{} values are out of bounds: {least} to {most}",
                items.len()
            )));
        }
        items.iter().map(|item| read(item.get_ref())).collect()
    }
}
