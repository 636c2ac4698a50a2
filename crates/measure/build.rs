//! Compiles the loop of the workload `heap`: into this library, and as a dynamically linked program
//! that uses the machine's own allocator. The program is embedded compressed; if it cannot be
//! linked for the target it is empty, and the workload reports that.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const SOURCE: &str = "src/workload/heap/heap.c";

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    cc::Build::new()
        .file(SOURCE)
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("punctual_heap");
    let program = out.join("heap");
    let bytes = match link_program(&program) {
        Ok(()) => fs::read(&program).expect("it was just linked"),
        Err(why) => {
            println!(
                "cargo:warning=the workload `heap` can measure only punctual's own allocator: {why}"
            );
            Vec::new()
        }
    };
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let packed = packed.write_all(&bytes).and_then(|()| packed.finish()).expect("a Vec takes it");
    fs::write(out.join("heap.z"), packed).expect("OUT_DIR is writable");
}

/// Links with the C compiler for programs of the machine: that of the target's architecture with
/// glibc, whatever punctual itself is linked with.
fn link_program(program: &Path) -> Result<(), String> {
    println!("cargo:rerun-if-env-changed=PUNCTUAL_HEAP_CC");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").map_err(|why| why.to_string())?;
    let native = env::var("HOST").is_ok_and(|host| host.starts_with(&format!("{arch}-")));
    let usual = if native { "cc".to_owned() } else { format!("{arch}-linux-gnu-gcc") };
    let compiler = env::var("PUNCTUAL_HEAP_CC").unwrap_or(usual);
    let mut command = Command::new(&compiler);
    command.args([
        "-DHEAP_PROGRAM",
        "-O2",
        "-fPIE",
        "-pie",
        "-nostartfiles",
        "-fno-stack-protector",
        "-fno-plt",
    ]);
    command.args(["-Wall", "-Wextra", "-Wl,-z,now", "-Wl,--build-id=none", "-s"]);
    match command.arg(SOURCE).arg("-o").arg(program).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!(
            "{compiler} could not link it: {status} (PUNCTUAL_HEAP_CC names another compiler)"
        )),
        Err(why) => Err(format!("{compiler}: {why} (PUNCTUAL_HEAP_CC names another compiler)")),
    }
}
