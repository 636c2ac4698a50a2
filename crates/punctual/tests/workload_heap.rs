//! `punctual measure heap`: the kernel allocates exactly the touched pages, with any malloc, and a
//! killed process is reported.

use crate::common::measured::{agrees, counts, endless, figure, measured, notes, refused};
use crate::common::{self, Place, is_root, text, words};
use std::path::Path;
use std::process::Command;

fn allocator(summary: &serde_json::Value) -> String {
    notes(summary)["tables"][0]["rows"][0][0].as_str().unwrap_or("").to_owned()
}

fn median(summary: &serde_json::Value, series: &str) -> i64 {
    let all = summary["phases"][0]["series"].as_array().expect("series");
    let one = all.iter().find(|one| one["name"] == format!("heap/{series}"));
    one.and_then(|one| one["median"].as_i64()).unwrap_or_else(|| panic!("no {series} in {all:?}"))
}

#[test]
fn time_of_random_lists_follows_their_pages() {
    let place = Place::with("");
    let line = "heap --policy other --duration 10min -s sizes=random-list -s size=40B \
                -s size_max=1MiB -s lists=60 -s fresh=true";
    let mut seen = Vec::new();
    // Time is affected by other users of the machine; pages are not.
    for _ in 0..3 {
        let summary = measured(&place, line);
        let tables = notes(&summary)["tables"].as_array().expect("tables");
        let lists = tables.iter().find(|table| table["name"] == "lists").expect("each list");
        let rows = lists["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 60, "as many lists as were asked for");
        for row in rows {
            let [nodes, bytes, pages, faults] =
                [1, 2, 3, 4].map(|column| row[column].as_f64().expect("a count") as u64);
            assert_eq!(bytes, 40 * nodes, "{row}");
            assert!((40..=1 << 20).contains(&bytes) && pages >= bytes / 4096, "{row}");
            // The pages of the process and its heap, and a few of every new process.
            assert!(
                (pages..pages + 200).contains(&faults),
                "a list takes new pages, each once: {row}"
            );
        }
        assert!(figure(&summary, "bytes-pages-correlation").expect("a figure") > 0.999);
        assert!(figure(&summary, "pages-faults-correlation").expect("a figure") > 0.99);
        // CPU time excludes other tasks: 0.987, while wall-clock time had 0.86.
        let worked = figure(&summary, "pages-cpu-time-correlation").expect("a figure");
        assert!(worked > 0.9, "CPU time does not follow pages: {worked}");
        let followed = figure(&summary, "pages-time-correlation").expect("a figure");
        // 0.99 on a quiet machine, 0.6 with twenty competitors for the CPU.
        if followed > 0.3 {
            return;
        }
        seen.push(followed);
    }
    panic!("time does not follow pages: {seen:?}");
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

#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn touching_memory_takes_longer_than_allocating_it() {
    let place = Place::with("");
    let fresh = "heap --policy other --count 200 -s size=1MiB -s fresh=true";
    let untouched = measured(&place, &format!("{fresh} -s touch=false"));
    let touched = measured(&place, fresh);
    assert!(
        median(&touched, "touch") > median(&untouched, "malloc"),
        "{}",
        touched["phases"][0]["series"]
    );
    let lists = "-s sizes=list -s nodes=2 -s size=40B -s size_max=512KiB";
    let list = measured(&place, &format!("heap --policy other --count 600 {lists}"));
    agrees(&list, "list");
    let correlation = figure(&list, "pages-time-correlation").expect("enough lists");
    assert!(correlation > 0.0, "{correlation}");
    assert!(figure(&list, "page-cost-growth").is_some(), "{}", notes(&list));
}

#[test]
fn locked_memory_is_allocated_by_malloc_itself() {
    if !is_root("locking memory") {
        return;
    }
    let place = Place::with("");
    for more in ["fresh=false", "fresh=true"] {
        let line = "heap --policy other --count 50 -s size=1MiB -s mlockall=true -s touch=false";
        agrees(&measured(&place, &format!("{line} -s {more}")), more);
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
    let machine = measured(&place, "heap --policy other --count 100");
    if machine["findings"].to_string().contains("heap-built-in") {
        return println!(
            "SKIPPED: lacks a loader for programs linked with glibc: {}",
            machine["findings"]
        );
    }
    assert!(allocator(&machine).ends_with("(dynamic)"), "{}", allocator(&machine));
    let built_in = measured(&place, "heap --policy other --count 100 -s allocator=built-in");
    assert!(allocator(&built_in).contains("punctual's own"), "{}", allocator(&built_in));
    let Some(library) = bump(&place) else { return };
    let setting = format!("-s allocator={library}");
    let preloaded = measured(&place, &format!("heap --policy other --count 100 {setting}"));
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

/// Child processes of this one that allocate.
fn helpers(parent: u32) -> Vec<u32> {
    let of = |entry: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (pid, rest) = stat.split_once(" (punctual-heap) ")?;
        let owner: u32 = rest.split(' ').nth(1)?.parse().ok()?;
        (owner == parent).then(|| pid.parse().ok()).flatten()
    };
    std::fs::read_dir("/proc").expect("/proc").flatten().filter_map(of).collect()
}

#[test]
fn the_heap_helper_dies_with_punctual_and_its_death_is_reported() {
    let place = Place::with("");
    let started = |name: &str| {
        let child = endless(&place, "heap --policy other -s size=64KiB", name);
        let all = helpers(child.id());
        assert_eq!(all.len(), 1, "one process allocates");
        (child, all[0])
    };
    let (mut child, helper) = started("punctual-killed");
    common::kill(child.id(), "KILL");
    child.wait().expect("its end");
    common::eventually("the end of the process", || {
        !Path::new(&format!("/proc/{helper}")).exists()
    });
    let (child, helper) = started("helper-killed");
    common::kill(helper, "KILL");
    let output = child.wait_with_output().expect("its end");
    assert_ne!(output.status.code(), Some(0));
    assert!(text(&output).contains("was it killed"), "{}", text(&output));
}

#[test]
fn page_faults_are_counted_without_privileges() {
    if !is_root("becoming somebody without rights") || !common::has_program("setpriv", "util-linux")
    {
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let program = directory.path().join("punctual");
    std::fs::copy(env!("CARGO_BIN_EXE_punctual"), &program).expect("a copy that anybody may run");
    for path in [directory.path(), &program] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777))
            .expect("permissions");
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(&program);
    command.args(words("measure heap -q --json --policy other --count 50 -s size=1MiB"));
    let output = command
        .args(["--output", "bundle"])
        .current_dir(directory.path())
        .output()
        .expect("setpriv");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output)));
    agrees(&summary, "without rights");
    let faults = &notes(&summary)["validations"][1];
    assert!(faults["claimed"].as_u64().is_some_and(|claimed| claimed > 256), "{faults}");
    assert_eq!(faults["agrees"], true, "{faults}");
}
