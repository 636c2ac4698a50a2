//! The vocabulary: words not used in this project's identifiers, texts for users, and documents.
//!
//! The test scans the sources and fails when a listed word returns. Places that have not been
//! reworded yet are in [`NOT_YET`] with their allowed number of findings: lower it when you reword,
//! remove the line at 0. A word that is right in one place is in [`ALLOWED`] with the reason.

mod scan;

use scan::{Kind, Piece};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Words of identifiers (`snake_case` and `CamelCase` are split), with replacements.
const IDENTIFIER_WORDS: &[(&str, &str)] = &[
    ("anatomy", "breakdown"),
    ("basket", "batch queue"),
    ("conducted", "run"),
    ("conducting", "controller"),
    ("conductor", "controller"),
    ("doubt", "warning"),
    ("doubtful", "uncertain"),
    ("doubts", "warnings"),
    ("emptier", "consumer"),
    ("errand", "remote run"),
    ("foretell", "predict"),
    ("homecoming", "restore_tasks"),
    ("hush", "clear"),
    ("lateness", "latency"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("mending", "fixing"),
    ("mends", "fixes"),
    ("onlooker", "observer"),
    ("patience", "timeout"),
    ("peeker", "snapshot reader"),
    ("strayed", "ran on several CPUs"),
    ("tell", "report, show, format"),
    ("tells", "reports, shows"),
    ("told", "reported, shown"),
    ("untold", "unattributed"),
    ("wander", "run on several CPUs"),
    ("wanders", "runs on several CPUs"),
];

/// Whole names of types, constants and modules.
const NAMES: &[(&str, &str)] = &[
    ("Bell", "Doorbell"),
    ("Brought", "RemoteResult"),
    ("Course", "MeasurementLoop"),
    ("Did", "Applied"),
    ("Doing", "ThreadState"),
    ("Feed", "SampleSource"),
    ("Filler", "Producer"),
    ("Halt", "PhaseError"),
    ("Handing", "HandoffMechanism"),
    ("House", "Scheduler"),
    ("Keeper", "WorstSet"),
    ("LOOK", "POLL_INTERVAL"),
    ("Order", "WorkloadSpec"),
    ("Outside", "Observer"),
    ("Pace", "Pacing"),
    ("Parting", "Divergence"),
    ("Parts", "Prepared"),
    ("Rooms", "Placement"),
    ("Shelf", "PendingWindows"),
    ("Stayed", "NotMoved"),
    ("Tally", "BinnedCounter"),
    ("What", "EventKind"),
    ("Will", "Intent"),
    ("Wish", "Control"),
];

/// Names of functions that are not verbs.
const FUNCTIONS: &[(&str, &str)] = &[
    ("brought", "a verb"),
    ("here", "a verb, or what is meant: local"),
    ("later", "a saturating subtraction"),
    ("measured", "a verb"),
    ("nothing", "a verb, or none()"),
    ("said", "a verb, or what is meant: stderr"),
    ("there", "a verb, or what is meant: remote"),
];

/// Phrases in texts: whole words, in lower case.
const PHRASES: &[(&str, &str)] = &[
    ("all the same", "still"),
    ("anatomy", "breakdown"),
    ("behind equals", "queued behind the same priority"),
    ("by its own choice", "waiting"),
    ("can be had", "is available"),
    ("conducting thread", "controller thread"),
    ("foretell", "predict"),
    ("goes first", "higher priority"),
    ("goes second", "lower priority"),
    ("held back", "throttled"),
    ("in its own words", "its message"),
    ("is the host's affair", "controlled by the host"),
    ("lack of width", "terminal too narrow"),
    ("late-maker", "culprit"),
    ("late-makers", "culprits"),
    ("looked at", "polled, read"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("mends", "fixes"),
    ("not to be had", "unavailable"),
    ("not the shape", "trend not reproduced"),
    ("runs of kernel programs", "BPF program runs"),
    ("safe bound", "guaranteed bound"),
    ("so many", "at most N, this many"),
    ("stood still", "steal, hardware latency"),
    ("stolen since", "steal time since"),
    ("strayed", "ran on several CPUs"),
    ("tell", "show, report"),
    ("tells", "shows, reports"),
    ("told", "reported, known"),
    ("untold", "unattributed"),
    ("visits the partition", "still runs in the partition"),
    ("wander", "run on several CPUs"),
    ("wanders", "runs on several CPUs"),
    ("who had the cpu", "CPU usage"),
    ("who had the cpus", "CPU usage"),
    ("whose fault", "cause"),
    ("wished", "requested"),
    ("wishes", "requests"),
];

/// Place (the end of a path), word, reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("docs/trend.md", "told", "the third answer beside regression and noise"),
    ("report/src/sentence/comparison_answer.rs", "told", "the same"),
    ("report/src/verdict/baseline.rs", "told", "the same"),
    ("docs/reference/bundle.md", "untold", "a key of version 1"),
    ("docs/reference/compare.md", "told", "a verdict of version 1"),
    ("docs/reference/json.md", "untold", "a key of version 1"),
];

/// The allowed numbers of findings.
const NOT_YET: &[(&str, usize)] = &[];

#[test]
fn listed_words_do_not_increase() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(root) {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        if let Ok(text) = fs::read_to_string(&path) {
            let findings = check(&name, &text);
            found.entry(place(&name)).or_default().extend(findings);
        }
    }
    assert!(found.len() > 10, "the sources were not found: {:?}", found.keys());
    let mut failed = String::new();
    for (place, findings) in &found {
        let allowed = NOT_YET.iter().find(|(name, _)| name == place).map_or(0, |(_, count)| *count);
        match findings.len() {
            count if count > allowed => {
                failed += &format!(
                    "{place}: {count} listed words, {allowed} allowed\n{}\n",
                    findings.join("\n")
                );
            }
            count if count > 0 => {
                println!("{place}: {count} listed words are left, {allowed} allowed")
            }
            _ => {}
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

/// The crate of a file, or its directory beside the crates.
fn place(name: &str) -> String {
    let depth = if name.starts_with("crates/") || name.starts_with("docs/") { 2 } else { 1 };
    name.split('/').take(depth).collect::<Vec<_>>().join("/")
}

fn check(name: &str, text: &str) -> Vec<String> {
    let allowed = |word: &str| {
        ALLOWED.iter().any(|(place, other, _)| name.ends_with(place) && *other == word)
    };
    let (mut findings, mut seen_before) = (Vec::new(), BTreeSet::new());
    let mut find = |line: usize, word: &str, instead: &str, seen: &str| {
        // An identifier counts once per file.
        if !allowed(word) && seen_before.insert((word.to_owned(), seen.to_owned())) {
            findings.push(format!("  {name}:{line}: `{word}` in {seen:?}: write {instead}"));
        }
    };
    if !name.ends_with(".rs") {
        for (number, line) in text.lines().enumerate() {
            for (phrase, instead) in phrases(line) {
                find(number + 1, phrase, instead, line.trim());
            }
        }
        return findings;
    }
    for Piece { kind, line, text, is_test } in scan::pieces(text) {
        let is_test = is_test || name.contains("/tests/") || name.ends_with("tests.rs");
        match kind {
            Kind::Identifier { of_function } => {
                // Names of tests are sentences.
                let is_sentence = of_function && is_test;
                for (word, instead) in identifier(text, of_function).filter(|_| !is_sentence) {
                    find(line, word, instead, text);
                }
            }
            Kind::Text if !is_test => {
                for (phrase, instead) in phrases(text) {
                    find(line, phrase, instead, text);
                }
            }
            // Text that clap shows as help.
            Kind::Documentation if is_help(name) => {
                for (phrase, instead) in phrases(text) {
                    find(line, phrase, instead, text);
                }
            }
            _ => {}
        }
    }
    findings
}

fn is_help(name: &str) -> bool {
    let under = name.strip_prefix("crates/punctual/src/").unwrap_or_default();
    under == "cli.rs" || under.starts_with("commands/")
}

fn identifier(text: &str, of_function: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let words = scan::words(text);
    let parts =
        IDENTIFIER_WORDS.iter().filter(move |(word, _)| words.iter().any(|other| other == word));
    let whole = NAMES.iter().filter(move |(name, _)| *name == text);
    let functions = FUNCTIONS.iter().filter(move |(name, _)| of_function && *name == text);
    let mut all: Vec<_> = parts.copied().collect();
    all.extend(whole.chain(functions).copied());
    all.into_iter()
}

fn phrases(text: &str) -> Vec<(&'static str, &'static str)> {
    let text: String = text
        .to_lowercase()
        .split_whitespace()
        .filter(|word| *word != "\\")
        .collect::<Vec<_>>()
        .join(" ");
    let is_whole = |at: usize, length: usize| {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        !text[..at].ends_with(word) && !text[at + length..].starts_with(word)
    };
    let occurs =
        |phrase: &str| text.match_indices(phrase).any(|(at, _)| is_whole(at, phrase.len()));
    PHRASES.iter().filter(|(phrase, _)| occurs(phrase)).copied().collect()
}

/// Sources and documents, without build output, captures and recordings.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> =
        ["crates", "bench", "fuzz", "examples", "docs"].map(|name| root.join(name)).to_vec();
    found.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let skipped = [
                "target",
                "corpus",
                "seeds",
                "crashers",
                "artifacts",
                "dictionaries",
                "results",
                "snapshots",
            ];
            let ours = [".rs", ".md", ".5", ".toml"].iter().any(|end| name.ends_with(end));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !skipped.contains(&name.as_str()) => open.push(path),
                // This list itself.
                Ok(kind) if kind.is_file() && ours && !path.ends_with("tests/words.rs") => {
                    found.push(path)
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// Phrases of translated English in comments, and how many of 1,000 comment lines may have one:
/// these figures may only fall. ripgrep, below, samply and hyperfine together have 0.6 lines that
/// begin with *What*, and of the others 1.0 at most.
const RATES: &[(&str, f64, Matches)] = &[
    ("What or Whatever first", 3.0, |words| matches!(words[0], "what" | "whatever")),
    ("where it, where there, where none", 2.0, |words| {
        words.windows(2).any(|two| two[0] == "where" && matches!(two[1], "it" | "there" | "none"))
    }),
    ("stands", 1.0, |words| has(words, &["stand", "stands"])),
    ("nobody, somebody, anybody, whoever", 1.0, |words| {
        has(words, &["nobody", "somebody", "anybody", "whoever"])
    }),
    ("goes on", 1.0, |words| follow(words, &["go", "goes", "going", "went"], "on")),
    ("became of, came of", 0.5, |words| {
        follow(words, &["became", "become", "becomes", "came", "comes"], "of")
    }),
    ("so many, so much, so long", 0.5, |words| {
        words.windows(2).any(|two| two[0] == "so" && matches!(two[1], "many" | "much" | "long"))
    }),
];

type Matches = fn(&[&str]) -> bool;

fn has(words: &[&str], any: &[&str]) -> bool {
    words.iter().any(|word| any.contains(word))
}

fn follow(words: &[&str], first: &[&str], second: &str) -> bool {
    words.windows(2).any(|two| first.contains(&two[0]) && two[1] == second)
}

/// The comment lines of a source in lower case, without its marks.
fn comments(source: &str) -> impl Iterator<Item = String> + '_ {
    let lines = source.lines().filter_map(|line| line.trim_start().strip_prefix("//"));
    lines.map(|line| line.trim_start_matches(['/', '!']).trim().to_lowercase())
}

fn count(lines: &[String], matches: Matches) -> usize {
    let words = |line: &str| -> Vec<String> {
        line.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
    };
    let of = |line: &&String| {
        let words = words(line);
        matches(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    lines.iter().filter(of).count()
}

#[test]
fn odd_phrases_in_comments_do_not_increase() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = files(&root).into_iter().filter(|path| path.extension() == Some("rs".as_ref()));
    let text = sources.map(|path| fs::read_to_string(path).unwrap());
    let lines: Vec<String> = text.flat_map(|text| comments(&text).collect::<Vec<_>>()).collect();
    assert!(lines.len() > 10_000, "{} comment lines", lines.len());
    let rate = |matches| 1_000.0 * count(&lines, matches) as f64 / lines.len() as f64;
    let above: Vec<String> = RATES
        .iter()
        .filter(|(_, limit, matches)| rate(*matches) > *limit)
        .map(|(name, limit, matches)| format!("{name}: {:.1} > {limit}", rate(*matches)))
        .collect();
    assert!(above.is_empty(), "of 1,000 comment lines: {above:#?}; write as ripgrep does");
    let example = comments("/// What it is, goes on.\n// So many stand here.\n//! It goes online.")
        .collect::<Vec<_>>();
    let found: Vec<usize> = RATES.iter().map(|(.., matches)| count(&example, *matches)).collect();
    assert_eq!(found, [1, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn listed_words_are_found_in_identifiers_and_texts_only() {
    let source = r##"
        struct Wish { told: u32 }
        fn here() { println!("it tells {} // no comment", r#"they told "it""#); } // told
        /* told /* nested */ told */
        const A: char = '"'; fn toll() { let untolled = b"nothing to see"; }
        #[cfg(test)]
        mod tests { #[test] fn what_is_told_is_kept() { panic!("told"); } }
    "##;
    let found = check("crates/x/src/lib.rs", source);
    let words: Vec<&str> = found.iter().map(|line| line.split('`').nth(1).unwrap()).collect();
    assert_eq!(words, ["Wish", "told", "here", "tells", "told"], "{found:#?}");
    assert_eq!(check("docs/x.md", "It tolled.\nThey are to be mended.\n").len(), 1);
    assert_eq!(scan::words("HTTPTold_HereX2"), ["http", "told", "here", "x2"]);
}
