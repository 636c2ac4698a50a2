//! The breakdown of every sample's time, from the experiment to the user's view.

use crate::common::{Place, is_root, text};
use punctual_testing::HiddenSamples;
use serde_json::Value;

fn experiment(explain: &str, more: &str) -> String {
    format!(
        "[experiment]\nname = \"account\"\n{explain}\n[[measure]]\nname = \"timer\"\nkind = \
         \"timer\"\ncpus = \"0\"\nperiod = \"1ms\"\npolicy = \"fifo\"\npriority = 80\n{more}\n"
    )
}

/// `None`, with the reason printed, if this kernel cannot.
fn account(place: &Place) -> Option<Value> {
    let summary = place.summary();
    let account = &summary["phases"][0]["series"][0]["account"];
    if let Some(why) = account["unavailable"].as_str() {
        println!("SKIPPED: {why}");
        return None;
    }
    Some(account["known"].clone())
}

/// The cost of the accounting was measured, with any result.
fn is_calibrated(calibration: &Value) {
    let known = &calibration["known"];
    assert_eq!(known["recorders"], serde_json::json!(["accounting"]), "{calibration}");
    let [without, with] = ["samples_without", "samples_with"].map(|key| known[key].as_u64());
    // 10 turns of 200 ms each way: some periods may be missed.
    assert!(without > Some(1_000) && with > Some(1_000), "{calibration}");
    for shift in known["shifts"].as_array().expect("shifts") {
        let [low, added, high] = ["low_ns", "added_ns", "high_ns"].map(|key| shift[key].as_i64());
        assert!(low <= added && added <= high, "{shift}");
        assert_eq!(shift["resolved"], low > Some(0) || high < Some(0), "{shift}");
    }
    let programs = &known["programs"]["known"];
    // Each wake-up of a thread runs the programs of its timer, of waking and of two switches.
    assert!(programs["runs"].as_u64() > Some(5 * 200), "{calibration}");
    assert!(programs["total_ns"].as_u64() > Some(0), "{calibration}");
}

#[test]
fn every_sample_is_in_the_account_and_the_parts_are_its_latency() {
    if !is_root("every_sample_is_in_the_account_and_the_parts_are_its_latency") {
        return;
    }
    let place = Place::with(&experiment("[explain]\nworst = 0", "duration = \"2s\""));
    let hidden = HiddenSamples::begin();
    let file = ["run", "--quiet", "experiment.toml", "--output", "bundle"];
    let ran = place.punctual(&[&file[..], &["--calibrate"]].concat());
    let hidden = hidden.samples(1_000_000);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran));
    let Some(account) = account(&place) else { return };
    let summary = place.summary();
    is_calibrated(&summary["calibration"]);
    assert!(!place.bundle().join("calibration").exists(), "recorders wrote there meanwhile");
    let series = &summary["phases"][0]["series"][0];
    assert_eq!(account["samples"], series["count"]);
    let number = |value: &Value| value.as_f64().unwrap();
    let missing = number(&account["unattributed"]) - hidden as f64;
    assert!(
        missing * 20.0 < number(&account["samples"]),
        "{hidden} may be without kernel events: {account}"
    );
    // Means over all samples add up to the mean latency, which has another source.
    let parts: f64 = account["whole"]["mean_ns"].as_object().unwrap().values().map(number).sum();
    let mean = number(&series["mean"]);
    assert!((parts - mean).abs() <= mean * 1e-9 + 1.0, "{parts} {mean}");
    let counts: f64 =
        account["bands"].as_array().unwrap().iter().map(|band| number(&band["count"])).sum();
    assert!((counts - number(&account["samples"])).abs() < 1.0, "{account}");
    assert!(account["cost"]["known"]["per_sample"].as_u64() > Some(0), "{account}");
    assert!(!place.bundle().join("windows").exists(), "worst = 0: no windows");
    let shown = text(&place.punctual(&["show", "bundle"]));
    assert!(shown.contains("time by cause"), "{shown}");
    assert!(shown.contains("cost of the accounting: "), "{shown}");
    assert!(shown.contains("cost of recording: latency of a timer thread"), "{shown}");
    let report = place.punctual(&["report", "bundle"]);
    assert!(report.status.success(), "{}", text(&report));
    assert!(
        std::fs::read_to_string(place.bundle().join("report.html"))
            .unwrap()
            .contains("Time by cause")
    );
}
