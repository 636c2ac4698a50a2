//! The kernel's work for each request, from its own events: counted over separate requests, because
//! counting slows every system call and every page fault.

use super::helper::{Allocator, Helper};
use super::requests::HeapRequests;
use super::shared_memory::{HeapBlock, LOCK, TOUCH};
use crate::stop::Stop;
use punctual_core::{Cell, Column, Fact, Figure, Table, Tolerance, Validation};
use punctual_record::perf::{TracepointGroup, Whom};
use std::ffi::CStr;

/// The kernel's events, and their meaning.
const EVENTS: [(&str, &str); 8] = [
    ("kmem", "mm_page_alloc"),
    ("exceptions", "page_fault_user"),
    ("syscalls", "sys_enter_brk"),
    ("syscalls", "sys_enter_mmap"),
    ("syscalls", "sys_enter_munmap"),
    ("syscalls", "sys_enter_mremap"),
    ("syscalls", "sys_enter_madvise"),
    ("kmem", "mm_page_alloc"),
];
const PAGES: usize = 0;
const FAULTS: usize = 1;
const BRK: usize = 2;
const MMAP: usize = 3;
/// Selects page allocations for user space, which are movable (`___GFP_MOVABLE`, bit 3 since
/// 2.6.24, include/linux/gfp_types.h). Page tables, slabs, and allocations of interrupts during the
/// process's time are not movable.
const USER: usize = 7;
const FILTERS: [(usize, &CStr); 1] = [(USER, c"gfp_flags & 8")];
/// Pages of the program, its library and its stack touched for the first time in the first malloc.
const OWN_PAGES: u64 = 24;
/// 128 KiB and a page, of 4 KiB each: mallopt(3), M_TOP_PAD.
const TOP_PAD: u64 = 33;
const NAMES: [&str; 8] = [
    "page allocations",
    "page faults",
    "brk",
    "mmap",
    "munmap",
    "mremap",
    "madvise",
    "of page allocations, for user space",
];
/// The maximum number of bytes allocated while the kernel counts.
const MOST_BYTES: u64 = 64 << 20;
/// The number of requests, if the bytes allow it.
const REQUESTS: std::ops::RangeInclusive<u64> = 16..=1_024;

/// The counts over some requests.
pub(crate) struct HeapCounts {
    pub requests: u64,
    pub bytes: u64,
    /// Pages that contain blocks, each once.
    pub pages: u64,
    /// By event; `None`: it could not be counted.
    pub counts: [Option<u64>; EVENTS.len()],
    /// Page faults by getrusage(2), which needs no privilege.
    pub faults: u64,
    /// Why nothing was counted by event.
    pub uncounted: Option<String>,
}

/// The number of counted requests, for which the shared memory needs room.
pub(crate) fn request_count(plan: &HeapRequests) -> usize {
    let fit = MOST_BYTES / plan.middle_size().max(1);
    fit.clamp(*REQUESTS.start(), *REQUESTS.end()).min((1 << 30) / plan.middle_size().max(1)).max(1)
        as usize
}

/// Counts requests in a process with an unused heap; all blocks are held to the end, so each needs
/// its own memory.
pub(crate) fn count_unused_heap(
    allocator: &Allocator,
    plan: &mut HeapRequests,
    flags: u32,
) -> Result<HeapCounts, String> {
    let count = request_count(plan);
    let mut last_result = Err("the tracepoint kmem:mm_page_alloc stayed off".to_owned());
    for _ in 0..3 {
        let mut helper = Helper::start(allocator, count, true)?;
        last_result = count_batch(&mut helper, plan, flags, count, count);
        // Seen once in thousands of runs: a tracepoint that other processes disable and enable at
        // the same time stays disabled.
        if last_result.as_ref().is_ok_and(|counted| counted.counts[PAGES] != Some(0)) {
            break;
        }
    }
    last_result
}

/// Counts further requests in the measured process.
pub(crate) fn count_used_heap(
    helper: &mut Helper,
    plan: &mut HeapRequests,
    flags: u32,
) -> Result<HeapCounts, String> {
    let (count, round) = (request_count(plan), plan.round);
    let count = if round > 1 { round } else { count.min(helper.shared_memory.all_blocks().len()) };
    count_batch(helper, plan, flags, count, round)
}

fn count_batch(
    helper: &mut Helper,
    plan: &mut HeapRequests,
    flags: u32,
    count: usize,
    round: usize,
) -> Result<HeapCounts, String> {
    let head = helper.shared_memory.batch_head();
    (head.flags, head.blocks, head.round) = (flags, 0, round as u64);
    (head.due, head.period, head.burst, head.until, head.limit) =
        (0, 0, i64::MAX, i64::MAX, i64::MAX);
    // Without a block: memory that is locked immediately is locked before counting.
    helper.run_batch(&Stop::default()).map_err(|why| why.to_string())?;
    plan.fill_blocks(&mut helper.shared_memory.all_blocks()[..count], round);
    helper.shared_memory.batch_head().blocks = count as u64;
    let group = TracepointGroup::open_filtered(&EVENTS, &FILTERS, Whom::Thread(helper.pid()));
    if let Ok((group, _)) = &group {
        group.enable();
    }
    let done = helper.run_batch(&Stop::default());
    let (mut counts, mut uncounted) = ([None; EVENTS.len()], None);
    match group {
        Ok((group, places)) => {
            group.disable();
            places.iter().zip(group.read()).for_each(|(place, count)| counts[*place] = Some(count));
        }
        Err(why) => uncounted = Some(why),
    }
    done.map_err(|why| why.to_string())?;
    let head = helper.shared_memory.batch_head();
    let (done, page, faults) = (head.done, head.page, head.faults);
    let blocks = &helper.shared_memory.all_blocks()[..done as usize];
    let bytes = blocks.iter().map(|block| block.size).sum();
    Ok(HeapCounts {
        requests: done,
        bytes,
        pages: count_pages(blocks, page),
        counts,
        faults,
        uncounted,
    })
}

/// The number of pages that contain blocks, each counted once.
pub(crate) fn count_pages(blocks: &[HeapBlock], page: u64) -> u64 {
    let range = |block: &HeapBlock| (block.at / page, (block.at + block.size.max(1) - 1) / page);
    let mut ranges: Vec<(u64, u64)> = blocks.iter().map(range).collect();
    ranges.sort_unstable();
    let (mut sum, mut next) = (0, 0);
    for (first, last) in ranges {
        let first = first.max(next);
        if last >= first {
            sum += last - first + 1;
            next = last + 1;
        }
    }
    sum
}

/// The figures of an unused heap.
pub(crate) fn unused_heap_figures(counted: &HeapCounts) -> Vec<Figure> {
    let names = [
        (PAGES, "pages-each", "page allocations"),
        (BRK, "brk-each", "calls of brk"),
        (MMAP, "mmap-each", "calls of mmap"),
    ];
    let figure = |(event, name, title): (usize, &str, &str)| {
        let mean_count = counted.counts[event]? as f64 / counted.requests.max(1) as f64;
        Some(
            Figure::new(
                name,
                format!("{title} for each block, in a heap not used before"),
                mean_count,
                "ratio",
            )
            .with_count(counted.requests),
        )
    };
    names.into_iter().filter_map(figure).collect()
}

/// One column per heap: the mean per request.
pub(crate) fn heap_table(heaps: &[(&str, &HeapCounts)]) -> Table {
    let mut columns = vec![Column::new("for each request", "")];
    columns.extend(heaps.iter().map(|(heap, _)| Column::new(heap, "count")));
    let row = |name: &str, value: &dyn Fn(&HeapCounts) -> Cell| {
        std::iter::once(Cell::from(name))
            .chain(heaps.iter().map(|(_, counted)| value(counted)))
            .collect()
    };
    let per_request = |counted: &HeapCounts, number: u64| {
        Cell::Number(number as f64 / counted.requests.max(1) as f64)
    };
    let mut rows: Vec<Vec<Cell>> = vec![
        row("requests", &|counted| counted.requests.into()),
        row("bytes", &|counted| per_request(counted, counted.bytes)),
        row("pages in which the blocks lie", &|counted| per_request(counted, counted.pages)),
    ];
    rows.extend(NAMES.iter().enumerate().map(|(event, name)| {
        row(name, &|counted| {
            counted.counts[event].map_or(Cell::Nothing, |count| per_request(counted, count))
        })
    }));
    let title = "What the kernel did for each request (malloc, touch, free), from its own events";
    Table { name: "requests".to_owned(), title: title.to_owned(), columns, rows }
}

/// The pages that the blocks should have taken, compared with those that the kernel gave: for an
/// unused heap.
pub(crate) fn validate_pages(
    counted: &Result<HeapCounts, String>,
    flags: u32,
    is_glibc: bool,
) -> Vec<Validation> {
    let (touched, locked) = (flags & TOUCH != 0, flags & LOCK != 0);
    [PAGES, FAULTS]
        .map(|event| {
            let (group, name) = EVENTS[event];
            let mut source =
                format!("perf_event_open: tracepoint {group}:{name}, the process that allocates");
            // Locked memory is populated when it is allocated, before it is touched.
            let is_expected = if event == PAGES { touched || locked } else { touched && !locked };
            let what = if event == PAGES {
                "pages allocated for the blocks"
            } else {
                "page faults of the blocks"
            };
            let counted = match counted {
                Ok(counted) => counted,
                Err(why) => {
                    let unavailable = Fact::Unavailable(why.clone());
                    return Validation::compare_counts(
                        what,
                        0,
                        unavailable,
                        source,
                        Tolerance::EXACT,
                    );
                }
            };
            let claimed = if is_expected { counted.pages } else { 0 };
            let of_user = counted.counts[USER].filter(|_| event == PAGES);
            let mut count = of_user.or(counted.counts[event]);
            if of_user.is_some() {
                source += ", with gfp_flags & __GFP_MOVABLE (user space's pages)";
            }
            // They include those of locking.
            if event == FAULTS && count.is_none() && !locked {
                count = Some(counted.faults);
                source = "getrusage(2) of the process that allocates: ru_minflt and ru_majflt"
                    .to_owned();
            }
            let reason = counted
                .uncounted
                .clone()
                .unwrap_or_else(|| "this kernel has no such event".to_owned());
            let fact = count.map_or(Fact::Unavailable(reason), Fact::Known);
            let calls = |event: usize| counted.counts[event].unwrap_or(0);
            let mut tolerance = Tolerance::EXACT
                .allow_fewer(2, "the first and the last page of the heap may be there already")
                .allow_more(
                    OWN_PAGES,
                    "first uses of the allocator's, the library's and the stack's own pages",
                )
                .allow_more(
                    calls(BRK),
                    "metadata behind the last block, each time that the heap grew (brk)",
                );
            if !touched {
                let headers = counted.requests.min(counted.pages);
                tolerance =
                    tolerance.allow_more(headers, "pages with the allocator's header of a block");
            }
            if locked {
                tolerance = tolerance
                    .allow_more(
                        TOP_PAD,
                        "pages behind the heap that are asked for with it (M_TOP_PAD)",
                    )
                    .allow_more(calls(MMAP), "the rest of the last page of a mapping");
            }
            if !is_glibc {
                let more_explanation =
                    "other allocators keep their own metadata, and request more than they need";
                tolerance = tolerance
                    .allow_fewer(counted.pages / 64, "pages that the allocator may have had before")
                    .any_more(more_explanation);
            }
            let mut validation = Validation::compare_counts(what, claimed, fact, source, tolerance);
            if event == PAGES && of_user.is_none() {
                let also_counted = "page tables, slabs and what interrupts took are counted too, \
                              and cannot be separated here";
                validation = validation.undecided_above(also_counted);
            }
            if !is_glibc && !is_expected {
                validation.agrees = None;
            }
            let unlocked = if locked { ", locked" } else { "" };
            validation.with_explanation(format!(
                "{} blocks of {} B in all, {}{unlocked}, in a process that had allocated nothing, \
                 without transparent huge pages",
                counted.requests,
                counted.bytes,
                if touched { "touched" } else { "untouched" },
            ))
        })
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_shared_by_blocks_are_counted_once() {
        let block = |at, size| HeapBlock {
            size,
            visit: 0,
            at,
            malloc: [0; 2],
            touch: [0; 2],
            free: [0; 2],
            cpu: 0,
        };
        assert_eq!(count_pages(&[], 4096), 0);
        assert_eq!(count_pages(&[block(4096, 1), block(4100, 10), block(8191, 1)], 4096), 1);
        assert_eq!(count_pages(&[block(8190, 4), block(4096, 10_000)], 4096), 3);
        // 1 MiB behind a header of 16 bytes.
        assert_eq!(count_pages(&[block(0x10_0010, 1 << 20)], 4096), 257);
    }

    #[test]
    fn expected_kernel_counts_follow_the_kind_of_allocation() {
        // All pages, those of user space, page faults.
        let of = |pages, user: Option<u64>, faults, flags| {
            let counts =
                [Some(pages), Some(faults), Some(0), Some(16), Some(16), None, Some(0), user];
            let counted = HeapCounts {
                requests: 16,
                bytes: 16 << 20,
                pages: 16 * 257,
                counts,
                faults: 0,
                uncounted: None,
            };
            validate_pages(&Ok(counted), flags, true)
                .iter()
                .map(|one| one.agrees)
                .collect::<Vec<_>>()
        };
        const ALL: u64 = 16 * 257;
        assert_eq!(of(ALL + 20, Some(ALL + 1), ALL + 5, TOUCH), [Some(true), Some(true)]);
        assert_eq!(of(16 + 10, Some(17), 16 + 3, 0), [Some(true), Some(true)]);
        // With any number of pages taken by interrupts, slabs and page tables meanwhile.
        assert_eq!(of(3 * ALL, Some(ALL + 1), ALL + 5, TOUCH), [Some(true), Some(true)]);
        assert_eq!(of(ALL + 90, Some(ALL + 90), ALL, TOUCH), [Some(false), Some(true)]);
        // If they cannot be separated, more pages give no verdict; fewer do.
        assert_eq!(of(3 * ALL, None, ALL + 5, TOUCH), [None, Some(true)]);
        assert_eq!(of(ALL - 3, None, ALL + 5, TOUCH), [Some(false), Some(true)]);
        // Touched but nothing allocated, or the other way round: one of the counts is wrong.
        assert_eq!(of(26, Some(2), 19, TOUCH), [Some(false), Some(false)]);
        assert_eq!(of(ALL, Some(ALL), ALL, 0), [Some(false), Some(false)]);
        assert_eq!(of(ALL + 40, Some(ALL + 33), 12, LOCK), [Some(true), Some(true)]);
        let none = validate_pages(&Err("no tracefs".to_owned()), TOUCH, true);
        assert_eq!(
            (none[0].agrees, none[0].counted.clone()),
            (None, Fact::Unavailable("no tracefs".to_owned()))
        );
    }
}
