//! `punctual run --baseline` and `punctual trend`, on histories of records.

use crate::common::{Place, text};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A complete record of a run this many days after the first of October.
fn record(day: u32, p99: f64, kernel: &str) -> Value {
    let created = format!("2026-{:02}-{:02}T08:00:00Z", 10 + day / 30, 1 + day % 30);
    let figure = |name: &str, value: f64, is_time: bool| {
        let is_main = name == "p99";
        json!({"name": format!("main/servo {name}"), "value": value, "is_time": is_time,
               "is_main": is_main})
    };
    json!({
        "schema": "punctual-baseline/1", "created": created, "machine": "A CPU, 4 CPUs",
        "experiment": "gate", "digest": "d", "kernel": "6.12 PREEMPT_RT",
        "commit": format!("c{day}"), "verdict": "met", "environment": {"kernel": kernel},
        "figures": [
            figure("median", 5_000.0 + f64::from(day % 7), true),
            figure("p99", p99, true),
            figure("missed periods", 0.0, false),
        ],
    })
}

/// Thirty runs of about 40 µs, then eight of about 60 µs with another kernel.
fn history(place: &Path) {
    let place = place.join("history/gate/machine/kernel");
    std::fs::create_dir_all(&place).unwrap();
    for day in 0..38 {
        let spread = f64::from(day * 17 % 31) * 100.0;
        let (p99, kernel) = if day < 30 { (40_000.0, "6.12.1") } else { (60_000.0, "6.12.9") };
        let record = record(day, p99 + spread, kernel).to_string();
        std::fs::write(place.join(format!("{day:02}.json")), record).unwrap();
    }
}

#[test]
fn a_history_shows_when_a_figure_changed_and_what_changed_with_it() {
    let place = Place::with("");
    history(place.path());
    let shown = place.punctual(&["trend", "history"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    insta::assert_snapshot!(String::from_utf8_lossy(&shown.stdout));
    let json = place.punctual(&["trend", "history", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["schema"], "punctual-trend/1");
    let one = &json["histories"][0];
    assert_eq!(one["held"]["runs"], 37);
    let [worse] = &one["held"]["worse"].as_array().unwrap()[..] else { panic!("{one:#}") };
    assert_eq!((&worse["figure"], &worse["runs"]), (&json!("main/servo p99"), &json!(8)));
    assert_eq!(one["figures"][1]["levels"].as_array().unwrap().len(), 2);
    assert_eq!(one["figures"][0]["levels"].as_array().unwrap().len(), 1, "{one:#}");
}

#[test]
fn a_history_is_exported_as_page_and_metrics() {
    let place = Place::with("");
    history(place.path());
    let shown = place.line("trend history --report t.html --metrics t.prom --json");
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    let page = std::fs::read_to_string(place.path().join("t.html")).unwrap();
    assert!(!page.contains("<script") && page.len() < 100_000, "{}", page.len());
    let before = |a: &str, b: &str| page.find(a).expect(a) < page.find(b).expect(b);
    // The answer, then the changed figure, then the others and the table.
    assert!(before("WORSE since the run of 2026-11-01", "servo p99: ×1.47"));
    assert!(before("servo p99: ×1.47", "servo median"));
    assert!(page.contains("commit: c29 -&gt; c30; kernel: 6.12.1 -&gt; 6.12.9"), "{page}");
    assert_eq!(page.matches("class=\"change\"").count(), 1);
    let metrics = std::fs::read_to_string(place.path().join("t.prom")).unwrap();
    let samples = crate::openmetrics::read(&metrics).unwrap_or_else(|why| panic!("{why}"));
    let of = |name: &str, figure: &str| {
        let all = samples[name].iter();
        let found = all.filter(|one| one.labels.get("figure").is_none_or(|of| of == figure));
        found.map(|one| one.value).collect::<Vec<f64>>()
    };
    assert_eq!(of("punctual_trend_worse", "main/servo p99"), [1.0]);
    assert_eq!(of("punctual_trend_worse", "main/servo median"), [0.0]);
    assert_eq!(of("punctual_trend_runs", ""), [38.0]);
    // The last run's spread is 37 * 17 % 31 = 9, of 100 ns each.
    assert_eq!(of("punctual_trend_value_seconds", "main/servo p99"), [60.9e-6]);
    assert_eq!(of("punctual_trend_value", "main/servo missed periods"), [0.0]);
    let bad = place.punctual(&["trend", "history", "--report", "no/such/t.html"]);
    assert_eq!(bad.status.code(), Some(2), "{}", text(&bad));
}

#[test]
fn since_and_accepted_runs_limit_a_history() {
    let place = Place::with("");
    history(place.path());
    // All of it is older than a day, if this runs after 2026; otherwise a part is shown.
    let since = place.punctual(&["trend", "history", "--since", "1d", "--json"]);
    let json: Value = serde_json::from_slice(&since.stdout).expect("JSON");
    let runs = json["histories"][0]["runs"].as_array().map_or(0, Vec::len);
    assert!(runs < 38, "{json:#}");
    let accepted = place.punctual(&["trend", "history", "--accept"]);
    assert_eq!(accepted.status.code(), Some(0), "{}", text(&accepted));
    let json = place.punctual(&["trend", "history", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let held = &json["histories"][0]["held"];
    assert_eq!((&held["runs"], &held["worse"]), (&json!(0), &json!([])), "{held:#}");
}

/// The proposed lines are requirements of the experiment that they are put into.
#[test]
fn proposed_bounds_can_be_put_into_the_experiment() {
    let file = "# a gate\n[[measure]]\nname = \"servo\"\nkind = \"timer\"\nduration = \"1s\"\n\
                require = [\"p99 < 1us\", \"max < 1ms\"]\n";
    let place = Place::with(file);
    history(place.path());
    let shown = place.line("trend history --propose");
    let out = String::from_utf8_lossy(&shown.stdout).into_owned();
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = out.lines().find(|line| line.trim().starts_with("require = "));
    let line = line.unwrap_or_else(|| panic!("{out}")).trim();
    let table: toml::Table = line.parse().unwrap_or_else(|why| panic!("{line}: {why}"));
    let stated: Vec<&str> =
        table["require"].as_array().unwrap().iter().filter_map(|one| one.as_str()).collect();
    assert_eq!(stated, ["p50 < 5.01us", "p99 < 43.1us", "skipped <= 0"]);
    for one in stated {
        one.parse::<punctual_core::SeriesRequirement>().unwrap_or_else(|why| panic!("{why}"));
    }
    // p99 is worse now: the 30 runs before bear the bound.
    let all = one_line(&out);
    assert!(all.contains("in 31 runs like the 30 before it became worse"), "{out}");
    assert!(all.contains("in 39 runs like these 38"), "{out}");
    let rare = one_line(&text(&place.line("trend history --propose --false-alarms 1/1000")));
    assert!(rare.contains("30 runs cannot bear 1 in 1,000; 999 can"), "{rare}");
    let name = "experiment.toml";
    // Through a link; the mode stays, and so does a neighbour.
    let (target, neighbour) = (place.path().join(name), place.path().join("experiment.toml.new"));
    std::os::unix::fs::symlink(&target, place.path().join("link.toml")).unwrap();
    std::fs::set_permissions(&target, PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::write(&neighbour, "mine").unwrap();
    let files = || std::fs::read_dir(place.path()).unwrap().count();
    let before = files();
    let written = place.punctual(&["trend", "history", "--propose", "--write", "link.toml"]);
    assert!(place.path().join("link.toml").is_symlink());
    assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!((std::fs::read_to_string(&neighbour).unwrap().as_str(), files()), ("mine", before));
    assert_eq!(written.status.code(), Some(0), "{}", text(&written));
    let now = std::fs::read_to_string(place.path().join(name)).unwrap();
    let require = "[\"max < 1ms\", \"p50 < 5.01us\", \"p99 < 43.1us\", \"skipped <= 0\"]";
    assert_eq!(now, file.replace("[\"p99 < 1us\", \"max < 1ms\"]", require));
    let plan = place.punctual(&["run", name, "--plan"]);
    assert!(text(&plan).contains("max < 1ms, p50 < 5010ns, p99 < 43100ns, skipped <= 0"));
}

#[test]
fn missing_and_empty_histories_are_reported() {
    let place = Place::with("");
    let missing = place.punctual(&["trend", "nowhere"]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing));
    assert!(text(&missing).contains("nowhere is not a directory"), "{}", text(&missing));
    let empty = place.punctual(&["trend", "."]);
    assert_eq!(empty.status.code(), Some(0), "{}", text(&empty));
    assert!(text(&empty).contains("no runs are kept in ."), "{}", text(&empty));
    let inside = place.path().join("a/b/c");
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(inside.join("x.json"), "{\"schema\": 3}").unwrap();
    let left_out = place.punctual(&["trend", "."]);
    assert!(text(&left_out).contains("1 record left out"), "{}", text(&left_out));
}

/// 17 good runs, then 46 times as long: terminal and page are not green at any later run, and a
/// former time of 0 has a difference.
#[test]
fn terminal_and_page_agree_on_the_verdict_of_a_history() {
    let place = Place::with("");
    let kept = place.path().join("history/gate/machine/kernel");
    std::fs::create_dir_all(&kept).unwrap();
    for day in 0..29 {
        let factor = if day < 17 { 1.0 } else { 46.0 };
        let spread = f64::from(day * 17 % 31) * 100.0;
        let mut record = record(day, (40_000.0 + spread) * factor, "6.12.1");
        record["figures"][0]["value"] = if day < 17 { 0.0 } else { 9_000.0 }.into();
        std::fs::write(kept.join(format!("{day:02}.json")), record.to_string()).unwrap();
        if day < 21 || day % 4 > 0 {
            continue;
        }
        let shown = place.punctual(&["trend", "history", "--report", "t.html"]);
        let text = text(&shown);
        assert!(text.contains("WORSE since the run of 2026-10-18"), "{day}: {text}");
        assert!(text.contains("+9.00 µs") && !text.contains("NaN"), "{day}: {text}");
        let page = std::fs::read_to_string(place.path().join("t.html")).unwrap();
        assert!(page.contains("banner bad") && !page.contains("banner good"), "{day}");
        assert!(page.contains("×46") && !page.contains("NaN"), "{day}");
    }
}
