//! `punctual measure irq` on kernels and devices other than this machine's: in QEMU guests
//! (docs/reference/guests.md).

use crate::irq::{figure, notes, series, whole_and_counted};
use punctual_lab::exact::PARPORT;
use punctual_lab::{Accel, GuestFile, GuestOutcome, Job};
use punctual_testing as testing;
use punctual_testing::section;
use serde_json::Value;

/// The total over all CPUs, in the row of this handler.
fn row(interrupts: &str, handler: &str) -> u64 {
    let row = interrupts
        .lines()
        .find(|line| line.ends_with(handler))
        .unwrap_or_else(|| panic!("no {handler}: {interrupts}"));
    row.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok()).sum()
}

/// A booting kernel checks that timer interrupts are in time, and gives up if QEMU lacks a CPU.
const BOOT: &str = "no_timer_check";

/// P2's interrupt response, with interrupts from a device, on a kernel of Debian 12.
fn a_device_interrupts(kernel: &str) {
    let Some(mut guest) = testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), kernel, BOOT, 2)
    else {
        return;
    };
    guest.job = Job::Script(include_str!("guests/irq.sh").into());
    guest.modules = ["uio_pci_generic", "parport_pc", "ppdev"].map(str::to_owned).into();
    let edu = ["-device", "edu"].map(str::to_owned).into_iter();
    guest.qemu_args = edu.chain(PARPORT.map(str::to_owned)).collect();
    let example = include_str!("../../../examples/p2-interrupt-edu.toml")
        .replace("samples = 5000", "samples = 100");
    guest.files = vec![GuestFile::from_text("/p2.toml", example)];
    let Some(result) = testing::or_skip(guest.run()) else { return };
    let finished = result.outcome == GuestOutcome::Finished && result.problems.is_empty();
    assert!(finished && result.exit_status == Some(0), "{}", testing::story(&result));
    let unbound = section(&result, "unbound").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        unbound.contains("is not bound to a UIO driver")
            && section(&result, "unbound-status") == "2",
        "{unbound}"
    );
    let summary = |name: &str| -> Value { serde_json::from_str(section(&result, name)).unwrap() };
    for (source, hops) in [
        ("timer", &["/to-handler", "/handler-to-expiry", "/expiry-to-thread"][..]),
        ("self-ipi", &["/to-handler", "/handler-to-thread"]),
        ("membarrier", &["/to-handler", "/handler-to-thread"]),
        ("edu", &["/to-handler", "/handler-to-thread"]),
        ("parport", &["/to-handler", "/handler-to-thread"]),
        ("again", &["/to-handler", "/handler-to-thread"]),
    ] {
        let summary = summary(source);
        assert!(
            notes(&summary)["absent"].as_array().is_none_or(Vec::is_empty),
            "{source} on {kernel}: {summary:#}"
        );
        whole_and_counted(&summary, hops, 200);
    }
    // The published experiment, shortened: idle and loaded.
    let published = summary("p2");
    assert_eq!(published["ending"]["outcome"], "completed", "{published}");
    for (phase, name) in ["idle", "loaded"].iter().enumerate() {
        assert_eq!(
            (
                published["phases"][phase]["name"].as_str(),
                published["phases"][phase]["series"][2]["count"].as_u64()
            ),
            (Some(*name), Some(100))
        );
    }
    // A device that raises its own interrupts, at unknown times.
    let uio = summary("uio");
    let named = |name: &str| {
        uio["phases"][0]["series"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["name"].to_string().contains(name))
            .count()
    };
    // The device raises the next interrupt as soon as possible, maybe before the thread has woken.
    let measured = series(&uio, "/handler-to-thread")["count"].as_f64().unwrap();
    let distinguished = figure(&uio, "mixed") + figure(&uio, "unstamped");
    assert_eq!((measured + distinguished, named("to-handler"), named("whole")), (200.0, 0, 0));
    assert!(measured >= 100.0, "{uio}");
    assert!(series(&uio, "/handler-to-thread")["min"].as_i64().unwrap() > 0);
    let validation = &notes(&uio)["validations"][0];
    assert_eq!(
        (validation["agrees"].as_bool(), validation["counted"]["known"].as_u64() >= Some(200)),
        (Some(true), true),
        "{validation}"
    );
    // The count outside of punctual includes the measured ones, those of the warm-up, and the
    // trial's.
    let counted = row(section(&result, "after-edu"), "uio_pci_generic");
    assert!((200..300).contains(&counted), "{counted}");
    let edu = summary("edu");
    let threaded = edu["findings"].to_string().contains("irq-threaded");
    assert_eq!(
        threaded,
        kernel.ends_with("-rt"),
        "PREEMPT_RT runs handlers in threads: {}",
        edu["findings"]
    );
}

#[test]
fn a_device_interrupts_a_standard_kernel() {
    a_device_interrupts("debian:6.1");
}

#[test]
fn a_device_interrupts_a_real_time_kernel() {
    a_device_interrupts("debian:6.1-rt");
}

/// The thread that raises an interrupt immediately yields to the handling threads: its remaining
/// work until it sleeps is not part of a response.
#[test]
fn the_raising_thread_does_not_delay_threaded_handlers() {
    let Some(mut guest) =
        testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), "debian:6.12-rt", "", 1)
    else {
        return;
    };
    guest.accel = Accel::VirtualTime;
    guest.job = Job::Script(include_str!("guests/irq_threaded.sh").into());
    guest.modules = vec!["uio_pci_generic".into()];
    guest.qemu_args = vec!["-device".into(), "edu".into()];
    let Some(result) = testing::run(&guest) else { return };
    assert_eq!(result.exit_status, Some(0), "{}", testing::story(&result));
    let summary: Value = serde_json::from_str(section(&result, "summary")).unwrap();
    // uio of 6.12 has its own handler and thread: two threads with PREEMPT_RT.
    let finding = summary["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["id"] == "irq-threaded");
    let evidence = finding.unwrap_or_else(|| panic!("{summary}"))["evidence"].to_string();
    for expected in
        ["irq/11-uio_pci", "irq/11-s-uio_pc", "(SCHED_FIFO 50)", "waits is SCHED_FIFO 95"]
    {
        assert!(evidence.contains(expected), "no `{expected}`: {evidence}");
    }
    assert!(
        notes(&summary)["tables"].to_string().contains("SCHED_FIFO 49"),
        "the raiser's: {:#}",
        notes(&summary)
    );
    let gave_way = switches_of_raisers(section(&result, "trace"));
    let late: Vec<&&str> = gave_way.iter().filter(|line| !line.contains("prev_state=R")).collect();
    assert!(
        gave_way.len() >= 50 && late.is_empty(),
        "{} switches, of these after a sleep: {late:#?}",
        gave_way.len()
    );
    assert!(gave_way.iter().all(|line| line.contains("next_comm=irq/11-uio")), "{gave_way:#?}");
}

/// For each interrupt of the device the first switch after it, which is that of the raising thread.
fn switches_of_raisers(trace: &str) -> Vec<&str> {
    let mut entered = false;
    let mut found = Vec::new();
    for line in trace.lines() {
        if line.contains("irq_handler_entry: irq=11 ") {
            entered = true;
        } else if entered && line.contains("sched_switch: prev_comm=raiser ") {
            entered = false;
            found.push(line);
        }
    }
    found
}

#[test]
fn a_gpio_loop_is_followed() {
    let Some(mut guest) =
        testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), "debian:7.2", BOOT, 2)
    else {
        return;
    };
    guest.job = Job::Script(include_str!("guests/gpio.sh").into());
    guest.modules = vec!["gpio-sim".into()];
    let place = tempfile::tempdir().unwrap();
    let (source, program) = (place.path().join("latmon.c"), place.path().join("latmon"));
    std::fs::write(&source, include_str!("guests/latmon.c")).unwrap();
    let mut compile = std::process::Command::new("cc");
    compile.args(["-O2", "-static", "-o"]).args([&program, &source]);
    assert!(compile.status().expect("cc").success());
    guest.files.push(GuestFile::from_host_file(&program, "/latmon").unwrap());
    let Some(result) = testing::or_skip(guest.run()) else { return };
    let finished = result.outcome == GuestOutcome::Finished && result.problems.is_empty();
    assert!(finished && result.exit_status == Some(0), "{}", testing::story(&result));
    for (name, expected) in
        [("unwired", "are the two lines wired together?"), ("beyond", "there is no in_line 8")]
    {
        let said =
            format!("{} {}", section(&result, name), section(&result, &format!("said-{name}")));
        assert!(
            section(&result, &format!("status-{name}")) == "2" && said.contains(expected),
            "{said}"
        );
    }
    let summary: Value = serde_json::from_str(section(&result, "gpio")).unwrap();
    whole_and_counted(&summary, &["/to-handler", "/handler-to-thread"], 10);
    assert!(
        notes(&summary)["absent"].as_array().is_none_or(Vec::is_empty),
        "the kernel stamps the edge: {summary:#}"
    );
    // By the witness's clock, which has an answer for each of ours.
    let summary: Value = serde_json::from_str(section(&result, "witness"))
        .unwrap_or_else(|why| panic!("{why}: {}", section(&result, "said-witness")));
    assert_eq!(series(&summary, "/handler-to-thread")["count"], 10, "{summary:#}");
    let all = notes(&summary)["validations"].as_array().unwrap();
    let seen = all.iter().find(|one| one["source"] == "the witness's histogram").unwrap();
    assert_eq!((&seen["agrees"], &seen["claimed"]), (&true.into(), &10.into()), "{seen:#}");
    let played: Vec<f64> =
        section(&result, "latmon").split_whitespace().map(|word| word.parse().unwrap()).collect();
    let by_witness = |name: &str| figure(&summary, name);
    assert_eq!(
        [by_witness("witness-min"), by_witness("witness-max"), by_witness("witness-mean")],
        [played[0], played[1], played[2]],
        "{summary:#}"
    );
    let said = section(&result, "said-no-witness");
    assert!(said.contains("latmon at 127.0.0.1:9"), "{said}");
}
