//! Experiment P5's entries into the kernel as in the publication: punctual's own module, which
//! stores points, built for a guest's kernel and measured there in virtual time
//! (docs/reference/workloads.md).

use punctual_lab::{Accel, FileSource, GuestFile, GuestOutcome, Job};
use punctual_testing as testing;
use serde_json::Value;
use std::path::Path;

const OWN: [&str; 4] = ["module-device", "module-ioctl", "module-procfs", "module-debugfs"];

#[test]
fn points_are_stored_by_a_module_of_our_own() {
    let Some(mut guest) =
        testing::punctual_guest(env!("CARGO_BIN_EXE_punctual"), "debian:6.1", "", 1)
    else {
        return;
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../measure/module");
    let Some(module) = testing::or_skip(guest.kernel.build_module(&source, "punctual_point"))
    else {
        return;
    };
    guest.accel = Accel::VirtualTime;
    guest.job = Job::Script(include_str!("guests/module.sh").into());
    guest.files = vec![GuestFile {
        path: "/punctual_point.ko".into(),
        source: FileSource::Bytes(module),
        mode: 0o644,
    }];
    let Some(result) = testing::or_skip(guest.run()) else { return };
    let report = |name: &str| {
        let bytes = result
            .results
            .get(name)
            .unwrap_or_else(|| panic!("no {name}: {}", testing::story(&result)));
        std::str::from_utf8(bytes).expect("text").trim().to_owned()
    };
    assert!(
        result.outcome == GuestOutcome::Finished && !result.results.contains_key("insmod"),
        "{}",
        testing::story(&result)
    );
    let summary = |name: &str| -> Value {
        serde_json::from_str(&report(name))
            .unwrap_or_else(|why| panic!("{why}: {}", report(&format!("said-{name}"))))
    };
    let (with, without) = (summary("with"), summary("without"));
    let of = |summary: &Value, name: &str| -> Value {
        let all = summary["mechanisms"].as_array().expect("mechanisms");
        all.iter()
            .find(|one| one["name"] == name)
            .unwrap_or_else(|| panic!("no {name}: {all:#?}"))
            .clone()
    };
    for name in OWN {
        let way = of(&with, name);
        println!("{name}: {way}");
        assert_eq!(way["count"], 1_000, "{way}");
        let absent = of(&without, name);
        assert_eq!(absent["count"], 0, "{absent}");
        assert!(
            absent["unavailable"].to_string().contains("punctual_point is not loaded"),
            "{absent}"
        );
    }
    let validations =
        with["phases"][0]["measures"][0]["notes"]["validations"].as_array().expect("validations");
    let stored =
        validations.iter().filter(|one| one["what"].to_string().contains("that the module stored"));
    assert_eq!(stored.filter(|one| one["agrees"] == true).count(), OWN.len(), "{validations:#?}");
    // The buffer holds its newest records, and returns each once.
    assert_eq!(
        (report("drained"), report("drained-again")),
        ((16_384 * 64).to_string(), "0".to_owned())
    );
    // Why there is no system call of our own: the table exists, no module may name it, and this
    // kernel does not use it.
    println!(
        "sys_call_table {}, exported {}, x64_sys_call {}",
        report("table"),
        report("exported"),
        report("switch")
    );
    assert_eq!(report("exported"), "0");
}
