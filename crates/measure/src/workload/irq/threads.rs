//! Threads that run the handler of an interrupt: with PREEMPT_RT, with `threadirqs`, and for
//! drivers that request one (kernel/irq/manage.c).

use super::rows::{self, RowMatch};
use punctual_core::{Policy, Priority};
use punctual_sys::attributes::{self, Scheduling};
use std::fmt;
use std::fs;

/// Such a thread. A driver with both a handler and a thread has two of them if handlers run in
/// threads: `irq/24-name`, which wakes `irq/24-s-name`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HandlerThread {
    name: String,
    scheduling: Option<Scheduling>,
}

impl fmt::Display for HandlerThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.scheduling.map_or(Ok(()), |scheduling| write!(f, " ({scheduling})"))
    }
}

/// The threads of the interrupt counted in this row, by name.
pub(super) fn of_row(row: &RowMatch) -> Vec<HandlerThread> {
    let irq = match row {
        RowMatch::Number(irq) => Some(*irq),
        RowMatch::Handler(name) => rows::number_of(name),
        RowMatch::Described(_) => None,
    };
    irq.map_or_else(Vec::new, of_irq)
}

fn of_irq(irq: u32) -> Vec<HandlerThread> {
    let prefix = format!("irq/{irq}-");
    let tasks = fs::read_dir("/proc").into_iter().flatten().flatten();
    let named = tasks.filter_map(|task| {
        let tid: i32 = task.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let name = name.trim();
        let scheduling = attributes::read_scheduling(tid).ok();
        let name = name.starts_with(&prefix).then(|| name.escape_debug().to_string())?;
        Some(HandlerThread { name, scheduling })
    });
    let mut found: Vec<HandlerThread> = named.collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// The scheduling of a thread below the waiting thread and all handler threads of the interrupt.
pub(crate) fn scheduling_below(waiter: Scheduling, handlers: &[HandlerThread]) -> Scheduling {
    if waiter.deadline.is_some() {
        return Scheduling::new(Policy::Other, None);
    }
    let handlers = handlers.iter().filter_map(|handler| handler.scheduling?.priority);
    let lowest = waiter.priority.map(|own| handlers.fold(own, Ord::min));
    // There is nothing below the lowest priority: then it gets that one.
    let lower = |priority: Priority| Priority::new(priority.get() - 1).unwrap_or(priority);
    Scheduling { priority: lowest.map(lower), ..waiter }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fifo(priority: u8) -> Scheduling {
        Scheduling::new(Policy::Fifo, Priority::new(priority))
    }

    fn handler(scheduling: Scheduling) -> HandlerThread {
        HandlerThread { name: "irq/11-edu".into(), scheduling: Some(scheduling) }
    }

    #[test]
    fn the_raising_thread_has_a_priority_below_waiter_and_handlers() {
        assert_eq!(scheduling_below(fifo(95), &[]), fifo(94));
        assert_eq!(scheduling_below(fifo(95), &[handler(fifo(50)), handler(fifo(49))]), fifo(48));
        assert_eq!(scheduling_below(fifo(10), &[handler(fifo(50))]), fifo(9));
        // Nothing is below the lowest.
        assert_eq!(scheduling_below(fifo(95), &[handler(fifo(1))]), fifo(1));
        assert_eq!(scheduling_below(fifo(1), &[]), fifo(1));
        // A handler without real-time scheduling has no effect, nor is there one if the waiter has
        // none.
        let other = Scheduling::new(Policy::Other, None);
        assert_eq!(scheduling_below(fifo(95), &[handler(other)]), fifo(94));
        assert_eq!(scheduling_below(other, &[handler(fifo(50))]), other);
    }

    #[test]
    fn a_handler_is_named_with_its_scheduling() {
        assert_eq!(handler(fifo(50)).to_string(), "irq/11-edu (SCHED_FIFO 50)");
    }
}
