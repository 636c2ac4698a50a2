//! The structure of the sources: crates import downward, sibling modules do not import in a circle,
//! a module's file is beside its directory, an item is public only if another crate names it, and
//! lines have at most 100 columns.
//!
//! Imports are read from the sources' tokens, including those of macros. A module and its
//! descendants are one room: only imports from sibling rooms count.

mod imports;
mod public;

use imports::Module;
use proc_macro2::TokenStream;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// From the lowest floor up: each may import from earlier ones.
const FLOORS: &[&str] = &[
    "core",
    "traces",
    "sys",
    "testpoint",
    "points",
    "plan",
    "host",
    "record",
    "measure",
    "bundle",
    "stats",
    "explain",
    "exact",
    "report",
    "lab",
    "testing",
    "session",
    "study",
    "punctual",
    "truth",
];

#[test]
fn crates_depend_only_on_lower_layers() {
    let mut found = 0;
    for (floor, name) in FLOORS.iter().enumerate() {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let manifest: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        let dependencies = manifest.get("dependencies").and_then(|value| value.as_table());
        for other in dependencies.into_iter().flat_map(|table| table.keys()) {
            let Some(other) = other.strip_prefix("punctual-") else { continue };
            let below = FLOORS.iter().position(|name| *name == other);
            assert!(below.is_some_and(|below| below < floor), "{name} imports from {other}");
            found += 1;
        }
    }
    assert!(found > FLOORS.len(), "{found} imports between crates were found");
    let there = fs::read_dir(root().join("crates")).unwrap().count();
    assert_eq!(there, FLOORS.len(), "a crate has no floor");
}

#[test]
fn sibling_modules_have_no_circular_imports() {
    let (mut modules, mut circles) = (0, Vec::new());
    for name in FLOORS {
        let src = root().join("crates").join(name).join("src");
        let of_crate = imports::read(&src, &files(&src, &["rs"]));
        modules += of_crate.len();
        circles.extend(circles_of(&of_crate).into_iter().map(|circle| format!("{name}: {circle}")));
    }
    assert!(modules > 500, "{modules} modules were found");
    assert!(circles.is_empty(), "modules import from each other:\n{}", circles.join("\n"));
}

/// One for each pair of siblings that import each other: both, and the imports of the first.
fn circles_of(modules: &[Module]) -> Vec<String> {
    let mut rooms: BTreeMap<Vec<String>, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let mut because: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for module in modules {
        for import in &module.imports {
            let shared = module.path.iter().zip(import).take_while(|(a, b)| a == b).count();
            let (Some(from), Some(to)) = (module.path.get(shared), import.get(shared)) else {
                continue;
            };
            let room = rooms.entry(module.path[..shared].to_vec()).or_default();
            room.entry(from.clone()).or_default().insert(to.clone());
            let mut way = module.path[..shared].to_vec();
            way.extend([from.clone(), to.clone()]);
            because.entry(way).or_insert_with(|| module.path.join("::"));
        }
    }
    let mut circles = Vec::new();
    for (room, imports) in &rooms {
        for (from, direct) in imports {
            for to in direct.iter().filter(|to| reaches(imports, to, from)) {
                let mut way = room.clone();
                way.extend([from.clone(), to.clone()]);
                let (room, of) = (room.join("::"), &because[&way]);
                circles.push(format!("in `{room}`: {from} → {to} (by {of}) and back"));
            }
        }
    }
    circles
}

fn reaches(imports: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(name) = open.pop() {
        if name == to {
            return true;
        }
        if seen.insert(name) {
            open.extend(imports.get(name).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

/// Crates whose items need not be named by others: the library of users, and the programs.
const OF_USERS: [&str; 3] = ["testpoint", "punctual", "truth"];

#[test]
fn public_items_are_named_by_another_crate() {
    let tokens =
        |path: &PathBuf| -> TokenStream { fs::read_to_string(path).unwrap().parse().unwrap() };
    let sources =
        sources().into_iter().filter(|path| path.extension().is_some_and(|of| of == "rs"));
    let mut named: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    let mut public: BTreeMap<PathBuf, Vec<public::Item>> = BTreeMap::new();
    for path in sources {
        let tokens = tokens(&path);
        let below = path.ancestors().find(|path| path.ends_with("src"));
        let place = below.or(path.parent()).unwrap().to_owned();
        public::names(&tokens, named.entry(place.clone()).or_default());
        public::items(&tokens, public.entry(place).or_default());
    }
    let mut wrong = Vec::new();
    for name in FLOORS.iter().filter(|name| !OF_USERS.contains(name)) {
        let src = root().join("crates").join(name).join("src");
        let others = named.iter().filter(|(place, _)| **place != src);
        let outside: BTreeSet<String> = others.flat_map(|(_, names)| names.clone()).collect();
        let items = &public[&src];
        assert!(items.len() > 4, "{name} has {} public items", items.len());
        wrong.extend(public::unused(items, &outside).iter().map(|item| format!("{name}: {item}")));
    }
    assert!(wrong.is_empty(), "make them pub(crate) or private:\n{}", wrong.join("\n"));
}

#[test]
fn modules_are_not_named_mod_rs() {
    let found: Vec<PathBuf> =
        sources().into_iter().filter(|path| path.ends_with("mod.rs")).collect();
    let of_tests = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "tests");
    // Where each file in `tests/` is a program, shared modules are a `mod.rs` there.
    let wrong: Vec<&PathBuf> = found.iter().filter(|path| !of_tests(path)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Cargo does not search for files if a crate's manifest names its test programs: a file that none
/// of these has as a module would never run.
#[test]
fn every_test_file_belongs_to_a_test_program() {
    let mut named = 0;
    for name in FLOORS {
        let of_crate = root().join("crates").join(name);
        let manifest = fs::read_to_string(of_crate.join("Cargo.toml")).unwrap();
        if !manifest.contains("\nautotests = false\n") {
            continue;
        }
        let programs = ["pure.rs", "live.rs"].map(|name| of_crate.join("tests").join(name));
        let modules: String = programs.iter().flat_map(fs::read_to_string).collect();
        for entry in fs::read_dir(of_crate.join("tests")).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let Some(module) = file.strip_suffix(".rs") else { continue };
            assert!(
                modules.contains(&format!("\nmod {module};\n"))
                    || manifest.contains(&format!("\npath = \"tests/{file}\"\n")),
                "{name}: tests/{file} is in none of the crate's programs of tests"
            );
            named += 1;
        }
    }
    assert!(named > 70, "{named} files were looked at");
}

#[test]
fn source_lines_have_at_most_100_columns() {
    let mut wider = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let mut is_snapshot = false;
        for (number, line) in text.lines().enumerate() {
            // Snapshot text of insta is exempt.
            is_snapshot |= line.contains("assert_snapshot!(");
            if !is_snapshot && line.chars().count() > 100 {
                wider.push(format!("{}:{}", path.display(), number + 1));
            }
            is_snapshot &= !line.ends_with(");");
        }
    }
    assert!(wider.is_empty(), "{} lines are wider:\n{}", wider.len(), wider.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The handwritten sources, in Rust and C.
fn sources() -> Vec<PathBuf> {
    let places = ["crates", "bench", "fuzz"].map(|name| root().join(name));
    let found: Vec<PathBuf> =
        places.iter().flat_map(|place| files(place, &["rs", "c", "h"])).collect();
    assert!(found.len() > 800, "{} sources were found", found.len());
    found
}

/// The files below a directory with these suffixes, without build output.
fn files(directory: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![directory.to_owned()], Vec::new());
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let is_meant = path.extension().is_some_and(|end| ends.iter().any(|e| end == *e));
            if kind.is_dir() && !path.ends_with("target") {
                open.push(path);
            } else if kind.is_file() && is_meant {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn circular_imports_are_detected_without_false_positives() {
    let module = |path: &str, source: &str| imports::of_source(path, source);
    let modules = [
        module("a", "use crate::{b::{self, X}, c}; fn f() {}"),
        module("b", "mod inner; // use crate::a"),
        module("b::inner", "fn f() { println!(\"crate::a {}\", super::super::c::g()) }"),
        module("c", "fn g() { crate::a::f() } const A: &str = \"crate::b\";"),
        module("d", "use crate::a; #[cfg(test)] mod tests { use crate::e; }"),
        module("e", "use crate::d;"),
    ];
    let modules = imports::known(modules.to_vec());
    let found: Vec<String> =
        circles_of(&modules).iter().map(|text| text.split(" (").next().unwrap().into()).collect();
    assert_eq!(found, ["in ``: a → b", "in ``: a → c", "in ``: b → c", "in ``: c → a"]);
}
