//! First touches of memory from the heap: their time is spent in the allocating process, not in
//! punctual's own thread.

use super::case::{Case, judge};
use serde_json::Value;

pub fn are_its_own(case: &Case) {
    let document = case.explained(&[]);
    let touches = document["samples"].as_array().unwrap().iter();
    let touches: Vec<&Value> = touches
        .filter(|sample| sample["series"].as_str().is_some_and(|series| series.contains("touch")))
        .collect();
    // Each round is a separate process; one that ended before its name was seen has only a number.
    let task = |sample: &&&Value| sample["task"].as_str().unwrap_or_default().to_owned();
    let named: Vec<String> = touches
        .iter()
        .map(|sample| task(&sample))
        .filter(|name| !name.starts_with("tid "))
        .collect();
    assert!(
        named.iter().all(|name| name == "punctual-heap" || name == "memfd:punctual-heap"),
        "{named:?}"
    );
    assert!(named.len() * 3 >= touches.len() * 2, "{} of {} are named", named.len(), touches.len());
    // Interrupts come in between, and after ended processes the softirq that frees their memory;
    // both are reported as such.
    let served = |part: &Value| ["irq", "softirq"].iter().any(|word| part["cause"] == *word);
    judge(case, &touches, 10, |part| part["cause"] == "page-fault" || served(part));
    let parts = || touches.iter().flat_map(|sample| sample["parts"].as_array().unwrap());
    let sum = |is: &dyn Fn(&Value) -> bool| {
        parts().filter(|part| is(part)).filter_map(|part| part["ns"].as_i64()).sum::<i64>()
    };
    let (faults, all) = (sum(&|part| part["cause"] == "page-fault"), sum(&|_| true));
    assert!(faults * 4 >= all * 3, "{faults} of {all} ns are page faults");
}
