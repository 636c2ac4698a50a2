//! `punctual attach --cpus` with known disturbances of a CPU by a named thread of another CPU.

#[path = "attach/entries.rs"]
mod entries;

use crate::common::{Place, assert_refused, has_program, is_root, text};
use entries::{cell, measure, table};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The disturbed CPU, and the disturbing one.
const TARGET: usize = 1;
const OTHER: usize = 0;
/// The program acts about every 2 ms, on a possibly busy machine.
const SPAN: &str = "2s";
const LEAST: f64 = 20.0;

/// A disturber that runs until dropped.
struct Disturber(Child);

impl Drop for Disturber {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory; `None` if this machine cannot attach to CPUs.
fn place() -> Option<Place> {
    if !is_root("attaching to CPUs") {
        return None;
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        println!("SKIPPED: attaching to CPUs lacks a second CPU");
        return None;
    }
    Some(Place::with(""))
}

/// The summary of a CPU disturbed in this way, by this command as `punctual`; `None` if impossible.
fn disturbed_by(mode: &str, mut punctual: Command) -> Option<Value> {
    if !has_program("cc", "gcc") {
        return None;
    }
    let place = place()?;
    place.write("disturb.c", include_bytes!("attach/disturb.c"));
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-pthread", "-o", "disturb", "disturb.c"]).current_dir(place.path());
    let built = cc.output().unwrap();
    assert!(built.status.success(), "{}", text(&built));
    let mut program = Command::new(place.path().join("disturb"));
    program.args([mode, &TARGET.to_string(), &OTHER.to_string()]).stdout(Stdio::piped());
    let mut disturber = Disturber(program.spawn().unwrap());
    let mut begun = String::new();
    BufReader::new(disturber.0.stdout.take().unwrap()).read_line(&mut begun).unwrap();
    assert_eq!(begun, "begun\n");
    punctual.args(["attach", "--cpus", &TARGET.to_string(), "--duration", SPAN, "--quiet"]);
    let output = punctual.args(["--output", "bundle"]).current_dir(place.path()).output().unwrap();
    let said = text(&output);
    if said.contains("cannot be recorded here") && said.contains("tracefs") {
        println!("SKIPPED: attaching to CPUs without BPF lacks tracefs: {said}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    println!("{said}");
    Some(place.summary())
}

/// The counts match /proc/interrupts, except for entries that this machine hides from BPF programs;
/// and no count contradicted by the file is shown as agreed.
fn assert_counts(summary: &Value, hidden: u64) {
    let validations = measure(summary)["notes"]["validations"].as_array().unwrap();
    assert!(validations.iter().any(|one| one["what"] == "local timer interrupts"));
    for one in validations {
        let claimed = one["claimed"].as_u64().unwrap();
        let counted = one["counted"]["known"].as_u64().unwrap();
        let of = |side: &str| one["tolerance"][side].as_u64().unwrap();
        let agrees =
            (claimed.saturating_sub(of("fewer"))..=claimed + of("more")).contains(&counted);
        assert_eq!(one["agrees"], Value::Bool(agrees), "{one:#}");
        assert!(agrees || (claimed..=claimed + hidden).contains(&counted), "{hidden}: {one:#}");
    }
}

/// Root without the capabilities for BPF.
#[test]
fn without_bpf_the_waker_is_the_originator_too() {
    if !has_program("setpriv", "util-linux") {
        return;
    }
    // A process that may mount tracefs does so for itself, before dropping its capabilities.
    let without = "mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
                   exec setpriv --bounding-set=-bpf,-perfmon,-sys_admin \"$0\" \"$@\"";
    let mut punctual = Command::new("unshare");
    punctual.args(["--mount", "sh", "-c", without, env!("CARGO_BIN_EXE_punctual")]);
    let Some(summary) = disturbed_by("wake", punctual) else { return };
    let findings = summary["findings"].as_array().unwrap();
    assert!(findings.iter().any(|one| one["id"] == "entries-without-bpf"), "{findings:#?}");
    let table = table(&summary, "entries");
    let of_waker =
        |row: &&Value| cell(table, row, "originator").as_str().unwrap().starts_with("waker-x");
    let rows: Vec<_> = table["rows"].as_array().unwrap().iter().filter(of_waker).collect();
    let of = |column| rows.iter().map(move |row| cell(table, row, column).as_f64().unwrap());
    // If the kernel hides the switch from the idle task, only the CPU's waker is seen.
    assert!(of("entries").chain(of("in other entries")).sum::<f64>() >= LEAST, "{table:#}");
    assert!(of("by CPU").all(|cpu| cpu == OTHER as f64), "{rows:#?}");
    assert_counts(&summary, 0);
}

/// In an experiment the measure runs beside others, and ends with its phase.
#[test]
fn an_experiment_measures_kernel_entries_beside_a_timer() {
    let Some(place) = place() else { return };
    let experiment = format!(
        "[[phase]]\nname = 'a'\nduration = '300ms'\n[[phase]]\nname = 'b'\nduration = '300ms'\n\
         [[measure]]\nkind = 'timer'\ncpus = '{OTHER}'\npolicy = 'other'\n\
         [[measure]]\nkind = 'entries'\ncpus = '{TARGET}'\nrequire = ['entries < 100000000', \
         'cpu{TARGET}/interruption max < 1h']\n"
    );
    place.write("experiment.toml", experiment.as_bytes());
    let output = place.punctual(&["run", "-q", "experiment.toml", "-o", "bundle"]);
    // Invalid if others measure the same CPUs meanwhile.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", text(&output));
    let summary = place.summary();
    for phase in summary["phases"].as_array().unwrap() {
        let names = |list: &str| -> Vec<String> {
            let all = phase[list].as_array().unwrap().iter();
            all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
        };
        let cpu = format!("entries/cpu{TARGET}");
        assert_eq!(names("measures"), ["timer".to_owned(), cpu.clone()], "{phase:#}");
        let series = names("series");
        for part in ["interruption", "entry"] {
            assert!(series.contains(&format!("{cpu}/{part}")), "{series:?}");
        }
        let figures = phase["measures"][1]["notes"]["figures"].as_array().unwrap();
        assert!(figures.iter().any(|one| one["name"] == "away-share"), "{figures:#?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let Some(place) = place() else { return };
    let refused = |arguments: &[&str]| {
        let output = place.punctual(&[&["attach", "-o", "bundle"], arguments].concat());
        assert_refused(&output, &place.bundle());
        text(&output)
    };
    assert!(refused(&["--cpus", "1023"]).contains("not online"));
    assert!(refused(&["--cpus", "1", "4711"]).contains("cannot be used with"));
    assert!(refused(&["--cpus", "1", "--", "true"]).contains("cannot be used with"));
    assert!(refused(&["--cpus", "1", "--require", "cpu0/entries == 0"]).contains("CPU 0"));
    assert!(refused(&["--cpus", "1", "--require", "overrun max < 1us"]).contains("--require"));
    assert!(refused(&["--cpus", "1", "--explain"]).contains("--trace sched"));
    assert!(refused(&["--cpus", "1", "--calibrate"]).contains("measures no thread"));
}
