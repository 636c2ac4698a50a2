//! The messages of tracepoints known to Perfetto (protos/perfetto/trace/ftrace of its sources):
//! numbers of messages and fields never change.

use crate::meaning::{Meaning, SLOTS};

/// A tracepoint with a message of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct TracepointMessage {
    pub(super) system: &'static str,
    pub(super) name: &'static str,
    /// Its fields: the first has the number 1.
    fields: &'static [&'static str],
}

macro_rules! messages {
    ($($number:literal $system:literal $name:literal [$($field:literal)*])*) => {
        /// The message with this number in FtraceEvent.
        pub(super) fn message(number: u32) -> Option<TracepointMessage> {
            match number {
                $($number => Some(TracepointMessage {
                    system: $system, name: $name, fields: &[$($field),*],
                }),)*
                _ => None,
            }
        }
        #[cfg(test)]
        const NUMBERS: &[u32] = &[$($number),*];
    };
}

messages! {
    4 "sched" "sched_switch" ["prev_comm" "prev_pid" "prev_prio" "prev_state" "next_comm" "next_pid"
        "next_prio"]
    11 "power" "cpu_frequency" ["state" "cpu_id"]
    13 "power" "cpu_idle" ["state" "cpu_id"]
    17 "sched" "sched_wakeup" ["comm" "pid" "prio" "success" "target_cpu"]
    20 "sched" "sched_waking" ["comm" "pid" "prio" "success" "target_cpu"]
    24 "irq" "softirq_entry" ["vec"]
    25 "irq" "softirq_exit" ["vec"]
    26 "irq" "softirq_raise" ["vec"]
    36 "irq" "irq_handler_entry" ["irq" "name" "handler"]
    37 "irq" "irq_handler_exit" ["irq" "ret"]
    45 "block" "block_rq_issue" ["dev" "sector" "nr_sector" "bytes" "rwbs" "comm" "cmd"]
    46 "vmscan" "mm_vmscan_direct_reclaim_begin" ["order"]
    47 "vmscan" "mm_vmscan_direct_reclaim_end" ["nr_reclaimed"]
    57 "workqueue" "workqueue_execute_end" ["work" "function"]
    58 "workqueue" "workqueue_execute_start" ["work" "function"]
    114 "sched" "sched_wakeup_new" ["comm" "pid" "prio" "success" "target_cpu"]
    125 "block" "block_rq_complete" ["dev" "sector" "nr_sector" "errors" "rwbs" "cmd" "error"]
    235 "task" "task_newtask" ["pid" "comm"]
    236 "task" "task_rename" ["pid" "oldcomm" "newcomm"]
    237 "sched" "sched_process_exec" ["filename" "pid" "old_pid"]
    238 "sched" "sched_process_exit" ["comm" "pid" "tgid" "prio"]
    239 "sched" "sched_process_fork" ["parent_comm" "parent_pid" "child_comm" "child_pid"]
    298 "kmem" "kfree" ["call_site" "ptr"]
    299 "kmem" "kmalloc" ["bytes_alloc" "bytes_req" "call_site" "gfp_flags" "ptr"]
    301 "kmem" "kmem_cache_alloc" ["bytes_alloc" "bytes_req" "call_site" "gfp_flags" "ptr"]
    303 "kmem" "kmem_cache_free" ["call_site" "ptr"]
    307 "kmem" "mm_page_alloc" ["gfp_flags" "migratetype" "order" "page" "pfn"]
    329 "raw_syscalls" "sys_enter" ["id" "args"]
    330 "raw_syscalls" "sys_exit" ["id" "ret"]
    353 "sched" "sched_pi_setprio" ["comm" "newprio" "oldprio" "pid"]
    491 "sched" "sched_migrate_task" ["comm" "pid" "prio" "orig_cpu" "dest_cpu"]
    551 "timer" "hrtimer_start" ["hrtimer" "function" "expires" "softexpires" "mode"]
    552 "timer" "hrtimer_cancel" ["hrtimer"]
    553 "timer" "hrtimer_expire_entry" ["hrtimer" "now" "function"]
    554 "timer" "hrtimer_expire_exit" ["hrtimer"]
    555 "timer" "timer_start" ["timer" "function" "expires"]
    557 "timer" "timer_expire_entry" ["timer" "now" "function"]
    558 "timer" "timer_expire_exit" ["timer"]
    559 "irq_vectors" "local_timer_entry" ["vector"]
    560 "irq_vectors" "local_timer_exit" ["vector"]
}

/// A message whose tracepoint has a meaning here.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownMessage {
    pub(super) meaning: Meaning,
    /// Its index in the decoder.
    pub(super) place: usize,
    /// For each slot of the meaning the number of its field, and the index in an array.
    pub(super) slots: [Option<(u32, usize)>; SLOTS],
}

impl TracepointMessage {
    pub(super) fn known_message(&self, place: usize) -> Option<KnownMessage> {
        let meaning = Meaning::from_tracepoint(Some(self.system), self.name)?;
        let number = |name: &str| {
            let (name, element) = match name.split_once('[') {
                Some((name, element)) => (name, element.trim_end_matches(']').parse().ok()?),
                None => (name, 0),
            };
            let at = self.fields.iter().position(|field| *field == name)?;
            Some((at as u32 + 1, element))
        };
        let mut slots = [None; SLOTS];
        for (slot, of) in slots.iter_mut().zip(meaning.slots()) {
            *slot = of.names.split('|').find_map(number);
        }
        Some(KnownMessage { meaning, place, slots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_has_the_fields_of_its_event() {
        for number in NUMBERS {
            let message = message(*number).unwrap();
            let known = message.known_message(0).unwrap_or_else(|| panic!("{message:?}"));
            let of_page = ["ret"];
            for (slot, found) in known.meaning.slots().iter().zip(known.slots) {
                assert!(found.is_some() || of_page.contains(&slot.names), "{message:?} {slot:?}");
            }
        }
        let known = message(329).unwrap().known_message(0).unwrap();
        assert_eq!(known.slots[..3], [Some((1, 0)), Some((2, 0)), Some((2, 1))]);
    }
}
