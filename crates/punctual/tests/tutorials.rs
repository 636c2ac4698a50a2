//! The tutorials, as followed by a reader: their files are written, and their commands run in order
//! by a shell. Only durations are shorter.

use crate::common::{self, has_program, is_root, text};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Shortened durations: a second shows the same as a minute, with fewer samples.
const SHORTER: &[(&str, &str)] = &[
    ("duration = \"60s\"", "duration = \"1s\""),
    ("duration = \"1min\"", "duration = \"1s\""),
    ("duration = \"10min\"", "duration = \"1s\""),
    ("--duration 10s", "--duration 1s"),
    // The page has it in full, shortened as above.
    ("examples/latency.toml", "latency.toml"),
    ("-D10", "-D1"),
    ("./late-loop 10", "./late-loop 4"),
    ("./repaired 10", "./repaired 4"),
];

/// Commands that do not run here, and their tests.
const ELSEWHERE: &[(&str, &str)] = &[
    ("late-loop 2\"", "tests/guest_late_loop.rs"),
    ("repaired 2\"", "tests/guest_late_loop.rs"),
    ("--target vm:", "tests/target_vm.rs"),
    ("old-1", "tests/compare.rs compares several runs of each side"),
];

/// A tutorial in progress.
struct Reader {
    directory: tempfile::TempDir,
    page: String,
    /// The outputs by command, as on the page.
    done: BTreeMap<String, Output>,
}

impl Reader {
    /// Writes the files of a tutorial, and provides `punctual` and `examples`.
    fn of(page: &str) -> Reader {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let page = fs::read_to_string(root.join("docs/tutorials").join(page)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        symlink(root.join("examples"), directory.path().join("examples")).unwrap();
        symlink(env!("CARGO_BIN_EXE_punctual"), directory.path().join("punctual")).unwrap();
        let reader = Reader { directory, page, done: BTreeMap::new() };
        for (name, contents) in files(&reader.page) {
            fs::write(reader.path().join(name), shortened(contents)).unwrap();
        }
        reader
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs all commands of the page. `BUNDLE` is the newest bundle then. Those with a requirement
    /// may end with 3 or 4 on a shared machine.
    fn follow(&mut self) {
        let commands: Vec<String> = commands(&self.page).map(str::to_owned).collect();
        assert!(commands.len() >= 3, "{commands:?}");
        for command in commands {
            if let Some((_, place)) = ELSEWHERE.iter().find(|(part, _)| command.contains(part)) {
                println!("{command}: {place}");
                continue;
            }
            let newest = newest_bundle(self.path()).map(|path| path.display().to_string());
            let line = shortened(&command).replace("BUNDLE", &newest.unwrap_or_default());
            let output = Command::new("sh")
                .args(["-c", &line])
                .current_dir(self.path())
                .env("PATH", format!("{}:{}", self.path().display(), env!("PATH")))
                .output()
                .unwrap();
            let judges = ["--require", "--fail-if-worse", "latency.toml", "experiment.toml"];
            let allowed: &[i32] = match judges.iter().any(|part| command.contains(part)) {
                true => &[0, 3, 4],
                false => &[0],
            };
            let code = output.status.code().unwrap_or(-1);
            assert!(allowed.contains(&code), "{line}: ended with {code}\n{}", text(&output));
            self.done.insert(command, output);
        }
    }

    /// The output of the command with this part.
    fn printed(&self, part: &str) -> String {
        let found = self.done.iter().find(|(command, _)| command.contains(part));
        text(found.unwrap_or_else(|| panic!("no command has {part}: {:?}", self.done.keys())).1)
    }
}

/// Blocks of TOML, each with the last name in backquotes before it.
fn files(page: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("```toml\n") {
        let (contents, after) = after.split_once("```").expect("the end of a block");
        let name = before.split('`').rfind(|code| code.ends_with(".toml"));
        found.push((name.expect("the name of a file"), contents));
        rest = after;
    }
    found
}

/// Indented lines that begin with a program.
fn commands(page: &str) -> impl Iterator<Item = &str> {
    let programs = ["punctual", "cyclictest", "g++"];
    page.lines()
        .filter_map(|line| line.strip_prefix("    "))
        .map(|line| line.trim_start_matches("$ "))
        .filter(move |line| programs.contains(&line.split(' ').next().unwrap_or_default()))
}

fn shortened(text: &str) -> String {
    SHORTER.iter().fold(text.to_owned(), |text, (long, short)| text.replace(long, short))
}

fn newest_bundle(directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    entries
        .filter(|path| path.join("bundle.json").exists())
        .max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).unwrap())
}

#[test]
fn from_cyclictest() {
    if !has_program("cyclictest", "rt-tests") || !is_root("from_cyclictest") {
        return;
    }
    let mut reader = Reader::of("from-cyclictest.md");
    reader.follow();
    assert!(reader.path().join("monday/bundle.json").exists());
    assert!(reader.printed("punctual compare").contains("imported/thread 0, main/timer/cpu0"));
}

#[test]
fn a_latency_gate_in_ci() {
    if !has_program("stress-ng", "stress-ng") {
        return;
    }
    let mut reader = Reader::of("latency-gate-in-ci.md");
    let shipped = fs::read_to_string(reader.path().join("examples/latency.toml")).unwrap();
    let (_, shown) = files(&reader.page).into_iter().next().unwrap();
    assert!(shipped.ends_with(shown), "the page shows another file than examples/latency.toml");
    reader.follow();
    assert!(reader.path().join("main-result/bundle.json").exists());
    assert!(fs::read_to_string(reader.path().join("latency.xml")).unwrap().contains("<testcase"));
}

#[test]
fn the_tutorial_on_a_published_experiment_works() {
    let mut reader = Reader::of("published-experiment.md");
    reader.follow();
    assert!(reader.printed("p1-pi.toml --output").contains("futex calls of a run"));
    assert!(reader.printed("run switch.toml").contains("my report, page 3"));
}

#[test]
fn the_faults_of_a_late_loop_are_found() {
    if !has_program("g++", "g++") || !is_root("the_faults_of_a_late_loop_are_found") {
        return;
    }
    let mut reader = Reader::of("late-loop.md");
    reader.follow();
    let shown = |bundle: &str| {
        let mut show = common::punctual();
        text(&show.args(["show", "--json", bundle]).current_dir(reader.path()).output().unwrap())
    };
    // Times depend on the machine; the program's behaviour does not.
    let (late, repaired) = (shown("late"), shown("better"));
    for finding in ["page-faults-in-cycle", "file-call-in-cycle", "lock-without-pi"] {
        assert!(late.contains(&format!("\"{finding}\"")), "{finding} is not in\n{late}");
        assert!(!repaired.contains(&format!("\"{finding}\"")), "{finding} is in\n{repaired}");
    }
    let explained = reader.printed("punctual explain");
    assert!(explained.contains("What to do"), "{explained}");
}
