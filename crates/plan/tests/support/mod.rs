//! A system for the tests, and short ways to read files for it.
#![allow(dead_code, reason = "every test binary has its own copy and uses a part of it")]

use punctual_core::CpuSet;
use punctual_plan::{LoadOptions, Plan, Problems, ResolveContext, Resolved, load_and_resolve};
use std::path::{Path, PathBuf};

/// CPUs 0 to 3, of which 3 is offline; 8 GiB of memory; `/usr/bin` holds every program whose name
/// does not begin with `no-`.
pub fn context() -> ResolveContext<'static> {
    let cpus = |list: &str| list.parse::<CpuSet>().unwrap();
    ResolveContext {
        online: cpus("0-2"),
        present: cpus("0-3"),
        memory_bytes: 8 << 30,
        find_program: &find_program,
        stamp: "20261103-141500".to_owned(),
        force: false,
    }
}

fn find_program(name: &str) -> Result<PathBuf, String> {
    if name.starts_with("no-") {
        Err("no such program in PATH".to_owned())
    } else {
        Ok(Path::new("/usr/bin").join(name))
    }
}

pub fn resolved(path: &str, text: &str) -> Result<Resolved, Problems> {
    load_and_resolve(Path::new(path), text.as_bytes(), &LoadOptions::default(), &context())
        .map(|(_, resolved)| resolved)
}

/// The plan of a valid TOML file.
pub fn plan(toml: &str) -> Plan {
    resolved("test.toml", toml).unwrap_or_else(|problems| panic!("{problems}")).plan
}

/// The problems of a TOML file in their one-line form, without the file's name; warnings if there
/// is no error.
pub fn problems(toml: &str) -> String {
    lines("test.toml", toml)
}

/// The same of a systress file.
pub fn cfg_problems(cfg: &str) -> String {
    lines("test.cfg", cfg)
}

fn lines(path: &str, text: &str) -> String {
    let problems = match resolved(path, text) {
        Ok(resolved) => resolved.warnings,
        Err(problems) => problems,
    };
    problems.format_lines().replace(&format!("{path}:"), "").trim_start().to_owned()
}
