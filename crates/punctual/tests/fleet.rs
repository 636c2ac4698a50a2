//! `punctual export --format parquet-tables`, read by the real DuckDB and Polars: the queries of
//! docs/reference/fleet.md work as printed.

use crate::common::{Place, text};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A copy of a fixture as a run of this machine, day and kernel.
fn copy(place: &Place, fixture: &str, name: &str, machine: &str, day: u32, kernel: &str) {
    let from = repository().join("fixtures/bundles").join(fixture);
    let to = place.path().join("results").join(name);
    copy_directory(&from, &to);
    let path = to.join("bundle.json");
    let mut manifest: Value =
        serde_json::from_slice(&fs::read(&path).expect("bundle.json")).expect("JSON");
    manifest["created"] = json!(format!("2026-11-{day}T10:00:00Z"));
    manifest["machine"] = json!(machine);
    fs::write(&path, manifest.to_string()).expect("written");
    let environment = json!({ "kernel": { "release": { "known": kernel } } });
    fs::write(to.join("environment.json"), environment.to_string()).expect("written");
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("created");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_directory(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("copied")),
        }
    }
}

/// Whether python3 has a module; prints the missing one if not.
fn has_module(test: &str, name: &str) -> bool {
    let found = Command::new("python3").args(["-c", &format!("import {name}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        println!("SKIPPED: {test} lacks {name} (pip)");
    }
    found
}

/// The lines of JSON that a script prints.
fn python(place: &Place, script: &str, input: &Value) -> Vec<Value> {
    place.write("input", input.to_string().as_bytes());
    let output = Command::new("python3")
        .args(["-c", script])
        .current_dir(place.path())
        .stdin(fs::File::open(place.path().join("input")).expect("the input"))
        .stderr(Stdio::piped())
        .output()
        .expect("python3");
    assert!(output.status.success(), "{}", text(&output));
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

const DUCKDB: &str = "
import duckdb, json, sys
for query in json.load(sys.stdin):
    answer = duckdb.sql(query)
    print(json.dumps([dict(zip(answer.columns, row)) for row in answer.fetchall()], default=str))
";

const POLARS: &str = "
import polars as pl, json
worst = pl.scan_parquet('fleet/causes/**/*.parquet', hive_partitioning=True)
worst = worst.filter(pl.col('source') == 'worst').group_by('kernel').agg(pl.col('max_ns').max())
for row in worst.sort('kernel').collect().to_dicts():
    print(json.dumps(row))
";

fn exported(place: &Place) -> String {
    let ran = place.punctual(&["export", "results", "--format", "parquet-tables", "-o", "fleet"]);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    text(&ran)
}

#[test]
fn fleet_tables_are_readable_by_duckdb_and_polars() {
    let place = Place::with("");
    for (number, kernel) in ["6.1-rt", "6.12-rt"].iter().enumerate() {
        let machine = format!("board{number}");
        copy(&place, "explained", &format!("a{number}"), &machine, 20, kernel);
        copy(&place, "good", &format!("b{number}"), &machine, 21, kernel);
    }
    copy(&place, "lossy", "c", "board1", 21, "6.12-rt");
    copy(&place, "cut-off", "d", "board1", 21, "6.12-rt");
    let first = exported(&place);
    assert!(first.starts_with("5 runs added") && first.contains("1 no recorded end"), "{first}");
    // Existing runs are not added again; new ones are.
    assert!(exported(&place).starts_with("0 runs added to fleet; 5 there already"));
    copy(&place, "good", "e", "board 3/..", 22, "6.1-rt");
    assert!(exported(&place).starts_with("1 run added to fleet; 5 there already"));
    assert!(place.path().join("fleet/runs/day=2026-11-22/machine=board_3_..").is_dir());

    let document =
        fs::read_to_string(repository().join("docs/reference/fleet.md")).expect("the document");
    let part = document.split("### Every sample of a bundle").next().expect("the first part");
    let queries: Vec<&str> =
        part.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(queries.len(), 5);
    if has_module("the queries of a fleet", "duckdb") {
        let answers = python(&place, DUCKDB, &json!(queries));
        let worst = &answers[0];
        assert_eq!(worst.as_array().map(Vec::len), Some(2), "{worst}");
        assert_eq!(worst[0]["cause"], "timer-irq-delay", "{worst}");
        // The sums of each machine and day, from the bundles themselves.
        let summary = |name: &str| -> Value {
            let shown = place.punctual(&["show", "--json", &format!("results/{name}")]);
            serde_json::from_slice(&shown.stdout).expect("JSON")
        };
        let sum = |name: &str, key: &str| -> u64 {
            let summary = summary(name);
            let phases = summary["phases"].as_array().expect("phases").iter();
            let series = phases.flat_map(|phase| phase["series"].as_array().expect("series"));
            series.filter_map(|series| series[key].as_u64()).sum()
        };
        let rows = answers[1].as_array().expect("rows");
        let row = rows.iter().find(|row| row["machine"] == "board1" && row["day"] == "2026-11-21");
        let row = row.expect("the day of two bundles");
        for key in ["overruns", "lost"] {
            assert_eq!(row[key].as_u64(), Some(sum("b1", key) + sum("c", key)), "{row}");
        }
        assert_eq!(row["samples"].as_u64(), Some(sum("b1", "count") + sum("c", "count")));
        let lossy = |row: &&Value| row["verdict"] == "not-met";
        assert_eq!(answers[4].as_array().expect("rows").iter().filter(lossy).count(), 1);
        assert!(answers[3][0]["us"].as_f64() >= answers[3][9]["us"].as_f64());
        let large = sum("b0", "count") + sum("b1", "count") + sum("e", "count") >= 10_000;
        assert_eq!(answers[2].as_array().map(Vec::len), Some(usize::from(large)), "{}", answers[2]);
        if has_module("the same by Polars", "polars") {
            let rows = python(&place, POLARS, &json!(null));
            let max = |kernel: &str| {
                let row = worst.as_array()?.iter().find(|row| row["kernel"] == kernel)?;
                row["max_us"].as_f64()
            };
            for row in &rows {
                let kernel = row["kernel"].as_str().expect("a kernel");
                assert_eq!(row["max_ns"].as_f64().map(|ns| ns / 1000.0), max(kernel), "{row}");
            }
            assert_eq!(rows.len(), 2);
        }
    }
    let wrong = place.punctual(&["export", "results", "--format", "parquet-tables"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    let nothing =
        place.punctual(&["export", "fleet/runs", "--format", "parquet-tables", "-o", "x"]);
    assert!(text(&nothing).contains("there is no bundle in"), "{}", text(&nothing));
}

/// The figures of compare and of a lab's report match those of the bundles.
#[test]
fn compare_and_lab_report_give_the_same_figures_from_fleet_tables() {
    let place = Place::with("");
    let lab = json!({
        "schema": "punctual-lab/1", "punctual": "0.1.0", "name": "grid", "created":
        "2026-11-21T10:00:00Z", "finished": true, "axes": [], "seeds": [1, 2], "repeat": 1,
        "requirements": [], "limits": [], "published": [], "cells": [], "verdict": null,
    });
    for (name, fixture, kernel) in [
        ("grid/cells/quiet/s1-r1", "good", "6.1-rt"),
        ("grid/cells/quiet/s2-r1", "good", "6.1-rt"),
        ("grid/cells/busy/s1-r1", "lossy", "6.12-rt"),
    ] {
        copy(&place, fixture, name, "board1", 21, kernel);
    }
    fs::write(place.path().join("results/grid/lab.json"), lab.to_string()).expect("written");
    // With another experiment, so that it is another run.
    copy(&place, "good", "other", "board2", 22, "6.12-rt");
    exported(&place);

    let ran = place.punctual(&["lab", "report", "--tables", "fleet", "grid", "--json"]);
    // A requirement of the run with lost samples was not met: the tables contain that.
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran));
    let document: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!(document["verdict"], "not-met", "{document}");
    let shown = |name: &str| -> Value {
        let shown = place.punctual(&["show", "--json", &format!("results/{name}")]);
        serde_json::from_slice(&shown.stdout).expect("JSON")
    };
    let cells = document["cells"].as_array().expect("cells");
    let names: Vec<&str> = cells.iter().filter_map(|cell| cell["name"].as_str()).collect();
    assert_eq!(names.len(), 2, "{document}");
    let busy = cells.iter().find(|cell| cell["name"] == "busy").expect("a cell");
    let own = &shown("grid/cells/busy/s1-r1")["phases"][0]["series"][0];
    let figures = &busy["series"][0];
    for key in ["series", "count", "lost", "overruns", "min", "median", "max", "percentiles"] {
        let expected = if key == "series" { &own["name"] } else { &own[key] };
        assert_eq!(&figures[key], expected, "{key}: {figures}");
    }
    let difference = figures["mean"].as_f64().expect("a mean") - own["mean"].as_f64().expect("one");
    assert!(difference.abs() < 1.0, "{difference}");
    assert!(document["limits"][0].as_str().is_some_and(|limit| limit.contains("from tables")));
    let page = fs::read_to_string(place.path().join("grid.html")).expect("a page");
    assert!(page.contains("quiet") && page.contains("These figures are from tables"));

    let compare = |arguments: &[&str]| -> Value {
        let ran = place.punctual(&[&["compare", "--json"], arguments].concat());
        assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran));
        serde_json::from_slice(&ran.stdout).expect("JSON")
    };
    let of_tables = compare(&["--tables", "fleet", "machine=board2", "kernel=6.1-rt,cell=quiet"]);
    let of_bundles = compare(&["results/other", "results/grid/cells/quiet/s1-r1"]);
    let series = |of: &Value| of["series"].as_array().expect("series").clone();
    assert_eq!(series(&of_tables).len(), series(&of_bundles).len());
    for (one, other) in series(&of_tables).iter().zip(&series(&of_bundles)) {
        assert_eq!(one["series"], other["series"]);
        assert_eq!(one["basis"], "unknown", "single samples are not in the tables: {one}");
        for side in ["a", "b"] {
            for key in ["runs", "count", "lost", "overruns"] {
                assert_eq!(one[side][key], other[side][key], "{one}");
            }
        }
        let max = |of: &Value| -> Vec<Value> {
            let metrics = of["metrics"].as_array().expect("metrics").iter();
            let max = metrics.filter(|metric| metric["metric"] == "max");
            max.map(|metric| json!([metric["a"], metric["b"], metric["difference"]])).collect()
        };
        assert_eq!(max(one), max(other));
    }
    let wrong = place.punctual(&["compare", "--tables", "fleet", "kernle=6.1", "day=2026-11-21"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
    assert!(text(&wrong).contains("no column `kernle`"), "{}", text(&wrong));
}
