//! Real-time tasks that use up their budget wait, while the kernel lets others run.

use super::case::{Case, judge, stretches};
use crate::injected::{ALWAYS, Arena, Disturber, within};
use serde_json::Value;

pub fn measure(arena: &Arena) -> Option<Value> {
    let budget =
        std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
    if budget.trim() == "-1" {
        println!("SKIPPED: {} lacks a budget: sched_rt_runtime_us is -1", arena.test);
        return None;
    }
    let usual = Disturber::start("ordinary", arena.cpu, None, ALWAYS, 0);
    let spinner = Disturber::start("spinner", arena.cpu, Some(50), ALWAYS, 0);
    let measured = arena.timer("--duration 6s");
    spinner.stop();
    let ran = usual.stop();
    measured.map(|_| stretches(&ran))
}

/// The budget leaves others 50 ms of each second: in one segment on kernels that throttle, in
/// several with the fair server.
pub fn is_named(case: &Case) {
    let document = case.explained(&["--min-latency", "5ms"]);
    let late = within(&document, &case.stretches());
    judge(case, &late, 2, |part| part["cause"] == "throttled");
}
