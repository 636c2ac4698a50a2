//! `compact_sched`: switches and wake-ups in columns (FtraceEventBundle.CompactSched).

use super::wire::{Fields, packed_numbers};

/// The columns of a bundle. Instants are differences, names are indices of a table.
#[derive(Default, Debug)]
pub(super) struct Compact<'a> {
    names: Vec<&'a [u8]>,
    columns: [Vec<u64>; COLUMNS],
}

const SWITCH: [usize; 5] = [1, 2, 3, 4, 6];
const WAKING: [usize; 5] = [7, 8, 9, 10, 11];
const NAMES: u32 = 5;
const COLUMNS: usize = 13;

/// A switch to a task, or a wake-up of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CompactRow<'a> {
    pub(super) at: u64,
    pub(super) task: i64,
    pub(super) prio: i64,
    pub(super) name: &'a [u8],
    /// The state of the previous task, or the CPU of the wake-up.
    pub(super) other: i64,
}

impl<'a> Compact<'a> {
    /// Adds the content of a message: a bundle may have several.
    pub(super) fn add(&mut self, message: &'a [u8]) {
        for (number, value) in Fields::from_bytes(message) {
            match (number, value.as_number()) {
                (NAMES, _) => self.names.push(value.as_bytes()),
                (column, number) if (column as usize) < COLUMNS => {
                    let column = &mut self.columns[column as usize];
                    column.extend(number);
                    column.extend(packed_numbers(value.as_bytes()));
                }
                _ => {}
            }
        }
    }

    /// Switches in order of time.
    pub(super) fn switch_rows(&self) -> impl Iterator<Item = CompactRow<'a>> {
        let [at, state, task, prio, name] = SWITCH;
        self.zip_rows(at, task, prio, name, state)
    }

    /// Wake-ups in order of time.
    pub(super) fn wakeup_rows(&self) -> impl Iterator<Item = CompactRow<'a>> {
        let [at, task, cpu, prio, name] = WAKING;
        self.zip_rows(at, task, prio, name, cpu)
    }

    /// The number of incomplete rows.
    pub(super) fn incomplete_rows(&self) -> u64 {
        let missing = |columns: [usize; 5]| {
            let lengths = columns.map(|column| self.columns[column].len());
            let (most, least) = (lengths.iter().max(), lengths.iter().min());
            most.zip(least).map_or(0, |(most, least)| (most - least) as u64)
        };
        missing(SWITCH) + missing(WAKING)
    }

    fn zip_rows(
        &self,
        at: usize,
        task: usize,
        prio: usize,
        name: usize,
        other: usize,
    ) -> impl Iterator<Item = CompactRow<'a>> {
        let mut instant = 0u64;
        let column_values = |column: usize| self.columns[column].iter().copied();
        let rows = column_values(at)
            .zip(column_values(task))
            .zip(column_values(prio))
            .zip(column_values(name))
            .zip(column_values(other));
        rows.map(move |((((delta, task), prio), name), other)| {
            instant = instant.wrapping_add(delta);
            let name = usize::try_from(name).ok().and_then(|name| self.names.get(name).copied());
            CompactRow {
                at: instant,
                task: task as i64,
                prio: prio as i64,
                name: name.unwrap_or_default(),
                other: other as i64,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_switches_are_decoded_from_deltas_and_name_indices() {
        let mut compact = Compact::default();
        let switches = b"\x0a\x03\xe8\x07\x05\x12\x02\x01\x02\x1a\x02\x07\x09\x22\x02\x31\x63";
        compact.add(switches);
        compact.add(b"\x2a\x05servo\x2a\x03hog\x32\x02\x00\x01");
        let row = |at, task, prio, name, other| CompactRow { at, task, prio, name, other };
        let expected = [row(1_000, 7, 0x31, &b"servo"[..], 1), row(1_005, 9, 0x63, b"hog", 2)];
        assert_eq!(compact.switch_rows().collect::<Vec<_>>(), expected);
        assert_eq!((compact.wakeup_rows().count(), compact.incomplete_rows()), (0, 0));
        // Only the instant of a wake-up.
        compact.add(b"\x3a\x01\x05");
        assert_eq!((compact.wakeup_rows().count(), compact.incomplete_rows()), (0, 1));
    }
}
