//! `--metrics`: a strict parser accepts its output, which agrees with the summary.

use super::openmetrics::{Samples, read};
use super::{CYCLES, OWN, attached, compiled, figure, measure, series};
use crate::common::{Place, eventually, punctual, text};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

fn read_file(path: &Path) -> Samples {
    let text = std::fs::read_to_string(path).unwrap();
    read(&text).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// The one sample of this name with this label.
fn value(samples: &Samples, name: &str, label: (&str, &str)) -> f64 {
    let all = samples.get(name).unwrap_or_else(|| panic!("no {name}"));
    let mut found =
        all.iter().filter(|one| one.labels.get(label.0).map(String::as_str) == Some(label.1));
    let (one, more) = (found.next(), found.next());
    assert!(more.is_none(), "{name} {label:?} twice");
    one.unwrap_or_else(|| panic!("no {name} of {label:?}: {all:?}")).value
}

#[test]
fn the_last_version_has_the_figures_of_the_summary() {
    let Some(place) = compiled() else { return };
    let more = ["--metrics", "loop.prom", "--deadline", "1h"];
    let output = attached(&place, &more, &["./periodic", "lock", CYCLES, "0"]);
    assert_eq!(output.status.code(), OWN, "{}", text(&output));
    let (samples, summary) = (read_file(&place.path().join("loop.prom")), place.summary());
    let of = |name: &str| value(&samples, name, ("thread", "periodic"));
    for (metric, name) in [
        ("punctual_response_time", "periodic/response"),
        ("punctual_wakeup_latency", "periodic/wakeup"),
    ] {
        let figures = series(&summary, name);
        let number = |key: &str| figures[key].as_f64().unwrap();
        assert_eq!(of(&format!("{metric}_seconds_count")), number("count"), "{figures:#}");
        assert_eq!(of(&format!("{metric}_worst_seconds")), number("max") / 1e9, "{figures:#}");
        let mean = of(&format!("{metric}_seconds_sum")) / number("count") * 1e9;
        assert!((mean - number("mean")).abs() < 1.0, "{mean}: {figures:#}");
    }
    let periodic = measure(&summary, "periodic");
    assert_eq!(
        of("punctual_cycles_total"),
        series(&summary, "periodic/response")["count"].as_f64().unwrap()
    );
    assert_eq!(of("punctual_skipped_releases_total"), figure(periodic, "skipped-releases"));
    assert_eq!(of("punctual_overruns_total"), figure(periodic, "overruns"));
    assert_eq!(of("punctual_deadlines_missed_total"), 0.0);
    assert_eq!(value(&samples, "punctual_records_lost_total", ("program", "periodic")), 0.0);
    let causes = samples["punctual_response_cause_seconds_total"].iter();
    let causes = causes.filter(|one| one.labels["thread"] == "periodic");
    let sum: f64 = causes.clone().map(|one| one.value).sum();
    assert!((sum - of("punctual_response_time_seconds_sum")).abs() < 1e-9, "{sum}");
    let lock = causes.clone().find(|one| one.labels["cause"] == "lock");
    assert!(lock.is_some_and(|lock| lock.value > 0.0), "{lock:?}");
}

#[test]
fn the_metrics_file_exists_from_the_start_to_the_end() {
    from_the_beginning("1000", false);
}

/// A later version follows after 15 s.
#[test]
#[ignore = "takes long; ./x test --all"]
fn the_metrics_file_is_complete_at_any_time() {
    from_the_beginning("9000", true);
}

fn from_the_beginning(all: &str, renewed: bool) {
    let Some(place) = compiled() else { return };
    let file = place.path().join("loop.prom");
    // A program's name is any bytes.
    let name = "a \"b\\c";
    std::fs::rename(place.path().join("periodic"), place.path().join(name)).unwrap();
    let command = format!("{}/{name}", place.path().display());
    let mut attach = punctual()
        .args(["attach", "--quiet", "-o", "bundle", "--metrics", "loop.prom", "--", &command])
        .args(["absolute", all, "0"])
        .current_dir(place.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the first version", || file.exists());
    let cycles = |samples: &Samples| {
        samples.get("punctual_cycles_total").and_then(|all| all.first()).map(|one| one.value)
    };
    if renewed {
        eventually("a later version", || cycles(&read_file(&file)).is_some());
    }
    let meanwhile = read_file(&file);
    assert!(attach.try_wait().unwrap().is_none(), "it went on");
    assert_eq!(attach.wait().unwrap().code(), OWN);
    let last = read_file(&file);
    let labels = &last["punctual_cycles_total"][0].labels;
    assert_eq!((labels["program"].as_str(), labels["thread"].as_str()), (name, name));
    assert!(cycles(&last) > cycles(&meanwhile));
    let left = std::fs::read_dir(place.path()).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".loop"));
    assert_eq!(left.count(), 0);
}

/// A tmpfs, unmounted on drop.
struct Small(Place);

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path().join("small")).output();
    }
}

#[test]
fn an_unwritable_metrics_file_is_a_finding() {
    let Some(place) = compiled() else { return };
    let small = Small(place);
    let place = &small.0;
    let finding = |path: &str| -> Value {
        let _ = std::fs::remove_dir_all(place.bundle());
        let output = attached(place, &["--metrics", path], &["./periodic", "absolute", "200"]);
        assert_eq!(output.status.code(), OWN, "the command's own: {}", text(&output));
        let summary = place.summary();
        assert!(series(&summary, "periodic/response")["count"].as_u64().unwrap() > 100);
        let findings = summary["findings"].as_array().unwrap();
        let found = findings.iter().find(|one| one["id"] == "metrics-not-written");
        found.cloned().unwrap_or_else(|| panic!("{findings:#?}"))
    };
    let missing = finding("none/loop.prom");
    assert!(missing["evidence"].as_str().unwrap().contains("No such file"), "{missing:#}");
    let at = place.path().join("small");
    std::fs::create_dir(&at).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=8k", "tmpfs"]).arg(&at);
    if !mount.status().is_ok_and(|status| status.success()) {
        return println!("SKIPPED: lacks the right to mount a tmpfs");
    }
    // The file system is full now.
    let _ = std::fs::write(at.join("full"), [0; 16 << 10]);
    let full = finding("small/loop.prom");
    assert!(full["evidence"].as_str().unwrap().contains("No space"), "{full:#}");
    assert_eq!(std::fs::read_dir(&at).unwrap().count(), 1, "left behind");
}
