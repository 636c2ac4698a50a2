//! An isolated CPU of a guest with every known disturbance at once (attach/disturb.c), and the
//! report of `punctual attach --cpus`.

#[path = "../attach/entries.rs"]
mod entries;

use crate::common::has_program;
use entries::{caused, cell, measure, own_entries, table};
use punctual_lab::GuestResult;
use punctual_testing::section;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// CPU 1 is disturbed from CPU 0, and CPU 3 unplugged.
pub const SCRIPT: &str = include_str!("disturbed.sh");

/// Most occur every 20 ms, from a CPU shared with three others.
const LEAST: f64 = 3.0;

/// The program, compiled here; `None` if impossible.
pub fn program() -> Option<PathBuf> {
    if !has_program("cc", "gcc") {
        return None;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attach/disturb.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("disturb");
    // Two boots may need it at once.
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-pthread", "-o"]).arg(&program).arg(&tests);
        let built = cc.output().unwrap();
        assert!(built.status.success(), "{}", crate::common::text(&built));
    });
    Some(program)
}

/// The measurement, if there is a guest and the program.
pub fn summary(result: Option<&GuestResult>) -> Option<Value> {
    let result = result?;
    if !result.results.contains_key("disturbed") {
        return None;
    }
    println!("{}", section(result, "shown"));
    Some(serde_json::from_str(section(result, "disturbed")).unwrap())
}

#[track_caller]
fn assert_caused(summary: &Value, kind: &str, what: &str, by: &str, function: &str) {
    let (table, row) = (table(summary, "entries"), caused(summary, kind, by, LEAST));
    assert!(cell(table, row, "what").as_str().unwrap().starts_with(what), "{row}");
    let stack = cell(table, row, "stack").as_str().unwrap_or_default();
    assert!(stack.contains(function), "{function} is not in {stack}");
}

/// The originators that every kernel shows.
pub fn assert_named(summary: &Value) {
    assert_caused(summary, "tick", "tick, kept by SCHED", "the CPU itself", "");
    assert_caused(summary, "timer", "timer timerfd_tmrproc", "timer-x", "timerfd_");
    assert_caused(summary, "softirq", "softirq NET_RX", "sender-x", "loopback_xmit");
    assert_caused(summary, "work", "work refresh_vm_stats", "refresher-x", "schedule_on_each_cpu");
    assert_caused(summary, "kernel-thread", "kernel thread khugepaged", "kicker-x", "__wake_up");
    assert_caused(summary, "task", "task fifo-x", "waker-x", "eventfd_write");
    let stopper = "stopper thread migration/1";
    assert_caused(summary, "stop-machine", stopper, "mover-x", "sched_setaffinity");
    // Hotplug, for which the kernel may use a worker.
    let entries = table(summary, "entries");
    let stack = |row: &Value| cell(entries, row, "stack").as_str().unwrap_or_default().to_owned();
    let mut stacks = entries["rows"].as_array().unwrap().iter().map(stack);
    assert!(stacks.any(|stack| stack.contains("stop_machine_cpuslocked")), "{entries:#}");
    for what in ["page fault in user mode", "madvise"] {
        assert!(own_entries(summary, "fault-x", what) >= LEAST, "{what}: {summary:#}");
    }
    for one in measure(summary)["notes"]["validations"].as_array().unwrap() {
        assert_ne!(one["agrees"], Value::Bool(false), "{one:#}");
    }
}

/// The sender of an IPI, and the function that it calls.
pub fn assert_callers_named(summary: &Value) {
    let call = "call ipi_mb";
    assert_caused(summary, "function-call", call, "barrier-x", "membarrier");
    assert_caused(summary, "tlb-shootdown", "TLB shootdown", "unmapper-x", "munmap");
    assert!(hidden(summary).is_empty(), "{summary:#}");
}

/// The entries of [`assert_callers_named`] without an originator, and the findings that give the
/// reason.
pub fn assert_callers_unknown(summary: &Value) {
    assert_caused(summary, "function-call", "function call IPI", "unknown", "");
    assert_caused(summary, "tlb-shootdown", "TLB shootdown", "unknown", "");
    let hidden = hidden(summary);
    for (what, tracepoint) in [
        ("who sent an IPI", "ipi_send_cpu"),
        ("who called a function on the CPU", "csd_queue_cpu"),
        ("which function was called", "csd_function_entry"),
    ] {
        let says = |text: &&String| text.contains(what) && text.contains(tracepoint);
        assert!(hidden.iter().any(|text| says(&text)), "{what}: {hidden:#?}");
    }
}

fn hidden(summary: &Value) -> Vec<String> {
    let findings = summary["findings"].as_array().unwrap().iter();
    let of_it = findings.filter(|one| one["id"] == "originator-not-shown");
    of_it.map(|one| one["message"].as_str().unwrap().to_owned()).collect()
}
