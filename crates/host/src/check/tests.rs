//! Tests over all rules. The cases of each rule are in `tests/cases.rs`.

mod cases;
mod changes;
mod document;
mod hostile;
mod hosts;
mod nulls;

use super::testing::{FakeFiles, ideal_files};
use super::*;
use punctual_core::{CauseKind, CpuSet, EntryKind};

fn results(files: &FakeFiles, cpus: Option<&str>) -> Vec<RuleResult> {
    let cpus = cpus.map(|list| list.parse::<CpuSet>().expect("a list"));
    evaluate_all(&Context::new(files, cpus))
}

fn result(files: &FakeFiles, cpus: Option<&str>, rule: &str) -> RuleResult {
    results(files, cpus)
        .into_iter()
        .find(|result| result.id == rule)
        .unwrap_or_else(|| panic!("no rule {rule}"))
}

#[test]
fn rules_named_by_causes_and_entries_exist() {
    let causes = CauseKind::ALL.iter().flat_map(|cause| cause.rules());
    let entries = EntryKind::ALL.iter().flat_map(|kind| kind.rules());
    for named in causes.chain(entries) {
        assert!(all_rules().any(|rule| rule.id == *named), "no rule {named}");
    }
}

#[test]
fn rule_names_are_unique_and_every_rule_has_a_reason() {
    let mut names: Vec<&str> = all_rules().map(|rule| rule.id).collect();
    assert!(names.len() >= 45, "{}", names.len());
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    for rule in all_rules() {
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(rule.id.chars().all(kebab), "{}", rule.id);
        assert!(
            rule.why.ends_with('.') && !rule.title.ends_with('.') && !rule.source.is_empty(),
            "{}",
            rule.id
        );
    }
}

#[test]
fn every_rule_passes_on_the_ideal_machine() {
    let unhappy: Vec<RuleResult> = results(&ideal_files(), None)
        .into_iter()
        .filter(|r| r.verdict != RuleVerdict::Ok)
        .collect();
    assert_eq!(unhappy, []);
    // These rules have nothing to judge there; their good cases are in the table.
    let idle: Vec<String> =
        results(&ideal_files(), None).into_iter().filter(|r| !r.applies).map(|r| r.id).collect();
    assert_eq!(idle, ["rt-group-budget", "vcpu-threads", "interrupt-thread-below-program"]);
}

#[test]
fn in_an_empty_tree_verdicts_are_unknown() {
    // These rules judge that something exists.
    let conclude = [
        "systemd-affinity",
        "cpuset-controller",
        "kernel-types",
        "tracefs",
        "debugfs",
        "cpus-online",
    ];
    for cpus in [None, Some("2-3")] {
        for result in results(&FakeFiles::new(), cpus) {
            let known = result.verdict != RuleVerdict::Unknown;
            assert!(!known || conclude.contains(&result.id.as_str()), "{result:?}");
            assert!(result.evidence.contains('/'), "the evidence names a file: {result:?}");
        }
    }
}

#[test]
fn a_file_that_refuses_is_named_with_the_reason() {
    let path = "/proc/sys/vm/stat_interval";
    let refused = result(&ideal_files().with_refusal(path, libc::EACCES), None, "vm-statistics");
    assert_eq!(refused.verdict, RuleVerdict::Unknown);
    assert_eq!(
        refused.evidence,
        "cannot read /proc/sys/vm/stat_interval: Permission denied (os error 13)"
    );
}

#[test]
fn the_shape_of_a_result_is_the_documented_one() {
    let files = ideal_files().with_file("/proc/sys/kernel/numa_balancing", "1");
    let json =
        serde_json::to_string_pretty(&result(&files, None, "numa-balancing")).expect("plain data");
    insta::assert_snapshot!(json, @r#"
    {
      "id": "numa-balancing",
      "group": "memory",
      "title": "automatic NUMA balancing is disabled",
      "verdict": "warning",
      "applies": true,
      "message": "automatic NUMA balancing is enabled",
      "evidence": "/proc/sys/kernel/numa_balancing is `1`",
      "why": "NUMA balancing unmaps pages to detect accesses, and this causes page faults in real-time tasks.",
      "source": "Documentation/admin-guide/sysctl/kernel.rst, numa_balancing",
      "fix": "echo 0 > /proc/sys/kernel/numa_balancing",
      "writes": [
        {
          "path": "/proc/sys/kernel/numa_balancing",
          "value": "0"
        }
      ]
    }
    "#);
}

#[test]
fn warnings_of_rules_become_findings_with_a_remedy() {
    let files = ideal_files()
        .with_file("/proc/sys/kernel/numa_balancing", "1")
        .with_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet")
        .with_file("/proc/sys/vm/stat_interval", "1");
    let findings = to_findings(&results(&files, None));
    let shown: Vec<String> = findings
        .iter()
        .map(|f| {
            format!(
                "{} {}: {} | {}",
                f.severity,
                f.id,
                f.message,
                f.remedy.as_deref().unwrap_or("-")
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    bad clocksource: reading the clock hpet is slow | echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource
    warning numa-balancing: automatic NUMA balancing is enabled | echo 0 > /proc/sys/kernel/numa_balancing
    ");
}

#[test]
fn a_rule_is_explained_by_its_id() {
    insta::assert_snapshot!(explain_rule("nohz-full").expect("there is one"), @"
    nohz-full (isolation)

    Expected: the tick stops on real-time CPUs while one task runs.
    Why: Each tick interrupts the task for some µs, 100 to 1000 times a second.
    Source: Documentation/timers/no_hz.rst
    ");
    assert_eq!(explain_rule("no-such-rule"), None);
}

#[test]
fn a_saved_environment_is_judged_like_the_live_one() {
    let files = ideal_files();
    let environment = crate::environment::capture_environment(&files);
    let saved = serde_json::to_string(&environment).expect("plain data");
    let environment = serde_json::from_str(&saved).expect("its own text");
    let before = evaluate_all(&Context::from_environment(&files, environment, None));
    assert_eq!(before, evaluate_all(&Context::new(&files, None)));
}
