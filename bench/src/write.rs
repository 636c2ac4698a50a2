//! Results on disk: by machine and commit, as JSON with every round and as a readable table.

use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

fn line_of(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim_start_matches([' ', '\t', ':']).trim().to_owned())
}

fn version_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The properties of the machine that affect the figures. No host name.
pub fn describe_machine() -> Value {
    let guest = line_of("/proc/cpuinfo", "flags")
        .map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    json!({
        "cpu": line_of("/proc/cpuinfo", "model name"),
        "cpus": std::thread::available_parallelism().map(usize::from).ok(),
        "virtual_machine": guest,
        "commit": version_of("git", &["rev-parse", "--short", "HEAD"]),
        "cyclictest": version_of("dpkg-query", &["-W", "-f", "${Version}", "rt-tests"]),
    })
}

/// Only letters, digits and dashes.
fn file_name(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    plain.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Writes both files.
pub fn write_results(directory: &Path, results: &Value) -> Result<(), String> {
    let machine = &results["machine"];
    let text = |key: &str| machine[key].as_str().unwrap_or("unknown").to_owned();
    let guest = if machine["virtual_machine"].as_bool() == Some(true) { "-guest" } else { "" };
    let stem = format!(
        "{}-{}cpu{guest}-{}",
        file_name(&text("cpu")),
        machine["cpus"],
        file_name(&text("commit"))
    );
    std::fs::create_dir_all(directory)
        .map_err(|e| format!("cannot create {}: {e}", directory.display()))?;
    let json = serde_json::to_string_pretty(results).map_err(|e| e.to_string())?;
    for (ending, content) in [("json", json), ("md", format_results(results))] {
        let path = directory.join(format!("{stem}.{ending}"));
        std::fs::write(&path, content)
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Every comparison with all its rounds.
fn format_results(results: &Value) -> String {
    let mut text = format!("# Side by side\n\n`{}`\n", results["machine"]);
    text += &one_millisecond(&results["one_millisecond"]);
    text += &format_recorders(&results["recording"]);
    text += &disturbance_attached(&results["disturbance_attached"]);
    text += &format_points(&results["points"]);
    text += &format_builds(&results["build"]);
    text
}

/// The comparison with cyclictest.
fn one_millisecond(results: &Value) -> String {
    let Some(rows) = results.as_array() else { return String::new() };
    let mut text = "\n## one millisecond\n\n| | unit | punctual | cyclictest | ratio | rounds of \
                    punctual | rounds of cyclictest |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let number = |key: &str| row[key].as_f64().map_or("–".to_owned(), |n| format!("{n:.3}"));
        let rounds = |key: &str| {
            let numbers = row[key].as_array().into_iter().flatten().filter_map(Value::as_f64);
            numbers.map(|n| format!("{n:.2}")).collect::<Vec<_>>().join(" ")
        };
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} |\n",
            row["name"].as_str().unwrap_or_default(),
            row["unit"].as_str().unwrap_or_default(),
            number("median_punctual"),
            number("median_cyclictest"),
            number("ratio_of_medians"),
            rounds("punctual"),
            rounds("cyclictest")
        );
    }
    text
}

/// The cost of building, and the largest parts of each program.
fn format_builds(results: &Value) -> String {
    let Some(builds) = results.as_array() else { return String::new() };
    let head = "\n## build\n\n| | s of CPU | s | crates | MB |\n|---|---|---|---|---|\n";
    let name = |part: &Value| part["name"].as_str().unwrap_or_default().to_owned();
    let mega = |part: &Value| {
        part["bytes"].as_f64().map_or("–".to_owned(), |n| format!("{:.2}", n / 1e6))
    };
    let rows = builds.iter().map(|one| {
        let seconds = |key: &str| one[key].as_f64().map_or("–".to_owned(), |n| format!("{n:.0}"));
        let (cpu, wall) = (seconds("cpu_seconds"), seconds("wall_seconds"));
        format!(
            "| {} | {cpu} | {wall} | {} | {} |\n",
            name(one),
            one["crates"],
            mega(&one["program"])
        )
    });
    let mut text = rows.fold(head.to_owned(), |text, row| text + &row);
    for one in builds {
        for of in ["sections", "crates"] {
            text += &format!(
                "\nThe program of `{}` by {of}, MB of {}:\n\n",
                name(one),
                mega(&one["program"])
            );
            let parts = one["program"][of].as_array().into_iter().flatten().take(12);
            text = parts
                .fold(text, |text, part| text + &format!("- {}: {}\n", name(part), mega(part)));
        }
    }
    text
}

/// Timer latency of a program to which each tool is attached and detached.
fn disturbance_attached(results: &Value) -> String {
    let Some(rows) = results.as_array() else { return String::new() };
    let mut text = "\n## disturbance of a program that is attached to\n\nAdded, µs, with 95 % of \
                    resampled turns.\n\n| way | turns | p50 | p90 | p99 | p99.9 \
                    |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let cells = ["added_p50_us", "added_p90_us", "added_p99_us", "added_p99_9_us"].map(|key| {
            let [value, low, high] = [0, 1, 2].map(|place| format_cell(&row[key][place]));
            format!("{value} ({low} to {high})")
        });
        text += &format!(
            "| {} | {} | {} |\n",
            row["name"].as_str().unwrap_or_default(),
            row["turns"],
            cells.join(" | ")
        );
    }
    text
}

/// Recorders of scheduling events.
fn format_recorders(results: &Value) -> String {
    if results.is_null() {
        return String::new();
    }
    let mut text = "\n## recording scheduling events\n\n| recorder | slowdown, % | rounds | lost \
                    |\n|---|---|---|---|\n"
        .to_owned();
    for row in results["recorders"].as_array().into_iter().flatten() {
        let joined_cells = |key: &str| {
            row[key].as_array().into_iter().flatten().map(format_cell).collect::<Vec<_>>().join(" ")
        };
        let (name, median) = (
            row["name"].as_str().unwrap_or_default(),
            format_cell(&row["median_slowdown_percent"]),
        );
        text += &format!(
            "| {name} | {median} | {} | {} |\n",
            joined_cells("slowdown_percent"),
            joined_cells("lost")
        );
    }
    text += "\n| reading | events | s | events a second |\n|---|---|---|---|\n";
    for (name, row) in results["reading"].as_object().into_iter().flatten() {
        let [events, seconds, rate] =
            ["events", "seconds", "events_per_second"].map(|key| format_cell(&row[key]));
        text += &format!("| {name} | {events} | {seconds} | {rate} |\n");
    }
    text
}

/// Ways to leave a record.
fn format_points(results: &Value) -> String {
    if results.is_null() {
        return String::new();
    }
    let mut text =
        "\n## what a record costs\n\n| way | ns | test points |\n|---|---|---|\n".to_owned();
    for (name, row) in results.as_object().into_iter().flatten() {
        text += &format!(
            "| {name} | {} | {} |\n",
            format_cell(&row["median_ns"]),
            format_cell(&row["per_test_point"])
        );
    }
    text
}

/// A number with its significant digits.
fn format_cell(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    value.as_u64().map_or_else(
        || value.as_f64().map_or("–".to_owned(), |n| format!("{n:.2}")),
        |n| n.to_string(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_build_is_a_row_and_its_programs_largest_parts() {
        let program = json!({
            "bytes": 38_800_000,
            "sections": [{ "name": ".text", "bytes": 20_000_000 }],
            "crates": [{ "name": "core", "bytes": 5_000_000 }],
        });
        let build = json!({
            "name": "demo", "cpu_seconds": 210.4, "wall_seconds": 132.0, "crates": 103,
            "program": program,
        });
        let text = super::format_results(&json!({ "machine": null, "build": [build] }));
        assert!(text.contains("| demo | 210 | 132 | 103 | 38.80 |\n"), "{text}");
        assert!(text.contains("of `demo` by sections, MB of 38.80:\n\n- .text: 20.00\n"), "{text}");
        assert!(text.contains("by crates, MB of 38.80:\n\n- core: 5.00\n"), "{text}");
        // Parts that were not requested have not even a title.
        assert!(!text.contains("## one") && !text.contains("## recording"), "{text}");
    }

    #[test]
    fn file_names_are_plain() {
        assert_eq!(super::file_name("Intel(R) Xeon(R) @ 2.0"), "intel-r-xeon-r-2-0");
    }
}
