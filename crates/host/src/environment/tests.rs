use super::*;
use crate::files::Root;

#[test]
fn a_captured_environment_is_restored_from_json() {
    let mut environment = capture_environment(&Root::from_system());
    assert!(environment.kernel.release.known_value().is_some(), "{:?}", environment.kernel.release);
    assert!(environment.topology.online.known_value().is_some_and(|cpus| !cpus.is_empty()));
    assert!(environment.before.interrupts.known_value().is_some_and(|all| !all.lines.is_empty()));
    assert_eq!(environment.after, KernelCounters::default(), "not requested yet");
    environment.record_end(&Root::from_system());
    let json = serde_json::to_string(&environment).expect("plain data");
    assert_eq!(serde_json::from_str::<Environment>(&json).expect("its own text"), environment);
}

#[test]
fn capturing_an_empty_tree_yields_no_known_value() {
    let nowhere = tempfile::tempdir().expect("a directory");
    let environment = capture_environment(&Root::from_base(nowhere.path()));
    let json = serde_json::to_value(&environment).expect("plain data");
    let mut known = Vec::new();
    find_known("", &json, &mut known);
    assert_eq!(known, Vec::<String>::new());
}

fn find_known(path: &str, value: &serde_json::Value, known: &mut Vec<String>) {
    let serde_json::Value::Object(fields) = value else { return };
    for (name, inner) in fields {
        if name == "known" {
            known.push(path.to_owned());
        }
        find_known(&format!("{path}/{name}"), inner, known);
    }
}
