//! The page of scores is generated from the committed ones, and the README has their sum.

use punctual_truth::document::{TRUTH_SCHEMA, TruthCase, TruthDocument, TruthScore, TruthSystem};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const REGENERATE: &str = "PUNCTUAL_WRITE_DOCS=1 cargo test -p punctual-truth --test pure truth::";
const BEGIN: &str =
    "<!-- From docs/notes/truth/*.json, by crates/truth/tests/truth/scores.rs. -->\n";
const END: &str = "<!-- The end of what is made from them. -->\n";
/// Confusions with a separate row.
const WORST: usize = 10;
/// The ways that use traces of other tools.
const RECORDERS: [&str; 3] = ["tracefs", "perf", "trace-cmd"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The committed scores, by the name of the file.
fn committed() -> Vec<(String, TruthSystem)> {
    let mut all = Vec::new();
    for file in fs::read_dir(root().join("docs/notes/truth")).expect("the directory of scores") {
        let path = file.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("scores");
        let document: TruthDocument = serde_json::from_str(&text).expect("scores");
        assert_eq!(document.schema, TRUTH_SCHEMA, "{name}");
        all.extend(document.systems.into_iter().map(|system| (name.clone(), system)));
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

/// The cases that ran with an injection.
fn injected(system: &TruthSystem) -> impl Iterator<Item = &TruthCase> {
    system.cases.iter().filter(|case| case.skipped.is_none() && case.cause.is_some())
}

fn sum<'c>(cases: impl Iterator<Item = &'c TruthCase>) -> TruthScore {
    let mut sum = TruthScore::default();
    cases.for_each(|case| sum.add(&case.score));
    sum
}

/// The kind, such as `socket` of `socket-3ms`.
fn kind(case: &TruthCase) -> &str {
    case.name.rsplit_once('-').map_or(&case.name, |(kind, _)| kind)
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let head = line(columns.iter().map(|&name| name.to_owned()).collect());
    let rule = format!("|{}\n", "---|".repeat(columns.len()));
    std::iter::once(head).chain([rule]).chain(rows.map(line)).collect()
}

fn scores(all: &[(String, TruthSystem)]) -> String {
    let columns = [
        "file",
        "kernel",
        "way",
        "cases",
        "injected",
        "affected",
        "right",
        "recall",
        "precision",
        "time error",
        "unknown",
    ];
    let rows = all.iter().map(|(file, system)| {
        let score = sum(injected(system));
        let counts = [injected(system).count() as u64, score.injected, score.affected, score.right];
        let shares = [score.recall(), score.precision(), score.time_error(), score.unknown_share()];
        let names = [file.clone(), system.kernel.clone(), system.through.clone()];
        let figures = counts.map(|count| count.to_string()).into_iter().chain(shares.map(percent));
        names.into_iter().chain(figures).collect()
    });
    table(&columns, rows)
}

/// Injected causes against reported ones.
fn matrix(all: &[(String, TruthSystem)]) -> String {
    let mut scores: BTreeMap<&str, TruthScore> = BTreeMap::new();
    for case in all.iter().flat_map(|(_, system)| injected(system)) {
        scores.entry(case.cause.as_deref().unwrap_or_default()).or_default().add(&case.score);
    }
    let shown: BTreeSet<&str> =
        scores.values().flat_map(|score| score.confused.keys()).map(String::as_str).collect();
    let mut columns = vec!["injected", "affected", "right"];
    columns.extend(&shown);
    let rows = scores.iter().map(|(cause, score)| {
        let others = shown.iter().map(|&name| match score.confused.get(name) {
            Some(count) => count.to_string(),
            None => String::new(),
        });
        let counts = [format!("`{cause}`"), score.affected.to_string(), score.right.to_string()];
        counts.into_iter().chain(others).collect()
    });
    table(&columns, rows)
}

/// The most frequent confusions.
fn worst(all: &[(String, TruthSystem)]) -> String {
    let mut found: BTreeMap<(String, String), (u64, BTreeSet<&str>)> = BTreeMap::new();
    for (file, system) in all {
        for case in injected(system) {
            for (name, count) in &case.score.confused {
                let (sum, files) = found.entry((kind(case).to_owned(), name.clone())).or_default();
                *sum += count;
                files.insert(file);
            }
        }
    }
    let affected = |kind_of: &str, files: &BTreeSet<&str>| {
        let of = all.iter().filter(|(file, _)| files.contains(file.as_str()));
        sum(of.flat_map(|(_, system)| injected(system)).filter(|case| kind(case) == kind_of))
            .affected
    };
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    let rows = found.iter().take(WORST).map(|((kind, name), (count, files))| {
        let files: Vec<&str> = files.iter().copied().collect();
        vec![
            format!("`{kind}`"),
            format!("`{name}`"),
            format!("{count} of {}", affected(kind, &files.iter().copied().collect())),
            files.join(", "),
        ]
    });
    table(&["injected", "shown as", "how often", "in"], rows)
}

/// The right samples among the affected ones of each kind, by recorder.
fn by_recorder(all: &[(String, TruthSystem)]) -> String {
    let mut scores: BTreeMap<&str, BTreeMap<&str, TruthScore>> = BTreeMap::new();
    for (_, system) in all {
        for case in injected(system) {
            let of_kind = scores.entry(kind(case)).or_default();
            of_kind.entry(&system.through).or_default().add(&case.score);
        }
    }
    let rows = scores.iter().map(|(kind, of_kind)| {
        let cell = |way: &&str| match of_kind.get(way) {
            Some(score) => format!("{} of {}", score.right, score.affected),
            None => "–".to_owned(),
        };
        std::iter::once(format!("`{kind}`")).chain(RECORDERS.iter().map(cell)).collect()
    });
    table(&[&["injected"][..], &RECORDERS].concat(), rows)
}

/// The series of a release, `6.12` of `6.12.117+deb13-rt-amd64`, and whether it is PREEMPT_RT: an
/// update does not count as another kernel.
fn series(release: &str) -> (&str, bool) {
    let end = release.match_indices('.').nth(1).map_or(release.len(), |(at, _)| at);
    (&release[..end], release.contains("-rt"))
}

/// The sentence in the README.
fn sentence(all: &[(String, TruthSystem)]) -> String {
    let kinds: BTreeSet<&str> =
        all.iter().flat_map(|(_, system)| injected(system)).map(kind).collect();
    let kernels: BTreeSet<(&str, bool)> =
        all.iter().map(|(_, system)| series(&system.kernel)).collect();
    let score = sum(all.iter().flat_map(|(_, system)| injected(system)));
    format!(
        "`punctual-truth` injects {} kinds of delays and waits in guests: on {} kernels {} of {} \
         affected samples ({}) are attributed to the right cause and culprit, and {} of those \
         attributed to it are right ([the scores](docs/notes/truth.md)).",
        kinds.len(),
        kernels.len(),
        score.right,
        score.affected,
        percent(score.recall()),
        percent(score.precision()),
    )
}

#[test]
fn documented_scores_match_the_committed_scores() {
    let is_recorded =
        |(_, system): &(String, TruthSystem)| RECORDERS.contains(&system.through.as_str());
    let (recorded, all): (Vec<_>, Vec<_>) = committed().into_iter().partition(is_recorded);
    let path = root().join("docs/notes/truth.md");
    let text = fs::read_to_string(&path).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("the page marks the begin");
    let (_, after) = rest.split_once(END).expect("the page marks the end");
    let made = [
        scores(&all),
        "\n### The confusion matrix\n\nAffected samples, by the injected cause; to the right of \
         `right` stands what the others\nwere shown as.\n\n"
            .to_owned(),
        matrix(&all),
        "\n### The ten most frequent confusions\n\n".to_owned(),
        worst(&all),
        "\n### Traces of other tools\n\nRecorded by the lines of `punctual recipe`, and read as \
         `punctual explain FILE` reads them.\n\n"
            .to_owned(),
        scores(&recorded),
        "\nRight of affected samples, by kind:\n\n".to_owned(),
        by_recorder(&recorded),
        "\nWhat the others were shown as:\n\n".to_owned(),
        worst(&recorded),
    ];
    let whole = format!("{before}{BEGIN}\n{}\n{END}{after}", made.concat());
    if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        fs::write(&path, whole).expect("the page is written");
    } else {
        assert!(whole == text, "docs/notes/truth.md is not up to date: {REGENERATE}");
    }
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let sentence = sentence(&all);
    assert!(words(&readme).contains(&words(&sentence)), "the README lacks:\n{sentence}");
}

#[test]
fn the_table_of_scores_sums_its_cases() {
    let case = |name: &str, right, confused: &[(&str, u64)]| TruthCase {
        name: name.to_owned(),
        cause: Some("waiting".to_owned()),
        length_ns: 1,
        unrecorded: None,
        skipped: None,
        score: TruthScore {
            affected: right + confused.iter().map(|(_, count)| count).sum::<u64>(),
            right,
            confused: confused.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
            ..TruthScore::default()
        },
    };
    let cases =
        vec![case("a-b-1ms", 7, &[("irq", 2), ("self", 1)]), case("a-b-3ms", 5, &[("irq", 4)])];
    let system = TruthSystem {
        kernel: "6.1".to_owned(),
        virtual_time: true,
        through: "run".to_owned(),
        cases,
    };
    let all = [("6.1.json".to_owned(), system)];
    assert!(matrix(&all).ends_with("| `waiting` | 19 | 12 | 6 | 1 |\n"), "{}", matrix(&all));
    let worst = worst(&all);
    assert!(worst.contains("| `a-b` | `irq` | 6 of 19 | 6.1.json |"), "{worst}");
    assert!(worst.find("`irq`") < worst.find("`self`"), "{worst}");
    let by_recorder = by_recorder(&[(
        "6.1-perf.json".to_owned(),
        TruthSystem { through: "perf".to_owned(), ..all[0].1.clone() },
    )]);
    assert!(by_recorder.ends_with("| `a-b` | – | 12 of 19 | – |\n"), "{by_recorder}");
    let sentence = sentence(&all);
    assert!(sentence.contains("1 kinds") && sentence.contains("12 of 19"), "{sentence}");
}
