//! Lanes of a picture: rows for what overlaps, and a bound for all of them.

use super::Item;
use serde::Serialize;

/// How a lane is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Spans and instants in rows.
    Spans,
    /// What a thread does: spans without holes, waiting drawn thinner than running.
    State,
    /// A curve.
    Values,
}

/// A lane.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// The CPU, thread or device that it belongs to; lanes of one group stand together.
    pub group: String,
    /// What it shows of that.
    pub title: String,
    /// How.
    pub kind: Kind,
    /// The colour of the group, where it is a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hue: Option<u8>,
    rows: usize,
    items: Vec<Item>,
}

impl Lane {
    /// Of items, which get rows so that none covers another. Order is by beginning; of two that begin together the longer is above.
    pub fn new(group: &str, title: &str, kind: Kind, mut items: Vec<Item>) -> Lane {
        items.sort_by_key(|item| (item.from, std::cmp::Reverse(item.length)));
        let mut ends: Vec<i64> = Vec::new();
        for item in &mut items {
            let row = ends.iter().position(|end| *end <= item.from).unwrap_or(ends.len()).min(MAX_ROWS - 1);
            let end = item.from.saturating_add(item.length.max(1));
            match ends.get_mut(row) {
                Some(last) => *last = end.max(*last),
                None => ends.push(end),
            }
            item.row = row;
        }
        Lane { group: group.to_owned(), title: title.to_owned(), kind, hue: None, rows: ends.len().max(1), items }
    }

    /// In the colour of a thread.
    pub fn hue(mut self, hue: u8) -> Lane {
        self.hue = Some(hue);
        self
    }

    /// How many items.
    pub fn len(&self) -> usize {
        self.items.len()
    }
}

/// Rows of a lane: what overlaps more than that covers each other in the last.
const MAX_ROWS: usize = 8;

/// Leaves out the shortest items until `limit` are left; gives how many went. Curves and states stay as long as anything does.
pub fn thin(lanes: &mut [Lane], limit: usize) -> usize {
    let all: usize = lanes.iter().map(Lane::len).sum();
    if all <= limit {
        return 0;
    }
    let weight = |lane: &Lane, item: &Item| (lane.kind != Kind::Spans, item.length);
    let mut weights: Vec<(bool, i64)> =
        lanes.iter().flat_map(|lane| lane.items.iter().map(move |item| weight(lane, item))).collect();
    weights.sort_unstable_by(|a, b| b.cmp(a));
    let Some(least) = weights.get(limit).copied() else { return 0 };
    // Of those that weigh the same as the first that has no place, as many stay as there is room for.
    let mut room = limit - weights.iter().take_while(|weight| **weight > least).count();
    for lane in lanes.iter_mut() {
        let kind = lane.kind;
        lane.items.retain(|item| {
            let weight = (kind != Kind::Spans, item.length);
            let tie = weight == least && room > 0;
            room -= usize::from(tie);
            weight > least || tie
        });
    }
    all - limit
}
