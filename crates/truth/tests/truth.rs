//! `punctual-truth`: causes injected in a guest are identified, and the command reports the rate.

mod scores;

use punctual_lab::{Arch, BootKernel};
use punctual_testing as testing;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

const KERNEL: &str = "6.1";

#[test]
fn injected_causes_are_named_in_a_guest() {
    let of_run =
        ["higher-priority-3ms", "irqs-disabled-3ms", "softirq-3ms", "stop-signal-3ms", "nothing"];
    score("run", &of_run);
}

fn score(through: &str, cases: &[&str]) {
    let own = Path::new(env!("CARGO_BIN_EXE_punctual-truth"));
    // The program under test is built beside it.
    let punctual = own.with_file_name("punctual");
    assert!(punctual.exists(), "cargo build -p punctual");
    testing::stripped(&punctual);
    let binary = testing::stripped(own);
    if testing::or_skip(BootKernel::by_name(KERNEL, Arch::Amd64)).is_none()
        || testing::guest(KERNEL).is_none()
    {
        return;
    }
    let mut command = Command::new(binary);
    command.args(["--kernel", KERNEL, "--duration", "500ms", "--json"]);
    command.args(["--through", through]).args(cases);
    let ran = command.stdin(Stdio::null()).output().expect("punctual starts");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(0), "{said}");
    let document: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let system = &document["systems"][0];
    assert_eq!((&system["virtual_time"], &system["through"]), (&true.into(), &through.into()));
    for (case, name) in system["cases"].as_array().expect("cases").iter().zip(cases) {
        assert_eq!(case["name"], *name);
        if let Some(why) = case["skipped"].as_str() {
            println!("SKIPPED: {name} {why} {said}");
            continue;
        }
        let number = |key: &str| case["score"][key].as_u64().expect("a number");
        // Around a stop the sample's own CPU time may be the larger part.
        let share = if name.starts_with("stop") { 9 } else { 10 };
        assert!(number("right") * 10 >= number("affected") * share, "{case:#}");
        // Without an injection no cause is right, but samples are explained.
        assert!(number("explained") > 10, "{case:#}");
        assert_eq!(number("affected") > 2, *name != "nothing", "{case:#}");
    }
}

#[test]
fn an_unknown_case_is_refused() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_punctual-truth"));
    let ran = command.arg("no-such-case").output().expect("punctual starts");
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("`no-such-case`") && said.contains("irqs-disabled"), "{said}");
}
