//! The table of docs/notes/error-rates.md: simulated histories of one series, with a step at their
//! end.
//!
//!     cargo run --release -p punctual-analyze --example baselines [HISTORIES]

use punctual_stats::baseline::{
    SimulatedMachine, SimulatedNoise, SimulationResult, simulate_histories,
};

/// One in this many runs of the longest histories is judged; of the others, the last.
const EVERY: usize = 8;

/// Figures of consecutive runs of one machine: fixtures/baselines/README.md.
const RECORDED: &str = include_str!("../../../fixtures/baselines/runs.tsv");
fn load_recorded_noise(stretch: usize) -> SimulatedNoise {
    SimulatedNoise::from_recording(RECORDED, stretch)
        .expect("figures in fixtures/baselines/runs.tsv")
}

fn main() {
    let histories = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(600);
    println!(
        "| runs between them | runs before the step | false alarms | noticed within five runs |"
    );
    println!("|---|---|---|---|");
    let noise_kinds = [
        (SimulatedNoise::Normal, "normal"),
        (SimulatedNoise::Heavy, "heavy tails (t, 3)"),
        (load_recorded_noise(1), "recorded, in any order"),
        (load_recorded_noise(5), "recorded, in stretches of 5"),
    ];
    for (noise, words) in noise_kinds {
        for runs in [20, 30, 50, 100] {
            let machine = SimulatedMachine { noise: noise.clone(), runs, step: 2.3 };
            let every = if runs == 100 { EVERY } else { runs - 13 };
            let SimulationResult { judged, false_alarms, steps, noticed } =
                simulate_histories(&machine, histories, every, 1);
            let share = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
            println!(
                "| {words} | {runs} | {false_alarms} of {judged} ({:.2} %) | {noticed} of {steps} \
                 ({:.1} %) |",
                share(false_alarms, judged),
                share(noticed, steps),
            );
        }
    }
}
