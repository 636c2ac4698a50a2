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
pub fn machine() -> Value {
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
pub fn results(directory: &Path, results: &Value) -> Result<(), String> {
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
    for (ending, content) in [("json", json), ("md", table(results))] {
        let path = directory.join(format!("{stem}.{ending}"));
        std::fs::write(&path, content)
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Every comparison with all its rounds.
fn table(results: &Value) -> String {
    let mut text = format!("# Side by side\n\n`{}`\n", results["machine"]);
    for part in ["one_millisecond", "twenty_microseconds", "loaded"] {
        let Some(rows) = results[part].as_array() else { continue };
        text += &format!(
            "\n## {}\n\n| | unit | punctual | cyclictest | ratio | rounds of punctual | rounds of \
             cyclictest |\n|---|---|---|---|---|---|---|\n",
            part.replace('_', " ")
        );
        for row in rows {
            let number =
                |key: &str| row[key].as_f64().map_or("–".to_owned(), |n| format!("{n:.3}"));
            let rounds = |key: &str| {
                let all = row[key].as_array().into_iter().flatten().filter_map(Value::as_f64);
                all.map(|n| format!("{n:.2}")).collect::<Vec<_>>().join(" ")
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
    }
    if results["cost_of_the_loop"].is_array() {
        text += "\n## cost of an empty sample (ns)\n\n| method | minimum | median | p99 \
                 |\n|---|---|---|---|\n";
    }
    for row in results["cost_of_the_loop"].as_array().into_iter().flatten() {
        text += &format!(
            "| {} | {} | {} | {} |\n",
            row["method"].as_str().unwrap_or_default(),
            row["min_ns"],
            row["median_ns"],
            row["p99_ns"]
        );
    }
    text += &recording(&results["recording"]);
    text += &disturbance(&results["disturbance"]);
    let beside = "disturbance of an independent thread, switched on and off beside it";
    text += &disturbance_beside(beside, &results["disturbance_beside"]);
    let attached = "disturbance of a program that is attached to";
    text += &disturbance_beside(attached, &results["disturbance_attached"]);
    text += &disturbance_rt(&results["disturbance_rt"]);
    text += &syscall(&results["syscall"]);
    text += &heap(&results["heap"]);
    text += &points(&results["points"]);
    text += &build(&results["build"]);
    for part in ["scale", "fleet"] {
        if !results[part].is_null() {
            text += &format!("\n## {part}\n\n`{}`\n", results[part]);
        }
    }
    text
}

/// The cost of building, and the largest parts of each program.
fn build(results: &Value) -> String {
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

/// The system call compared with a bare loop.
fn syscall(results: &Value) -> String {
    results.as_array().map_or(String::new(), |rows| bare("getpid", rows))
}

/// Memory from the heap compared with a bare loop.
fn heap(results: &Value) -> String {
    let sizes = results.as_array().into_iter().flatten();
    sizes
        .map(|size| {
            bare(
                &format!("malloc, touch and free of {} B", size["size"]),
                size["rows"].as_array().map_or(&[], Vec::as_slice),
            )
        })
        .collect()
}

/// A table of figures compared with a bare loop.
fn bare(what: &str, rows: &[Value]) -> String {
    let mut text = format!(
        "\n## {what} beside a bare loop in C (ns)\n\n| | punctual | bare | ratio \
         |\n|---|---|---|---|\n"
    );
    for row in rows {
        let [ours, theirs] = ["median_punctual", "median_bare"].map(|key| cell(&row[key]));
        let ratio = row["ratio_of_medians"]
            .as_f64()
            .map_or("–".to_owned(), |ratio| format!("{ratio:.4}"));
        text += &format!(
            "| {} | {ours} | {theirs} | {ratio} |\n",
            row["name"].as_str().unwrap_or_default()
        );
    }
    text
}

/// Timer latency while data is kept to explain it.
fn disturbance(results: &Value) -> String {
    let Some(rows) = results.as_array() else { return String::new() };
    let mut text = "\n## disturbance of timer latency\n\n| way | p50, µs | added | ratio | p99.9, \
                    µs | added | ratio |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let cells = [
            "median_p50_us",
            "added_p50_us",
            "ratio_p50",
            "median_p99_9_us",
            "added_p99_9_us",
            "ratio_p99_9",
        ];
        let cells: Vec<String> = cells.iter().map(|key| cell(&row[*key])).collect();
        text +=
            &format!("| {} | {} |\n", row["name"].as_str().unwrap_or_default(), cells.join(" | "));
    }
    text
}

/// The same for an independent process beside which it is enabled and disabled.
fn disturbance_beside(title: &str, results: &Value) -> String {
    let Some(rows) = results.as_array() else { return String::new() };
    let mut text = format!(
        "\n## {title}\n\nAdded, µs, with 95 % of resampled turns.\n\n| way | turns | p50 | p90 | \
         p99 | p99.9 |\n|---|---|---|---|---|---|\n"
    );
    for row in rows {
        let cells = ["added_p50_us", "added_p90_us", "added_p99_us", "added_p99_9_us"].map(|key| {
            let [value, low, high] = [0, 1, 2].map(|place| cell(&row[key][place]));
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

/// The same in a guest with a real-time kernel, in virtual time.
fn disturbance_rt(results: &Value) -> String {
    let mut text = String::new();
    for table in results["tables"].as_array().into_iter().flatten() {
        let view = match table["view"].as_str() {
            Some("own") => {
                "each instrument's own samples, added against the same instrument with nothing kept"
            }
            _ => "an independent thread while the tool is at work, added against nobody at work",
        };
        text += &format!(
            "\n## disturbance in a real-time guest, {}: {view}\n\nKernel {}, virtual time (1 \
             instruction = 8 ns, 1 CPU), {} seeds of {} s; medians, and the range of the \
             seeds.\n\n",
            cell(&table["load"]),
            cell(&results["kernel"]),
            results["seeds"],
            results["seconds"]
        );
        text += "| way | p50, µs | added | of the seeds | p99.9, µs | added | of the seeds | \
                 samples | missed |\n|---|---|---|---|---|---|---|---|---|\n";
        for row in table["rows"].as_array().into_iter().flatten() {
            let range = |key: &str| {
                let values = || row[key].as_array().into_iter().flatten().filter_map(Value::as_f64);
                format!(
                    "{:.2} … {:.2}",
                    values().fold(f64::NAN, f64::min),
                    values().fold(f64::NAN, f64::max)
                )
            };
            let [p50, added50, p999, added999, samples, missed] = [
                "median_p50_us",
                "median_added_p50_us",
                "median_p99_9_us",
                "median_added_p99_9_us",
                "samples",
                "missed",
            ]
            .map(|key| cell(&row[key]));
            let name = row["name"].as_str().unwrap_or_default();
            let [range50, range999] = [range("added_p50_us"), range("added_p99_9_us")];
            text += &format!(
                "| {name} | {p50} | {added50} | {range50} | {p999} | {added999} | {range999} | \
                 {samples} | {missed} |\n"
            );
        }
    }
    text
}

/// Recorders of scheduling events.
fn recording(results: &Value) -> String {
    if results.is_null() {
        return String::new();
    }
    let mut text = "\n## recording scheduling events\n\n| recorder | slowdown, % | rounds | lost \
                    |\n|---|---|---|---|\n"
        .to_owned();
    for row in results["recorders"].as_array().into_iter().flatten() {
        let all = |key: &str| {
            row[key].as_array().into_iter().flatten().map(cell).collect::<Vec<_>>().join(" ")
        };
        let (name, median) =
            (row["name"].as_str().unwrap_or_default(), cell(&row["median_slowdown_percent"]));
        text += &format!("| {name} | {median} | {} | {} |\n", all("slowdown_percent"), all("lost"));
    }
    text += "\n| reading | events | s | events a second |\n|---|---|---|---|\n";
    for (name, row) in results["reading"].as_object().into_iter().flatten() {
        let [events, seconds, rate] =
            ["events", "seconds", "events_per_second"].map(|key| cell(&row[key]));
        text += &format!("| {name} | {events} | {seconds} | {rate} |\n");
    }
    text
}

/// Ways to leave a record.
fn points(results: &Value) -> String {
    if results.is_null() {
        return String::new();
    }
    let mut text =
        "\n## what a record costs\n\n| way | ns | test points |\n|---|---|---|\n".to_owned();
    for (name, row) in results.as_object().into_iter().flatten() {
        text += &format!(
            "| {name} | {} | {} |\n",
            cell(&row["median_ns"]),
            cell(&row["per_test_point"])
        );
    }
    text
}

/// A number with its significant digits.
fn cell(value: &Value) -> String {
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
        let text = super::table(&json!({ "machine": null, "build": [build] }));
        assert!(text.contains("| demo | 210 | 132 | 103 | 38.80 |\n"), "{text}");
        assert!(text.contains("of `demo` by sections, MB of 38.80:\n\n- .text: 20.00\n"), "{text}");
        assert!(text.contains("by crates, MB of 38.80:\n\n- core: 5.00\n"), "{text}");
        // Parts that were not requested have not even a title.
        assert!(!text.contains("## scale") && !text.contains("## cost"), "{text}");
    }

    #[test]
    fn file_names_are_plain() {
        assert_eq!(super::file_name("Intel(R) Xeon(R) @ 2.0"), "intel-r-xeon-r-2-0");
    }
}
