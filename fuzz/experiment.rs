//! Anything as an experiment file: parsed, resolved, described, written as TOML, and parsed again
//! as the same plan.
//!
//! Two fuzz targets run this with random bytes.

use punctual_core::CpuSet;
use punctual_plan::{LoadOptions, MAX_FILE_BYTES, ResolveContext, load_and_resolve};
use std::path::{Path, PathBuf};

/// Panics if the guarantees of punctual-plan do not hold for a file of this name and content.
pub fn check(path: &str, bytes: &[u8]) {
    for allow_unknown in [false, true] {
        check_with(path, bytes, &LoadOptions { allow_unknown }, allow_unknown);
    }
}

fn check_with(path: &str, bytes: &[u8], options: &LoadOptions, force: bool) {
    let context = context(force);
    let (experiment, resolved) = match load_and_resolve(Path::new(path), bytes, options, &context) {
        Ok(both) => both,
        Err(problems) => {
            assert!(problems.error_count() > 0, "refused without a reason");
            assert_printable(&problems.to_string());
            assert_printable(&problems.format_lines());
            return;
        }
    };
    assert_eq!(resolved.warnings.error_count(), 0, "an error among the warnings");
    assert_printable(&resolved.warnings.to_string());
    assert_printable(&resolved.plan.describe());
    for toml in [resolved.plan.to_toml(), experiment.to_toml()] {
        if toml.len() > MAX_FILE_BYTES {
            continue;
        }
        // The file's name determines the default name: the same stem again.
        let again = load_and_resolve(
            &Path::new(path).with_extension("toml"),
            toml.as_bytes(),
            options,
            &context,
        );
        match again {
            Ok((_, again)) => assert_eq!(again.plan, resolved.plan, "written as\n{toml}"),
            Err(problems) => panic!("not read back: {problems}\nwritten as\n{toml}"),
        }
    }
}

/// A system with the usual names of experiments.
fn context(force: bool) -> ResolveContext<'static> {
    let cpus = |list: &str| list.parse::<CpuSet>().unwrap_or_default();
    ResolveContext {
        online: cpus("0-3,5"),
        present: cpus("0-7"),
        memory_bytes: 64 << 30,
        find_program: &|name| {
            if name.contains('?') {
                Err("no such program".to_owned())
            } else {
                Ok(PathBuf::from(name))
            }
        },
        stamp: "20261103-141500".to_owned(),
        force,
    }
}

fn assert_printable(text: &str) {
    let bad = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert_eq!(bad, None, "a control character on its way to a terminal: {text:?}");
}
