#![forbid(unsafe_code)]
//! Side by side: punctual and cyclictest on the same CPU, in interleaved rounds of equal length.
//! Every ratio is reported with all its rounds.

mod build;
mod disturbance_attached;
mod figures;
mod points;
mod process;
mod recording;
mod rounds;
mod tools;
mod working_set;
mod write;

use clap::Parser;
use serde_json::Value;
use std::path::PathBuf;

/// Compares punctual with other tools on this machine and writes a table and JSON. Leave the
/// machine alone meanwhile.
#[derive(Parser)]
pub struct Args {
    /// The program to compare (`./x build` makes it)
    #[arg(long)]
    punctual: PathBuf,
    /// Short rounds, few of them: to see that it works, not for figures
    #[arg(long)]
    quick: bool,
    /// Only the parts of these names
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<String>,
    /// Where the results go
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

fn main() {
    let args = Args::parse();
    let ended = run_comparisons(&args);
    if let Err(why) = ended {
        eprintln!("error: {why}");
        std::process::exit(1);
    }
}

/// A part of the comparison, by its name in the results.
type Part = (&'static str, fn(&Args) -> Result<Value, String>);

fn run_comparisons(args: &Args) -> Result<(), String> {
    let mut results = serde_json::Map::new();
    results.insert("machine".into(), write::describe_machine());
    results.insert("quick".into(), args.quick.into());
    let parts: [Part; 6] = [
        ("one_millisecond", rounds::one_millisecond),
        ("recording", recording::measure_recorders),
        ("disturbance_attached", disturbance_attached::measure_disturbance),
        ("working_set", working_set::measure_working_sets),
        ("points", points::measure_points),
        ("build", build::measure_builds),
    ];
    if let Some(unknown) = args.only.iter().find(|part| !parts.iter().any(|(name, _)| name == part))
    {
        return Err(format!("there is no part {unknown}"));
    }
    let has_cyclictest = tools::has_cyclictest();
    for (name, part) in parts {
        let wanted = args.only.is_empty() || args.only.iter().any(|only| only == name);
        if wanted && (has_cyclictest || name != "one_millisecond") {
            results.insert(name.into(), part(args)?);
        }
    }
    write::write_results(&args.results, &Value::Object(results))
}
