//! Wrong requests: an error with its position and a remedy, exit code 2, and nothing started.

mod mistakes;

use crate::common::{Place, text};

const GOOD: &str = "[[measure]]\nkind = \"timer\"\ncpus = \"0\"\nperiod = \"1ms\"\nsamples = 10\n";

fn refused(place: &Place, arguments: &[&str], words: &[&str]) {
    let before: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    let answer = place.punctual(arguments);
    assert_eq!(answer.status.code(), Some(2), "{arguments:?}: {}", text(&answer));
    for word in words {
        assert!(text(&answer).contains(word), "{word:?} is missing in {}", text(&answer));
    }
    assert!(!text(&answer).contains("panicked"));
    let after: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(before.len(), after.len(), "something was made: {after:?}");
}

fn refused_file(experiment: &str, words: &[&str]) {
    refused(&Place::with(experiment), &["run", "-q", "experiment.toml", "-o", "bundle"], words);
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let with = |line: &str| format!("{GOOD}{line}\n");
    refused_file(&with("piority = 80"), &["experiment.toml:6:1", "piority", "priority"]);
    refused_file(&GOOD.replace("1ms", "1 mss"), &["experiment.toml:4", "mss"]);
    refused_file(&GOOD.replace("1ms", "-1ms"), &["negative"]);
    refused_file(&GOOD.replace("1ms", "400d"), &["experiment.toml:4"]);
    refused_file(&GOOD.replace("\"0\"", "\"4000\""), &["4000"]);
    refused_file(&with("policy = \"fifo\"\npriority = 0"), &["priority"]);
    refused_file(&with("histogram = { range = \"9h\", resolution = \"1ns\" }"), &["histogram"]);
    refused_file(
        &with("[[load]]\ncommand = \"no-such-program-here --x\""),
        &["no-such-program-here"],
    );
    refused_file("", &["empty"]);
    refused_file("[[measure]\n", &["experiment.toml:1"]);
}

#[test]
fn all_mistakes_of_a_file_are_reported_together() {
    let text = GOOD.replace("1ms", "1 parsec").replace("\"0\"", "\"x\"") + "colour = \"red\"\n";
    refused_file(&text, &["parsec", "`x`", "colour"]);
}

#[test]
fn files_that_are_no_experiments_are_refused() {
    let place = Place::with(GOOD);
    place.write("latin1.toml", b"name = \"caf\xe9\"\n");
    place.write("huge.toml", &vec![b'#'; 100 << 20]);
    let run = |file: &'static str| ["run", "-q", file, "-o", "bundle"];
    refused(&place, &run("latin1.toml"), &["UTF-8", "latin1.toml"]);
    refused(&place, &run("huge.toml"), &["bytes"]);
    refused(&place, &run("missing.toml"), &["missing.toml", "No such file"]);
    refused(&place, &run("/"), &["directory"]);
}

#[test]
fn an_output_that_exists_or_cannot_be_written_is_refused() {
    let place = Place::with(GOOD);
    std::fs::create_dir(place.path().join("there")).unwrap();
    refused(
        &place,
        &["run", "-q", "experiment.toml", "-o", "there"],
        &["there", "exists already", "--output"],
    );
    refused(
        &place,
        &["run", "-q", "experiment.toml", "-o", "/proc/nowhere/bundle"],
        &["/proc/nowhere/bundle"],
    );
    refused(&place, &["run", "-q", "experiment.toml", "-o", "no/such/parent"], &["no/such/parent"]);
}

#[test]
fn unwritable_outputs_are_refused_before_the_run() {
    let place = Place::with(GOOD);
    let run = ["run", "-q", "experiment.toml", "-o", "bundle"];
    for option in ["--report", "--junit", "--lava"] {
        refused(
            &place,
            &[&run[..], &[option, "no/such/file"]].concat(),
            &["no/such/file", "No such file"],
        );
        refused(&place, &[&run[..], &[option, "/tmp"]].concat(), &["/tmp", "directory"]);
    }
    for option in ["--report", "--junit", "--lava"] {
        for attach in [&["attach", "1"][..], &["attach", "--cpus", "0"]] {
            refused(
                &place,
                &[attach, &[option, "no/such/file"]].concat(),
                &["no/such/file", option],
            );
        }
    }
    let baseline = ["attach", "1", "--baseline", "/proc/nowhere"];
    refused(&place, &baseline, &["/proc/nowhere", "--baseline"]);
    refused_file(
        &format!("{GOOD}[[load]]\ncommand = \"sleep 1\"\nstdout = \"no/log\"\n"),
        &["no/log", "sleep"],
    );
    refused_file(&format!("{GOOD}systress = {{ file = \"no/t.txt\" }}\n"), &["no/t.txt", "timer"]);
}

#[test]
fn a_cpu_that_does_not_exist_cannot_be_checked() {
    refused(&Place::with(GOOD), &["check", "--cpus", "4000"], &["no CPU 4000"]);
}

#[test]
fn real_time_loads_on_every_cpu_need_force() {
    let load =
        "[[load]]\ncommand = \"sleep 1\"\npolicy = \"fifo\"\npriority = 10\ncpus = \"all\"\n";
    refused_file(&format!("{GOOD}{load}"), &["--force"]);
}

#[test]
fn missing_files_of_a_later_phase_are_refused_before_the_first() {
    let with = |phase: &str, measure: &str| format!("{measure}\nphases = [\"{phase}\"]\n");
    for (needs, words) in [
        ("kind = \"storage\"\ndirectory = \"/not/here\"", "/not/here"),
        ("kind = \"netio\"\ndirectory = \"/not/here\"", "/not/here"),
        ("kind = \"heap\"\nallocator = \"/not/here.so\"", "/not/here.so"),
        ("kind = \"irq\"\nsource = \"uio\"\ndevice = \"/dev/not-here\"", "/dev/not-here"),
    ] {
        let measure =
            format!("[[measure]]\nname = \"late\"\n{needs}\npolicy = \"other\"\nsamples = 5");
        let text = format!(
            "[[phase]]\nname = \"one\"\n[[phase]]\nname = \"two\"\n{}{}",
            with("one", GOOD.trim_end()),
            with("two", &measure)
        );
        refused_file(&text, &["phase two: late: ", words, "No such file"]);
    }
}

#[test]
fn every_command_refuses_paths_that_are_no_bundle() {
    let place = Place::with(GOOD);
    for arguments in [
        &["show", "experiment.toml"][..],
        &["report", "nowhere"],
        &["export", ".", "--format", "json"],
        &["import", "experiment.toml", "-o", "imported"],
        &["convert", "nowhere.cfg"],
    ] {
        refused(&place, arguments, &[]);
    }
}
