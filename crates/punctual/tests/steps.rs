//! Points without editing: programs compiled with points at every step or function, recorded, and
//! compared with gcov and with their own counters.

use crate::common::{Place, has_program, punctual, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const STEPS: &str = "-fsanitize-coverage=trace-pc";
const FUNCTIONS: &str = "-finstrument-functions";

fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    assert!(output.status.success(), "{command:?}\n{}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn lacks(tools: &[&str]) -> bool {
    !tools.iter().all(|tool| has_program(tool, tool))
}

/// Compiles the example with these flags, and the library beside it without.
fn compile(place: &Place, compiler: &str, flags: &[&str]) -> PathBuf {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let library = repository.join("crates/testpoint/c/punctual");
    let here = |program: &str| {
        let mut command = Command::new(program);
        command.current_dir(place.path());
        command
    };
    let sources = ["steps.c", "testpoint.c"].map(|part| library.join(part));
    ran(here("cc").args(["-O2", "-c"]).args(sources));
    fs::copy(repository.join("examples/testpoint-c/steps.c"), place.path().join("program.c"))
        .unwrap();
    ran(here(compiler).args(flags).args(["-g", "-O0", "-pthread", "-c", "program.c"]));
    let objects = ["program.o", "steps.o", "testpoint.o", "-pthread", "-o", "program"];
    ran(here(compiler).args(objects).args(flags.iter().filter(|flag| flag.starts_with("--"))));
    place.path().join("program")
}

/// Records the program, in which no thread passes more steps than its ring holds: what it printed
/// itself, a count for each function.
fn record(place: &Place, arguments: &[&str], list: Option<&str>) -> BTreeMap<String, u64> {
    let (points, listed) = (place.path().join("points"), place.path().join("list"));
    fs::DirBuilder::new().mode(0o700).recursive(true).create(&points).unwrap();
    let mut command = punctual();
    command.args(["trace", "-q", "--events", "none", "-o", "ran", "--", "./program"]);
    if let Some(list) = list {
        fs::write(&listed, list).unwrap();
        command.env("PUNCTUAL_STEPS", listed);
    }
    command.env("PUNCTUAL_POINTS_DIR", points).env("PUNCTUAL_POINTS_SLOTS", "262144");
    let mut counts = BTreeMap::new();
    for line in ran(command.args(arguments).current_dir(place.path())).lines() {
        let (name, count) = line.split_once(' ').unwrap();
        *counts.entry(name.to_owned()).or_insert(0) += count.parse::<u64>().unwrap();
    }
    counts
}

/// What ran, as `punctual steps` says.
struct Ran {
    page: String,
    lcov: String,
    /// By function, and by line: with whether steps begin there.
    entered: BTreeMap<String, u64>,
    lines: BTreeMap<u64, (u64, bool)>,
}

fn steps(place: &Place) -> Ran {
    let mut command = punctual();
    command.args(["steps", "ran", "--lcov", "ran.info"]).current_dir(place.path());
    let page = ran(&mut command);
    let lcov = fs::read_to_string(place.path().join("ran.info")).unwrap();
    let mut found = Ran { page, lcov, entered: BTreeMap::new(), lines: BTreeMap::new() };
    let mut begins = false;
    for line in found.lcov.lines() {
        let (word, rest) = line.split_once(':').unwrap_or((line, ""));
        let (first, second) = rest.split_once(',').unwrap_or((rest, ""));
        match word {
            "TN" => begins = rest == "punctual_steps",
            "SF" => assert!(rest.ends_with("/program.c"), "{line}"),
            "FNDA" => {
                found.entered.insert(second.to_owned(), first.parse().unwrap());
            }
            "DA" => {
                let count = (second.parse().unwrap(), begins);
                assert_eq!(found.lines.insert(first.parse().unwrap(), count), None, "{line}");
            }
            _ => {}
        }
    }
    found
}

/// Lines with code and how often each ran, by gcov.
fn by_gcov(place: &Place) -> BTreeMap<u64, u64> {
    ran(Command::new("gcov").arg("program.c").current_dir(place.path()));
    let listing = fs::read_to_string(place.path().join("program.c.gcov")).unwrap();
    let counts = listing.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').map(str::trim);
        let count = match parts.next().unwrap().trim_end_matches('*') {
            "-" => return None,
            "#####" => 0,
            count => count.parse().unwrap(),
        };
        Some((parts.next().unwrap().parse().unwrap(), count))
    });
    counts.collect()
}

#[test]
fn lines_that_ran_are_those_of_gcov() {
    if lacks(&["gcc", "gcov"]) {
        return;
    }
    let (ours, theirs) = (Place::with(""), Place::with(""));
    compile(&ours, "gcc", &[STEPS]);
    record(&ours, &[], None);
    ran(&mut Command::new(compile(&theirs, "gcc", &["--coverage", "-fprofile-update=atomic"])));
    let (found, gcov) = (steps(&ours), by_gcov(&theirs));
    assert!(!found.page.contains("findings"), "{}", found.page);
    // The end of a function is a line here and not there, a constant that is returned the reverse.
    let both = found.lines.iter().filter_map(|(line, ours)| Some((line, ours, gcov.get(line)?)));
    let both: Vec<_> = both.collect();
    for (line, (count, begins), theirs) in &both {
        assert_eq!(*count > 0, **theirs > 0, "line {line}: {count}, steps begin: {begins}");
    }
    let begun = both.iter().filter(|(_, (_, begins), _)| *begins).count();
    let equal = both.iter().filter(|(_, (count, _), theirs)| count == *theirs).count();
    println!("{} lines in both, steps begin at {begun}; {equal} counted alike", both.len());
    assert!(begun >= 30 && both.len() > begun && both.len() + 5 > gcov.len(), "{begun}");
    assert!(found.lcov.contains("\nFNDA:0,never\n"), "{}", found.lcov);
}

#[test]
fn functions_are_entered_as_often_as_the_program_itself_counts() {
    if lacks(&["gcc", "g++", "clang"]) {
        return;
    }
    for (compiler, flags) in [
        ("gcc", &[FUNCTIONS][..]),
        ("g++", &[FUNCTIONS, "-xc++"]),
        ("gcc", &[STEPS, "-fno-plt"]),
        ("clang", &[FUNCTIONS]),
        ("clang", &["-fsanitize-coverage=trace-pc-guard"]),
    ] {
        let place = Place::with("");
        compile(&place, compiler, flags);
        let (own, found) = (record(&place, &[], None), steps(&place).entered);
        for (name, count) in &own {
            assert_eq!(found.get(name), Some(count), "{compiler} {flags:?} {name}: {found:?}");
        }
        assert!(own["fib"] > 400 && own["collatz"] == 60 && own["work"] == 3, "{own:?}");
        if flags.contains(&FUNCTIONS) {
            let mut command = punctual();
            command.args(["pairs", "ran", "--json"]).current_dir(place.path());
            let pairs: Value = serde_json::from_str(&ran(&mut command)).unwrap();
            for scope in pairs["scopes"].as_array().unwrap() {
                let name = scope["name"].as_str().unwrap();
                assert_eq!(scope["count"], own.get(name).copied().unwrap_or(1), "{name}");
            }
        }
    }
}

#[test]
fn a_forked_child_and_what_it_executes_have_their_own_steps() {
    if lacks(&["gcc"]) {
        return;
    }
    let place = Place::with("");
    compile(&place, "gcc", &[FUNCTIONS]);
    // The program, a child of it that executes it again, and that one's own.
    let (own, found) = (record(&place, &["2"], None), steps(&place).entered);
    // A child enters fib(3) 5 times before it executes, and prints nothing of that.
    assert_eq!(found["fib"], own["fib"] + 2 * 5, "{own:?}");
    assert_eq!((found["work"], own["work"]), (9, 9));
}

#[test]
fn a_list_leaves_out_functions_and_is_said_to() {
    if lacks(&["gcc"]) {
        return;
    }
    let place = Place::with("");
    compile(&place, "gcc", &[STEPS, FUNCTIONS]);
    for (list, expected) in [("-fib\n-coll*\n", (0, 0, 60)), ("+fib\n", (465, 0, 0))] {
        record(&place, &[], Some(list));
        let found = steps(&place);
        let of = |name| found.entered[name];
        assert_eq!((of("fib"), of("collatz"), of("grade")), expected);
        assert!(found.page.contains("A list left out functions"), "{}", found.page);
        fs::remove_dir_all(place.path().join("ran")).unwrap();
    }
}

#[test]
fn the_path_is_that_of_the_program_and_another_build_is_not_named() {
    if lacks(&["gcc"]) {
        return;
    }
    let place = Place::with("");
    let program = compile(&place, "gcc", &[FUNCTIONS]);
    let own = record(&place, &[], None);
    let mut command = punctual();
    let path = ran(command.args(["steps", "ran", "--path"]).current_dir(place.path()));
    let passed: Vec<&str> =
        path.lines().skip(1).map(|line| line.rsplit_once(' ').unwrap().1).collect();
    let begin = [">main->>fib", ">fib->>fib"];
    assert_eq!(passed[..2], begin, "{path}");
    let of = |end: &str| passed.iter().filter(|pair| pair.ends_with(end)).count() as u64;
    assert_eq!((of(">fib"), of("<fib")), (own["fib"], own["fib"]));
    // Of another build nothing is named: its lines would be wrong.
    fs::copy("/bin/true", program).unwrap();
    let found = steps(&place);
    assert!(found.page.contains("is of another") && found.entered.is_empty(), "{}", found.page);
}
