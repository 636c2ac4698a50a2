//! The command line: help, man pages, completions, pipes, every bundle command on every fixture.

mod documents;
mod limits;
mod members;
mod users;

use crate::common::{self, Place, has_program, punctual, text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Every subcommand, with those below it.
const COMMANDS: [&str; 54] = [
    "",
    "demo",
    "new",
    "run",
    "show",
    "watch",
    "report",
    "compare",
    "names",
    "lab",
    "lab run",
    "lab cell",
    "lab replay",
    "lab report",
    "lab restore",
    "pairs",
    "occupancy",
    "steps",
    "trend",
    "explain",
    "export",
    "sections",
    "tune",
    "tune report",
    "import",
    "trace",
    "recipe",
    "probe",
    "count",
    "attach",
    "measure",
    "check",
    "isolate",
    "isolate create",
    "isolate undo",
    "isolate status",
    "isolate list",
    "isolate run",
    "isolate move",
    "isolate tweaks",
    "isolate unit",
    "cpus",
    "boot",
    "boot status",
    "boot once",
    "boot verify",
    "boot restore",
    "ssh",
    "ssh list",
    "ssh fetch",
    "ssh clean",
    "convert",
    "completions",
    "man",
];

fn ask(line: &str, last: &str) -> Output {
    punctual()
        .args(line.split_whitespace())
        .arg(last)
        .stdin(Stdio::null())
        .output()
        .expect("punctual starts")
}

/// oslat without -f: time-sharing, as requested, without advice to become root.
#[test]
fn an_import_without_requested_policy_is_not_reported_as_not_real_time() {
    let place = Place::with("");
    let oslat = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../bundle/src/import/testdata/rt-tests-2.6/oslat.txt");
    let done = place.punctual(&["import", oslat.to_str().unwrap(), "-o", "bundle"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done));
    let summary = place.summary();
    let ids: Vec<_> = summary["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert!(ids.contains(&"time-sharing") && !ids.contains(&"not-real-time"), "{ids:?}");
}

/// The contradictions counted by `occupancy` are shown with every output of the recording.
#[test]
fn contradictions_of_a_recording_are_in_every_output() {
    let recorded = fixtures().into_iter().find(|path| path.ends_with("recorded")).unwrap();
    let json = |arguments: &[&str]| -> serde_json::Value {
        let output =
            punctual().args(arguments).arg(&recorded).stdin(Stdio::null()).output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", text(&output)))
    };
    let counted = json(&["occupancy", "--json"])["contradictions"].as_u64().unwrap();
    assert!(counted > 0, "this recording began in the midst of things");
    let summary = json(&["show", "--json"]);
    assert_eq!(summary["recording"]["contradictions"], counted);
    let findings = summary["recording"]["findings"].as_array().unwrap();
    let said = findings.iter().find(|finding| finding["id"] == "events-contradict");
    let said = said.unwrap_or_else(|| panic!("no finding: {findings:?}"));
    assert!(said["evidence"].as_str().unwrap().starts_with(&format!("{counted} of ")), "{said}");
    let shown = text(&punctual().arg("show").arg(&recorded).output().unwrap());
    assert!(
        shown.contains(&format!("{counted} of ")) && shown.contains("contradict earlier"),
        "{shown}"
    );
    let place = Place::with("");
    let page = place.path().join("page.html");
    let report =
        punctual().arg("report").arg(&recorded).arg("--output").arg(&page).output().unwrap();
    assert!(report.status.success(), "{}", text(&report));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("vents contradict earlier"), "the page says nothing of it");
    assert!(page.contains(&format!("{counted} of ")), "nor how many");
}

#[test]
fn sets_of_cpus_are_converted_and_combined() {
    let said = |words: &str| text(&ask(&format!("cpus {words}"), "0xf0"));
    assert_eq!(said(""), "list   4-7\nmask   f0\ncount  4\n");
    assert_eq!(said("--print mask 0-31 xor"), "ffffff0f\n");
    let json: serde_json::Value = serde_json::from_str(&said("--json 0-5 and")).unwrap();
    assert_eq!(json, serde_json::json!({"list": "4-5", "mask": "30", "count": 2}));
    let wrong = ask("cpus 0-5 und", "0xf0");
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    assert!(text(&wrong).contains("`und` is no operator"), "{}", text(&wrong));
}

#[test]
fn every_subcommand_explains_itself_with_an_example() {
    let mut listed = 0;
    for command in COMMANDS {
        let help = ask(command, "--help");
        let help = String::from_utf8(help.stdout).unwrap();
        assert!(help.contains("\nExample"), "{command}: {help}");
        assert!(help.contains(format!("punctual {command}").trim_end()), "{command}: {help}");
        assert!(!help.contains('\u{1b}'), "no colours into a pipe");
        // All commands of the help are known here.
        let commands = help
            .split_once("\nCommands:\n")
            .map(|(_, rest)| rest.split("\n\n").next().unwrap_or_default());
        for line in commands
            .unwrap_or_default()
            .lines()
            .filter(|line| line.starts_with("  ") && !line.starts_with("    "))
        {
            let name = format!("{command} {}", line.split_whitespace().next().unwrap());
            assert!(COMMANDS.contains(&name.trim()), "{name} is not tested");
            listed += 1;
        }
    }
    assert_eq!(listed, COMMANDS.len() - 1);
}

#[test]
fn misspelled_commands_and_options_are_refused_with_a_suggestion() {
    for (line, word) in [("chek", "check"), ("run --jsn x", "--json"), ("isolate creat", "create")]
    {
        let answer = ask(line, "--");
        assert_eq!(answer.status.code(), Some(2), "{}", text(&answer));
        assert!(text(&answer).contains(word), "{}", text(&answer));
    }
    assert_eq!(
        punctual().stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().code(),
        Some(2)
    );
    let version = ask("", "--version");
    assert!(
        version.status.success() && text(&version).starts_with("punctual "),
        "{}",
        text(&version)
    );
}

#[test]
fn the_man_pages_are_sound() {
    let place = Place::with("");
    let written = place.punctual(&["man", "pages"]);
    assert_eq!(written.status.code(), Some(0), "{}", text(&written));
    let pages = |section: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(place.path().join("pages").join(section)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let mut expected: Vec<String> = COMMANDS
        .iter()
        .map(|name| format!("punctual {name}").trim_end().replace(' ', "-") + ".1")
        .collect();
    let mut found: Vec<String> = pages("man1")
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    if !has_program("man", "man-db") || !has_program("groff", "groff") {
        return;
    }
    for page in pages("man1").into_iter().chain(pages("man5")) {
        let mut man = Command::new("man");
        // As man(1) and lintian: all warnings, a width, a locale with the characters.
        man.args(["--warnings", "--encoding=utf8", "--local-file"]).arg(&page);
        let shown = man
            .env("LC_ALL", "C.UTF-8")
            .env("MANWIDTH", "80")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(
            shown.status.success() && shown.stderr.is_empty(),
            "{}: {}",
            page.display(),
            String::from_utf8_lossy(&shown.stderr)
        );
        assert!(!shown.stdout.is_empty());
    }
}

#[test]
fn shell_completions_are_generated_and_work_in_bash() {
    for shell in ["bash", "zsh", "fish"] {
        let script = ask("completions", shell);
        assert_eq!(script.status.code(), Some(0), "{}", text(&script));
        let words = ["isolate", "no-replug", "cyclictest-json"];
        assert!(
            words.iter().all(|word| text(&script).contains(word)),
            "{shell}: {}",
            text(&script)
        );
    }
    assert_eq!(ask("completions", "command.com").status.code(), Some(2));
    if has_program("bash", "bash") {
        let script = "source /dev/stdin <<<\"$1\" && COMP_WORDS=(punctual isolate cr) \
                      COMP_CWORD=2 && _punctual punctual cr isolate && echo ${COMPREPLY[*]}";
        let completed = Command::new("bash")
            .args(["-c", script, "bash", &text(&ask("completions", "bash"))])
            .output()
            .unwrap();
        assert_eq!(text(&completed).trim(), "create");
    }
}

fn fixtures() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bundles");
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    assert!(all.len() >= 5, "{all:?}");
    all
}

/// The formats that `export --help` lists, and whether they are binary.
fn formats() -> Vec<String> {
    let help = text(&ask("export", "--help"));
    let names = help.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split_once(':'));
    let names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
    assert!(names.len() >= 10, "{help}");
    names
}

/// Characters harmful to a terminal: controls except line ends, and those that reorder text.
fn harmful(text: &str) -> Option<char> {
    text.chars().find(|c| {
        c.is_control() && *c != '\n'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

#[test]
fn every_fixture_is_shown_without_a_control_character() {
    for bundle in fixtures() {
        let name = bundle.display().to_string();
        let shown = ask("show", &name);
        assert_eq!(shown.status.code(), Some(0), "{name}: {}", text(&shown));
        assert_eq!(harmful(&text(&shown)), None, "{name}");
        let json = ask("show --json", &name);
        assert_eq!(json.status.code(), Some(0), "{name}: {}", text(&json));
        assert_eq!(harmful(&text(&json)), None, "{name}");
        let summary: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        assert_eq!(summary["schema"], "punctual-summary/2");
    }
    // Several at once.
    let all = punctual().arg("show").args(fixtures()).output().unwrap();
    assert_eq!(all.status.code(), Some(0));
}

#[test]
fn every_fixture_is_explained_or_refused_with_the_reason() {
    let mut sources = BTreeSet::new();
    for bundle in fixtures() {
        let name = bundle.display().to_string();
        let json = ask("explain --json", &name);
        if json.status.code() == Some(0) {
            let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
            let samples = document["samples"].as_array().unwrap();
            for sample in samples {
                let parts = sample["parts"].as_array().unwrap().iter();
                let sum: i64 = parts.map(|part| part["ns"].as_i64().unwrap()).sum();
                assert_eq!(Some(sum), sample["latency_ns"].as_i64(), "{name}: {sample}");
            }
            if !samples.is_empty() {
                sources.insert(document["source"].as_str().unwrap().to_owned());
            }
        } else {
            assert_eq!(json.status.code(), Some(2), "{name}: {}", text(&json));
            for words in ["no events that explain samples", "punctual run --explain"] {
                assert!(text(&json).contains(words), "{name}: {}", text(&json));
            }
        }
        let shown = ask("explain", &name);
        assert_eq!(shown.status.code(), json.status.code(), "{name}: {}", text(&shown));
        let shown = text(&ask("show", &name)).contains("worst samples explained");
        assert_eq!(shown, bundle.ends_with("explained"), "{name}");
    }
    assert!(sources.contains("windows"), "{sources:?}");
}

#[test]
fn intervals_and_occupancy_of_every_recorded_fixture_are_shown() {
    for bundle in fixtures() {
        let name = bundle.display().to_string();
        for line in ["pairs", "pairs --json", "pairs --calls", "occupancy", "occupancy --json"] {
            let described = ask(line, &name);
            let none =
                described.status.code() == Some(2) && text(&described).contains("no recording");
            assert!(
                none || described.status.code() == Some(0),
                "{line} {name}: {}",
                text(&described)
            );
            assert_eq!(harmful(&text(&described)), None, "{line} {name}");
        }
    }
}

#[test]
fn any_two_fixtures_can_be_compared() {
    let place = Place::with("");
    let all: Vec<String> = fixtures().iter().map(|path| path.display().to_string()).collect();
    for one in &all {
        for other in &all {
            let compared = place.punctual(&["compare", one, other, "--report", "c.html"]);
            let (code, said) = (compared.status.code(), text(&compared));
            assert!(
                code == Some(0) || code == Some(2) && said.contains("has a partner"),
                "{one} {other}: {said}"
            );
            assert_eq!(harmful(&said), None, "{one} {other}");
            let html = std::fs::read_to_string(place.path().join("c.html")).unwrap_or_default();
            assert!(!html.contains("<script") && !html.contains("<td></svg>"), "{one} {other}");
        }
    }
}

#[test]
fn every_fixture_is_watched_without_a_control_character() {
    for bundle in fixtures() {
        let name = bundle.display().to_string();
        let watched = ask("watch --once", &name);
        assert_eq!(watched.status.code(), Some(0), "{name}: {}", text(&watched));
        assert_eq!(harmful(&text(&watched)), None, "{name}");
    }
}

#[test]
fn the_report_shows_the_verdicts_of_limits() {
    let place = Place::with("");
    let recorded = fixtures().into_iter().find(|path| path.ends_with("recorded")).unwrap();
    let recorded = recorded.to_str().unwrap();
    let report = |bundle: &str, limit: &str| {
        place.punctual(&["report", bundle, "-o", "report.html", "--limit", limit])
    };
    let done = report(recorded, "sched_waking->sched_switch < 1ns");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done));
    let html = std::fs::read_to_string(place.path().join("report.html")).unwrap();
    assert!(html.contains("&lt; 1ns: violated "), "the violation is not reported");
    for (bundle, limit, why) in [
        (recorded, "nonsense < 1ms", "`nonsense` is not a test point"),
        (&recorded.replace("recorded", "good"), "a->b < 1ms", "none of these bundles has one"),
    ] {
        let refused = report(bundle, limit);
        let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && complaint.contains(why), "{complaint}");
    }
}

#[test]
fn every_fixture_is_exported_in_every_format() {
    let place = Place::with("");
    for bundle in fixtures() {
        let name = bundle.display().to_string();
        let report = place.punctual(&["report", &name, "-o", "report.html"]);
        assert_eq!(report.status.code(), Some(0), "{name}: {}", text(&report));
        let html = std::fs::read_to_string(place.path().join("report.html")).unwrap();
        assert!(html.starts_with("<!DOCTYPE html>") && !html.contains("<script>alert"), "{name}");
        assert_eq!(harmful(&html.replace('\t', "")), None, "{name}");
        for format in formats() {
            let exported =
                punctual().args(["export", &name, "--format", &format]).output().unwrap();
            let complaint = String::from_utf8_lossy(&exported.stderr).into_owned();
            match exported.status.code() {
                Some(0) => assert_eq!(complaint, "", "{name} {format}"),
                // Data missing in a bundle cannot be written; the message lists possible formats.
                Some(1 | 2) => assert!(
                    [
                        "no samples were kept",
                        "no recording",
                        "a directory of tables",
                        "no stacks of a program",
                    ]
                    .iter()
                    .any(|why| complaint.contains(why))
                        && exported.stdout.is_empty(),
                    "{name} {format}: {complaint}"
                ),
                _ => panic!("{name} {format}: {:?} {complaint}", exported.status),
            }
            assert_eq!(harmful(&complaint), None);
        }
    }
    let all = punctual().arg("report").args(fixtures()).args(["-o", "-"]).output().unwrap();
    assert_eq!(all.status.code(), Some(0));
}

/// `… | head -1`: the reader closes the pipe after a line, or before the first.
#[test]
fn a_closed_pipe_is_an_ordinary_end() {
    let good =
        fixtures().into_iter().find(|path| path.ends_with("good")).unwrap().display().to_string();
    let commands = [
        vec!["show", &good],
        vec!["show", "--json", &good],
        vec!["report", &good, "-o", "-"],
        vec!["export", &good, "--format", "csv"],
        vec!["export", &good, "--format", "json"],
        vec!["check"],
        vec!["check", "--json"],
        vec!["check", "--explain", "rt-throttling"],
        vec!["isolate", "tweaks"],
        vec!["isolate", "list"],
        vec!["completions", "bash"],
        vec!["--help"],
        vec!["--version"],
    ];
    for arguments in commands {
        for reader in ["head -1", "true"] {
            let script = format!("set -o pipefail; \"$@\" | {reader} >/dev/null");
            let mut shell = Command::new("bash");
            shell.args(["-c", &script, "bash", env!("CARGO_BIN_EXE_punctual")]).args(&arguments);
            // As from a shell: Rust's test runner already ignores SIGPIPE.
            let ended = shell.output().unwrap();
            assert_eq!(text(&ended), "", "{arguments:?} | {reader}");
            assert_eq!(ended.status.code(), Some(0), "{arguments:?} | {reader}");
        }
    }
}

/// `… >&-`: the runtime replaces it by /dev/null, where every answer would be silently lost.
#[test]
fn a_closed_standard_output_is_an_error() {
    let good =
        fixtures().into_iter().find(|path| path.ends_with("good")).unwrap().display().to_string();
    for arguments in [
        vec!["show", &good],
        vec!["show", "--json", &good],
        vec!["report", &good, "-o", "-"],
        vec!["export", &good, "--format", "csv"],
        vec!["check", "--json"],
    ] {
        let mut shell = Command::new("sh");
        shell.args(["-c", "\"$@\" >&-", "sh", env!("CARGO_BIN_EXE_punctual")]).args(&arguments);
        let ended = shell.output().unwrap();
        let said = text(&ended);
        assert!(said.contains("cannot write the output: Bad file descriptor"), "{said}");
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {said}");
    }
}

/// Every kind that `punctual measure` knows.
fn kinds() -> Vec<String> {
    let help = text(&ask("measure", "--help"));
    let kinds = help
        .split_once("\nKinds:\n")
        .expect("a list of kinds")
        .1
        .split("\n\n")
        .next()
        .unwrap_or_default();
    kinds.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

#[test]
fn a_new_experiment_of_every_kind_is_valid_with_and_without_defaults() {
    if !has_program("stress-ng", "stress-ng") {
        return;
    }
    let place = Place::with("");
    let kinds = kinds();
    assert!(kinds.len() >= 10, "{kinds:?}");
    for kind in kinds {
        let file = format!("{kind}.toml");
        let written = place.punctual(&["new", &file, "--kind", &kind, "--require", "max < 10s"]);
        assert_eq!(written.status.code(), Some(0), "{}", text(&written));
        let experiment = std::fs::read_to_string(place.path().join(&file)).unwrap();
        let plan = |file: &str| place.punctual(&["run", "--plan", file, "--output", "bundle"]);
        let short = plan(&file);
        assert_eq!(short.status.code(), Some(0), "{kind}: {}{experiment}", text(&short));
        // The values stated as defaults are the defaults.
        let is_key = |line: &str| line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        let with_keys = experiment
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|rest| is_key(rest)).unwrap_or(line));
        let with_keys: Vec<&str> = with_keys.collect();
        assert!(
            with_keys.len() > 10 && with_keys.iter().any(|line| line.starts_with("policy = ")),
            "{experiment}"
        );
        place.write(&file, with_keys.join("\n").as_bytes());
        let long = plan(&file);
        assert_eq!(text(&long), text(&short), "{kind}: {}", with_keys.join("\n"));
    }
}

#[test]
fn new_overwrites_no_file_and_omits_loads_that_are_not_installed() {
    let place = Place::with("mine");
    let refused = place.punctual(&["new"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("experiment.toml exists already"), "{}", text(&refused));
    assert_eq!(std::fs::read(place.path().join("experiment.toml")).unwrap(), b"mine");

    let wrong = place.punctual(&["new", "other.toml", "--duration", "long"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    assert!(!place.path().join("other.toml").exists());

    let bare = |arguments: &[&str]| {
        let mut command = punctual();
        command
            .args(arguments)
            .current_dir(place.path())
            .env("PATH", "/nowhere")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let written = bare(&["new", "-"]);
    place.write("bare.toml", &written.stdout);
    let plan = bare(&["run", "--plan", "bare.toml"]);
    assert_eq!(plan.status.code(), Some(0), "{}{}", text(&plan), text(&written));
    assert!(text(&written).contains("# stress-ng is not installed"), "{}", text(&written));
}

/// clap would propose `-- -p`, and treat it as the name of a bundle.
#[test]
fn an_unknown_option_gets_no_wrong_tip() {
    let place = Place::with("");
    for line in [["show", "-p"], ["run", "-y"], ["trace", "-w"]] {
        let refused = place.punctual(&line);
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert!(!text(&refused).contains("as a value"), "{}", text(&refused));
    }
}

#[test]
fn a_synopsis_names_options_with_their_values() {
    let place = Place::with("");
    assert_eq!(place.punctual(&["man", "share"]).status.code(), Some(0));
    let page = std::fs::read_to_string(place.path().join("share/man1/punctual-report.1")).unwrap();
    let synopsis = page.split_once(".SH SYNOPSIS\n").unwrap().1.lines().next().unwrap();
    assert!(synopsis.contains(r"[\fB\-\-output\fR \fIFILE\fR]"), "{synopsis}");
    assert!(synopsis.contains(r"\fIBUNDLE\fR..."), "{synopsis}");
}

#[test]
fn several_bundles_are_drawn_into_one_picture() {
    let all = fixtures();
    let of =
        |name: &str| all.iter().find(|path| path.ends_with(name)).unwrap().display().to_string();
    let drawn = ask(&format!("export --format gnuplot {}", of("good")), &of("lossy"));
    assert_eq!(drawn.status.code(), Some(0), "{}", text(&drawn));
    assert!(
        text(&drawn).contains("'good: ") && text(&drawn).contains("'lossy: "),
        "{}",
        text(&drawn)
    );
    let refused = ask(&format!("export --format csv {}", of("good")), &of("lossy"));
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for entry in std::fs::read_dir(&docs).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(document) = std::fs::read_to_string(&entry) else { continue };
        for link in document.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let is_ours = !link.is_empty() && !link.contains("://");
            assert!(!is_ours || docs.join(link).exists(), "{}: {link}", entry.display());
        }
    }
}
