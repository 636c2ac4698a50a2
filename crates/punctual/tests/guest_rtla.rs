//! punctual and `rtla timerlat` on a real-time kernel, in virtual time: under the same load both
//! report the same main cause.

use crate::common::Place;
use punctual_lab::{Accel, GuestFile, GuestOutcome, Job};
use punctual_testing as testing;

/// Bursts of a task with a higher priority than the measured one, on its CPU: longer than the
/// latency at which rtla should stop.
const HOG: &str = "while :; do i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; sleep 0.3; done";

const EXPERIMENT: &str = "[experiment]\nname = \"beside-rtla\"\n[explain]\n[[measure]]\nname = \
                          \"timer\"\nkind = \"timer\"\ncpus = \"0\"\nperiod = \"10ms\"\npolicy = \
                          \"fifo\"\npriority = 80\nduration = \"4s\"\n";

#[test]
fn both_blame_the_task_of_higher_priority() {
    let Some((files, rtla)) = testing::debian_program("rtla", "usr/bin/rtla") else { return };
    let Some(mut guest) =
        testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), "debian:6.12-rt", "", 1)
    else {
        return;
    };
    for program in ["/usr/bin/taskset", "/usr/bin/chrt"] {
        if !std::path::Path::new(program).exists() {
            return println!("SKIPPED: lacks {program} (Debian package util-linux)");
        }
        guest.programs.push(program.into());
    }
    guest.accel = Accel::VirtualTime;
    guest.files = files;
    guest.files.push(GuestFile::from_text("/experiment.toml", EXPERIMENT));
    guest.files.push(GuestFile::from_text("/hog", HOG));
    guest.job = Job::Script(format!(
        "/usr/bin/taskset 1 /usr/bin/chrt -f 90 /punctual/busybox sh /hog & hog=$!\npunctual run \
         --quiet /experiment.toml --output /results/bundle; echo $? >/results/status\n{rtla} \
         timerlat top -c 0 -P f:80 -p 10000 -d 20s -q -a 60000 >/results/rtla 2>&1\nkill $hog\n"
    ));
    let Some(result) = testing::or_skip(guest.run()) else { return };
    assert_eq!(result.outcome, GuestOutcome::Finished, "{}", testing::story(&result));
    let report = |name: &str| {
        String::from_utf8_lossy(result.results.get(name).map_or(&[][..], Vec::as_slice))
            .into_owned()
    };
    let place = Place::with("");
    for (name, bytes) in result.results.iter().filter(|(name, _)| name.starts_with("bundle/")) {
        std::fs::create_dir_all(place.path().join(name).parent().unwrap()).unwrap();
        place.write(name, bytes);
    }
    let summary = place.summary();
    let account = &summary["phases"][0]["series"][0]["account"]["known"];
    let worst = account["bands"]
        .as_array()
        .and_then(|bands| bands.last())
        .unwrap_or_else(|| panic!("{summary}"));
    let rtla = report("rtla");
    println!("punctual: {worst}\nrtla: {rtla}\n{}", String::from_utf8_lossy(&result.stderr));
    assert_eq!(worst["dominant"], "preempted", "{account}");
    if !rtla.contains("hit stop tracing") {
        return println!(
            "SKIPPED: rtla in the guest analysed nothing: {}",
            rtla.lines().last().unwrap_or_default()
        );
    }
    // `Thread interference: 48231.12 us (97.10 %)` and below it `sh:123 48231.12 us`.
    let share = |what: &str| {
        let line =
            rtla.lines().find(|line| line.trim_start().starts_with(what)).unwrap_or_default();
        line.rsplit('(')
            .next()
            .and_then(|rest| rest.trim_end_matches([')', ' ', '%']).trim().parse::<f64>().ok())
            .unwrap_or_default()
    };
    // A task that ran already at the timer's interrupt is "blocking" in rtla, one that came later
    // "interference": the hog is either.
    let thread = share("Thread interference").max(share("Blocking thread"));
    let others = ["IRQ handler delay", "IRQ interference", "Softirq interference"].map(share);
    assert!(others.iter().all(|other| thread > *other), "{rtla}");
    assert!(rtla.contains("busybox:") || rtla.contains(" sh:"), "{rtla}");
}
