//! Every seed of each fuzz target, and every input that once broke one: they must pass.

use std::path::Path;

mod targets;

#[test]
fn seeds_and_crashers_pass() {
    for (target, run) in targets::TARGETS {
        let mut replayed = 0;
        for kind in ["seeds", "crashers"] {
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(kind).join(target);
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                println!("{}", entry.path().display());
                run(&std::fs::read(entry.path()).unwrap());
                replayed += 1;
            }
        }
        let needs_none = ["explain", "recording"].contains(target);
        assert!(replayed > 0 || needs_none, "{target} has no seed where this test looks");
    }
}
