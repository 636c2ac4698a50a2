//! Real-time tasks that use up their budget wait, while the kernel lets others run.

use super::case::{Case, judge, stretches};
use crate::injected::{Disturber, arena, within};
use std::time::Duration;

const NAME: &str = "throttled";

fn measure() -> Option<Case> {
    let test = NAME;
    let budget =
        std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
    if budget.trim() == "-1" {
        println!("SKIPPED: {test} lacks a budget of real-time tasks: sched_rt_runtime_us is -1");
        return None;
    }
    let arena = arena(test)?;
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
    measured?;
    Some(Case::measured(NAME, arena.place, stretches(&ran)))
}

#[test]
fn throttling_of_real_time_tasks_is_named() {
    is_named(&Case::recorded(NAME));
}

#[test]
#[ignore = "a score: on a busy machine others cause it; ./x test --all"]
fn throttling_of_real_time_tasks_is_named_live() {
    measure().iter().for_each(is_named);
}

/// The budget leaves others 50 ms of each second: in one segment on kernels that throttle, in
/// several with the fair server.
fn is_named(case: &Case) {
    let document = case.explained(&["--min-latency", "5ms"]);
    let late = within(&document, &case.stretches());
    judge(case, &late, 2, |part| part["cause"] == "throttled");
}
