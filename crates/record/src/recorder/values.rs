//! The values in records that need names: addresses of kernel functions, and stacks.

use crate::wire::layout::{self as wire, Header};
use punctual_core::event::StackId;
use std::collections::BTreeSet;

/// The maximum number of values; later ones stay numbers.
const MAX_VALUES: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct SeenTracepoints {
    pub(super) functions: BTreeSet<u64>,
    pub(super) stacks: BTreeSet<u32>,
}

impl SeenTracepoints {
    pub(super) fn note_records(&mut self, mut records: &[u8]) {
        while let Some((header, rest)) = records.split_first_chunk() {
            let header = Header::read(header);
            let Some((payload, rest)) = rest.split_at_checked(usize::from(header.words) * 8) else {
                return;
            };
            let word = |place: usize| {
                payload[place * 8..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
            };
            match (u64::from(header.kind), header.words) {
                (wire::WORK_START, 1) => keep_value(&mut self.functions, word(0)),
                (wire::TIMER_ENTRY, 2) => keep_value(&mut self.functions, word(1)),
                (wire::STACK, 1) => keep_value(&mut self.stacks, word(0) as u32),
                _ => {}
            }
            records = rest;
        }
    }

    /// The stacks that occurred, each at its index; adds all their addresses to the functions.
    pub(super) fn resolve_stacks(
        &mut self,
        addresses: impl Fn(StackId) -> Vec<u64>,
    ) -> Vec<Vec<u64>> {
        let places = self.stacks.last().map_or(0, |last| *last as usize + 1).min(MAX_VALUES);
        let mut stacks = vec![Vec::new(); places];
        for id in &self.stacks {
            if let Some(place) = stacks.get_mut(*id as usize) {
                *place = addresses(StackId(*id));
                place.iter().for_each(|address| keep_value(&mut self.functions, *address));
            }
        }
        stacks
    }
}

fn keep_value<T: Ord>(set: &mut BTreeSet<T>, item: T) {
    if set.len() < MAX_VALUES {
        set.insert(item);
    }
}
