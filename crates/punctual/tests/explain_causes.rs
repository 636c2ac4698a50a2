//! Samples delayed by a program are attributed to it: exactly on bundles that were recorded once
//! (fixtures/causes). `punctual-truth` measures the same on any kernel.

mod affinity;
pub mod case;
mod faults;
mod heap;
mod hog;
mod inversion;
mod section;
mod storage;
mod throttled;

use case::Case;

/// A test of each case.
macro_rules! cases {
    ($($test:ident: $name:literal, $assert:expr;)*) => {
        $(#[test]
        fn $test() {
            $assert(&Case::recorded($name));
        })*
    };
}

cases! {
    a_wait_for_another_measured_thread_names_that_thread: "affinity", affinity::is_named;
    first_touches_are_page_faults: "faults", faults::are_page_faults;
    page_faults_of_the_heap_are_attributed_to_the_allocating_process: "heap", heap::are_its_own;
    a_hog_of_higher_priority_is_named: "hog", hog::is_named;
    the_task_that_causes_priority_inversion_is_named: "inversion", inversion::is_named;
    with_priority_inheritance_no_inversion_is_reported: "inheritance", inversion::is_lent;
    a_non_preemptible_task_is_named_with_its_system_call: "section", section::is_named;
    disk_waits_are_attributed_to_the_disk_or_its_workers: "storage", storage::are_the_disks;
    throttling_of_real_time_tasks_is_named: "throttled", throttled::is_named;
}
