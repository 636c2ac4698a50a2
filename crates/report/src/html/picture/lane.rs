//! Lanes of a picture: rows for overlapping items, and a limit for all of them.

use super::{ItemStyle, LaneItem};
use serde::Serialize;

/// How a lane is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneKind {
    /// Spans and instants in rows.
    Spans,
    /// The states of a thread: spans without gaps, waiting drawn thinner than running.
    State,
    Values,
}

#[derive(Clone, Debug, Serialize)]
pub struct PictureLane {
    /// The CPU, thread or device that it belongs to; lanes of one group are adjacent.
    pub group: String,
    /// Its subject within the group.
    pub title: String,
    pub kind: LaneKind,
    /// The colour of the group, if it is a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hue: Option<u8>,
    rows: usize,
    items: Vec<LaneItem>,
}

impl PictureLane {
    /// Builds a lane; items get rows so that none covers another. They are ordered by beginning; of
    /// two that begin together the longer is above.
    pub fn new(group: &str, title: &str, kind: LaneKind, mut items: Vec<LaneItem>) -> PictureLane {
        items.sort_by_key(|item| (item.from, std::cmp::Reverse(item.length)));
        let mut ends: Vec<i64> = Vec::new();
        for item in &mut items {
            let row = ends
                .iter()
                .position(|end| *end <= item.from)
                .unwrap_or(ends.len())
                .min(MAX_ROWS - 1);
            let end = item.from.saturating_add(item.length.max(1));
            match ends.get_mut(row) {
                Some(last) => *last = end.max(*last),
                None => ends.push(end),
            }
            item.row = row;
        }
        PictureLane {
            group: group.to_owned(),
            title: title.to_owned(),
            kind,
            hue: None,
            rows: ends.len().max(1),
            items,
        }
    }

    /// Sets the colour of a thread.
    pub(crate) fn with_hue(mut self, hue: u8) -> PictureLane {
        self.hue = Some(hue);
        self
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }
}

/// Rows of a lane: with more overlapping items, those in the last row cover each other.
const MAX_ROWS: usize = 8;

/// Removes the shortest items until at most `limit` are left; returns the number removed. In lanes
/// without gaps, one item replaces each run of removed items, so that the CPU does not look idle.
pub(crate) fn thin_lanes(lanes: &mut [PictureLane], limit: usize, mixed: usize) -> usize {
    let items_before: usize = lanes.iter().map(PictureLane::len).sum();
    let mut shortest_kept = 0;
    loop {
        let now: usize = lanes.iter().map(PictureLane::len).sum();
        if now <= limit {
            return items_before - now;
        }
        // Runs of short items become items of their own: after a round there may be more than
        // `limit`.
        let mut lengths: Vec<i64> =
            lanes.iter().flat_map(|lane| lane.items.iter().map(|item| item.length)).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let next = lengths.get(limit / 2).copied().unwrap_or(i64::MAX);
        shortest_kept =
            if next > shortest_kept { next } else { shortest_kept.saturating_mul(2).max(1) };
        lanes.iter_mut().for_each(|lane| lane.drop_below(shortest_kept, mixed));
    }
}

impl PictureLane {
    fn drop_below(&mut self, least: i64, mixed: usize) {
        let whole = self.kind == LaneKind::State || self.rows == 1 && self.kind == LaneKind::Spans;
        let mut kept: Vec<LaneItem> = Vec::with_capacity(self.items.len() / 2);
        let mut segment: Option<LaneItem> = None;
        for item in self.items.drain(..) {
            if item.length >= least {
                kept.extend(segment.take().filter(|segment| segment.length >= least));
                kept.push(item);
                continue;
            }
            if !whole {
                continue;
            }
            let touches =
                |segment: &&mut LaneItem| item.from.saturating_sub(segment.end()) <= least;
            match segment.as_mut().filter(touches) {
                Some(segment) => segment.length = item.end().saturating_sub(segment.from),
                None => {
                    let from = item.from;
                    let next = LaneItem {
                        word: mixed,
                        look: ItemStyle::Mixed,
                        details: Vec::new(),
                        ..item
                    };
                    kept.extend(
                        segment
                            .replace(next)
                            .filter(|segment| segment.end() <= from && segment.length >= least),
                    );
                }
            }
        }
        kept.extend(segment.filter(|segment| segment.length >= least));
        self.items = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(from: i64, length: i64) -> LaneItem {
        LaneItem {
            from,
            length,
            row: 0,
            look: ItemStyle::Kernel,
            word: 0,
            value: None,
            details: Vec::new(),
        }
    }

    #[test]
    fn overlapping_items_get_separate_rows() {
        let lane = PictureLane::new(
            "g",
            "t",
            LaneKind::Spans,
            vec![item(10, 5), item(0, 100), item(12, 1), item(20, 5)],
        );
        let rows: Vec<(i64, usize)> = lane.items.iter().map(|item| (item.from, item.row)).collect();
        assert_eq!((rows, lane.rows), (vec![(0, 0), (10, 1), (12, 2), (20, 1)], 3));
    }

    #[test]
    fn thinning_merges_the_shortest_items_without_gaps() {
        let states: Vec<LaneItem> =
            (0..1_000).map(|k| item(k * 10, 10)).chain([item(10_000, 5_000)]).collect();
        let mut lanes = [PictureLane::new("g", "state", LaneKind::State, states)];
        let gone = thin_lanes(&mut lanes, 50, 7);
        let [lane] = lanes;
        assert!(lane.len() <= 50 && gone == 1_001 - lane.len(), "{gone}");
        assert_eq!(
            (lane.items[0].from, lane.items[0].length, lane.items[0].look),
            (0, 10_000, ItemStyle::Mixed)
        );
        assert_eq!(lane.items.last().map(|item| item.length), Some(5_000));
    }
}
