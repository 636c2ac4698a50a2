//! `punctual explain --exact`: a run in virtual time, replayed by instruction (docs/exact.md).

use crate::common::{Place, text};
use punctual_lab::{Arch, BootKernel};
use punctual_testing as testing;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const KERNEL: &str = "6.1";

/// One load frees what it reads, so that the kernel works with interrupts disabled; the other one
/// has functions and source lines.
const EXPERIMENT: &str = r#"
[[measure]]
kind = "timer"
period = "1ms"
duration = "200ms"
priority = 90
[[load]]
command = "sh -c 'while :; do cat /proc/self/maps; done'"
[[load]]
command = "SPIN"
[[phase]]
loads = ["sh", "spin"]
"#;

/// The program that runs nearly always: line 3, in a separate function.
const SPIN: &str = "static volatile long turns;
static void __attribute__((noinline)) turn(void) {
    for (int i = 0; i < 1000; i++) turns++;
}
int main(void) { for (;;) turn(); }
";

fn sum(values: &Value, key: &str) -> u64 {
    values.as_array().expect("an array").iter().map(|one| one[key].as_u64().expect(key)).sum()
}

/// Checks a sample: the parts add up to the path without gap, the path is the latency in
/// instructions of 8 ns, and functions cover all of the path.
fn check_sample(sample: &Value) {
    let instructions = sample["instructions"].as_u64().expect("instructions");
    let latency = sample["latency_ns"].as_u64().expect("a latency");
    assert_eq!(sample["without"], 0, "{sample:#}");
    assert_eq!(instructions, latency / 8, "{sample:#}");
    assert_eq!(sum(&sample["parts"], "instructions"), instructions);
    let response = sample["response"].as_array().expect("T1 to T4");
    let response: Vec<u64> = response.iter().map(|of| of.as_u64().expect("a length")).collect();
    assert_eq!(response.iter().sum::<u64>(), instructions, "{sample:#}");
    assert!(response.len() == 4 && response[2] > 0 && response[3] > 0, "{sample:#}");
    let mut end = 0;
    for part in sample["parts"].as_array().expect("parts") {
        assert_eq!(part["begin"], end, "{sample:#}");
        end += part["instructions"].as_u64().expect("instructions");
    }
    // A timer's path leads through these (kernel/time/hrtimer.c, kernel/sched/core.c), and ends at
    // the reading of the clock.
    let calls = sample["calls"].as_array().expect("calls");
    for function in [
        "hrtimer_interrupt",
        "hrtimer_wakeup",
        "try_to_wake_up",
        "__schedule",
        "[vdso]:clock_gettime",
    ] {
        assert!(calls.iter().any(|call| call["function"] == function), "{function}: {sample:#}");
    }
    let last = sample["parts"].as_array().and_then(|parts| parts.last()).expect("parts");
    assert_eq!(last["kind"], "return", "{sample:#}");
}

#[test]
fn a_run_is_replayed_and_explained_by_function() {
    let binary = testing::stripped(Path::new(env!("CARGO_BIN_EXE_punctual")));
    if testing::or_skip(BootKernel::by_name(KERNEL, Arch::Amd64)).is_none()
        || testing::guest(KERNEL).is_none()
    {
        return;
    }
    let place = Place::with("");
    let spin = place.path().join("spin");
    let experiment = EXPERIMENT.replace("SPIN", &spin.to_string_lossy());
    place.write("experiment.toml", experiment.as_bytes());
    place.write("spin.c", SPIN.as_bytes());
    let mut compiler = Command::new("gcc");
    compiler.args(["-g", "-O1", "-o", "spin", "spin.c"]).current_dir(place.path());
    if !compiler.status().is_ok_and(|status| status.success()) {
        println!("SKIPPED: no working gcc");
        return;
    }
    let target = format!("--target=vm:{KERNEL},binary={}", binary.display());
    let arguments = ["run", "experiment.toml", "--quiet", &target, "--output", "bundle"];
    let ran = place.punctual(&arguments);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let bundle = place.path().join("bundle");

    let files = ["--perfetto", "worst.pftrace", "--folded", "worst.folded"];
    let options = [&["--worst", "5", "--lines", "--json"], &files[..]].concat();
    let explained = place.punctual(&[&["explain", "bundle", "--exact"], &options[..]].concat());
    assert_eq!(explained.status.code(), Some(0), "{}", text(&explained));
    let document: Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    let summary = std::fs::read(bundle.join("summary.json")).expect("a summary");
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    assert_eq!(document["digest"], summary["digest"]);
    let worst = document["worst"].as_array().expect("samples");
    assert_eq!(worst.len(), 5);
    worst.iter().for_each(check_sample);
    check_sample(&document["ordinary"]);
    assert_eq!(worst[0]["latency_ns"], summary["phases"][0]["series"][0]["max"]);
    // Most samples interrupt the load that runs nearly always.
    let all = || worst.iter().chain([&document["ordinary"]]);
    let lines = all().flat_map(|sample| sample["lines"].as_array().into_iter().flatten());
    let of_spin = lines.filter(|line| line["function"] == "spin:turn").collect::<Vec<_>>();
    if of_spin.is_empty() {
        // The program's path differs in each run, and so does the timeline.
        println!("SKIPPED: source lines lack a sample that interrupted the program");
    } else {
        assert!(of_spin.iter().any(|line| line["line"] == "spin.c:3"), "{of_spin:#?}");
    }
    let off = document["irqs_disabled"].as_array().expect("sections");
    assert!(off.iter().any(|section| section["function"] == "__schedule"), "{off:#?}");
    let trace = std::fs::read(place.path().join("worst.pftrace")).expect("a trace");
    assert!(trace.len() > 1_000 && trace[0] == 0x0a, "{}", trace.len());
    let folded = std::fs::read_to_string(place.path().join("worst.folded")).expect("stacks");
    assert!(folded.lines().any(|line| line.contains(";__schedule")), "{folded}");
    let kept = std::fs::read(bundle.join("exact.json")).expect("it is kept in the bundle");
    let kept: Value = serde_json::from_slice(&kept).expect("JSON");
    assert_eq!(kept["worst"], document["worst"]);

    // An explanation in the bundle is not replayed again.
    let options = ["--json", "--require", "max < 10 instructions"];
    let sections = place.punctual(&[&["sections", "bundle"], &options[..]].concat());
    assert_eq!(sections.status.code(), Some(3), "{}", text(&sections));
    let sections: Value = serde_json::from_slice(&sections.stdout).expect("JSON");
    assert_eq!(sections["irqs_disabled"], document["irqs_disabled"]);
    assert_eq!(sections["required"][0]["verdict"], "not-met");
    assert_eq!(sections["run"]["digest"], summary["digest"]);
    let off = sections["preemption_disabled"].as_array().expect("sections");
    assert!(off.iter().any(|section| section["function"] == "schedule"), "{off:#?}");
    // Sections of the whole run include those of the worst samples; marks differ by at most a few
    // %.
    let waits = sections["not_preempted"].as_array().expect("sections");
    let longest = waits.iter().filter_map(|section| section["longest"].as_u64()).max();
    let parts = worst.iter().flat_map(|sample| sample["parts"].as_array().expect("parts"));
    let parts = parts.filter(|part| part["kind"] == "not-preempted");
    // A part in which the scheduler ran and chose another task first consists of several sections.
    let is_one = |part: &&Value| {
        let functions = part["functions"].as_array().expect("functions");
        functions.iter().all(|function| function[0] != "__schedule")
    };
    let part = parts.filter(is_one).filter_map(|part| part["instructions"].as_u64()).max();
    assert!(
        longest.map(|longest| longest * 10) >= part.map(|part| part * 9),
        "{part:?} {waits:#?}"
    );

    // The same experiment on the same kernel is the same run: every instruction is equal.
    let same = format!("{KERNEL},binary={}", binary.display());
    let against = |other: &str| {
        let arguments = ["explain", "bundle", "--exact", "--worst", "5", "--json", "--against"];
        let compared = place.punctual(&[&arguments[..], &[other]].concat());
        assert_eq!(compared.status.code(), Some(0), "{}", text(&compared));
        serde_json::from_slice::<Value>(&compared.stdout).expect("JSON")
    };
    let compared = against(&same);
    let pairs = compared["difference"]["pairs"].as_array().expect("pairs");
    assert_eq!(pairs.len(), 3, "{pairs:#?}");
    assert_eq!(compared["difference"]["digest"], summary["digest"]);
    assert!(pairs.iter().all(|pair| pair["functions"] == json!([])), "{pairs:#?}");
    let findings = compared["findings"].as_array().expect("findings");
    assert!(findings.iter().any(|one| one["id"] == "exact-same-run"), "{findings:#?}");
    // Compare with a document whose path lacks a function call of this one.
    let mut other = document.clone();
    other["digest"] = json!("another");
    let part = &mut other["ordinary"]["parts"][0];
    let first = part["functions"][0].clone();
    part["functions"][0][0] = json!("renamed");
    place.write("other.json", other.to_string().as_bytes());
    let compared = against("other.json");
    let [ordinary, ..] = &compared["difference"]["pairs"].as_array().expect("pairs")[..] else {
        panic!("{compared:#}")
    };
    let both = ordinary["functions"].as_array().expect("functions").iter();
    let both: Vec<Value> =
        both.map(|one| json!([one["function"], one["here"], one["there"]])).collect();
    assert!(both.contains(&json!([first[0], first[1], 0])), "{both:?}");
    assert!(both.contains(&json!(["renamed", 0, first[1]])) && both.len() == 2, "{both:?}");

    // Hostile values in a bundle from elsewhere.
    let manifest = std::fs::read(bundle.join("bundle.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    for (key, value, why) in [
        ("kernel", json!("0".repeat(64)), "is not kept on this machine"),
        ("initramfs", json!("../../../etc/passwd"), "is not kept on this machine"),
        ("qemu_arguments", json!(["-drive", "file=/etc/passwd"]), "is not replayed"),
        ("memory_mb", json!(99_999_999), "is not replayed"),
        ("arch", json!("m68k"), "is not replayed"),
        ("emulator", json!("1.0"), "another timeline"),
    ] {
        let mut other = manifest.clone();
        other["target"]["made_of"][key] = value;
        place.write("bundle/bundle.json", other.to_string().as_bytes());
        let refused = place.punctual(&["explain", "bundle", "--exact"]);
        assert_eq!(refused.status.code(), Some(2), "{key}: {}", text(&refused));
        assert!(text(&refused).contains(why), "{key}: {}", text(&refused));
    }
}

/// On one CPU, of a kernel that does not preempt system calls, the controller of an idle cell has
/// no page faults during the measurement.
#[test]
fn punctual_has_no_page_faults_in_an_idle_cell() {
    for kernel in [KERNEL, "6.12-rt"] {
        idle_cell(kernel);
    }
}

/// The exact explanation of an idle cell; null if this machine lacks a prerequisite.
fn idle_cell(kernel: &str) -> Value {
    let binary = testing::stripped(Path::new(env!("CARGO_BIN_EXE_punctual")));
    if testing::or_skip(BootKernel::by_name(kernel, Arch::Amd64)).is_none()
        || testing::guest(kernel).is_none()
    {
        return Value::Null;
    }
    let place = Place::with("");
    // Longer than the time between two checkpoints.
    let experiment = "[[measure]]\nkind = \"timer\"\nperiod = \"1ms\"\nduration = \
                      \"1200ms\"\npriority = 90\n[[phase]]\nname = \"idle\"\n";
    place.write("experiment.toml", experiment.as_bytes());
    let target = format!("--target=vm:{kernel},binary={}", binary.display());
    let run = ["run", "experiment.toml", "--quiet", &target, "--output", "bundle", "--exact"];
    let ran = place.punctual(&run);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let exact = std::fs::read(place.path().join("bundle/exact.json")).expect("it was explained");
    let exact: Value = serde_json::from_slice(&exact).expect("JSON");
    let has_fault = |section: &&Value| {
        let names = section["stack"].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.into_iter().any(|name| name.contains("page_fault") || name == "handle_mm_fault")
    };
    for kind in ["irqs_disabled", "preemption_disabled", "not_preempted"] {
        let sections = exact[kind].as_array().expect("sections");
        let faults = sections.iter().find(has_fault);
        assert_eq!(faults, None, "{kernel}: a page fault while it measured");
    }
    exact
}

/// A kernel module disables interrupts, and then preemption, for 300 µs: virtual time counts
/// instructions, so the length of both sections is known to one turn of its loop.
#[test]
fn sections_of_known_length_are_found_by_function() {
    const NS: u64 = 300_000;
    let Some(kernel) = testing::or_skip(BootKernel::by_name(KERNEL, Arch::Amd64)) else { return };
    if testing::guest(KERNEL).is_none() {
        return;
    }
    let place = Place::with("");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../truth/module");
    let Some(module) = testing::or_skip(kernel.build_module(&source, "punctual_truth")) else {
        return;
    };
    place.write("punctual_truth.ko", &module);
    let module = place.path().join("punctual_truth.ko");
    let module = module.to_str().expect("a name");
    let job = format!(
        "insmod {module} && echo irqs {NS} >/dev/punctual-truth && echo preempt {NS} \
         >/dev/punctual-truth"
    );
    let arguments = ["sections", "--kernel", KERNEL, "--json", "--file", module, "--"];
    let ran = place.punctual(&[&arguments[..], &["sh", "-c", &job]].concat());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let document: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!(document["schema"], "punctual-sections/1");
    assert_eq!(document["run"]["status"], 0);
    assert_eq!(document["preemption"], "voluntary");
    for (key, context) in
        [("irqs_disabled", "irqs"), ("preemption_disabled", "preemption-disabled")]
    {
        let sections = document[key].as_array().expect("sections");
        let own = sections.iter().find(|one| one["function"] == "write");
        let own = own.unwrap_or_else(|| panic!("{sections:#?}"));
        let longest = own["longest"].as_u64().expect("a length");
        // The clock is read at some distance from both ends, and once more than needed.
        assert!((NS / 8..NS / 8 + 300).contains(&longest), "{own:#}");
        assert_eq!((&own["context"], &own["count"]), (&json!(context), &json!(1)));
        assert_eq!(own["ended_in"], "write");
        let stack = own["stack"].as_array().expect("a stack");
        assert!(stack.contains(&json!("vfs_write")), "{stack:?}");
        assert_eq!(stack.last(), Some(&json!("write")));
    }
    // Sections belong to the functions that take a lock, not to the lock's own.
    for key in ["irqs_disabled", "preemption_disabled", "migration_disabled", "lock_waits"] {
        let sections = document[key].as_array().expect("sections");
        let names = sections.iter().filter_map(|section| section["function"].as_str());
        let locks = names.filter(|name| name.starts_with("_raw_") || name.contains("_lock_irq"));
        assert_eq!(locks.collect::<Vec<_>>(), [""; 0], "{sections:#?}");
    }
    // A section ends when the scheduler has chosen.
    let longest = |key: &str| document[key][0]["longest"].as_u64().expect("a length");
    assert!(document["measured"].as_u64() < document["instructions"].as_u64());
    assert!(longest("preemption_disabled") < document["measured"].as_u64().expect("a count"));
}

#[test]
fn a_run_on_this_machine_cannot_be_replayed() {
    let place = Place::with("");
    let measured = ["measure", "timer", "--duration", "20ms", "--quiet", "--output", "bundle"];
    let ran = place.punctual(&measured);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let refused = place.punctual(&["explain", "bundle", "--exact"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("not a run in virtual time"), "{}", text(&refused));
}

/// The functions of a path, each with its depth below the call itself, from that on.
fn from_the_call(path: &Value) -> Vec<(u64, String)> {
    let functions = path["functions"].as_array().expect("functions");
    let name = |of: &Value| of["function"].as_str().expect("a name").to_owned();
    let at = functions.iter().position(|of| name(of) == "__x64_sys_read");
    let at = at.unwrap_or_else(|| panic!("{path:#}"));
    let depth = |of: &Value| of["depth"].as_u64().expect("a depth");
    let base = depth(&functions[at]);
    functions[at..]
        .iter()
        .take_while(|of| depth(of) >= base)
        .map(|of| (depth(of) - base, name(of)))
        .collect()
}

/// By every instruction, and by the kernel's own tracer in the same kernel.
#[test]
fn the_path_of_a_call_is_one_tree_by_instructions_and_by_function_graph() {
    const MEASURE: &str = "measure syscall --set call=read --set period=1ms --policy other";
    let binary = env!("CARGO_BIN_EXE_punctual");
    let Some(mut guest) = testing::punctual_guest(binary, KERNEL, "", 1) else { return };
    let place = Place::with("");
    let (call, by) = ("kind = \"syscall\"\ncall = \"read\"\nperiod = \"1ms\"", KERNEL);
    place.write("read.toml", format!("[[measure]]\n{call}\nduration = \"100ms\"\n").as_bytes());
    let target =
        format!("--target=vm:{by},binary={}", testing::stripped(Path::new(binary)).display());
    let ran = place.punctual(&["run", "read.toml", "--quiet", &target, "--output", "bundle"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let path = |arguments: &[&str]| -> Value {
        let shown =
            place.punctual(&[&["explain"], arguments, &["--path", "read", "--json"]].concat());
        assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
        serde_json::from_slice(&shown.stdout).expect("JSON")
    };
    let exact = path(&["bundle", "--worst", "1"]);
    let functions = exact["functions"].as_array().expect("functions");
    let own = functions.iter().map(|of| of["own_ns"].as_i64().expect("a time")).sum::<i64>();
    assert_eq!(functions[0]["ns"], own, "every instant is some function's: {exact:#}");
    let stages = functions.iter().filter_map(|of| of["stage"].as_str());
    let mut stages: Vec<&str> = stages.collect();
    stages.dedup();
    let all = ["wrapper", "entry", "dispatcher", "call", "vfs", "return"];
    let places = all.iter().map(|stage| stages.iter().position(|of| of == stage));
    assert!(places.clone().all(|place| place.is_some()) && places.is_sorted(), "{exact:#}");

    guest.job = punctual_lab::Job::Script(format!(
        "mount -t tracefs none /sys/kernel/tracing 2>/dev/null; cd /sys/kernel/tracing && \
         echo __x64_sys_read > set_graph_function && echo function_graph > current_tracer && \
         punctual {MEASURE} --count 50 --quiet --output /tmp/b > /tmp/out && \
         echo 0 > tracing_on && cat trace"
    ));
    let Some(result) = testing::run(&guest) else { return };
    place.write("trace.txt", &result.stdout);
    let graph = path(&["trace.txt"]);
    assert!(graph["calls"].as_u64() >= Some(50), "{graph:#}");
    // The tracer sees no function that must not be traced, and none that was compiled into another;
    // the observer sees all that are called.
    let (seen, mut all) = (from_the_call(&graph), from_the_call(&exact).into_iter());
    let missing: Vec<_> = seen.iter().filter(|(_, name)| !all.any(|(_, of)| of == *name)).collect();
    assert!(missing.is_empty(), "{missing:?} of {seen:?}: {exact:#}");
    let names = seen.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>();
    assert!(
        names.starts_with(&["__x64_sys_read", "ksys_read"]) && names.contains(&"vfs_read"),
        "{names:?}"
    );
}
