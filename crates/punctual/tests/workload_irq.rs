//! `punctual measure irq`: what it claims is what the kernel counts, hops add up, and what is not there is said before anything starts.

mod common;

use common::{Place, has_program, is_root, text};
use punctual_lab::{GuestFile, GuestResult, Job, Outcome, testing};
use serde_json::Value;
use std::process::Output;

fn tried(place: &Place, arguments: &[&str]) -> Output {
    place.punctual(&[&["measure", "irq", "--quiet", "--json", "--count", "300"], arguments].concat())
}

fn read(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

fn measured(place: &Place, arguments: &[&str]) -> Value {
    read(&tried(place, arguments))
}

fn series<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let all = summary["phases"][0]["series"].as_array().unwrap();
    let found = all.iter().find(|series| series["name"].as_str().is_some_and(|full| full.ends_with(name)));
    found.unwrap_or_else(|| panic!("no {name}: {summary}"))
}

fn notes(summary: &Value) -> &Value {
    &summary["phases"][0]["measures"][0]["notes"]
}

fn figure(summary: &Value, name: &str) -> f64 {
    let figures = notes(summary)["figures"].as_array().unwrap();
    figures.iter().find(|figure| figure["name"] == name).map_or(0.0, |figure| figure["value"].as_f64().unwrap())
}

/// Every hop is there, the hops together are the whole, and every count agrees.
fn whole_and_counted(summary: &Value, hops: &[&str], count: u64) {
    assert_eq!(series(summary, "/whole")["count"].as_u64(), Some(count), "{summary}");
    let untold = figure(summary, "mixed") + figure(summary, "served-early") + figure(summary, "unstamped");
    if figure(summary, "interrupts") > untold {
        let mean = |name: &str| series(summary, name)["mean"].as_f64().unwrap();
        for hop in hops {
            assert!(series(summary, hop)["count"].as_f64().unwrap() >= count as f64 - untold, "{hop}: {summary}");
            assert!(series(summary, hop)["min"].as_i64().unwrap() > 0, "{hop}: {summary}");
        }
        if untold == 0.0 {
            let sum: f64 = hops.iter().map(|hop| mean(hop)).sum();
            assert!((sum - mean("/whole")).abs() < 0.01 * mean("/whole") + 10.0, "{sum} of {}", mean("/whole"));
        }
    }
    let validations = notes(summary)["validations"].as_array().unwrap();
    assert!(validations.len() >= 2, "{validations:#?}");
    for validation in validations {
        match validation["counted"].get("known") {
            Some(counted) => {
                // Seen where other tests switch the same tracepoints on and off meanwhile: some entries reach one count alone, and the result says so.
                let (claimed, counted) = (validation["claimed"].as_f64().unwrap(), counted.as_f64().unwrap());
                let near = (claimed - counted).abs() <= claimed / 10.0;
                assert!(validation["agrees"] == true || near, "{validation:#}");
            }
            None => println!("SKIPPED: not counted here: {}", validation["counted"]),
        }
    }
}

/// Whether stamps are taken here; says why not.
fn stamped(summary: &Value) -> bool {
    let absent = notes(summary).get("absent").and_then(Value::as_array);
    if let Some(absent) = absent.filter(|absent| !absent.is_empty()) {
        println!("SKIPPED: handlers are not stamped here: {}", absent[0]["why"]);
    }
    absent.is_none_or(Vec::is_empty)
}

#[test]
fn a_timer_is_followed_from_its_expiry_to_its_thread() {
    let place = Place::with("");
    let summary = measured(&place, &["--policy", "other"]);
    if stamped(&summary) {
        whole_and_counted(&summary, &["/to-handler", "/handler-to-expiry", "/expiry-to-thread"], 300);
        assert!(figure(&summary, "stamp-cost") > 0.0, "what a stamp costs is said");
    }
}

#[test]
fn a_cpu_interrupts_itself() {
    let test = "a_cpu_interrupts_itself";
    if !is_root(test) {
        return;
    }
    let place = Place::with("");
    for policy in ["fifo", "other"] {
        let output = tried(&place, &["-s", "source=self-ipi", "--policy", policy, "--output", policy]);
        if output.status.code() == Some(2) {
            println!("SKIPPED: {test} lacks BPF: {}", text(&output));
            return;
        }
        whole_and_counted(&read(&output), &["/to-handler", "/handler-to-thread"], 300);
    }
}

#[test]
fn a_cpu_interrupts_another_one() {
    let test = "a_cpu_interrupts_another_one";
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("SKIPPED: {test} lacks a second CPU");
        return;
    }
    let place = Place::with("");
    let output = tried(&place, &["-s", "source=membarrier"]);
    if output.status.code() == Some(2) {
        println!("SKIPPED: {test} lacks membarrier(2): {}", text(&output));
        return;
    }
    let summary = read(&output);
    if stamped(&summary) {
        whole_and_counted(&summary, &["/to-handler", "/handler-to-thread"], 300);
    }
}

#[test]
fn without_the_right_to_stamp_the_whole_is_measured_and_the_rest_is_said() {
    let test = "without_the_right_to_stamp_the_whole_is_measured_and_the_rest_is_said";
    if !is_root(test) || !has_program("setpriv", "util-linux") {
        return;
    }
    let place = Place::with("");
    let mut command = std::process::Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_punctual"), "measure", "irq"]);
    command.args(["--quiet", "--json", "--count", "100", "--policy", "other"]).current_dir(place.path());
    let output = command.output().unwrap();
    let summary: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", text(&output)));
    assert_eq!(series(&summary, "/whole")["count"], 100, "{summary}");
    for hop in ["/to-handler", "/handler-to-expiry", "/expiry-to-thread"] {
        assert_eq!(series(&summary, hop)["count"], 0, "nothing is made up");
    }
    let absent = notes(&summary)["absent"].to_string();
    assert!(absent.contains("to-handler") && absent.contains("CAP_BPF"), "{absent}");
}

#[test]
fn what_is_not_there_is_said() {
    let place = Place::with("");
    let cases: [(&[&str], &str); 8] = [
        (&["source=uio", "device=/dev/uio77"], "/dev/uio77: No such file"),
        (&["source=uio", "device=/dev/null"], "/dev/null is not a UIO device"),
        (&["source=edu", "device=/sys/bus/pci"], "is not QEMU's edu device"),
        (&["source=gpio", "device=/dev/gpiochip77", "out_line=1", "in_line=2"], "is there a GPIO controller?"),
        (&["source=gpio", "device=/dev/null", "out_line=1", "in_line=2"], "/dev/null is not a GPIO chip"),
        (&["source=gpio", "device=/dev/null", "out_line=1", "in_line=1"], "two different lines"),
        (&["source=membarrier", "target_cpu=8000"], "no thread can run on CPU 8000"),
        (&["source=uio"], "this source needs a device"),
    ];
    for (number, (settings, expected)) in cases.into_iter().enumerate() {
        let bundle = number.to_string();
        let mut arguments = vec!["measure", "irq", "--quiet", "--policy", "other", "--output", &bundle];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let output = place.punctual(&arguments);
        common::assert_refused(&output, &place.path().join(&bundle));
        let said = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(expected), "{settings:?}: {said}");
    }
}

fn told<'r>(result: &'r GuestResult, name: &str) -> &'r str {
    let bytes = result.results.get(name).unwrap_or_else(|| panic!("no {name}: {}", testing::story(result)));
    std::str::from_utf8(bytes).unwrap().trim()
}

/// Of all CPUs, in the row of this handler.
fn row(interrupts: &str, handler: &str) -> u64 {
    let row =
        interrupts.lines().find(|line| line.ends_with(handler)).unwrap_or_else(|| panic!("no {handler}: {interrupts}"));
    row.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok()).sum()
}

/// At boot the kernel looks whether timer interrupts come in time, and gives up where a busy machine does not let QEMU run.
const BOOT: &str = "no_timer_check";

/// P2's interrupt response, its interrupts raised by a device: on a kernel of Debian 12.
fn a_device_interrupts(kernel: &str) {
    let Some(mut guest) = testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), kernel, BOOT, 2) else { return };
    guest.job = Job::Script(include_str!("guests/irq.sh").into());
    guest.modules = vec!["uio_pci_generic".into()];
    guest.qemu_args = vec!["-device".into(), "edu".into()];
    let example = include_str!("../../../examples/p2-interrupt-edu.toml").replace("samples = 5000", "samples = 100");
    guest.files = vec![GuestFile::text("/p2.toml", example)];
    let Some(result) = testing::or_skip(guest.run()) else { return };
    let finished = result.outcome == Outcome::Finished && result.problems.is_empty();
    assert!(finished && result.exit_status == Some(0), "{}", testing::story(&result));
    let unbound = told(&result, "unbound").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unbound.contains("is not bound to a UIO driver") && told(&result, "unbound-status") == "2", "{unbound}");
    let summary = |name: &str| -> Value { serde_json::from_str(told(&result, name)).unwrap() };
    for (source, hops) in [
        ("timer", &["/to-handler", "/handler-to-expiry", "/expiry-to-thread"][..]),
        ("self-ipi", &["/to-handler", "/handler-to-thread"]),
        ("membarrier", &["/to-handler", "/handler-to-thread"]),
        ("edu", &["/to-handler", "/handler-to-thread"]),
        ("again", &["/to-handler", "/handler-to-thread"]),
    ] {
        let summary = summary(source);
        assert!(notes(&summary)["absent"].as_array().is_none_or(Vec::is_empty), "{source} on {kernel}: {summary:#}");
        whole_and_counted(&summary, hops, 200);
    }
    // The published experiment, shortened: idle and loaded.
    let published = summary("p2");
    assert_eq!(published["ending"]["outcome"], "completed", "{published}");
    for (phase, name) in ["idle", "loaded"].iter().enumerate() {
        assert_eq!(
            (published["phases"][phase]["name"].as_str(), published["phases"][phase]["series"][2]["count"].as_u64()),
            (Some(*name), Some(100))
        );
    }
    // A device that raises its own: nobody knows when.
    let uio = summary("uio");
    let named = |name: &str| {
        uio["phases"][0]["series"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["name"].to_string().contains(name))
            .count()
    };
    // It raises the next as soon as it may, which can be before the thread has woken.
    let measured = series(&uio, "/handler-to-thread")["count"].as_f64().unwrap();
    let told_apart = figure(&uio, "mixed") + figure(&uio, "unstamped");
    assert_eq!((measured + told_apart, named("to-handler"), named("whole")), (200.0, 0, 0));
    assert!(measured >= 100.0, "{uio}");
    assert!(series(&uio, "/handler-to-thread")["min"].as_i64().unwrap() > 0);
    let validation = &notes(&uio)["validations"][0];
    assert_eq!(
        (validation["agrees"].as_bool(), validation["counted"]["known"].as_u64() >= Some(200)),
        (Some(true), true),
        "{validation}"
    );
    // Counted from outside of punctual, too: those measured, those of warming up, and the one of the trial.
    let counted = row(told(&result, "after-edu"), "uio_pci_generic");
    assert!((200..300).contains(&counted), "{counted}");
    let edu = summary("edu");
    let threaded = edu["findings"].to_string().contains("irq-threaded");
    assert_eq!(threaded, kernel.ends_with("-rt"), "PREEMPT_RT runs handlers in threads: {}", edu["findings"]);
}

#[test]
fn a_device_interrupts_a_standard_kernel() {
    a_device_interrupts("debian:6.1");
}

#[test]
fn a_device_interrupts_a_real_time_kernel() {
    a_device_interrupts("debian:6.1-rt");
}

#[test]
fn a_gpio_loop_is_followed() {
    let Some(mut guest) = testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), "debian:7.2", BOOT, 2) else {
        return;
    };
    guest.job = Job::Script(include_str!("guests/gpio.sh").into());
    guest.modules = vec!["gpio-sim".into()];
    let Some(result) = testing::or_skip(guest.run()) else { return };
    let finished = result.outcome == Outcome::Finished && result.problems.is_empty();
    assert!(finished && result.exit_status == Some(0), "{}", testing::story(&result));
    for (name, expected) in [("unwired", "are the two lines wired together?"), ("beyond", "there is no in_line 8")] {
        let said = format!("{} {}", told(&result, name), told(&result, &format!("said-{name}")));
        assert!(told(&result, &format!("status-{name}")) == "2" && said.contains(expected), "{said}");
    }
    let summary: Value = serde_json::from_str(told(&result, "gpio")).unwrap();
    whole_and_counted(&summary, &["/to-handler", "/handler-to-thread"], 10);
    assert!(notes(&summary)["absent"].as_array().is_none_or(Vec::is_empty), "the kernel stamps the edge: {summary:#}");
}
