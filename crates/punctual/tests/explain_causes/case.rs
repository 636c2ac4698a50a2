//! A cause made by a program, with the truth beside the bundle: recorded once on a real kernel
//! (fixtures/causes), compared exactly.

use crate::common::{punctual, text};
use flate2::read::GzDecoder;
use punctual_core::MonotonicNs;
use serde_json::Value;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

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

/// A bundle and its known facts.
pub struct Case {
    bundle: PathBuf,
    truth: Value,
    name: &'static str,
}

impl Case {
    /// The recorded one.
    pub fn recorded(name: &'static str) -> Case {
        let at = recorded_cases().join(name);
        let truth = fs::read(at.join("truth.json")).unwrap_or_else(|why| panic!("{at:?}: {why}"));
        let truth = serde_json::from_slice(&truth).expect("JSON");
        Case { bundle: at.join("bundle"), truth, name }
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

/// Checks that nine tenths of the samples, and at least this many, have the right cause, and that
/// all match the former result to the nanosecond.
pub fn judge(case: &Case, samples: &[&Value], at_least: usize, is_right: impl Fn(&Value) -> bool) {
    assert_right(samples, at_least, is_right);
    insta::assert_snapshot!(case.name, lines(samples));
}

/// In any case the parts are contiguous and add up to the latency.
fn assert_adds_up(document: &Value) {
    for sample in document["samples"].as_array().unwrap() {
        let mut at = sample["at"].as_i64().unwrap();
        for part in sample["parts"].as_array().unwrap() {
            assert_eq!(part["from"].as_i64(), Some(at), "{sample}");
            at += part["ns"].as_i64().unwrap();
        }
        let latency = at - sample["at"].as_i64().unwrap();
        assert_eq!(latency, sample["latency_ns"].as_i64().unwrap(), "{sample}");
    }
}

/// The number of these samples with the right cause for at least nine tenths of the time without
/// steal, and less than a twentieth unknown.
fn right<'s>(samples: &[&'s Value], is_right: impl Fn(&Value) -> bool) -> (usize, Vec<&'s Value>) {
    let (mut count, mut wrong) = (0, Vec::new());
    for sample in samples {
        let latency = sample["latency_ns"].as_i64().unwrap();
        let sum = |wanted: &dyn Fn(&Value) -> bool| -> i64 {
            let parts = sample["parts"].as_array().unwrap().iter();
            parts.filter(|part| wanted(part)).map(|part| part["ns"].as_i64().unwrap()).sum()
        };
        let (blamed, unknown) = (sum(&is_right), sum(&|part| part["cause"] == "unknown"));
        let left = latency - sum(&|part| part["cause"] == "steal" && !is_right(part));
        if blamed * 10 >= left * 9 && unknown * 20 < latency {
            count += 1
        } else {
            wrong.push(*sample)
        }
    }
    (count, wrong)
}

/// Asserts that at least nine tenths of the samples, and at least this many, have the right cause.
fn assert_right(samples: &[&Value], at_least: usize, is_right: impl Fn(&Value) -> bool) {
    assert!(
        samples.len() >= at_least,
        "only {} samples were late by what the test did",
        samples.len()
    );
    let (count, wrong) = right(samples, is_right);
    let brief = |sample: &&Value| {
        let parts = sample["parts"].as_array().unwrap().iter();
        let parts: Vec<String> =
            parts.map(|part| format!("{} {} {}", part["ns"], part["cause"], part["who"])).collect();
        format!(
            "{} at {}: {}; {}",
            sample["latency_ns"],
            sample["at"],
            parts.join(", "),
            sample["warnings"]
        )
    };
    let wrong: Vec<String> = wrong.iter().map(brief).collect();
    assert!(
        count * 10 >= samples.len() * 9,
        "{count} of {} are right; these are not:\n{}",
        samples.len(),
        wrong.join("\n")
    );
}

/// The samples with at least nine tenths of their time in these segments.
pub fn within<'d>(document: &'d Value, stretches: &[(MonotonicNs, MonotonicNs)]) -> Vec<&'d Value> {
    let samples = document["samples"].as_array().unwrap().iter();
    let falls = |sample: &&Value| {
        let (at, latency) =
            (sample["at"].as_i64().unwrap(), sample["latency_ns"].as_i64().unwrap());
        let overlap = |(from, to): &(MonotonicNs, MonotonicNs)| {
            (to.0.min(at + latency) - from.0.max(at)).max(0)
        };
        stretches.iter().map(overlap).sum::<i64>() * 10 >= latency * 9
    };
    let found: Vec<&Value> = samples.filter(falls).collect();
    if found.is_empty() {
        println!("none of these fell into {stretches:?}: {:#}", document["samples"]);
    }
    found
}
