//! Steal as a part of the cycles: as much as the kernel's clock counts, and no more.

use super::{OWN, attached, compiled, part, series};
use crate::common::text;
use punctual_testing::Steal;

/// The kernel's unit of it, in ns.
const TICK: f64 = 1e7;

#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn steal_is_a_separate_part_of_the_latency() {
    let Some(place) = compiled() else { return };
    let steal = Steal::begin(0);
    let output = attached(&place, &[], &["./periodic", "fifo:greedy", "1000", "0"]);
    assert_eq!(output.status.code(), OWN, "{}", text(&output));
    let taken = steal.excuse().left() as f64;
    let (summary, response) = (place.summary(), "periodic/response");
    let cycles = series(&summary, response)["count"].as_f64().unwrap();
    let part = part(&summary, response, "steal") * cycles;
    assert!(part <= taken + TICK, "{part} ns of {taken}");
    // Nine tenths of its time are within cycles; steal before and after them is in none.
    let meanwhile = std::fs::read_to_string(place.path().join("stolen")).unwrap();
    let meanwhile = meanwhile.parse::<f64>().unwrap() * TICK;
    let kept = !summary["findings"].to_string().contains("steal-not-divided");
    if !kept || meanwhile < 10.0 * TICK {
        println!("SKIPPED: lacks more steal than {meanwhile} ns, kept for each CPU");
        return;
    }
    assert!(part >= meanwhile / 2.0, "{part} ns of {meanwhile}");
}
