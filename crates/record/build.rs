//! Compiles the BPF programs with clang, and generates the Rust side of bpf/wire.h.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const PROGRAMS: [&str; 12] = [
    "events",
    "raw",
    "probe",
    "count",
    "account",
    "account_untyped",
    "irq",
    "release",
    "gaps",
    "attach",
    "cpus",
    "network",
];
/// Compiled again with -DFLIGHT, as `NAME_flight`: conditions known at compile time cost no
/// instruction.
const FLIGHT: [&str; 2] = ["events", "raw"];
/// Objects for unsupported targets are empty, and the recorder reports that; so are all without the
/// feature `bpf`.
const ARCHITECTURES: [&str; 3] = ["x86_64", "aarch64", "riscv64"];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    let header = fs::read_to_string("bpf/wire.h").expect("bpf/wire.h is part of the source");
    fs::write(out.join("wire_generated.rs"), rust_of(&header)).expect("OUT_DIR is writable");
    let plain_builds = PROGRAMS.map(|program| (program, program.to_owned(), None));
    let flight = FLIGHT.map(|program| (program, format!("{program}_flight"), Some("-DFLIGHT")));
    for (source, program, define) in plain_builds.into_iter().chain(flight) {
        let object = out.join(format!("{program}.bpf.o"));
        let wanted = env::var_os("CARGO_FEATURE_BPF").is_some();
        if wanted && ARCHITECTURES.contains(&architecture.as_str()) {
            compile_program(
                &architecture,
                define,
                Path::new("bpf").join(format!("{source}.bpf.c")),
                &object,
            );
        } else {
            fs::write(&object, b"").expect("OUT_DIR is writable");
        }
        // A third of the size: a program that locks its memory locks these bytes too.
        let bytes = fs::read(&object).expect("it was just written");
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        let packed =
            packed.write_all(&bytes).and_then(|()| packed.finish()).expect("a Vec takes it");
        fs::write(out.join(format!("{program}.bpf.o.z")), packed).expect("OUT_DIR is writable");
    }
}

fn compile_program(architecture: &str, define: Option<&str>, source: PathBuf, object: &Path) {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let mut command = Command::new(&clang);
    command.args([
        "-target",
        "bpf",
        "-mcpu=v3",
        "-O2",
        "-g",
        "-ffreestanding",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]);
    // Parts of a header that one program does not use.
    command.args(["-Wno-unused-variable", "-Wno-unused-function"]);
    command
        .args(define)
        .arg(format!("-DTARGET_{architecture}"))
        .arg("-c")
        .arg(&source)
        .arg("-o")
        .arg(object);
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!(
            "{clang} could not compile {}: {status}; clang 12 or newer is needed",
            source.display()
        ),
        Err(why) => panic!(
            "{clang}: {why}: clang compiles the BPF programs; on Debian: apt-get install clang \
             (or set CLANG=…)"
        ),
    }
}

/// Type, name and count.
type CField = (String, String, usize);

/// `#define WIRE_X 1` becomes a constant, `struct wire_x` a type with conversions from and to
/// bytes.
fn rust_of(header: &str) -> String {
    let mut rust = String::new();
    let mut fields: Option<(String, Vec<CField>)> = None;
    for line in header.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (&mut fields, words.as_slice()) {
            (None, ["#define", name, value, ..]) if name.starts_with("WIRE_") => {
                let name = &name["WIRE_".len()..];
                writeln!(rust, "pub const {name}: u64 = {value};").expect("a String takes it");
            }
            (None, ["struct", name, "{"]) => {
                fields = Some((name["wire_".len()..].to_owned(), Vec::new()))
            }
            (Some(_), ["};"]) => {
                if let Some((name, fields)) = fields.take() {
                    rust.push_str(&generate_structure(&name, &fields));
                }
            }
            (Some((_, fields)), [kind, name, ..]) => {
                let name = name.trim_end_matches(';');
                let (name, count) = match name.split_once('[') {
                    Some((name, count)) => {
                        (name, count.trim_end_matches(']').parse().expect("an array's length"))
                    }
                    None => (name, 1),
                };
                fields.push(((*kind).to_owned(), name.to_owned(), count));
            }
            _ => {}
        }
    }
    rust
}

fn generate_structure(name: &str, fields: &[CField]) -> String {
    let camel: String = name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
    let (mut members, mut reads, mut writes, mut offset) =
        (String::new(), String::new(), String::new(), 0);
    for (kind, name, count) in fields {
        let size = kind[1..].parse::<usize>().expect("u8 … i64") / 8;
        assert_eq!(offset % size, 0, "struct wire_{camel}: {name} is not aligned");
        let range = format!("{offset}..{}", offset + size * count);
        offset += size * count;
        let (kind, read, write) = if *count > 1 {
            let place = format!(
                "bytes[{offset}..][i * {size}..][..{size}]",
                offset = offset - size * count
            );
            let read = format!(
                "std::array::from_fn(|i| \
                 {kind}::from_le_bytes(*{place}.first_chunk().unwrap_or(&[0; _])))"
            );
            let write = format!(
                "for (i, item) in self.{name}.iter().enumerate() {{ \
                 {place}.copy_from_slice(&item.to_le_bytes()); }}"
            );
            (format!("[{kind}; {count}]"), read, write)
        } else {
            let read =
                format!("{kind}::from_le_bytes(*bytes[{range}].first_chunk().unwrap_or(&[0; _]))");
            (
                kind.clone(),
                read,
                format!("bytes[{range}].copy_from_slice(&self.{name}.to_le_bytes());"),
            )
        };
        writeln!(members, "pub {name}: {kind},").expect("a String takes it");
        writeln!(reads, "{name}: {read},").expect("a String takes it");
        writeln!(writes, "{write}").expect("a String takes it");
    }
    assert_eq!(offset % 8, 0, "struct wire_{name} is not made of whole words");
    format!(
        "#[derive(Clone, Copy, PartialEq, Eq, Debug)] pub struct {camel} {{ {members} }}
         impl {camel} {{
             pub const SIZE: usize = {offset};
             #[inline(always)] pub fn read(bytes: &[u8; {offset}]) -> Self {{ {camel} {{ {reads} \
         }} }}
             #[inline(always)] pub fn write(&self, bytes: &mut [u8; {offset}]) {{ {writes} }}
         }}\n"
    )
}
