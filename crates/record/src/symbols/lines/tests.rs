//! Lines of real programs: compiled here by the available compilers, at addresses that a
//! disassembler confirms.

use super::*;
use crate::symbols::ElfObject;
use proptest::prelude::*;
use std::path::Path;
use std::process::Command;

/// Line 2 is inlined at lines 6 and 7; line 4 declares; line 9 is the head of a loop.
const SOURCE: &str = "static volatile int sum;
static inline __attribute__((always_inline)) void add(int n) { sum += n; }

extern int nothing;
__attribute__((noinline)) void step(int n) { /* 5 */
    add(n);
    add(n + 1);
}
int main(void) { for (int i = 0; i < 3; i++) {
        step(i);
    }
    return sum == 9 ? 0 : 1;
}
";

struct Built {
    place: tempfile::TempDir,
}

impl Built {
    fn path(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(name)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        match Command::new(program).args(arguments).current_dir(self.place.path()).status() {
            Ok(status) if status.success() => true,
            other => {
                println!("SKIPPED: no working {program} ({other:?})");
                false
            }
        }
    }
}

/// The C program, compiled with these options into `program`.
fn built(options: &[&str]) -> Option<Built> {
    let built = Built { place: tempfile::tempdir().unwrap() };
    std::fs::write(built.path("loop.c"), SOURCE).unwrap();
    built.run("gcc", &[options, &["-o", "program", "loop.c"]].concat()).then_some(built)
}

fn find(text: &str, file: &Path) -> Result<SourceLine, String> {
    let spec = LineSpec::parse(text).unwrap_or_else(|| panic!("{text} is a line")).unwrap();
    match resolve_lines(&[spec], &[file.to_owned()]) {
        Ok(lines) => Ok(lines.into_iter().next().unwrap()),
        Err(errors) => Err(errors.iter().map(ToString::to_string).collect()),
    }
}

/// The function around each place, by the symbol table.
fn functions(line: &SourceLine) -> Vec<String> {
    let object = ElfObject::read(&line.object).unwrap();
    let around = |place: &LinePlace| {
        let inside =
            |f: &&crate::symbols::Function| (f.offset..f.offset + f.size).contains(&place.offset);
        object.functions.iter().find(inside).map_or("none", |function| &function.symbol).to_owned()
    };
    line.places.iter().map(around).collect()
}

#[test]
fn the_code_of_a_line_is_of_that_line() {
    // With optimization, inlined code begins where its caller does.
    let Some(built) = built(&["-g", "-O0"]) else { return };
    let program = built.path("program");
    let data = std::fs::read(&program).unwrap();
    let object = ElfObject::read(&program).unwrap();
    let offset = |name: &str| object.functions.iter().find(|f| f.symbol == name).unwrap().offset;
    let (code, address) = crate::symbols::executable_parts(&data)[0].clone();
    let address = |offset: u64| address + (offset - code.start as u64);
    let mut wanted = [address(offset("main")), address(offset("step")), 8];
    wanted.sort_unstable();
    let lines = lines_at(&program, &data, &wanted).unwrap();
    let line = |name: &str| lines.get(&address(offset(name))).map(String::as_str);
    assert_eq!((line("step"), line("main")), (Some("loop.c:5"), Some("loop.c:9")));
    assert!(!lines.contains_key(&8), "{lines:?}");
    let stripped = built.run("strip", &["-o", "stripped", "program"]);
    let data = std::fs::read(built.path("stripped")).unwrap_or_default();
    assert!(!stripped || lines_at(&built.path("stripped"), &data, &wanted).is_err());
}

#[test]
fn specs_are_parsed_as_lines_or_functions() {
    let line = |text: &str| {
        LineSpec::parse(text).map(|spec| spec.map(|s| (s.binary.is_some(), s.file, s.line)))
    };
    assert_eq!(line("loop.c:42").unwrap().unwrap(), (false, "loop.c".to_owned(), 42));
    assert_eq!(line("./src/loop.c:42").unwrap().unwrap(), (false, "./src/loop.c".to_owned(), 42));
    assert_eq!(line("libx:src/a.cpp:7").unwrap().unwrap(), (true, "src/a.cpp".to_owned(), 7));
    for function in ["main", "libc:fopen", "ns::f", "ns::5", "a.c:", "a.c:4x"] {
        assert!(LineSpec::parse(function).is_none(), "{function}");
    }
    for wrong in
        [":4", "x::4:5", "a.c:0", "a.c:99999999999999999999", "/nowhere/at/all:a.c:4", ":a.c:4"]
    {
        assert!(
            LineSpec::parse(wrong).is_none_or(|spec| spec.is_err() || wrong == "x::4:5"),
            "{wrong}"
        );
    }
}

#[test]
fn a_line_is_found_in_programs_of_every_make() {
    for options in [
        &["-g", "-O0"][..],
        &["-g", "-O0", "-no-pie"],
        &["-gdwarf-4", "-O0"],
        &["-gdwarf-3", "-O2"],
        &["-g3", "-O2", "-pie", "-fPIE"],
        &["-g", "-O2", "-gz=zlib"],
        &["-gdwarf64", "-gdwarf-5", "-O1"],
        &["-g", "-O1", "-gsplit-dwarf"],
        &["-g", "-O1", "-ffunction-sections", "-Wl,--gc-sections"],
    ] {
        let Some(built) = built(options) else { return };
        let line = find("loop.c:10", &built.path("program"))
            .unwrap_or_else(|why| panic!("{options:?}: {why}"));
        assert_eq!(
            (line.name.as_str(), functions(&line)),
            ("loop.c:10", vec!["main".to_owned()]),
            "{options:?}"
        );
        // The head of a loop is at two places of one copy: it counts once.
        let head = find("./loop.c:9", &built.path("program"))
            .unwrap_or_else(|why| panic!("{options:?}: {why}"));
        assert_eq!(functions(&head), ["main"], "{options:?}");
    }
}

#[test]
fn inlined_copies_are_all_found() {
    let Some(built) = built(&["-g", "-O2"]) else { return };
    let line = find("loop.c:2", &built.path("program")).unwrap();
    assert_eq!(functions(&line), ["step", "step"], "{line:?}");
    assert_ne!(line.places[0].offset, line.places[1].offset);
}

#[test]
fn lines_without_code_are_refused_with_the_nearest_lines() {
    let Some(built) = built(&["-g", "-O0"]) else { return };
    let program = built.path("program");
    let wrong = |text: &str| find(text, &program).unwrap_err();
    assert_eq!(
        wrong("loop.c:4"),
        "`loop.c:4`: line 4 of loop.c has no code in program; the nearest lines that have are 2 \
         and 5"
    );
    assert!(
        wrong("loop.c:400").ends_with("the nearest line that has is 13"),
        "{}",
        wrong("loop.c:400")
    );
    let slip = wrong("looop.c:10");
    assert!(
        slip.contains("names no source file `looop.c`")
            && slip.contains("did you mean `loop.c:10`?"),
        "{slip}"
    );
    assert!(
        wrong("other/loop.c:10").contains("names no source file"),
        "{}",
        wrong("other/loop.c:10")
    );
    assert!(wrong("libm:loop.c:10").contains("the program has no file `libm`; it has program"));
    // By its whole path, and by its path with the program.
    assert!(find(&format!("{}:10", built.path("loop.c").display()), &program).is_ok());
    assert!(find(&format!("{}:loop.c:10", program.display()), Path::new("/bin/true")).is_ok());
}

#[test]
fn missing_debug_information_is_reported_with_a_remedy() {
    let Some(built) = built(&["-O1", "-s"]) else { return };
    let why = find("loop.c:10", &built.path("program")).unwrap_err();
    for part in
        ["has no debug information", "compile with -g", "-dbgsym", "/usr/lib/debug/.build-id/"]
    {
        assert!(why.contains(part), "{part}: {why}");
    }
}

#[test]
fn separate_debug_files_of_other_builds_are_refused() {
    let Some(built) = built(&["-g", "-O1"]) else { return };
    let steps: [&[&str]; 3] = [
        &["--only-keep-debug", "program", "program.debug"],
        &["--strip-all", "program", "stripped"],
        &["--add-gnu-debuglink=program.debug", "stripped", "linked"],
    ];
    if !steps.iter().all(|arguments| built.run("objcopy", arguments)) {
        return;
    }
    let whole = find("loop.c:10", &built.path("program")).unwrap();
    let linked = find("loop.c:10", &built.path("linked")).unwrap();
    assert_eq!(whole.places, linked.places);
    std::fs::create_dir(built.path(".debug")).unwrap();
    std::fs::rename(built.path("program.debug"), built.path(".debug/program.debug")).unwrap();
    assert_eq!(find("loop.c:10", &built.path("linked")).unwrap().places, whole.places);
    // Another build under the same name.
    std::fs::write(built.path("loop.c"), format!("int other;\n{SOURCE}")).unwrap();
    assert!(built.run("gcc", &["-g", "-O1", "-o", ".debug/program.debug", "loop.c"]));
    let why = find("loop.c:10", &built.path("linked")).unwrap_err();
    assert!(why.contains("(of another build)"), "{why}");
}

#[test]
fn lines_of_libraries_cpp_and_rust_are_found() {
    let Some(built) = built(&["-g", "-O1", "-shared", "-fPIC", "-Wl,-soname,libloop.so.1"]) else {
        return;
    };
    assert_eq!(functions(&find("loop.c:6", &built.path("program")).unwrap()), ["step"]);
    let cpp = "template <class T> __attribute__((noinline)) T twice(T x) {\n    return x + \
               x;\n}\nint main() { return twice(0) + (int)twice(0.0); }\n";
    std::fs::write(built.path("t.cpp"), cpp).unwrap();
    if built.run("g++", &["-g", "-O0", "-o", "templates", "t.cpp"]) {
        // Each instance is a copy.
        let line = find("t.cpp:2", &built.path("templates")).unwrap();
        assert_eq!(functions(&line).len(), 2, "{line:?}");
    }
    let rust = "#[inline(never)]\nfn step(n: u32) -> u32 {\n    std::hint::black_box(n) + \
                1\n}\nfn main() {\n    assert_eq!(step(1), 2);\n}\n";
    std::fs::write(built.path("main.rs"), rust).unwrap();
    if built.run("rustc", &["-g", "-o", "rust", "main.rs"]) {
        let line = find("main.rs:3", &built.path("rust")).unwrap();
        assert!(functions(&line).iter().all(|name| name.contains("step")), "{line:?}");
    }
}

#[test]
fn no_probe_is_placed_on_a_patchable_nop() {
    let Some(built) = built(&["-g", "-O0"]) else { return };
    let source = "int main(void) {\n    __asm__ volatile(\".byte 0x0f, 0x1f, 0x44, 0x00, \
                  0x00\");\n    return 0;\n}\n";
    if cfg!(not(target_arch = "x86_64")) {
        return println!("SKIPPED: a nop of x86-64");
    }
    std::fs::write(built.path("nop.c"), source).unwrap();
    assert!(built.run("gcc", &["-g", "-O0", "-o", "nop", "nop.c"]));
    let line = find("nop.c:2", &built.path("nop")).unwrap();
    assert_ne!(line.places[0].site, Site::Nop5);
    let data = std::fs::read(built.path("nop")).unwrap();
    let before = line.places[0].offset as usize - 5;
    assert_eq!(data[before..before + 5], [0x0f, 0x1f, 0x44, 0, 0]);
}

/// A program, and where its debug sections lie in it: offset and size.
type Debugged = (Vec<u8>, Vec<(usize, usize)>);

static PROGRAM: std::sync::LazyLock<Option<Debugged>> = std::sync::LazyLock::new(|| {
    let built = built(&["-g", "-O2"])?;
    let data = std::fs::read(built.path("program")).unwrap();
    let file = elf::ElfBytes::<elf::endian::AnyEndian>::minimal_parse(&data).unwrap();
    let sections = [
        ".debug_info",
        ".debug_abbrev",
        ".debug_line",
        ".debug_line_str",
        ".debug_rnglists",
        ".debug_str",
    ];
    let places =
        sections.iter().filter_map(|name| file.section_header_by_name(name).ok().flatten());
    let places =
        places.map(|header| (header.sh_offset as usize, header.sh_size as usize)).collect();
    Some((data, places))
});

proptest! {
    #[test]
    fn no_damage_to_debug_information_panics(
        damage in
            proptest::collection::vec((0usize..6, any::<prop::sample::Index>(), any::<u8>()), 1..6),
        header in proptest::option::of((0usize..64, any::<u8>())),
        tail in proptest::option::of((0usize..2_048, any::<u8>())),
        length in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let Some((data, sections)) = &*PROGRAM else { return Ok(()) };
        let mut data = data.clone();
        for (section, at, byte) in damage {
            let (start, size) = sections[section % sections.len()];
            data[start + at.index(size.max(1))] = byte;
        }
        if let Some((at, byte)) = header {
            data[at] = byte;
        }
        // The section headers are at the end.
        if let Some((back, byte)) = tail {
            let at = data.len() - 1 - back;
            data[at] = byte;
        }
        if let Some(length) = length {
            data.truncate(length.index(data.len()).max(64));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &data).unwrap();
        for line in ["loop.c:2", "loop.c:10"] {
            let _ = find(line, file.path());
        }
    }

    #[test]
    fn no_words_panic(text in "\\PC{0,30}:[0-9]{0,24}") {
        let _ = LineSpec::parse(&text);
    }
}

#[test]
fn every_listed_line_can_be_probed() {
    let Some(built) = built(&["-g", "-O0"]) else { return };
    let program = built.path("program");
    let list = |which| list_lines(&program, &which).unwrap().unwrap();
    let of_source = list(WhichLines::Source("loop.c".to_owned()));
    let [source] = &of_source[..] else { panic!("{of_source:?}") };
    assert_eq!((&source.object, source.file.ends_with("/loop.c")), (&program, true));
    for line in 1..=13 {
        let found = find(&format!("loop.c:{line}"), &program).map(|line| line.places.len());
        assert_eq!(source.lines.get(&line).copied(), found.ok(), "line {line}: {source:?}");
    }
    // The function that is inlined twice.
    assert_eq!(source.lines.get(&2), Some(&2));
    assert!(!source.lines.contains_key(&4), "a declaration");
    let object = ElfObject::read(&program).unwrap();
    let step = object.functions.iter().find(|f| f.symbol == "step").unwrap();
    let code = std::iter::once(step.offset..step.offset + step.size).collect();
    let of_step = list(WhichLines::Code(code));
    let lines: Vec<u64> = of_step.iter().flat_map(|of| of.lines.keys().copied()).collect();
    assert!([2, 5, 8].iter().all(|line| lines.contains(line)), "{lines:?}");
    assert!(lines.iter().all(|line| *line <= 8), "those of main: {lines:?}");
    assert!(list(WhichLines::All).contains(source));
    assert!(list(WhichLines::Source("pool.c".to_owned())).is_empty());
}
