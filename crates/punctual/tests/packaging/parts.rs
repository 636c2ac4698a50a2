//! The components of the program: the bill of materials, and the allowed licences.

use crate::packaged::{lacks, python_with, repository, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

fn sbom(what: &str) -> String {
    run(Command::new(repository().join("packaging/sbom")).arg(what))
}

#[test]
fn every_licence_is_allowed() {
    if lacks("every_licence_is_allowed", &["cargo", "python3"]) {
        return;
    }
    let printed = sbom("licences");
    assert!(printed.trim_end().ends_with("crates checked, 0 licences not allowed"), "{printed}");
}

#[test]
fn a_licence_that_asks_for_more_is_refused() {
    if lacks("a_licence_that_asks_for_more_is_refused", &["python3"]) {
        return;
    }
    let script = "
from importlib.machinery import SourceFileLoader
import sys
sys.dont_write_bytecode = True
allowed = SourceFileLoader('sbom', sys.argv[1]).load_module().is_allowed
for expression in ['MIT', 'GPL-3.0 OR MIT', '(MIT OR GPL-2.0) AND Zlib',
                   'Apache-2.0 WITH LLVM-exception OR GPL-2.0']:
    assert allowed(expression), expression
for expression in ['', 'GPL-3.0', 'MIT AND GPL-2.0', 'MIT OR', '(MIT', 'MIT)', 'MIT Zlib',
                   'GPL-2.0 WITH LLVM-exception', 'mit', 'OR MIT', 'MIT WITH']:
    assert not allowed(expression), expression
";
    run(Command::new("python3")
        .args(["-W", "ignore", "-c", script])
        .arg(repository().join("packaging/sbom")));
}

#[test]
fn the_bill_of_materials_names_every_crate_and_what_is_under_the_gpl() {
    let test = "the_bill_of_materials_names_every_crate_and_what_is_under_the_gpl";
    if lacks(test, &["cargo", "python3"]) {
        return;
    }
    let printed = sbom("bom");
    let bom: Value = serde_json::from_str(&printed).expect("JSON");
    let parts = bom["components"].as_array().expect("components");
    let text = |part: &Value, key: &str| part[key].as_str().unwrap_or_default().to_owned();
    let references: BTreeSet<String> = parts.iter().map(|part| text(part, "bom-ref")).collect();
    assert_eq!(references.len(), parts.len(), "each once");
    assert!(references.iter().any(|name| name.starts_with("pkg:cargo/clap@")));
    assert!(!references.iter().any(|name| name.starts_with("pkg:cargo/proptest@")), "of tests");
    for dependency in bom["dependencies"].as_array().expect("dependencies") {
        for needed in dependency["dependsOn"].as_array().expect("what it needs") {
            assert!(references.contains(needed.as_str().expect("a name")), "{needed}");
        }
    }
    let under_gpl: Vec<&Value> = parts
        .iter()
        .filter(|part| {
            part["licenses"][0]["expression"].as_str().is_some_and(|e| e.starts_with("GPL"))
        })
        .collect();
    let names: Vec<String> = under_gpl.iter().map(|part| text(part, "name")).collect();
    assert_eq!(names, ["punctual-bpf", "punctual-qemu-plugin"]);
    // Every checksum in the lock file is here.
    let lock = fs::read_to_string(repository().join("Cargo.lock")).expect("the lock file");
    for part in parts.iter().filter(|part| part["hashes"].is_array()) {
        assert!(lock.contains(part["hashes"][0]["content"].as_str().expect("a checksum")));
    }
    let modules = ["cyclonedx", "jsonschema"];
    let Some(python) = python_with("the check against CycloneDX's schema", &modules) else {
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("bom.json");
    fs::write(&file, printed).expect("written");
    let script = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
assert error is None, error
";
    run(Command::new(python).args(["-c", script]).arg(&file));
}
