//! Says of a program that is not built as it ships in what it differs: in its version, and in the
//! bundles that it makes.

use std::env;

const FEATURES: [&str; 3] = ["bpf", "manual", "parquet"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let has =
        |feature: &str| env::var_os(format!("CARGO_FEATURE_{}", feature.to_uppercase())).is_some();
    // The profile `quick` alone is a release at this level. A build for tests is known by its
    // assertions.
    let quick = is("PROFILE", "release") && is("OPT_LEVEL", "1");
    let missing_features: Vec<&str> =
        FEATURES.into_iter().filter(|feature| !has(feature)).collect();
    let mut differs = Vec::new();
    differs.extend(quick.then(|| "quick build".to_owned()));
    differs.extend(
        (!missing_features.is_empty()).then(|| format!("without {}", missing_features.join(", "))),
    );
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets CARGO_PKG_VERSION");
    let differs = differs.join(", ");
    match differs.is_empty() {
        true => println!("cargo::rustc-env=PUNCTUAL_VERSION={version}"),
        false => {
            println!("cargo::rustc-env=PUNCTUAL_VERSION={version} ({differs})");
            println!("cargo::rustc-env=PUNCTUAL_DIFFERS={differs}");
        }
    }
}
