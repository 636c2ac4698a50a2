//! docs/bundle.md is true: the decoder that it prints reads what punctual wrote.

use punctual_bundle::{Bundle, Series};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program between the fences of the document, with a line that prints what it read.
fn program(log: &Path) -> String {
    let document = std::fs::read_to_string(root().join("docs/bundle.md")).unwrap();
    let code = document.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    format!(
        "{code}\nfor part in read_log({:?}):\n    for row in part:\n        print(*row)\n",
        log.display().to_string()
    )
}

/// The same rows from punctual's own reader.
fn rows(series: &Series) -> String {
    let log = series.log().unwrap();
    let samples = log.samples.iter().map(|s| format!("{} {} {} {}\n", s.seq, s.due.ns(), s.woke.ns(), s.cpu));
    let windows = log
        .windows
        .iter()
        .map(|w| format!("{} {} {} {} {}\n", w.start.ns(), w.count, w.min.ns(), w.max.ns(), w.sum.ns()));
    samples.chain(windows).collect()
}

#[test]
fn the_decoder_of_the_document_reads_every_log() {
    for name in ["good", "cut-off", "lossy", "imported"] {
        let directory = root().join("fixtures/bundles").join(name);
        let bundle = Bundle::open(&directory).unwrap();
        for (phase, in_phase) in bundle.phases.iter().enumerate() {
            for (index, series) in in_phase.series.iter().enumerate() {
                let log = directory.join(format!("phases/{phase:03}/{index:04}.log"));
                let Ok(output) = Command::new("python3").args(["-c", &program(&log)]).output() else {
                    println!("SKIPPED: python3 is not installed");
                    return;
                };
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                assert!(String::from_utf8_lossy(&output.stdout) == rows(series), "{} reads otherwise", log.display());
            }
        }
    }
}
