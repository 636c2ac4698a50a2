use super::*;
use proptest::prelude::*;
use std::process::Command;

/// The file of this test, and the C library that it runs with.
fn libc() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line =
        maps.lines().find(|line| line.contains("/libc.so") || line.contains("/libc-2")).unwrap();
    PathBuf::from(&line[line.find('/').unwrap()..])
}

fn find(spec: &str, files: &[PathBuf]) -> Result<Vec<Function>, Vec<SymbolError>> {
    resolve_functions(&[FunctionSpec::parse(spec).unwrap()], files)
}

fn message(spec: &str, files: &[PathBuf]) -> String {
    find(spec, files).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[inline(never)]
fn a_function_of_ours(x: u64) -> u64 {
    std::hint::black_box(x)
}

#[test]
fn functions_of_the_c_library_are_found_by_its_short_name() {
    let libc = libc();
    let found = find("libc:fopen", std::slice::from_ref(&libc)).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].name.as_str(), &found[0].object), ("fopen", &libc));
    assert!(find("f*open", &[libc]).unwrap().len() > 1);
}

#[test]
fn the_offset_of_a_rust_function_matches_its_address() {
    a_function_of_ours(1);
    let exe = std::env::current_exe().unwrap();
    let found = find("*::a_function_of_ours", std::slice::from_ref(&exe)).unwrap();
    let [function] = &found[..] else { panic!("{found:?}") };
    assert_eq!(function.name, "punctual_record::symbols::tests::a_function_of_ours");
    // The kernel's view: the mapping with the function begins at a known offset of the file.
    let address = a_function_of_ours as *const () as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let expected = maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let (from, to) = (u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?);
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        (from..to).contains(&address).then(|| offset + address - from)
    });
    assert_eq!(Some(function.offset), expected);
}

#[test]
fn cpp_functions_are_found_by_the_names_that_programmers_use() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("a.cpp");
    let program = dir.path().join("a");
    std::fs::write(
        &source,
        "namespace ns { struct C { int m(int); }; int C::m(int x) { return x; } int m(double) { \
         return 1; } }\nint main() { ns::C c; return c.m(0) + ns::m(1.0); }\n",
    )
    .unwrap();
    match Command::new("g++").args(["-O0", "-o"]).arg(&program).arg(&source).status() {
        Ok(status) if status.success() => {}
        other => return println!("SKIPPED: no working g++ ({other:?})"),
    }
    let files = [program.canonicalize().unwrap()];
    assert_eq!(find("ns::C::m", &files).unwrap()[0].name, "ns::C::m(int)");
    assert_eq!(find("a:ns::m", &files).unwrap()[0].name, "ns::m(double)");
    assert_eq!(find("_ZN2ns1C1mEi", &files).unwrap()[0].bare, "ns::C::m");
    assert_eq!(find("*::m", &files).unwrap().len(), 2);
    assert!(message("ns::C::n", &files).contains("did you mean `ns::C::m`?"));
}

#[test]
fn missing_functions_are_refused_with_the_likely_reason() {
    let files = [libc()];
    assert!(
        message("libm:sin", &files).contains("the program has no file `libm`; it has libc.so.6")
    );
    assert!(message("libc:fopenn", &files).contains("did you mean `fopen`?"));
    assert!(
        message("memcpy", &files).contains("resolver (IFUNC)") || cfg!(not(target_arch = "x86_64"))
    );
    assert!(FunctionSpec::parse("libc:").unwrap_err().to_string().contains("empty"));
    assert!(FunctionSpec::parse(":f").unwrap_err().to_string().contains("empty"));
    assert!(
        FunctionSpec::parse("/nowhere/at/all:f")
            .unwrap_err()
            .to_string()
            .contains("cannot read /nowhere/at/all")
    );
    assert!(
        message("/bin/ls:main", &files).contains("stripped")
            || Path::new("/usr/lib/debug/.build-id").exists()
    );
}

#[test]
fn files_that_are_no_program_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    assert!(ElfObject::read(&script).unwrap_err().to_string().contains("a script"));
    assert!(ElfObject::read(dir.path()).unwrap_err().to_string().contains("not a regular file"));
}

#[test]
fn probe_sites_are_classified_by_their_instruction() {
    assert_eq!(Site::from_code(62, &[0x0f, 0x1f, 0x44, 0, 0, 0x55]), Site::Nop5);
    assert_eq!(Site::from_code(62, &[0x41, 0x57]), Site::Push);
    assert_eq!(Site::from_code(62, &[0x48, 0x83, 0xec, 8]), Site::SingleStep);
    assert_eq!(Site::from_code(183, &[0x41, 0x57]), Site::Unknown);
}

proptest! {
    #[test]
    fn no_damage_to_a_program_panics(at in 0usize..4096, byte: u8, length in 0usize..200_000) {
        static PROGRAM: std::sync::LazyLock<Vec<u8>> =
            std::sync::LazyLock::new(|| std::fs::read("/bin/true").unwrap());
        let mut data = PROGRAM.clone();
        data.truncate(length.max(64));
        if let Some(place) = data.get_mut(at) {
            *place = byte;
        }
        let _ = ElfObject::parse(Path::new("x"), &data);
    }

    #[test]
    fn no_spec_panics_and_stars_fit_everything(text in "\\PC{0,40}", name in "\\PC{0,40}") {
        let _ = FunctionSpec::parse(&text);
        prop_assert!(FunctionSpec::parse("*").unwrap().fits_name(&name));
        if !name.trim().is_empty() && !name.contains([':', '*', '?']) {
            prop_assert!(FunctionSpec::parse(&name).unwrap().fits_name(&name));
        }
    }
}
