//! Requests to the kernel's allocators.

use super::{Cell, Column, Table};
use punctual_bundle::intervals::AllocatorUse;

/// The allocators; requests of more than a page; blocks of pages.
pub(crate) fn allocator_tables(of: &AllocatorUse) -> Vec<Table> {
    let share = |part: u64, all: u64| match all {
        0 => Cell::absent("–"),
        all => Cell::share(part as f64 / all as f64),
    };
    let columns = vec![
        Column::text("allocator", 0),
        Column::figures("requests", 0),
        Column::figures("bytes asked", 0),
        Column::figures("given", 0),
        Column::figures("more", 0)
            .with_meaning("internal fragmentation: given beyond what was asked"),
        Column::figures("reused", 0)
            .with_meaning("at an address that was freed earlier in the recording; a lower bound"),
        Column::figures("of known", 0).with_meaning("of the requests whose address is known"),
        Column::figures("freed", 0),
    ];
    let rows = [("kmalloc", of.kmalloc), ("slab", of.slab)].map(|(name, given)| {
        vec![
            Cell::text(name),
            Cell::count(given.requests),
            Cell::count(given.requested),
            Cell::count(given.allocated),
            share(given.allocated.saturating_sub(given.requested), given.requested),
            if given.known == 0 { Cell::absent("–") } else { Cell::count(given.reused) },
            share(given.reused, given.known),
            Cell::count(given.freed),
        ]
    });
    let sizes = Table::new("asked and given by the kernel's allocators", columns).with_rows(rows);
    let columns = ["pages asked", "given", "requests"].map(|name| Column::figures(name, 0)).into();
    let rows = of.pages.iter().map(|of| [of.asked, of.given, of.requests].map(Cell::count).into());
    let pages = Table::new("requests of more than a page (4 KiB)", columns).with_rows(rows);
    let columns = ["order", "pages", "blocks"].map(|name| Column::figures(name, 0)).into();
    let rows = of.orders.iter().map(|(order, blocks)| {
        let pages = 1_u64.checked_shl((*order).into()).unwrap_or(0);
        [u64::from(*order), pages, *blocks].map(Cell::count).into()
    });
    let orders = Table::new("blocks of pages by order", columns).with_rows(rows);
    [sizes, pages, orders].into_iter().filter_map(Table::unless_empty).collect()
}
