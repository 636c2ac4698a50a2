//! Every experiment file in examples/ is parsed and resolved, and has the same meaning written as
//! TOML.

use punctual_core::CpuSet;
use punctual_plan::lab::{is_lab, load_lab};
use punctual_plan::{LoadOptions, ResolveContext, load_and_resolve};
use std::path::{Path, PathBuf};

fn context() -> ResolveContext<'static> {
    let cpus: CpuSet = "0-1".parse().unwrap();
    ResolveContext {
        online: cpus.clone(),
        present: cpus,
        memory_bytes: 24 << 30,
        find_program: &|name| Ok(PathBuf::from("/usr/bin").join(name)),
        stamp: "20261103-141500".to_owned(),
        force: false,
    }
}

fn every_cell_is_resolved(path: &Path, bytes: &[u8]) {
    let read = |path: &Path| std::fs::read(path).map_err(|why| why.to_string());
    let lab = load_lab(path, bytes, &LoadOptions::default(), &read)
        .unwrap_or_else(|problems| panic!("{problems}"));
    for cell in lab.list_cells().unwrap() {
        let text = cell.experiment_with_seed(Some(1));
        // The CPUs of the cell's virtual machine.
        let cpus: CpuSet = "0-3".parse().unwrap();
        let context = ResolveContext { online: cpus.clone(), present: cpus, ..context() };
        let resolved = load_and_resolve(
            Path::new("cell.toml"),
            text.as_bytes(),
            &LoadOptions::default(),
            &context,
        );
        let (_, resolved) = resolved.unwrap_or_else(|problems| panic!("{}: {problems}", cell.name));
        assert!(resolved.warnings.is_empty(), "{}: {}", cell.name, resolved.warnings);
    }
}

#[test]
fn every_example_is_resolved_on_two_cpus() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if !path.extension().is_some_and(|extension| extension == "toml" || extension == "cfg") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        if is_lab(&String::from_utf8_lossy(&bytes)) {
            every_cell_is_resolved(&path, &bytes);
            continue;
        }
        let (experiment, resolved) =
            match load_and_resolve(&path, &bytes, &LoadOptions::default(), &context()) {
                Ok(both) => both,
                Err(problems) => panic!("{problems}"),
            };
        assert!(resolved.warnings.is_empty(), "{}", resolved.warnings);
        for toml in [experiment.to_toml(), resolved.plan.to_toml()] {
            let path = path.with_extension("toml");
            let again =
                load_and_resolve(&path, toml.as_bytes(), &LoadOptions::default(), &context());
            assert_eq!(
                again.map(|(_, again)| again.plan).map_err(|p| p.to_string()),
                Ok(resolved.plan.clone()),
                "{toml}"
            );
        }
        count += 1;
    }
    assert!(count >= 2, "the examples are not where this test looks");
}
