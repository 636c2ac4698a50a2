//! Samples delayed by a test are attributed to its cause: exactly on bundles that were recorded
//! once (fixtures/causes); live as scores (`./x test --all`).

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

/// A test of each case as it was recorded, and one of the same name that measures it now.
macro_rules! cases {
    ($($test:ident: $name:literal, $measure:expr, $assert:expr;)*) => {
        $(#[test]
        fn $test() {
            $assert(&Case::recorded($name));
        })*
        mod live {
            use super::*;
            $(#[test]
            #[ignore = "a score: on a busy machine others cause it; ./x test --all"]
            fn $test() {
                Case::measured($name, $measure).iter().for_each($assert);
            })*
        }
    };
}

cases! {
    a_wait_for_another_measured_thread_names_that_thread:
        "affinity", affinity::measure, affinity::is_named;
    first_touches_are_page_faults: "faults", faults::measure, faults::are_page_faults;
    page_faults_of_the_heap_are_attributed_to_the_allocating_process:
        "heap", heap::measure, heap::are_its_own;
    a_hog_of_higher_priority_is_named: "hog", hog::measure, hog::is_named;
    the_task_that_causes_priority_inversion_is_named:
        "inversion", inversion::on_a_plain_lock, inversion::is_named;
    with_priority_inheritance_no_inversion_is_reported:
        "inheritance", inversion::on_an_inheriting_lock, inversion::is_lent;
    a_non_preemptible_task_is_named_with_its_system_call:
        "section", section::measure, section::is_named;
    disk_waits_are_attributed_to_the_disk_or_its_workers:
        "storage", storage::measure, storage::are_the_disks;
    throttling_of_real_time_tasks_is_named: "throttled", throttled::measure, throttled::is_named;
}
