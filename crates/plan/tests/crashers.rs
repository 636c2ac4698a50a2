//! Every input that once broke a fuzz target of this crate, and every seed: they must pass now.

#[path = "../../../fuzz/src/experiment.rs"]
mod experiment;

use std::path::Path;

fn replay(target: &str, name: &str) {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut count = 0;
    for kind in ["seeds", "crashers"] {
        for entry in std::fs::read_dir(fuzz.join(kind).join(target)).unwrap() {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            experiment::check(name, &std::fs::read(path).unwrap());
            count += 1;
        }
    }
    assert!(count > 0, "there is nothing to replay where this test looks");
}

#[test]
fn toml() {
    replay("experiment_toml", "fuzz.toml");
}

#[test]
fn systress() {
    replay("experiment_systress", "fuzz.cfg");
}
