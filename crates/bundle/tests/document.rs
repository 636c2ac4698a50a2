//! Checks docs/reference/bundle.md: the decoders printed there read what punctual wrote.

use punctual_bundle::state::SeriesState;
use punctual_bundle::{Bundle, BundleWriter, Series};
use punctual_core::{ClockNs, Nanos, Sample};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program in the document that defines `function`, followed by a line that uses it.
fn program(function: &str, used: &str) -> String {
    let document = std::fs::read_to_string(root().join("docs/reference/bundle.md")).unwrap();
    let mut programs =
        document.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next());
    let code = programs.find(|code| code.contains(&format!("def {function}("))).unwrap();
    format!("{code}\n{used}")
}

/// The output of a program in the document; `None`, with a message, without Python.
fn printed(function: &str, used: &str) -> Option<String> {
    let Ok(output) = Command::new("python3").args(["-c", &program(function, used)]).output() else {
        println!("SKIPPED: python3 is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// A path as Python writes it.
fn quoted(path: &Path) -> String {
    format!("{:?}", path.display().to_string())
}

/// The same rows from punctual's own reader.
fn rows(series: &Series) -> String {
    let log = series.load_log().unwrap();
    let samples =
        log.samples.iter().map(|s| format!("{} {} {} {}\n", s.seq, s.due.ns(), s.woke.ns(), s.cpu));
    let windows = log.windows.iter().map(|w| {
        format!("{} {} {} {} {}\n", w.start.ns(), w.count, w.min.ns(), w.max.ns(), w.sum.ns())
    });
    samples.chain(windows).collect()
}

#[test]
fn the_decoder_of_the_document_reads_every_log() {
    for name in ["good", "cut-off", "lossy", "imported", "workloads"] {
        let directory = root().join("fixtures/bundles").join(name);
        let bundle = Bundle::open(&directory).unwrap();
        for (phase, in_phase) in bundle.phases.iter().enumerate() {
            for (index, series) in in_phase.series.iter().enumerate() {
                let log = directory.join(format!("phases/{phase:03}/{index:04}.log"));
                let used = format!(
                    "for part in read_log({}):\n    for row in part:\n        print(*row)\n",
                    quoted(&log)
                );
                let Some(printed) = printed("read_log", &used) else { return };
                assert!(printed == rows(series), "{} reads otherwise", log.display());
            }
        }
    }
}

/// Compares the state as JSON, as printed by Python and by punctual.
fn compare(checkpoint: &Path, state: &SeriesState) {
    let used = format!("import json\nprint(json.dumps(read_checkpoint({})))", quoted(checkpoint));
    let Some(printed) = printed("read_checkpoint", &used) else { return };
    let mut written = Vec::new();
    state.write(&mut written).unwrap();
    let (read, written): (Value, Value) =
        (serde_json::from_str(&printed).unwrap(), serde_json::from_slice(&written).unwrap());
    assert_eq!(read, written, "{}", checkpoint.display());
}

#[test]
fn the_decoder_of_the_document_reads_checkpoints() {
    let directory = root().join("fixtures/bundles/cut-off");
    let bundle = Bundle::open(&directory).unwrap();
    compare(&directory.join("phases/001/0000.checkpoint"), &bundle.phases[1].series[0].state);

    // With everything that a state can hold: the series of a whole run, saved as a checkpoint,
    // before and after they outgrow their slots.
    let place = tempfile::tempdir().unwrap();
    let lossy = Bundle::open(&root().join("fixtures/bundles/lossy")).unwrap();
    let writer = BundleWriter::create(&place.path().join("b"), "x", "run").unwrap();
    writer.write_phase(0, &lossy.phases[0].meta).unwrap();
    for (index, series) in lossy.phases[0].series.iter().enumerate() {
        let mut saved = writer.begin_series(0, index, &series.meta, 0).unwrap();
        let mut state = series.state.clone();
        saved.save_checkpoint(&state).unwrap();
        for k in 0..8_000 {
            let due = ClockNs(k * 1_000_000);
            state.data.record_sample(
                &Sample { seq: k as u64, due, woke: due + Nanos(k * 1_000), cpu: 1 },
                0,
            );
        }
        let path = writer.directory().join(format!("phases/000/{index:04}.checkpoint"));
        compare(&path, &series.state);
        saved.save_checkpoint(&state).unwrap();
        compare(&path, &state);
    }
}
