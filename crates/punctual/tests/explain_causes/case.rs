//! A cause made by a test, with the truth beside the bundle: recorded once on a real kernel
//! (fixtures/causes, compared exactly), or measured now (`./x test --all`).

use crate::common::{punctual, text};
use crate::injected::{Arena, arena, assert_adds_up, assert_right};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use punctual_bundle::WindowsReader;
use punctual_bundle::windows::SavedWindow;
use punctual_core::MonotonicNs;
use serde_json::{Value, json};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A file of at least this size is compressed in a fixture.
const LARGE: usize = 4096;
/// The case in docs/, where a reader opens it: its files are as a run writes them.
const SHOWN: &str = "hog";

/// `fixtures/causes` with its files as a run writes them, unpacked once for each state of them.
pub fn recorded_cases() -> &'static Path {
    static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/causes");
        let mut files = Vec::new();
        visit(&fixtures, &mut |file| {
            let path = file.strip_prefix(&fixtures).expect("below it").to_owned();
            files.push((path, fs::read(file).expect("a file")));
        });
        files.sort();
        let mut state = DefaultHasher::new();
        files.hash(&mut state);
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("causes")
            .join(format!("{:016x}", state.finish()));
        if !place.exists() {
            let beside = place.with_extension(std::process::id().to_string());
            files.iter().for_each(|(path, bytes)| unpack(bytes, &beside.join(path)));
            // Another process may have been faster.
            let _ = fs::rename(&beside, &place);
        }
        place
    });
    &PLACE
}

/// Calls this with each file below a directory.
fn visit(directory: &Path, each: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        match entry.path() {
            path if path.is_dir() => visit(&path, each),
            path => each(&path),
        }
    }
}

fn unpack(bytes: &[u8], to: &Path) {
    fs::create_dir_all(to.parent().expect("its directory")).expect("a directory");
    if to.extension().is_none_or(|extension| extension != "gz") {
        return fs::write(to, bytes).expect("a file");
    }
    let mut file = fs::File::create(to.with_extension("")).expect("a file");
    std::io::copy(&mut GzDecoder::new(bytes), &mut file).expect("a compressed file");
}

/// Compresses the large files of a new fixture.
fn pack(fixture: &Path) {
    visit(fixture, &mut |path| {
        let bytes = fs::read(path).expect("a file");
        // The directory is read while compressed files come into it.
        if bytes.len() < LARGE || path.extension().is_some_and(|ending| ending == "gz") {
            return;
        }
        let to = fs::File::create(format!("{}.gz", path.display())).expect("a file");
        let mut to = GzEncoder::new(to, Compression::best());
        to.write_all(&bytes).and_then(|()| to.try_finish()).expect("it is compressed");
        fs::remove_file(path).expect("it is replaced");
    });
}

/// The directory in which a live test stores its measurement as fixtures: `fixtures/causes/record`
/// sets it.
const RECORD: &str = "PUNCTUAL_RECORD_CAUSES";

/// A bundle and its known facts.
pub struct Case {
    bundle: PathBuf,
    truth: Value,
    /// The name of the case, if it is a fixture.
    recorded: Option<&'static str>,
    /// A live measurement is removed with the case.
    _arena: Option<Arena>,
}

impl Case {
    /// The recorded one.
    pub fn recorded(name: &'static str) -> Case {
        let at = recorded_cases().join(name);
        let truth = fs::read(at.join("truth.json")).unwrap_or_else(|why| panic!("{at:?}: {why}"));
        let truth = serde_json::from_slice(&truth).expect("JSON");
        Case { bundle: at.join("bundle"), truth, recorded: Some(name), _arena: None }
    }

    /// Measures it now, with the facts that the injector knows; stored as the fixture of this name
    /// if requested. `None`: skipped, with a message.
    pub fn measured(name: &str, measure: impl Fn(&Arena) -> Option<Value>) -> Option<Case> {
        let arena = arena(name)?;
        let (truth, bundle) = (measure(&arena)?, arena.place.bundle());
        if let Some(fixtures) = std::env::var_os(RECORD) {
            keep(&bundle, &Path::new(&fixtures).join(name), &truth);
        }
        Some(Case { bundle, truth, recorded: None, _arena: Some(arena) })
    }

    /// `punctual WORDS… BUNDLE --json`, which must succeed.
    pub fn json(&self, command: &str, arguments: &[&str]) -> Value {
        let report = self.run(command, &[&["--json"], arguments].concat());
        serde_json::from_slice(&report.stdout)
            .unwrap_or_else(|why| panic!("{why}: {}", text(&report)))
    }

    /// `punctual COMMAND BUNDLE ARGUMENTS…`
    pub fn run(&self, command: &str, arguments: &[&str]) -> std::process::Output {
        let mut punctual = punctual();
        punctual.arg(command).arg(&self.bundle).args(arguments);
        punctual.output().expect("punctual starts")
    }

    /// `punctual explain BUNDLE --json ARGUMENTS…`; the parts of each sample add up.
    pub fn explained(&self, arguments: &[&str]) -> Value {
        let document = self.json("explain", arguments);
        assert_adds_up(&document);
        document
    }

    /// The segments of time in which the cause was active.
    pub fn stretches(&self) -> Vec<(MonotonicNs, MonotonicNs)> {
        let all = self.truth["stretches"].as_array().expect("stretches").iter();
        let end = |of: &Value, at: usize| MonotonicNs(of[at].as_i64().expect("ns"));
        all.map(|of| (end(of, 0), end(of, 1))).collect()
    }

    /// Another fact that the test knows.
    pub fn truth(&self, key: &str) -> &Value {
        &self.truth[key]
    }
}

/// The truth of a case with the cause active in these segments.
pub fn stretches(all: &[(MonotonicNs, MonotonicNs)]) -> Value {
    let all: Vec<[i64; 2]> = all.iter().map(|(from, to)| [from.0, to.0]).collect();
    json!({ "stretches": all })
}

/// A line for each of these samples, with the time of each cause: a recorded case must match it to
/// the nanosecond.
fn lines(samples: &[&Value]) -> String {
    let line = |sample: &&Value| {
        let mut parts: Vec<(String, i64)> = Vec::new();
        for part in sample["parts"].as_array().expect("parts") {
            let who = part["who"].as_str().map_or(String::new(), |who| format!(" by {who}"));
            let cause = format!("{}{who}", part["cause"].as_str().expect("a cause"));
            let ns = part["ns"].as_i64().expect("ns");
            match parts.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, sum)) => *sum += ns,
                None => parts.push((cause, ns)),
            }
        }
        parts.sort_by_key(|(_, ns)| -ns);
        let parts: Vec<String> = parts.iter().map(|(cause, ns)| format!("{ns} {cause}")).collect();
        format!("{}: {}\n", sample["latency_ns"], parts.join(", "))
    };
    samples.iter().map(line).collect()
}

/// The maximum number of windows of a series in a fixture, for its longest samples.
const WINDOWS: usize = 14;

/// Copies the files that a reader needs, without data of the recording machine.
fn keep(bundle: &Path, to: &Path, truth: &Value) {
    let _ = fs::remove_dir_all(to);
    copy(bundle, &to.join("bundle"));
    if let Some(mut kept) = WindowsReader::open(&to.join("bundle")) {
        kept.windows.sort_by_key(|window| window.head.due - window.head.woke);
        let judged = truth["judged"].as_str();
        let of = |window: &SavedWindow| judged.is_none_or(|name| window.head.series == name);
        let (own, others): (Vec<_>, Vec<_>) = kept.windows.iter().partition(|window| of(window));
        let surplus = own.into_iter().skip(WINDOWS).chain(others);
        surplus.for_each(|window| fs::remove_file(window.path()).expect("a window"));
    }
    for names in ["windows/windows.json", "recording/recording.json"] {
        rename_others(&to.join("bundle").join(names));
    }
    fs::write(to.join("truth.json"), format!("{truth:#}\n")).expect("the truth");
    if !to.ends_with(SHOWN) {
        pack(to);
    }
}

/// Prefixes of names that a fixture keeps: the kernel's threads, ours, and those of the tests.
const KEPT: [&str; 18] = [
    "kworker",
    "ksoftirqd",
    "migration",
    "rcu",
    "kcompactd",
    "kthreadd",
    "jbd2",
    "loop",
    "punctual",
    "memfd:punctual",
    "measure",
    "rude-hog",
    "mid-hog",
    "spinner",
    "ordinary",
    "wakes-them-all",
    "section::",
    "storage::",
];

/// Renames other programs of the recording machine to `task`.
fn rename_others(path: &Path) {
    let Ok(text) = fs::read(path) else { return };
    let mut document: Value = serde_json::from_slice(&text).expect("JSON");
    let tasks = document["names"]["tasks"].as_object_mut().expect("tasks");
    for task in tasks.values_mut() {
        let name = task["comm"].as_str().unwrap_or_default();
        if !KEPT.iter().any(|kept| name.starts_with(kept)) {
            task["comm"] = "task".into();
        }
    }
    fs::write(path, format!("{document:#}\n")).expect("the names");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        match () {
            () if ["environment.json", "check.json"].iter().any(|one| name == *one) => {}
            () if path.is_dir() => copy(&path, &to.join(name)),
            () => drop(fs::copy(&path, to.join(name)).expect("a copy")),
        }
    }
}

/// Checks that nine tenths of the samples, and at least this many, have the right cause; a recorded
/// case matches the former result to the nanosecond.
pub fn judge(case: &Case, samples: &[&Value], at_least: usize, is_right: impl Fn(&Value) -> bool) {
    assert_right(samples, at_least, is_right);
    if let Some(name) = case.recorded {
        insta::assert_snapshot!(name, lines(samples));
    }
}
