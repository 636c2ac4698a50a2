//! The files for pipelines: scripts run as in a runner, and each ends with the run's exit code.

use crate::packaged::{lacks, program, python_with, repository, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Prints the script at a path of a YAML file.
const READ_SCRIPT: &str = "
import sys, yaml
found = yaml.safe_load(open(sys.argv[1]))
for key in sys.argv[2:]:
    found = found[int(key) if key.isdigit() else key]
sys.stdout.write(found)
";

/// The possible ends of a run: met; not met; refused; too few samples to decide.
const EXPERIMENTS: [(&str, i32); 4] = [
    ("require = [\"min < 100s\"]", 0),
    ("require = [\"min < 1ns\"]", 3),
    ("require = [\"mni < 1ns\"]", 2),
    ("require = [\"p99.999 < 100s\"]", 4),
];

struct Runner {
    directory: tempfile::TempDir,
    script: String,
}

impl Runner {
    /// The script of a file in `packaging/`; `None` if Python cannot read YAML.
    fn new(test: &str, file: &str, path: &[&str]) -> Option<Runner> {
        if lacks(test, &["bash"]) {
            return None;
        }
        let script = run(Command::new(python_with(test, &["yaml"])?)
            .args(["-c", READ_SCRIPT])
            .arg(repository().join("packaging").join(file))
            .args(path));
        Some(Runner { directory: tempfile::tempdir().expect("a directory"), script })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Runs the script for an experiment; returns its exit code. Earlier files are removed.
    fn run(&self, requirement: &str, shell: &[&str]) -> i32 {
        self.run_with(requirement, shell, "")
    }

    /// The same with a directory of earlier runs, outside of the runner's own.
    fn run_with(&self, requirement: &str, shell: &[&str], baseline: &str) -> i32 {
        for entry in fs::read_dir(self.directory.path()).expect("ours") {
            let path = entry.expect("ours").path();
            let gone =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            gone.expect("removed");
        }
        let experiment = format!(
            "[experiment]\nname = \"gate\"\n[[measure]]\nkind = \"timer\"\ncpus = \
             \"0\"\nperiod = \"10ms\"\n{requirement}\n[[phase]]\nname = \"short\"\nduration = \
             \"400ms\"\n"
        );
        fs::write(self.path("latency.toml"), experiment).expect("written");
        let case = "#!/bin/sh\necho \"$@\" >>cases\n";
        fs::write(self.path("lava-test-case"), case).expect("written");
        run(Command::new("chmod").arg("755").arg(self.path("lava-test-case")));
        let paths = std::env::var("PATH").unwrap_or_default();
        let here = self.directory.path();
        let output = Command::new(shell[0])
            .args(&shell[1..])
            .arg(&self.script)
            .current_dir(here)
            .env("PATH", format!("{}:{paths}", here.display()))
            .env("PUNCTUAL", program())
            .env("EXPERIMENT", "latency.toml")
            .env("OUTPUT", "the result")
            .env("TARGET", "")
            .env("BASELINE", baseline)
            .env_remove("GITHUB_SHA")
            .env("CI_COMMIT_SHA", "c31")
            .env("GITHUB_OUTPUT", self.path("outputs"))
            .env("GITHUB_STEP_SUMMARY", self.path("summary"))
            .output()
            .expect("a shell");
        for part in [&output.stdout, &output.stderr] {
            print!("{}", String::from_utf8_lossy(part));
        }
        output.status.code().expect("an exit code")
    }
}

/// GitHub's command for `shell: bash`, and GitLab's for its scripts.
const BASH: [&str; 6] = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"];

#[test]
fn the_action_ends_with_the_exit_code_of_the_run() {
    let test = "the_action_ends_with_the_exit_code_of_the_run";
    let path = ["runs", "steps", "1", "run"];
    let Some(runner) = Runner::new(test, "github/action.yml", &path) else { return };
    for (requirement, code) in EXPERIMENTS {
        assert_eq!(runner.run(requirement, &BASH), code, "{requirement}");
        assert_eq!(runner.text("outputs"), format!("exit-code={code}\n"));
        let is_measured = code != 2;
        assert_eq!(runner.path("the result.html").exists(), is_measured, "{requirement}");
        assert_eq!(runner.text("the result.xml").contains("<testcase"), is_measured);
        assert_eq!(runner.text("summary").contains("short"), is_measured);
    }
}

/// Fourteen runs that this machine might have made; then one much worse than all of them, twice.
#[test]
fn a_regression_fails_each_template_and_is_its_first_line() {
    let test = "a_regression_fails_each_template_and_is_its_first_line";
    let templates: [(&str, &[&str], &str, [&str; 2]); 3] = [
        ("github/action.yml", &["runs", "steps", "1", "run"], "summary", ["0", "3"]),
        ("gitlab.yml", &[".punctual", "script", "0"], "the result.md", ["0", "3"]),
        ("lava.yaml", &["run", "steps", "0"], "cases", ["0", "0"]),
    ];
    for (file, path, summary, codes) in templates {
        let Some(runner) = Runner::new(test, file, path) else { return };
        let history = tempfile::tempdir().expect("a directory");
        let baseline = history.path().display().to_string();
        let run = |requirement: &str| runner.run_with(requirement, &BASH, &baseline).to_string();
        // The first run makes the place and the form of the records; the others are copies of it.
        assert_eq!(run("require = [\"min < 100s\"]"), "0", "{file}");
        let first = records(history.path());
        let [first] = &first[..] else { panic!("{first:?}") };
        let text = fs::read_to_string(first).expect("a record");
        let mut record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        for number in 0..14_u32 {
            // All figures an hour: what this machine measures is below them; then a nanosecond.
            for figure in record["figures"].as_array_mut().expect("figures") {
                let spread = f64::from(number * 17 % 31);
                let is_time = figure["is_time"] == true;
                figure["value"] = if is_time { 3.6e12 + spread } else { 1e9 }.into();
            }
            record["created"] = format!("2020-01-{:02}T08:00:00Z", number + 1).into();
            record["commit"] = format!("c{number}").into();
            let copy = first.with_file_name(format!("{number:02}.json"));
            fs::write(copy, record.to_string()).expect("written");
        }
        fs::remove_file(first).expect("ours");
        assert_eq!(run("require = [\"min < 100s\"]"), codes[0], "{file}");
        let line = |text: &str| {
            let bold = text.lines().find(|line| line.starts_with("**"));
            bold.map(str::to_owned).unwrap_or_default()
        };
        if summary != "cases" {
            let good = line(&runner.text(summary));
            assert!(good.starts_with("**no regression: "), "{file}: {good}");
        }
        // The same history with figures that no run can be below.
        for place in records(history.path()) {
            let text = fs::read_to_string(&place).expect("a record");
            let mut record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            for figure in record["figures"].as_array_mut().expect("figures") {
                let is_time = figure["is_time"] == true;
                figure["value"] = if is_time { 1.0 } else { 0.0 }.into();
            }
            fs::write(place, record.to_string()).expect("written");
        }
        for _ in 0..3 {
            run("require = [\"min < 100s\"]");
        }
        assert_eq!(run("require = [\"min < 100s\"]"), codes[1], "{file}");
        if summary == "cases" {
            let cases = runner.text("cases");
            assert!(cases.contains("baseline") && cases.contains("--result fail"), "{cases}");
        } else {
            let bad = line(&runner.text(summary));
            assert!(bad.starts_with("**regression: "), "{file}: {bad}");
            assert!(bad.contains(" since c31 (p ") && bad.contains(", not noise"), "{bad}");
        }
    }
}

/// The records below a directory.
fn records(directory: &Path) -> Vec<PathBuf> {
    let inside = fs::read_dir(directory).expect("ours").map(|entry| entry.expect("ours").path());
    inside.flat_map(|path| if path.is_dir() { records(&path) } else { vec![path] }).collect()
}

#[test]
fn the_lava_definition_makes_a_case_of_each_requirement() {
    let test = "the_lava_definition_makes_a_case_of_each_requirement";
    let Some(runner) = Runner::new(test, "lava.yaml", &["run", "steps", "0"]) else { return };
    let shell = ["sh", "-e", "-c"];
    assert_eq!(runner.run(EXPERIMENTS[0].0, &shell), 0);
    let cases = runner.text("cases");
    let lines: Vec<&str> = cases.lines().collect();
    assert_eq!(lines.len(), 2, "{cases}");
    assert!(lines[0].starts_with("short-timer-cpu0-min-lt-100s --result pass --measurement "));
    assert!(lines[0].ends_with(" --units us"), "{cases}");
    assert_eq!(lines[1], "punctual-run --result pass");

    assert_eq!(runner.run(EXPERIMENTS[1].0, &shell), 0);
    assert!(runner.text("cases").starts_with("short-timer-cpu0-min-lt-1ns --result fail"));
    assert!(runner.text("cases").ends_with("punctual-run --result pass\n"));

    assert_eq!(runner.run(EXPERIMENTS[2].0, &shell), 0);
    assert_eq!(runner.text("cases"), "punctual-run --result fail\n");

    assert_eq!(runner.run(EXPERIMENTS[3].0, &shell), 0);
    let cases = runner.text("cases");
    assert!(cases.contains(" --result unknown\npunctual-run --result fail\n"), "{cases}");
}
