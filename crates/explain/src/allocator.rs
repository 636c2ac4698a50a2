//! Memory that the kernel's allocators gave beyond the requests, and how often a slab gave an
//! object that had been freed before.

use punctual_bundle::intervals::{ALLOCATOR_SCHEMA, AllocatorUse, BytesGiven, PagesGiven};
use punctual_core::{Event, EventKind};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The page that requests are counted in: that of x86 and most arm64 kernels, in bytes.
const PAGE: u64 = 4_096;
/// Freed objects that are remembered; later ones count as not reused.
const FREED: usize = 1 << 20;
const TASKS: usize = 1 << 16;

/// The requests to the kernel's allocators among these events.
pub fn allocator_use(events: impl Iterator<Item = Event>) -> AllocatorUse {
    let (mut kmalloc, mut slab) = (BytesGiven::default(), BytesGiven::default());
    let (mut orders, mut pages) = (BTreeMap::new(), BTreeMap::<(u64, u64), u64>::new());
    let (mut freed, mut last) = (HashSet::new(), HashMap::new());
    for event in events {
        match event.what {
            // Kernels trace a large request twice, in mm/slub.c and within it.
            EventKind::Kmalloc { object, .. }
                if object != 0
                    && last.get(&event.tid) == Some(&event.what)
                    && !freed.contains(&object) => {}
            EventKind::Kmalloc { requested, allocated, object } => {
                count_allocation(&mut kmalloc, [requested, allocated, object], &mut freed);
                if last.len() < TASKS || last.contains_key(&event.tid) {
                    last.insert(event.tid, event.what);
                }
                if requested > PAGE {
                    let page_counts = (requested.div_ceil(PAGE), allocated.div_ceil(PAGE));
                    *pages.entry(page_counts).or_default() += 1;
                }
            }
            EventKind::CacheAlloc { requested, allocated, object } => {
                count_allocation(&mut slab, [requested, allocated, object], &mut freed);
            }
            EventKind::Kfree { object } => count_free(&mut kmalloc, object, &mut freed),
            EventKind::CacheFree { object } => count_free(&mut slab, object, &mut freed),
            EventKind::PageAlloc { order, .. } => *orders.entry(order).or_default() += 1,
            _ => {}
        }
    }
    let pages = pages.into_iter();
    let pages = pages.map(|((asked, given), requests)| PagesGiven { asked, given, requests });
    AllocatorUse {
        schema: ALLOCATOR_SCHEMA.to_owned(),
        kmalloc,
        slab,
        pages: pages.collect(),
        orders,
    }
}

fn count_allocation(
    all: &mut BytesGiven,
    [asked, given, object]: [u64; 3],
    freed: &mut HashSet<u64>,
) {
    all.requests += 1;
    all.requested = all.requested.saturating_add(asked);
    all.allocated = all.allocated.saturating_add(given);
    all.known += u64::from(object != 0);
    all.reused += u64::from(freed.remove(&object));
}

fn count_free(all: &mut BytesGiven, object: u64, freed: &mut HashSet<u64>) {
    all.freed += u64::from(object != 0);
    if object != 0 && freed.len() < FREED {
        freed.insert(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_testing::events;

    #[test]
    fn what_is_given_beyond_what_is_asked_and_what_is_given_again_is_counted() {
        // Object 3 is an address that another allocator freed, and that it had given before, once.
        let events = events!(
            "0 kmalloc {large} {given} 1; 0 kmalloc {large} {given} 1; 0 kmalloc {odd} {given} 2
            0 kmalloc 20 32 3; 0 kfree 3
            0 cache_alloc 200 256 3; 0 cache_free 3
            0 cache_alloc 200 256 3; 0 cache_alloc 200 256 3; 0 cache_alloc 200 256 0
            0 kfree 0; 0 page_alloc 7 1",
            large = PAGE * 65,
            given = PAGE * 128,
            odd = PAGE * 64 + 1,
        );
        let of = allocator_use(events.into_iter());
        assert_eq!(of.pages, [PagesGiven { asked: 65, given: 128, requests: 2 }]);
        let kmalloc = (of.kmalloc.requests, of.kmalloc.known, of.kmalloc.reused, of.kmalloc.freed);
        assert_eq!(kmalloc, (3, 3, 0, 1));
        let slab = (of.slab.requests, of.slab.known, of.slab.reused, of.slab.freed);
        assert_eq!((slab, of.slab.requested, of.slab.allocated), ((4, 3, 2, 1), 800, 1_024));
        assert_eq!(of.orders, BTreeMap::from([(7, 1)]));
    }
}
