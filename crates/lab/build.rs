//! Compiles QEMU's plugin for the exact explanation, and packs it. If it cannot be compiled for the
//! target it is empty, and the explanation reports that.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const SOURCE: &str = "src/exact/plugin.c";

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let library = out.join("exact.so");
    let bytes = match compile_plugin(&library) {
        Ok(()) => fs::read(&library).expect("it was just linked"),
        Err(why) => {
            println!("cargo:warning=`explain --exact` will be unavailable: {why}");
            Vec::new()
        }
    };
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    let packed = packed.write_all(&bytes).and_then(|()| packed.finish()).expect("a Vec takes it");
    fs::write(out.join("exact.so.z"), packed).expect("OUT_DIR is writable");
}

/// Compiles with the C compiler for programs of the machine, independent of punctual's own linking:
/// QEMU loads the library.
fn compile_plugin(library: &Path) -> Result<(), String> {
    println!("cargo:rerun-if-env-changed=PUNCTUAL_HEAP_CC");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").map_err(|why| why.to_string())?;
    let native = env::var("HOST").is_ok_and(|host| host.starts_with(&format!("{arch}-")));
    let usual = if native { "cc".to_owned() } else { format!("{arch}-linux-gnu-gcc") };
    let compiler = env::var("PUNCTUAL_HEAP_CC").unwrap_or(usual);
    let mut command = Command::new(&compiler);
    command.args(["-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-s"]);
    command.args(["-Wl,--build-id=none", SOURCE, "-o"]).arg(library);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{compiler} could not link QEMU's plugin: {status}")),
        Err(why) => Err(format!("{compiler}: {why}")),
    }
}
