//! The table of docs/tune.md: tunings of simulated machines, on noise that was recorded.
//!
//!     cargo run --release -p punctual-stats --example tunings [TUNINGS [SETTINGS]]

use punctual_core::Nanos;
use punctual_stats::tune::TuningOptions;
use punctual_stats::tune::scenarios::{TuningCounts, all_scenarios, simulate_tunings};
use punctual_stats::tune::simulated::RecordedMachine;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|n| n.parse().ok());
    let tunings = numbers.next().unwrap_or(1_000);
    let settings = numbers.next().unwrap_or(8);
    let recorded = RecordedMachine::read(include_str!("../../../fixtures/tune/blocks.txt"));
    let recorded = recorded.expect("the fixture is whole");
    println!(
        "| figure, block | machine | false *better* | false *worse* | found | no effect, called so \
         | set: interval misses | harmful | blocks | hours, stated |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (percentile, seconds) in [(99.9, 10), (99.0, 5)] {
        let block = Nanos(seconds * 1_000_000_000);
        let noise = recorded.window_logs(percentile, seconds as usize);
        let options = TuningOptions { block, ..TuningOptions::default() };
        for scenario in all_scenarios(settings) {
            let counted = simulate_tunings(&scenario, &noise, &options, tunings);
            println!("| p{percentile}, {seconds} s | {} |{}", scenario.name, format_row(&counted));
        }
    }
}

fn format_row(counted: &TuningCounts) -> String {
    let share = |part: usize, of: usize| match of {
        0 => " – |".to_owned(),
        _ => format!(" {:.1} % |", 100.0 * part as f64 / of as f64),
    };
    let TuningCounts { tunings, sets, called_none, .. } = *counted;
    share(counted.falsely_better, tunings)
        + &share(counted.falsely_worse, tunings)
        + &share(counted.found, counted.to_find)
        + &share(called_none[0], called_none[1])
        + &share(sets[1], sets[0])
        + &share(counted.harmful, tunings)
        + &format!(" {:.0} | {:.1}, {:.1} |", counted.blocks, counted.hours[0], counted.hours[1])
}
