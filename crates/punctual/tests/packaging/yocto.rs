//! The recipe for Yocto: checks without BitBake.

use crate::packaged::{lacks, repository, run};
use std::fs;
use std::process::Command;

const RECIPE: &str = "punctual_0.1.0.bb";

fn crates() -> String {
    run(&mut Command::new(repository().join("packaging/yocto/crates")))
}

#[test]
fn the_yocto_recipe_fetches_and_verifies_every_crate() {
    let (lock, crates) =
        (fs::read_to_string(repository().join("Cargo.lock")).expect("a lock file"), crates());
    let lock: toml::Table = lock.parse().expect("TOML");
    let mut count = 0;
    for package in lock["package"].as_array().expect("packages") {
        let text = |key: &str| package.get(key).and_then(toml::Value::as_str);
        let (Some(name), Some(version)) = (text("name"), text("version")) else {
            panic!("{package}");
        };
        let Some(checksum) = text("checksum") else { continue };
        count += 1;
        assert!(crates.contains(&format!("/{name}/{version} \\\n")), "{name} is not fetched");
        let sum = format!("SRC_URI[{name}-{version}.sha256sum] = \"{checksum}\"\n");
        assert!(crates.contains(&sum), "{name} is not verified");
    }
    assert_eq!(crates.matches("    crate://").count(), count);
}

#[test]
fn the_yocto_recipe_has_the_current_version_and_licences() {
    let recipe = fs::read_to_string(repository().join("packaging/yocto").join(RECIPE));
    let recipe = recipe.expect("the recipe");
    assert!(RECIPE.contains(&format!("_{}.bb", env!("CARGO_PKG_VERSION"))));
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let sum = run(Command::new("md5sum").arg(repository().join(licence)));
        let sum = sum.split_whitespace().next().expect("a checksum");
        assert!(recipe.contains(&format!("file://{licence};md5={sum}")), "{licence} changed");
    }
}

#[test]
fn the_linter_of_recipes_has_no_objection() {
    if lacks("the check of the recipe", &["oelint-adv"]) {
        return;
    }
    let layer = tempfile::tempdir().expect("a directory");
    let place = layer.path().join("recipes-devtools/punctual");
    fs::create_dir_all(&place).expect("a directory");
    fs::copy(repository().join("packaging/yocto").join(RECIPE), place.join(RECIPE))
        .expect("copied");
    fs::write(place.join("punctual-crates.inc"), crates()).expect("written");
    let mut linter = Command::new("oelint-adv");
    // Reaching a homepage depends on the network.
    linter.args(["--quiet", "--release", "whinlatter", "--hide", "info"]);
    linter.args(["--suppress", "oelint.vars.homepageping"]).arg(place.join(RECIPE));
    let output = linter.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains(":error:"), "{said}");
}
