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
fn a_load_can_be_inside_and_a_second_phase_measures_like_the_first() {
    let Some(_turn) = turn("a_load_can_be_inside_and_a_second_phase_measures_like_the_first")
    else {
        return;
    };
    let cpu = last_cpu();
    let measure = |name: &str, cpus: &str| {
        format!(
            "[[measure]]\nname = \"{name}\"\nkind = \"timer\"\ncpus = \"{cpus}\"\nperiod = \
             \"1ms\"\nsamples = 100\n"
        )
    };
    let load = |name: &str, cpus: &str| {
        let script =
            "sh -c 'grep Cpus_allowed_list /proc/self/status; while :; do sleep 0.02; done'";
        format!(
            "[[load]]\nname = \"{name}\"\ncommand = \"{script}\"\nstdout = \"{name}\"\n{cpus}\n"
        )
    };
    let place = Place::with(&format!(
        "[partition]\ncpus = \"{cpu}\"\ndisable = [\"replug\"]\n{}{}{}{}{}",
        measure("inside", &cpu),
        measure("outside", "0"),
        load("guest", &format!("cpus = \"{cpu}\"")),
        load("neighbour", ""),
        ["first", "second"]
            .map(|name| format!(
                "[[phase]]\nname = \"{name}\"\nloads = [\"guest\", \"neighbour\"]\n"
            ))
            .concat(),
    ));
    let ran = place.run();
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let said = |name: &str| {
        let text = std::fs::read_to_string(place.path().join(name)).unwrap();
        let mut lists: Vec<String> =
            text.lines().map(|line| line.replace("Cpus_allowed_list:\t", "")).collect();
        lists.dedup();
        lists
    };
    assert_eq!((said("guest"), said("neighbour")), (vec![cpu.clone()], vec![online_without(&cpu)]));
    for phase in place.summary()["phases"].as_array().unwrap() {
        let on: Vec<&str> = phase["series"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| one["cpus"].as_str())
            .collect();
        assert_eq!(on, [cpu.as_str(), "0"]);
    }
}

#[test]
fn an_interrupted_experiment_undoes_its_partition() {
    let Some(_turn) = turn("an_interrupted_experiment_undoes_its_partition") else { return };
    let text_of = "[partition]\ncpus = \"LAST\"\ndisable = [\"replug\"]\n[[measure]]\nkind = \
                   \"timer\"\nduration = \"10min\"\n";
    let place = Place::with(&text_of.replace("LAST", &last_cpu()));
    let (paths, bystanders) = (paths(), Bystanders::new());
    let before = snapshot(&paths, &bystanders);
    for signal in ["INT", "TERM", "HUP"] {
        let child = place.start();
        eventually("samples", || place.bundle().join("phases/000/0000.log").exists());
        kill(child.id(), signal);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{signal}: {}", text(&ended));
        assert_same(&before, &snapshot(&paths, &bystanders), signal);
        assert_eq!(place.punctual(&["show", "bundle"]).stderr, b"");
        std::fs::remove_dir_all(place.bundle()).unwrap();
    }
    // If nothing can be started, the machine is not changed, and no bundle is left.
    let touched = || std::fs::metadata("/run/punctual").unwrap().modified().unwrap();
    let last = touched();
    std::fs::create_dir(place.bundle()).unwrap();
    assert_eq!(place.run().status.code(), Some(2));
    assert_eq!(touched(), last, "a journal came and went");
    std::fs::remove_dir(place.bundle()).unwrap();
    place.write(
        "experiment.toml",
        text_of.replace("LAST", &last_cpu()).replace("replug", "no-such-tweak").as_bytes(),
    );
    let refused = place.run();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(
        text(&refused).contains("no-such-tweak") && !place.bundle().exists(),
        "{}",
        text(&refused)
    );
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
fn a_partition_is_made_used_and_taken_back_by_hand() {
    let Some(_turn) = turn("a_partition_is_made_used_and_taken_back_by_hand") else { return };
    let (cpu, paths, bystanders) = (last_cpu(), paths(), Bystanders::new());
    let before = snapshot(&paths, &bystanders);
    let create =
        ["isolate", "create", &cpu, "--no-replug", "--rt-name", "fast", "--nrt-name", "slow"];
    expect(0, &[&create[..], &["--dry-run"]].concat());
    assert_same(&before, &snapshot(&paths, &bystanders), "a dry run");

    let made = text(&expect(0, &create));
    assert!(made.contains(&format!("partition fast: CPU {cpu}; housekeeping slow")), "{made}");
    assert!(
        made.contains("replug                 not requested")
            && made.ends_with("punctual isolate undo\n"),
        "{made}"
    );
    assert_eq!(allowed(bystanders.any()), inherited(&online_without(&cpu)));
    let listed = text(&expect(0, &["isolate", "list", "--quiet"]));
    assert!(listed.contains("Name: fast") && listed.contains("Name: slow"), "{listed}");

    runs_commands_in(&cpu);
    let pid = bystanders.any().to_string();
    let moved = text(&expect(0, &["isolate", "move", &pid, "fast"]));
    assert!(
        moved.starts_with(&format!("{pid}: 1 thread"))
            && moved.ends_with(&format!("on CPU {cpu}\n")),
        "{moved}"
    );
    assert_eq!(allowed(bystanders.any()), cpu);
    expect(2, &["isolate", "move", &pid, "nowhere"]);
    expect(2, &["isolate", "move", "2147483647", "fast"]);

    let status = json(&expect(0, &["isolate", "status", "--interval", "200ms", "--json"]));
    assert_eq!(status["partition"]["known"]["note"]["cpus"], cpu.as_str());
    let in_force = status["partition"]["known"]["in_force"].as_array().unwrap();
    assert!(
        !in_force.is_empty() && in_force.iter().all(|one| one["in_force"] == true),
        "{in_force:#?}"
    );
    assert!(status["visits"]["known"]["cpus"][0]["timer_interrupts"].is_object(), "{status}");

    measures_in(&cpu);

    let undone = text(&expect(0, &["isolate", "undo"]));
    assert!(undone.contains("settings restored"), "{undone}");
    assert_same(&before, &snapshot(&paths, &bystanders), "after undo");
}

/// An experiment without its own partition measures on the existing one's CPU, and leaves that.
fn measures_in(cpu: &str) {
    let place = Place::with("");
    let cfg = format!("timer_thread[0] {{\n cpu_affinity {cpu}\n lifetime.duration 100 ms\n}}\n");
    place.write("inside.cfg", cfg.as_bytes());
    let ran = place.punctual(&["run", "-q", "inside.cfg", "-o", "bundle"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    assert_eq!(place.summary()["phases"][0]["series"][0]["cpus"], cpu);
    let listed = text(&expect(0, &["isolate", "list", "--quiet"]));
    assert!(listed.contains("Name: fast"), "{listed}");
}

/// Commands in the partition `fast`: on its CPU, scheduled as requested, with their own exit codes.
fn runs_commands_in(cpu: &str) {
    let inside = |options: &[&str], script: &str| {
        let arguments =
            [&["isolate", "run"], options, &["fast", "--", "sh", "-c", script]].concat();
        text(&expect(0, &arguments))
    };
    let list = inside(&[], "grep Cpus_allowed_list /proc/self/status");
    assert_eq!(list.trim(), format!("Cpus_allowed_list:\t{cpu}"));
    for (options, policy) in [
        (&["--fifo", "50"][..], "SCHED_FIFO"),
        (&["--rr", "1", "--cpus", cpu], "SCHED_RR"),
        (&["--other"], "SCHED_OTHER"),
    ] {
        let shown = inside(options, "chrt -p $$");
        assert!(shown.contains(policy), "{shown}");
    }
    // A SCHED_DEADLINE task cannot fork: its command must do without.
    expect(0, &["isolate", "run", "--deadline", "1ms,5ms,10ms", "fast", "--", "true"]);
    expect(7, &["isolate", "run", "fast", "--", "sh", "-c", "exit 7"]);
    expect(1, &["isolate", "run", "fast", "--", "/no/such/program"]);
    expect(2, &["isolate", "run", "--fifo", "100", "fast", "--", "true"]);
    expect(2, &["isolate", "run", "--deadline", "10ms,5ms,1ms", "fast", "--", "true"]);
    expect(2, &["isolate", "run", "--cpus", "0", "fast", "--", "true"]);
    expect(2, &["isolate", "run", "nowhere", "--", "true"]);
}

#[test]
fn what_changed_hands_is_reported_before_it_is_overwritten() {
    let Some(_turn) = turn("what_changed_hands_is_reported_before_it_is_overwritten") else {
        return;
    };
    let (paths, bystanders) = (paths(), Bystanders::new());
    let before = snapshot(&paths, &bystanders);
    expect(0, &["isolate", "create", &last_cpu(), "--no-replug"]);
    std::fs::write("/proc/sys/vm/stat_interval", "77").unwrap();
    let status = text(&expect(0, &["isolate", "status", "--interval", "0"]));
    assert!(status.contains("/proc/sys/vm/stat_interval: `77`, not `1000`"), "{status}");
    let undone = text(&expect(1, &["isolate", "undo"]));
    assert!(
        undone.contains(
            "/proc/sys/vm/stat_interval: `77`, not `1000`; left as it is; before it was `1`"
        ),
        "{undone}"
    );
    assert_eq!(std::fs::read_to_string("/proc/sys/vm/stat_interval").unwrap(), "77\n");
    expect(0, &["isolate", "undo", "--force"]);
    assert_same(&before, &snapshot(&paths, &bystanders), "after undo --force");
}

#[test]
fn what_would_brick_the_machine_is_refused() {
    let Some(_turn) = turn("what_would_brick_the_machine_is_refused") else { return };
    let (cpu, paths, bystanders) = (last_cpu(), paths(), Bystanders::new());
    let before = snapshot(&paths, &bystanders);
    let all = system::online().to_string();
    let long = "n".repeat(65);
    let refusals: &[(&[&str], &str)] = &[
        (&[&all], "no CPU would be left"),
        (&["8000"], "has no CPU 8000"),
        (&["9999999999999999999999"], "beyond"),
        (&["3-1"], "backwards"),
        (&["x"], "`x`"),
        (&["\u{1b}[31m"], "\\u{1b}[31m"),
        (&[""], "at least one CPU"),
        (&["0x"], "0x"),
        (&["0x0"], "at least one CPU"),
        (&["--node", "63"], "NUMA node 63"),
        (&[&cpu, "--rt-name", "../escape"], "would leave its place"),
        (&[&cpu, "--nrt-name", "a/b"], "a/b"),
        (&[&cpu, "--rt-name", ".."], ".."),
        (&[&cpu, "--rt-name", ""], "name"),
        (&[&cpu, "--rt-name", "a\nb"], "a\\nb"),
        (&[&cpu, "--rt-name", &long], "nnn"),
        (&[&cpu, "--rt-name", "one", "--nrt-name", "one"], "one"),
        (&[&cpu, "--rt-name", "cgroup.procs"], "cgroup.procs"),
        (&[&cpu, "--no-such-tweak"], "--no-such-tweak"),
    ];
    for (arguments, word) in refusals {
        let answer = text(&expect(2, &[&["isolate", "create"], *arguments].concat()));
        assert!(answer.contains(word), "{arguments:?}: {word:?} is missing in {answer}");
        let control = answer.chars().find(|c| c.is_control() && *c != '\n');
        assert!(control.is_none() && !answer.contains("panicked"), "{arguments:?}: {answer:?}");
    }
    assert_same(&before, &snapshot(&paths, &bystanders), "refusals");
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
