//! `punctual isolate`, and experiments with a `[partition]`, on the running kernel: created, used,
//! killed, and fully reverted. In guests with other cgroups: guests.rs. Death at every single step:
//! crates/host/tests/isolate_real.rs.

use crate::common::{self, Place, eventually, has_program, kill, processes_with, text};
use crate::system;
use crate::system::{
    Bystanders, allowed, assert_same, expect, json, last_cpu, paths, snapshot, turn,
};
use punctual_core::CpuSet;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// examples/partition.toml for the last CPU, shorter, with a word in the loads' arguments that
/// identifies them. No CPU is unplugged: a test of crates/host does that, and it disturbs all
/// others.
fn experiment(word: &str, seconds: u32) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/partition.toml");
    let example = std::fs::read_to_string(path).unwrap();
    let changes = [
        ("cpus = \"1\"", format!("cpus = \"{}\"", last_cpu())),
        ("\"6s\"", format!("\"{seconds}s\"")),
        ("# disable = [", "disable = [".into()),
        ("stress-ng ", format!("sh -c 'stress-ng $*; exit 1' {word} ")),
    ];
    changes.iter().fold(example, |example, (from, to)| {
        assert!(example.contains(from), "{from}");
        example.replace(from, to)
    })
}

#[test]
fn an_experiment_measures_in_and_out_of_its_partition_and_leaves_no_trace() {
    let Some(_turn) =
        turn("an_experiment_measures_in_and_out_of_its_partition_and_leaves_no_trace")
    else {
        return;
    };
    if !has_program("stress-ng", "stress-ng") {
        return;
    }
    let (cpu, word) = (last_cpu(), format!("punctual-in-and-out-{}", std::process::id()));
    let place = Place::with(&experiment(&word, 2));
    let (paths, bystanders) = (paths(), Bystanders::new());
    let before = snapshot(&paths, &bystanders);
    let run =
        ["run", "--quiet", "experiment.toml", "--output", "bundle", "--report", "report.html"];
    let child = common::punctual()
        .args(run)
        .current_dir(place.path())
        .stdout(std::process::Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    eventually("samples", || {
        place.bundle().join("phases/000/0001.log").exists() && processes_with(&word).len() >= 5
    });
    // All other tasks are outside, including the loads and tasks without a request.
    let outside = online_without(&cpu);
    assert_eq!(allowed(bystanders.any()), inherited(&outside));
    let loads = processes_with(&word);
    let kept_off = [outside.clone(), inherited(&outside), String::new()];
    assert!(loads.iter().all(|pid| kept_off.contains(&allowed(*pid))), "{loads:?}");
    let listed = json(&expect(0, &["isolate", "list", "--json"]));
    let halves: Vec<(&str, &str)> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| Some((one["half"].as_str()?, one["cpus"].as_str()?)))
        .collect();
    assert!(halves.contains(&("rt", &cpu)) && halves.contains(&("nrt", &outside)), "{listed}");
    let ended = child.wait().unwrap();
    assert!(ended.success(), "{ended}: {}", place.summary()["findings"]);
    assert_same(&before, &snapshot(&paths, &bystanders), "after the experiment");

    let summary = place.summary();
    let report = std::fs::read_to_string(place.path().join("report.html")).unwrap();
    let series = summary["phases"][0]["series"].as_array().unwrap();
    for (series, name, cpu) in [(&series[0], "inside", cpu.as_str()), (&series[1], "outside", "0")]
    {
        let name = format!("{name}/cpu{cpu}");
        assert_eq!((&series["name"], &series["cpus"]), (&name.as_str().into(), &cpu.into()));
        // A thread late at the end may miss some more periods.
        assert!(series["expected"].as_u64() >= Some(2000), "{series}");
        assert!(series["count"].as_u64() > Some(1000), "{series}");
        assert!(report.contains(&name), "{name} is missing in the report");
    }
    let load = summary["phases"][0]["cpu_load"]["known"]["cpus"]["0"]["busy"].as_f64();
    assert!(load > Some(0.5), "the rest works hard: {load:?}");
    // Defects of the partition are reported with the figures: the tick stays without nohz_full=.
    let ticks = std::fs::read_to_string("/sys/devices/system/cpu/nohz_full")
        .is_ok_and(|list| list.trim() == cpu);
    assert_eq!(summary["findings"].to_string().contains("partition-has-tick"), !ticks);
}

/// The CPUs among these that children inherit: all, unless this process was confined (taskset(1)).
fn inherited(cpus: &str) -> String {
    let own: CpuSet = allowed(std::process::id() as i32).parse().unwrap();
    cpus.parse::<CpuSet>().unwrap().intersection(&own).to_string()
}

fn online_without(cpu: &str) -> String {
    system::online().difference(&cpu.parse().unwrap()).to_string()
}

#[test]
fn a_killed_experiment_is_told_of_and_undone() {
    let Some(_turn) = turn("a_killed_experiment_is_told_of_and_undone") else { return };
    if !has_program("stress-ng", "stress-ng") {
        return;
    }
    let word = format!("punctual-killed-{}", std::process::id());
    let place = Place::with(&experiment(&word, 600));
    let (paths, bystanders) = (paths(), Bystanders::new());
    let before = snapshot(&paths, &bystanders);
    let mut child = place.start();
    eventually("samples", || {
        place.bundle().join("phases/000/0000.log").exists() && processes_with(&word).len() >= 5
    });
    kill(child.id(), "KILL");
    child.wait().unwrap();
    eventually("the end of all loads", || processes_with(&word).is_empty());

    // The next command of any kind reports it, without changing anything.
    let shown = place.punctual(&["show", "bundle"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    let note = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(note.starts_with("note: ") && note.contains("an experiment that was killed"), "{note}");
    assert!(note.contains("`punctual isolate undo`"), "{note}");
    let status = text(&expect(0, &["isolate", "status", "--interval", "0"]));
    assert!(status.contains("the experiment that created it was killed"), "{status}");
    let again = text(&expect(2, &["isolate", "create", &last_cpu()]));
    assert!(again.contains("a partition exists already"), "{again}");
    let again = place.punctual(&["run", "--quiet", "experiment.toml", "--output", "again"]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
    assert!(!place.path().join("again").exists(), "a run that was refused leaves nothing");

    expect(0, &["isolate", "undo"]);
    assert_same(&before, &snapshot(&paths, &bystanders), "after undo");
    assert!(text(&expect(0, &["isolate", "undo"])).contains("nothing to undo"));
    assert_eq!(place.punctual(&["show", "bundle"]).stderr, b"");
}

#[test]
fn a_plain_user_is_told_which_right_is_missing() {
    let Some(_turn) = turn("a_plain_user_is_told_which_right_is_missing") else { return };
    let experiment = format!(
        "[partition]\ncpus = \"{}\"\n[[measure]]\nkind = \"timer\"\nsamples = 10\n",
        last_cpu()
    );
    let place = Place::with(&experiment);
    std::os::unix::fs::chown(place.path(), Some(65534), Some(65534)).unwrap();
    // The build directory may be inaccessible to others: the user gets a copy of the binary.
    let binary = place.path().join("punctual-copy");
    std::fs::copy(env!("CARGO_BIN_EXE_punctual"), &binary).unwrap();
    let as_nobody = |line: &str| {
        let arguments = line.replace("LAST", &last_cpu());
        let mut command = Command::new(&binary);
        command
            .args(arguments.split(' '))
            .current_dir(place.path())
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap()
    };
    for line in [
        "isolate create LAST",
        "isolate undo",
        "isolate status",
        "check --fix",
        "run -q experiment.toml -o bundle",
    ] {
        let answer = as_nobody(line);
        assert_eq!(answer.status.code(), Some(2), "{line}: {}", text(&answer));
        assert!(text(&answer).contains("root is needed"), "{line}: {}", text(&answer));
    }
    for line in [
        "isolate create LAST --dry-run",
        "isolate status --cpus LAST --interval 50ms",
        "isolate list",
        "check",
    ] {
        let answer = as_nobody(line);
        assert_eq!(answer.status.code(), Some(0), "{line}: {}", text(&answer));
    }
    assert!(!place.bundle().exists());
}
