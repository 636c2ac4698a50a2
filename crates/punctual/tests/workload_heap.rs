//! `punctual measure heap`: the kernel allocates exactly the touched pages, with any malloc, and a
//! killed process is reported.

use crate::common::Place;
use crate::common::measured::{agrees, counts, figure, measured, notes, refused};
use std::path::Path;
use std::process::Command;

fn allocator(summary: &serde_json::Value) -> String {
    notes(summary)["tables"][0]["rows"][0][0].as_str().unwrap_or("").to_owned()
}

#[test]
fn pages_follow_what_is_touched() {
    let place = Place::with("");
    for (name, settings, series) in [
        ("1 KiB", "-s size=1KiB", &["malloc", "touch", "free"][..]),
        ("1 MiB", "-s size=1MiB", &["malloc", "touch", "free"]),
        ("untouched", "-s size=1MiB -s touch=false", &["malloc", "free"]),
        ("random", "-s sizes=random -s size=40B -s size_max=256KiB", &["malloc", "touch", "free"]),
        ("fresh", "-s size=1MiB -s fresh=true", &["malloc", "touch", "free"]),
    ] {
        let summary = measured(&place, &format!("heap --policy other --count 300 {settings}"));
        let expected: Vec<_> = series.iter().map(|one| (format!("heap/{one}"), 300)).collect();
        assert_eq!(counts(&summary), expected, "{name}");
        agrees(&summary, name);
        // A new process for each block: all its pages are new.
        if name == "fresh" {
            assert!(
                figure(&summary, "faults-each").is_some_and(|faults| faults > 250.0),
                "{}",
                notes(&summary)
            );
        }
    }
}

/// An allocator that takes from one large block and never frees.
fn bump(place: &Place) -> Option<String> {
    let source = place.path().join("bump.c");
    let text = "#include <stddef.h>\nstatic char all[64 << 20]; static size_t used;\nvoid \
                *malloc(size_t n) { n = (n + 31) & ~(size_t)15; if (used + n > sizeof all) used = \
                0; used += n; return all + used - n; }\nvoid free(void *p) { (void)p; }\nvoid \
                *calloc(size_t a, size_t b) { return malloc(a * b); }\nvoid *realloc(void *p, \
                size_t n) { (void)p; return malloc(n); }\n";
    std::fs::write(&source, text).expect("the source");
    let library = place.path().join("libbump.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .status();
    if built.is_ok_and(|status| status.success()) {
        return Some(library.to_string_lossy().into_owned());
    }
    println!("SKIPPED: lacks a C compiler for a library to preload");
    None
}

#[test]
fn system_preloaded_and_built_in_allocators_are_measured() {
    let place = Place::with("");
    let machine = measured(&place, "heap --policy other --count 30");
    if machine["findings"].to_string().contains("heap-built-in") {
        return println!(
            "SKIPPED: lacks a loader for programs linked with glibc: {}",
            machine["findings"]
        );
    }
    assert!(allocator(&machine).ends_with("(dynamic)"), "{}", allocator(&machine));
    let built_in = measured(&place, "heap --policy other --count 30 -s allocator=built-in");
    assert!(allocator(&built_in).contains("punctual's own"), "{}", allocator(&built_in));
    let Some(library) = bump(&place) else { return };
    let setting = format!("-s allocator={library}");
    let preloaded = measured(&place, &format!("heap --policy other --count 30 {setting}"));
    assert!(
        allocator(&preloaded).starts_with("libbump.so (preloaded"),
        "{}",
        allocator(&preloaded)
    );
    assert!(
        notes(&preloaded)["tables"][0]["rows"][0][1]
            .as_str()
            .is_some_and(|path| path.ends_with("/libbump.so"))
    );
    // This allocator never returns memory to the kernel.
    let rows = notes(&preloaded)["tables"][1]["rows"].as_array().expect("rows").clone();
    for row in rows.iter().filter(|row| row[0] == "munmap" || row[0] == "brk") {
        assert_eq!(row[1].as_f64(), Some(0.0), "{row}");
    }
}

#[test]
fn an_allocator_that_is_not_there_is_refused() {
    let place = Place::with("");
    std::fs::write(place.path().join("not a library"), "text").expect("a file");
    let file = place.path().join("not a library");
    for (allocator, words) in [
        ("/nowhere/liballoc.so", "No such file"),
        ("/tmp", "is not a file"),
        (file.to_str().expect("UTF-8"), "is not a library"),
    ] {
        let said = refused(&place, &format!("heap --count 5 -s 'allocator={allocator}'"));
        assert!(said.contains(words) && said.contains(allocator), "{said}");
    }
    // A library without an allocator.
    let Some(library) =
        ["/usr/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/aarch64-linux-gnu/libm.so.6"]
            .into_iter()
            .find(|path| Path::new(path).exists())
    else {
        return println!("SKIPPED: lacks a libm.so.6 at its usual place");
    };
    let said = refused(&place, &format!("heap --count 5 -s allocator={library}"));
    assert!(said.contains("is not used"), "{said}");
}
