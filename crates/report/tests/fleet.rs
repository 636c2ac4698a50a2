//! docs/reference/fleet.md and docs/where-it-runs.md are tested: DuckDB answers the printed
//! queries, and each row of the table names an existing test.

use punctual_bundle::Bundle;
use punctual_report::export::{Format, export_bundle};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(name: &str) -> String {
    fs::read_to_string(repository().join("docs").join(name)).expect("a document")
}

/// Prints the answer of each query as a line of JSON.
const ASK: &str = "
import duckdb, json, sys
for query in json.load(sys.stdin):
    answer = duckdb.sql(query)
    print(json.dumps([dict(zip(answer.columns, row)) for row in answer.fetchall()], default=str))
";

#[test]
fn duckdb_answers_the_queries_as_printed() {
    let found = Command::new("python3").args(["-c", "import duckdb"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        return println!("SKIPPED: duckdb_answers_the_queries_as_printed lacks duckdb (pip)");
    }
    let text = document("reference/fleet.md");
    let (_, text) = text.split_once("### Every sample of a bundle").expect("that part");
    let queries: Vec<&str> =
        text.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(queries.len(), 4);
    let place = tempfile::tempdir().expect("a directory");
    let mut samples = Vec::new();
    for (machine, name) in [("one", "good"), ("two", "lossy")] {
        let bundle =
            Bundle::open(&repository().join("fixtures/bundles").join(name)).expect("a bundle");
        let directory = place.path().join(format!("samples/day=2026-11-23/machine={machine}"));
        fs::create_dir_all(&directory).expect("created");
        let mut bytes = Vec::new();
        export_bundle(&bundle, Format::Parquet, &mut bytes).expect("exported");
        fs::write(directory.join(format!("{name}.parquet")), bytes).expect("written");
        let kept =
            bundle.all_series().flat_map(|(_, series)| series.load_log().expect("a log").samples);
        samples.push(kept.map(|sample| sample.latency().ns()).collect::<Vec<i64>>());
    }
    let input = place.path().join("queries");
    fs::write(&input, serde_json::to_vec(&queries).expect("JSON")).expect("written");
    let output = Command::new("python3")
        .args(["-c", ASK])
        .current_dir(place.path())
        .stdin(fs::File::open(&input).expect("the queries"))
        .output()
        .expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<serde_json::Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let worst = samples.iter().flatten().max().copied().expect("samples");
    assert_eq!(answers[0][0]["max_us"].as_f64(), Some(worst as f64 / 1000.0));
    for (number, machine) in ["one", "two"].iter().enumerate() {
        let row = &answers[1][number];
        assert_eq!(
            (&row["machine"], &row["samples"]),
            (&(*machine).into(), &samples[number].len().into())
        );
        assert_eq!(row["p999_us"].is_null(), samples[number].len() < 10_000, "{row}");
        let bins = answers[2].as_array().expect("rows").iter();
        let of_machine = bins.filter(|row| row["machine"] == *machine);
        let counted: u64 = of_machine.filter_map(|row| row["samples"].as_u64()).sum();
        assert_eq!(counted, samples[number].len() as u64);
    }
    // The second machine's bundle has losses.
    assert_eq!(answers[3][0]["machine"], "two");
    assert!(answers[3][0]["missing"].as_i64().is_some_and(|missing| missing > 0), "{}", answers[3]);
}

#[test]
fn each_row_of_the_support_table_names_an_existing_test() {
    let text = document("where-it-runs.md");
    let rows: Vec<&str> =
        text.lines().filter(|line| line.starts_with("| ") && line.contains("crates/")).collect();
    assert!(rows.len() > 10);
    for row in rows {
        let test = row.split('`').rev().nth(1).expect("a test");
        let (file, name) = test.split_once("::").unwrap_or((test, ""));
        let source = fs::read_to_string(repository().join(file)).unwrap_or_default();
        assert!(source.contains("#[test]"), "{file} has no test");
        assert!(source.contains(&format!("fn {name}")), "{test} is not there");
    }
}
