//! `punctual measure syscall`: claims match the kernel's counters, and harmful calls are refused.

use crate::common::measured::{agrees, measured, refused};
use crate::common::{Place, text};

#[test]
fn every_call_is_measured_and_counted_by_the_kernel() {
    let place = Place::with("");
    for (call, target) in [
        ("getpid", None),
        ("gettid", None),
        ("clock-gettime", None),
        ("futex-wake", None),
        ("sched-yield", None),
        ("read", Some("null")),
        ("write", Some("null")),
        ("read", Some("pipe")),
        ("write", Some("pipe")),
        ("read", Some("eventfd")),
        ("write", Some("eventfd")),
    ] {
        let target = target.map_or(String::new(), |target| format!("-s target={target}"));
        let what = format!("syscall --policy other --count 20000 -s call={call} {target}");
        let summary = measured(&place, &what);
        let phase = &summary["phases"][0];
        assert_eq!(phase["series"][0]["count"], 20_000, "{what}");
        assert_eq!(phase["series"][0]["workload"], "syscall");
        let notes = &phase["measures"][0]["notes"];
        assert_eq!(notes["figures"], serde_json::json!([]), "{what}: nothing failed");
        assert!(
            notes["clock_cost"]["known"]["median"].as_i64().unwrap() < summary_median(phase),
            "{what}: {notes}"
        );
        assert!(agrees(&summary, &what) > 0, "{what}");
    }
}

fn summary_median(phase: &serde_json::Value) -> i64 {
    phase["series"][0]["median"].as_i64().unwrap()
}

#[test]
fn a_failing_system_call_by_number_is_a_finding() {
    let place = Place::with("");
    // getpid cannot fail; getpriority of a missing process does.
    let number = format!("number={}", libc::SYS_getpriority);
    let settings = format!("-s call=number -s {number} -s 'arguments=[9, 0]'");
    let summary = measured(&place, &format!("syscall --policy other --count 1000 {settings}"));
    let findings = summary["findings"].to_string();
    assert!(findings.contains("syscall-failed") && findings.contains("1000 of 1000"), "{findings}");
}

#[test]
fn a_number_that_the_kernel_does_not_have_is_refused() {
    let place = Place::with("");
    let said = refused(&place, "syscall --policy other --force -s call=number -s number=1023");
    assert!(said.contains("no system call 1023"), "{said}");
}

#[test]
fn what_could_do_harm_is_refused() {
    let place = Place::with("");
    let measure = |number: i64, more: &str| {
        let call = format!("-s call=number -s number={number}");
        place.line(&format!("measure syscall --count 10 -q {call} {more}"))
    };
    for number in [libc::SYS_reboot, libc::SYS_kill, libc::SYS_mount, libc::SYS_close] {
        let refused = measure(number, "");
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert!(text(&refused).contains("known to be harmless"), "{}", text(&refused));
    }
    for number in [libc::SYS_exit, libc::SYS_exit_group, libc::SYS_execve, libc::SYS_clone] {
        let refused = measure(number, "--force");
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    }
    // Forced, and harmless: there is no such descriptor.
    let forced = measure(libc::SYS_close, "--policy other --force -s 'arguments=[-1]'");
    assert_eq!(forced.status.code(), Some(0), "{}", text(&forced));
    let everywhere = place.line("measure syscall -q --cpus all --threads per-cpu -s rest=0s");
    assert!(text(&everywhere).contains("keep every CPU busy"), "{}", text(&everywhere));
}

#[test]
fn what_is_wrong_is_said_as_of_any_experiment() {
    let place = Place::with("");
    for (setting, said) in [
        ("call=wrte", "did you mean `write`?"),
        ("cal=getpid", "did you mean `call`?"),
        ("period=1", "put a unit behind it and both in quotes"),
        ("period=x\nkind = 'timer'", "is not a number"),
        ("arguments=[1]", "has no effect here"),
        ("number=99999", "out of bounds"),
    ] {
        let refused = place.punctual(&["measure", "syscall", "-q", "--set", setting]);
        assert_eq!(refused.status.code(), Some(2), "{setting}: {}", text(&refused));
        assert!(text(&refused).contains(said), "{setting}: {}", text(&refused));
    }
    let unknown = place.punctual(&["measure", "syscal"]);
    assert!(text(&unknown).contains("did you mean `syscall`?"), "{}", text(&unknown));
}
