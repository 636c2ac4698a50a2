//! Real-time tasks that use up their budget wait, while the kernel lets others run.

use super::case::{Case, judge, within};

/// The budget leaves others 50 ms of each second: in one segment on kernels that throttle, in
/// several with the fair server.
pub fn is_named(case: &Case) {
    let document = case.explained(&["--min-latency", "5ms"]);
    let late = within(&document, &case.stretches());
    judge(case, &late, 2, |part| part["cause"] == "throttled");
}
