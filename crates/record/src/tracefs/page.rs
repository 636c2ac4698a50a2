//! The pages of the kernel's ring buffer, as trace_pipe_raw gives them
//! (Documentation/trace/ring-buffer-design.rst, include/linux/ring_buffer.h).

use crate::format::{Fields, Format};

/// How a page begins: `events/header_page`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageShape {
    commit: usize,
    commit_size: usize,
    data: usize,
}

impl Default for PageShape {
    /// As on every 64-bit kernel.
    fn default() -> PageShape {
        PageShape { commit: 8, commit_size: 8, data: 16 }
    }
}

impl PageShape {
    pub(crate) fn parse(text: &str) -> PageShape {
        let format = Format::parse(&format!("ID: 0\n{text}")).unwrap_or_default();
        match (format.field("commit"), format.field("data")) {
            (Some(commit), Some(data)) if commit.size <= 8 => {
                PageShape { commit: commit.offset, commit_size: commit.size, data: data.offset }
            }
            _ => PageShape::default(),
        }
    }
}

/// What a page holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Item<'a> {
    /// Events are missing before what follows; how many, where the kernel had room to say.
    Lost(Option<u64>),
    /// A record, and when, in nanoseconds of the trace clock.
    Record(u64, &'a [u8]),
}

/// Events were overwritten before this page was read.
const MISSED: u64 = 1 << 31;
/// Their number stands behind the data.
const STORED: u64 = 1 << 30;
const LENGTH: u64 = (1 << 27) - 1;

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide.get_mut(..size)?.copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(wide))
}

/// Tells everything in the page; `None` when it is cut off or is no page.
pub(crate) fn read_page<'a>(
    page: &'a [u8],
    shape: PageShape,
    give: &mut dyn FnMut(Item<'a>),
) -> Option<()> {
    let begin = number(page, 0, 8)?;
    let commit = number(page, shape.commit, shape.commit_size)?;
    let data = page.get(shape.data..)?;
    let length = (commit & LENGTH) as usize;
    if commit & MISSED != 0 {
        give(Item::Lost(
            (commit & STORED != 0).then(|| number(data, length, shape.commit_size)).flatten(),
        ));
    }
    let mut rest = data.get(..length)?;
    let mut time = begin;
    while rest.len() >= 4 {
        let head = number(rest, 0, 4)? as u32;
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        let long = || number(rest, 4, 4);
        let size = match kind {
            29 if delta == 0 => return Some(()),
            29 => 4 + long()? as usize,
            30 => {
                time = time.wrapping_add((long()? << 27) + delta);
                8
            }
            31 => {
                // 59 bits; the page knows the rest.
                time = ((long()? << 27) + delta) | (begin & (0x1f << 59));
                8
            }
            0 => {
                time = time.wrapping_add(delta);
                let size = 4 + long()? as usize;
                give(Item::Record(time, rest.get(8..size)?));
                size
            }
            words => {
                time = time.wrapping_add(delta);
                let size = 4 + words as usize * 4;
                give(Item::Record(time, rest.get(4..size)?));
                size
            }
        };
        rest = rest.get(size.next_multiple_of(4)..)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(commit_flags: u64, words: &[u32], lost: Option<u64>) -> Vec<u8> {
        let mut page = 1_000u64.to_le_bytes().to_vec();
        page.extend_from_slice(&((words.len() as u64 * 4) | commit_flags).to_le_bytes());
        page.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        page.extend(lost.iter().flat_map(|lost| lost.to_le_bytes()));
        page
    }

    #[test]
    fn records_have_their_times_and_losses_their_number() {
        let head = |kind: u32, delta: u32| kind | delta << 5;
        let words = [head(2, 10), 0xaaaa, 0xbbbb, head(30, 5), 1, head(0, 1), 8, 0xcccc];
        let page = page(MISSED | STORED, &words, Some(77));
        let mut items = Vec::new();
        read_page(&page, PageShape::default(), &mut |item| items.push(item)).unwrap();
        assert_eq!(items[0], Item::Lost(Some(77)));
        assert_eq!(items[1], Item::Record(1_010, &[0xaa, 0xaa, 0, 0, 0xbb, 0xbb, 0, 0]));
        assert_eq!(items[2], Item::Record(1_010 + (1 << 27) + 5 + 1, &[0xcc, 0xcc, 0, 0]));
    }

    proptest! {
        #[test]
        fn no_page_panics(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            length in 0u64..200,
        ) {
            let mut bytes = bytes;
            if let Some(commit) = bytes.get_mut(8..16) {
                commit.copy_from_slice(&length.to_le_bytes());
            }
            let _ = read_page(&bytes, PageShape::default(), &mut |_| {});
        }
    }
}
