//! `punctual lab` in virtual time: a slower configuration is detected, and a killed lab, resumed,
//! has the result of an uninterrupted one.

use crate::common::{self, Place, eventually, kill, processes_with, punctual, text};
use punctual_testing as testing;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Whether this machine can boot the kernel; prints the missing prerequisite if not.
fn has_kernel() -> bool {
    testing::guest("debian:6.1").is_some()
}

fn lab(axes: &str, load: &str) -> String {
    format!(
        "[lab]\nname = 'vm'\n[axes]\n{axes}\n[target]\nkind = 'vm'\nkernel = '6.1'\nbinary = \
         '{}'\n[[measure]]\nname = 'timer'\nkind = 'timer'\npolicy = 'fifo'\npriority = \
         95\nperiod = '1ms'\nduration = '1500ms'\n{load}",
        testing::stripped(std::path::Path::new(env!("CARGO_BIN_EXE_punctual"))).display()
    )
}

/// Bursts of some milliseconds between the two priorities, which delay one cell on every timeline.
const BURSTS: &str = r#"[[load]]
name = 'l'
command = """sh -c 'chrt -f -p 50 $$
while :; do i=0; while [ $i -lt 100 ]; do i=$((i + 1)); done; sleep 0.003; done'"""
"#;

fn document(place: &Place, lab: &str) -> serde_json::Value {
    let bytes = std::fs::read(place.path().join(lab).join("lab.json")).expect("lab.json");
    serde_json::from_slice(&bytes).expect("lab.json is JSON")
}

fn max(lab: &serde_json::Value, cell: usize) -> i64 {
    lab["cells"][cell]["series"][0]["max"]
        .as_i64()
        .unwrap_or_else(|| panic!("{}", lab["cells"][cell]))
}

#[test]
fn a_slower_configuration_fails_the_pipeline() {
    if !has_kernel() {
        return;
    }
    let place = Place::with("");
    let text_of = |require: &str| {
        lab("'measure.timer.priority' = [95, 10]", BURSTS)
            .replace("name = 'vm'", &format!("name = 'vm'\n{require}"))
    };
    place.write("lab.toml", text_of("").as_bytes());
    let run = |more: &[&str]| {
        place.punctual(
            &[&["lab", "run", "lab.toml", "-o", "vm", "-j", "2", "--no-exact"], more].concat(),
        )
    };
    let measured = run(&[]);
    assert_eq!(measured.status.code(), Some(0), "{}", text(&measured));
    assert!(
        text(&measured).contains("main/timer/cpu0 (virtual µs)")
            && text(&measured).contains("virtual time: 8 ns"),
        "the limits stand with the figures: {}",
        text(&measured)
    );
    let (above, below) = (max(&document(&place, "vm"), 0), max(&document(&place, "vm"), 1));
    println!("{above} {below}");
    assert!(below > above * 4, "bursts delay what is below them: {below} against {above} ns");

    // The good configuration meets the bound between the two and the bad one does not; nothing is
    // measured again.
    let bound = format!("require = 'p100 < {}ns'", (above as f64 * below as f64).sqrt() as i64);
    place.write("lab.toml", text_of(&bound).as_bytes());
    let caught = run(&["--junit", "lab.xml"]);
    assert_eq!(caught.status.code(), Some(3), "{}", text(&caught));
    assert!(text(&caught).contains("already done: 2 of 2"), "{}", text(&caught));
    let verdict = |cell: usize| document(&place, "vm")["cells"][cell]["verdict"].clone();
    assert_eq!((verdict(0), verdict(1)), ("met".into(), "not-met".into()));
    let xml = std::fs::read_to_string(place.path().join("lab.xml")).unwrap();
    assert!(xml.contains("failures=\"1\"") && xml.contains("main/timer/cpu0"), "{xml}");

    let cell =
        |k: usize| format!("vm/{}", document(&place, "vm")["cells"][k]["bundle"].as_str().unwrap());
    let worse = ["compare", &cell(0), &cell(1), "--fail-if-worse", "p50:5%"];
    let compared = place.punctual(&worse);
    assert_eq!(compared.status.code(), Some(3), "{}", text(&compared));
    let better = place.punctual(&["compare", &cell(1), &cell(0), "--fail-if-worse", "p50:5%"]);
    assert_eq!(better.status.code(), Some(0), "{}", text(&better));
}

#[test]
fn a_killed_lab_resumes_with_the_same_digests() {
    if !has_kernel() {
        return;
    }
    let place = Place::with("");
    let mark = format!("killed-{}", std::process::id());
    let file = lab("'measure.timer.period' = ['1ms', '500us']", "");
    place.write("lab.toml", file.replace("'1500ms'", "'500ms'").as_bytes());
    let arguments = ["lab", "run", "lab.toml", "-j", "1", "--no-exact", "-o", &mark];
    let mut command = punctual();
    let said = place.path().join("said");
    let (out, err) = (
        std::fs::File::create(&said).unwrap(),
        std::fs::File::create(place.path().join("erred")).unwrap(),
    );
    command.args(arguments).current_dir(place.path()).stdin(Stdio::null()).stdout(out).stderr(err);
    let mut killed = command.spawn().unwrap();
    let cells = place.path().join(&mark).join("cells");
    let until = Instant::now() + common::HANG;
    while !(cells.join("1ms/r1/lab-run.json").exists() && cells.join("500us/r1.log").exists()) {
        assert!(Instant::now() < until, "the second cell never began");
        if let Some(status) = killed.try_wait().unwrap() {
            let report =
                |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap_or_default();
            let log = |cell: &str| {
                std::fs::read_to_string(cells.join(cell).join("r1.log")).unwrap_or_default()
            };
            panic!(
                "the lab ended by itself, {status}: {}{}{}{}",
                report("said"),
                report("erred"),
                log("1ms"),
                log("500us")
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    kill(killed.id(), "KILL");
    killed.wait().unwrap();
    eventually("what it started is gone", || processes_with(&mark).is_empty());
    let made = std::fs::metadata(cells.join("1ms/r1/lab-run.json")).unwrap().modified().unwrap();

    let resumed = place.punctual(&arguments);
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed));
    assert!(text(&resumed).contains("already done: 1 of 2 runs"), "{}", text(&resumed));
    assert_eq!(
        std::fs::metadata(cells.join("1ms/r1/lab-run.json")).unwrap().modified().unwrap(),
        made
    );
    let whole = place.punctual(&["lab", "run", "lab.toml", "-j", "2", "-o", "whole"]);
    assert_eq!(whole.status.code(), Some(0), "{}", text(&whole));
    let digests = |lab: &str| {
        let lab = document(&place, lab);
        (lab["cells"][0]["digest"].clone(), lab["cells"][1]["digest"].clone())
    };
    assert!(digests("whole").0.is_string());
    assert_eq!(digests(&mark), digests("whole"));

    // The worst sample of all was explained automatically, and is shown again without another run.
    let cells = document(&place, "whole")["cells"].as_array().expect("cells").clone();
    // Of two equal ones, the first.
    let latency = |cell: &&serde_json::Value| cell["worst"]["latency"].as_i64();
    let worst = cells.iter().rev().max_by_key(latency).expect("a cell");
    assert_eq!(worst["worst"]["exact"], true, "{worst}");
    assert!(worst["worst"]["cause"]["who"].is_string(), "{worst}");
    let name = worst["name"].as_str().expect("a name");
    let same = place.punctual(&["lab", "replay", "whole", name]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same));
    assert!(text(&same).contains("the samples are those of the lab"), "{}", text(&same));

    // A cell of it once more, with every instruction seen: the same samples, explained once.
    let traced = place.punctual(&["lab", "replay", "whole", "500us", "--exact", "-o", "traced"]);
    assert_eq!(traced.status.code(), Some(0), "{}", text(&traced));
    assert_eq!(text(&traced).matches("exact explanation (kernel 6.1.").count(), 1);
    let identical = "all samples are identical to those in the lab: worst ";
    assert!(text(&traced).contains(identical), "{}", text(&traced));
    let exact = std::fs::read(place.path().join("traced/exact.json")).expect("an explanation");
    let exact: serde_json::Value = serde_json::from_slice(&exact).expect("JSON");
    assert_eq!(exact["digest"], digests("whole").1);
}
