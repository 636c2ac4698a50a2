//! The man page is complete, and its examples run.

mod support;

use punctual_core::CpuSet;
use punctual_plan::{LoadOptions, ResolveContext, load_and_resolve};
use std::path::Path;

fn manual() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man/punctual-experiment.5");
    std::fs::read_to_string(path).unwrap()
}

/// The keys that a section knows, from the help for an unknown one.
fn known(before: &str) -> Vec<String> {
    let problems = support::problems(&format!("{before}zzzzzzzzzz = 1\n"));
    let list =
        problems.lines().find_map(|line| line.split_once("known are ")).expect("a list of keys").1;
    list.split(", ").map(str::to_owned).collect()
}

#[test]
fn every_key_is_documented() {
    let manual = manual();
    let section = |header: &str| {
        let start = manual
            .find(&format!(".SH THE {header}\n"))
            .unwrap_or_else(|| panic!("no section {header}"));
        let rest = &manual[start + 1..];
        rest[..rest.find("\n.SH ").unwrap()].to_owned()
    };
    for (header, before) in [
        ("SECTION [experiment]", "[experiment]\n"),
        ("SECTION [partition]", "[partition]\n"),
        ("SECTION [record]", "[record]\n"),
        ("SECTION [explain]", "[explain]\n"),
        ("SECTION [target]", "[target]\nkind = 'vm'\n"),
        ("SECTIONS [[measure]]", "[[measure]]\nkind = 'timer'\n"),
        ("SECTIONS [[measure]]", "[[measure]]\nkind = 'syscall'\n"),
        ("SECTIONS [[measure]]", "[[measure]]\nkind = 'switch'\n"),
        ("SECTIONS [[measure]]", "[[measure]]\nkind = 'irq'\n"),
        ("SECTIONS [[measure]]", "[[measure]]\nkind = 'mutex'\n"),
        ("SECTIONS [[measure]]", "[[measure]]\nkind = 'heap'\n"),
        ("SECTIONS [[measure]]", "[[measure]]\nkind = 'storage'\n"),
        ("SECTIONS [[measure]]", "[[measure]]\nkind = 'netio'\n"),
        ("SECTIONS [[measure]]", "[[measure]]\nkind = 'spin'\n"),
        ("SECTIONS [[measure]]", "[[measure]]\nkind = 'testpoint-cost'\n"),
        ("SECTIONS [[load]]", "[[load]]\n"),
        ("SECTIONS [[phase]]", "[[phase]]\n"),
    ] {
        let text = section(header);
        for key in known(before) {
            let documented = text.lines().any(|line| {
                line.starts_with(&format!(".BR {key} \"")) || line == format!(".B {key}")
            });
            assert!(documented, "{header}: {key}");
        }
    }
}

#[test]
fn every_example_runs() {
    let cpus: CpuSet = "0-3".parse().unwrap();
    let context = ResolveContext { online: cpus.clone(), present: cpus, ..support::context() };
    let manual = manual();
    let examples: Vec<&str> =
        manual.split("\n.EX\n").skip(1).filter_map(|rest| rest.split("\n.EE\n").next()).collect();
    assert!(examples.len() >= 4);
    for example in examples {
        let read = load_and_resolve(
            Path::new("example"),
            example.as_bytes(),
            &LoadOptions::default(),
            &context,
        );
        let (_, resolved) = read.unwrap_or_else(|problems| panic!("{problems}"));
        assert!(resolved.warnings.is_empty(), "{}", resolved.warnings);
    }
}
