//! The page of the peers: rewrites the table between two marks.

use serde_json::Value;
use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- From ./x bench --only peers --page docs/notes/peers.md. -->\n";
const END: &str = "<!-- The end of what is made by it. -->\n";

/// Inserts the results into the page.
pub fn write(path: &Path, machine: &Value, results: &Value) -> Result<(), String> {
    let failed = |why: std::io::Error| format!("{}: {why}", path.display());
    let text = fs::read_to_string(path).map_err(failed)?;
    let text = with_table(&text, &table(machine, results))
        .ok_or_else(|| format!("{} has not the marks of what is made", path.display()))?;
    fs::write(path, text).map_err(failed)
}

fn with_table(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}\n{END}{after}"))
}

/// A figure with its significant digits.
fn cell(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if number >= 1_000.0 => format!("{number:.0}"),
        Some(number) if number >= 100.0 => format!("{number:.1}"),
        Some(number) => format!("{number:.3}"),
        None => "–".to_owned(),
    }
}

fn table(machine: &Value, results: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let guest = match machine["virtual_machine"].as_bool() {
        Some(true) => ", a virtual machine",
        _ => "",
    };
    let mut page = format!(
        "{}, {} CPUs{guest}; commit {}; {} rounds each; load average {} before and {} after.\n\n\
         | figure | unit | punctual | the other | ratio | 95 % interval | other |\n\
         |---|---|---|---|---|---|---|\n",
        text(&machine["cpu"]),
        machine["cpus"],
        text(&machine["commit"]),
        results["rounds"],
        results["load"][0],
        results["load"][1],
    );
    for row in results["rows"].as_array().into_iter().flatten() {
        let [ours, other, ratio, low, high] =
            ["median_punctual", "median_other", "ratio", "low", "high"].map(|key| cell(&row[key]));
        page += &format!(
            "| {} | {} | {ours} | {other} | {ratio} | {low} to {high} | {} |\n",
            text(&row["figure"]),
            text(&row["unit"]),
            text(&row["peer"]),
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_stands_between_the_marks_is_written_anew() {
        let page = format!("# Title\n\n{BEGIN}old\n{END}\nThe end.\n");
        let row = json!({
            "peer": "oslat", "figure": "gaps", "unit": "1/s", "median_punctual": 1234.56,
            "median_other": 99.5, "ratio": 1.01, "low": null, "high": 1.2,
        });
        let machine = json!({"cpu": "A CPU", "cpus": 4, "virtual_machine": true, "commit": "abc"});
        let results = json!({"rounds": 15, "load": [0.5, 1], "rows": [row]});
        let made = with_table(&page, &table(&machine, &results)).expect("it has the marks");
        assert!(
            made.starts_with("# Title\n\n<!--") && made.ends_with("-->\n\nThe end.\n"),
            "{made}"
        );
        assert!(
            !made.contains("old") && made.contains("A CPU, 4 CPUs, a virtual machine"),
            "{made}"
        );
        let row = "| gaps | 1/s | 1235 | 99.500 | 1.010 | – to 1.200 | oslat |\n";
        assert!(made.contains(row), "{made}");
        assert_eq!(with_table("no marks", ""), None);
    }
}
