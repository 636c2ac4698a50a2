//! Counters in the kernel compared with known counts.

use crate::kernel::common::gettid;
use crate::kernel::common::switches;
use punctual_record::count::{CountKind, CountTotals, CountedTasks, RunningCounters};
use std::time::Duration;

fn count(kinds: &[CountKind], work: impl FnOnce()) -> Option<CountTotals> {
    let me = gettid().0;
    let counters = match RunningCounters::start(&CountedTasks::Processes(vec![me]), kinds) {
        Ok(counters) => counters,
        Err(why) => {
            println!("SKIPPED: {why}");
            return None;
        }
    };
    let before = counters.read().unwrap();
    work();
    Some(counters.read().unwrap().totals_since(&before))
}

#[test]
fn counts_of_system_calls_and_switches_are_exact() {
    let mut kernel = (0, 0);
    let Some(counts) = count(&[CountKind::Syscalls, CountKind::Switches], || {
        let before = switches();
        for _ in 0..100 {
            // SAFETY: takes nothing, cannot fail.
            unsafe { libc::getppid() };
            std::thread::sleep(Duration::from_micros(50));
        }
        let after = switches();
        kernel = (after.0 - before.0, after.1 - before.1);
    }) else {
        return;
    };
    assert_eq!(counts.syscalls[&(libc::SYS_getppid as u32)], 100);
    assert!(counts.all_syscalls() >= 200);
    assert!(
        (kernel.0 as u64..kernel.0 as u64 + 20).contains(&counts.voluntary),
        "{counts:?} {kernel:?}"
    );
    assert!(
        (kernel.1 as u64..kernel.1 as u64 + 20).contains(&counts.preempted),
        "{counts:?} {kernel:?}"
    );
    assert_eq!(counts.pages, 0, "not asked for");
}
