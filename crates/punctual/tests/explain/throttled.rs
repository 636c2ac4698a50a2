//! Real-time tasks that use up their budget: the kernel lets others run for a while, and who is
//! real-time waits.

use crate::injected::{Disturber, arena, assert_right, within};
use std::time::Duration;

#[test]
fn throttling_of_real_time_tasks_is_named() {
    let test = "throttling_of_real_time_tasks_is_named";
    let budget =
        std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
    if budget.trim() == "-1" {
        println!("SKIPPED: {test} lacks a budget of real-time tasks: sched_rt_runtime_us is -1");
        return;
    }
    let Some(arena) = arena(test) else { return };
    let for_ever = Duration::from_secs(3600);
    let usual = Disturber::start("ordinary", arena.cpu, None, for_ever, Duration::ZERO);
    let spinner = Disturber::start("spinner", arena.cpu, Some(50), for_ever, Duration::ZERO);
    let cpu = arena.cpu.to_string();
    let measured = arena.measure(
        test,
        &["measure", "timer", "--cpus", &cpu, "--priority", "80", "--duration", "6s"],
    );
    spinner.stop();
    let ran = usual.stop();
    if measured.is_none() {
        return;
    }
    // The budget leaves others 50 ms of each second: in one stretch on kernels that throttle, in
    // several with the fair server.
    let document = arena.explained(&["--min-latency", "5ms"]);
    let late = within(&document, &ran);
    assert!(!document["samples"].as_array().unwrap().is_empty(), "the spinner was never throttled");
    if late.len() < 2 {
        return println!(
            "SKIPPED: {test} lacks a CPU of its own: tasks that are not the test's used the time \
             that throttling left"
        );
    }
    assert_right(&late, 2, |part| part["cause"] == "throttled");
}
