//! The pages of the kernel's ring buffer, as in trace_pipe_raw and trace.dat
//! (Documentation/trace/ring-buffer-design.rst, include/linux/ring_buffer.h).

use crate::bytes::ByteOrder;
use crate::format::RecordFormat;

/// The header of a page: `events/header_page`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageShape {
    commit: usize,
    commit_size: usize,
    data: usize,
    order: ByteOrder,
}

impl PageShape {
    /// Reads the file's text; without it, assumes a page of kernels with longs of `long` bytes.
    pub fn parse(text: &str, long: usize, order: ByteOrder) -> PageShape {
        let format = RecordFormat::parse(&format!("ID: 0\n{text}")).unwrap_or_default();
        match (format.find_field("commit"), format.find_field("data")) {
            (Some(commit), Some(data)) if commit.size <= 8 => PageShape {
                commit: commit.offset,
                commit_size: commit.size,
                data: data.offset,
                order,
            },
            _ => PageShape { commit: 8, commit_size: long.min(8), data: 8 + long.min(8), order },
        }
    }
}

/// An item of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageItem {
    /// Events are missing before this point; their number, if the kernel had space for it.
    Lost(Option<u64>),
    /// A record: its instant in units of the trace clock, and its position in the page.
    Record {
        at: u64,
        /// Its first byte in the page.
        from: usize,
        /// The byte after its last.
        to: usize,
    },
    /// The rest is not valid page content.
    Damaged,
}

/// Events were overwritten before this page was read.
const MISSED: u64 = 1 << 31;
/// Their number follows the data.
const STORED: u64 = 1 << 30;
const LENGTH: u64 = (1 << 27) - 1;

/// Reads a page item by item.
#[derive(Clone, Copy, Debug)]
pub struct PageReader {
    shape: PageShape,
    begin: u64,
    time: u64,
    next: usize,
    end: usize,
    lost: Option<Option<u64>>,
    damaged: bool,
}

impl PageReader {
    pub fn new(page: &[u8], shape: PageShape) -> PageReader {
        let nothing =
            PageReader { shape, begin: 0, time: 0, next: 0, end: 0, lost: None, damaged: true };
        let order = shape.order;
        let heads = order.unsigned_at(page, 0, 8).zip(order.unsigned_at(
            page,
            shape.commit,
            shape.commit_size,
        ));
        let Some((begin, commit)) = heads else { return nothing };
        let (next, length) = (shape.data, (commit & LENGTH) as usize);
        let end = next.saturating_add(length);
        let stored =
            (commit & STORED != 0).then(|| order.unsigned_at(page, end, shape.commit_size));
        PageReader {
            begin,
            time: begin,
            next,
            end: end.min(page.len()),
            lost: (commit & MISSED != 0).then_some(stored.flatten()),
            damaged: end > page.len(),
            ..nothing
        }
    }

    /// The next item of the same page; `None` after the last.
    #[inline]
    pub fn next(&mut self, page: &[u8]) -> Option<PageItem> {
        if let Some(count) = self.lost.take() {
            return Some(PageItem::Lost(count));
        }
        loop {
            if self.next + 4 > self.end {
                return std::mem::take(&mut self.damaged).then_some(PageItem::Damaged);
            }
            let order = self.shape.order;
            let head = order.unsigned_at(page, self.next, 4)? as u32;
            let (kind, delta) = match order {
                ByteOrder::Little => (head & 31, u64::from(head >> 5)),
                ByteOrder::Big => (head >> 27, u64::from(head & 0x7ff_ffff)),
            };
            let long = order.unsigned_at(page, self.next + 4, 4);
            let (from, size) = match (kind, long) {
                (29, _) if delta == 0 => return self.finish_page(),
                (29, Some(size)) => (None, 4 + size as usize),
                (30, Some(high)) => {
                    self.time = self.time.wrapping_add((high << 27) + delta);
                    (None, 8)
                }
                (31, Some(high)) => {
                    // 59 bits; the rest is from the page.
                    self.time = ((high << 27) + delta) | (self.begin & (0x1f << 59));
                    (None, 8)
                }
                (0, Some(size)) => (Some(8), 4 + size as usize),
                (1..=28, _) => (Some(4), 4 + kind as usize * 4),
                _ => return self.fail_page(),
            };
            let at = self.next;
            self.next = at.saturating_add(size.next_multiple_of(4));
            if let Some(from) = from {
                self.time = self.time.wrapping_add(delta);
                if size < from || at + size > self.end {
                    return self.fail_page();
                }
                return Some(PageItem::Record { at: self.time, from: at + from, to: at + size });
            }
        }
    }

    fn finish_page(&mut self) -> Option<PageItem> {
        self.next = self.end;
        std::mem::take(&mut self.damaged).then_some(PageItem::Damaged)
    }

    fn fail_page(&mut self) -> Option<PageItem> {
        (self.next, self.damaged) = (self.end, false);
        Some(PageItem::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items(page: &[u8], shape: PageShape) -> Vec<PageItem> {
        let mut reader = PageReader::new(page, shape);
        std::iter::from_fn(|| reader.next(page)).collect()
    }

    #[test]
    fn records_of_a_page_have_times_and_losses_a_count() {
        for (order, long) in [(ByteOrder::Little, 8), (ByteOrder::Big, 8), (ByteOrder::Big, 4)] {
            let word = |word: u64, size: usize| match order {
                ByteOrder::Little => word.to_le_bytes()[..size].to_vec(),
                ByteOrder::Big => word.to_be_bytes()[8 - size..].to_vec(),
            };
            let head = |kind: u64, delta: u64| match order {
                ByteOrder::Little => kind | delta << 5,
                ByteOrder::Big => kind << 27 | delta,
            };
            let words = [head(2, 10), 7, 8, head(30, 5), 1, head(0, 1), 8, 9];
            let mut page = word(1_000, 8);
            page.extend(word((words.len() as u64 * 4) | MISSED | STORED, long));
            page.extend(words.iter().flat_map(|number| word(*number, 4)));
            page.extend(word(77, long));
            let shape = PageShape::parse("", long, order);
            let data = 8 + long;
            let second = 1_010 + (1 << 27) + 5 + 1;
            let expected = [
                PageItem::Lost(Some(77)),
                PageItem::Record { at: 1_010, from: data + 4, to: data + 12 },
                PageItem::Record { at: second, from: data + 28, to: data + 32 },
            ];
            assert_eq!(items(&page, shape), expected);
            let cut = &page[..data + 10];
            assert_eq!(items(cut, shape)[1..], [PageItem::Damaged]);
        }
    }

    proptest! {
        #[test]
        fn no_page_panics(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            length in 0u64..200,
            big in any::<bool>(),
        ) {
            let mut bytes = bytes;
            if let Some(commit) = bytes.get_mut(8..16) {
                commit.copy_from_slice(&length.to_le_bytes());
            }
            let order = if big { ByteOrder::Big } else { ByteOrder::Little };
            for item in items(&bytes, PageShape::parse("", 8, order)) {
                if let PageItem::Record { from, to, .. } = item {
                    prop_assert!(from <= to && to <= bytes.len());
                }
            }
        }
    }
}
