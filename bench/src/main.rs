#![forbid(unsafe_code)]
//! Side by side: punctual and cyclictest on the same CPU, in interleaved rounds of equal length. Every ratio comes with all its rounds.

mod cost;
mod figures;
mod process;
mod rounds;
mod scale;
mod tools;
mod write;

use clap::Parser;
use std::path::PathBuf;

/// Compares punctual with other tools on this machine and writes a table and JSON. Leave the machine alone meanwhile.
#[derive(Parser)]
pub struct Args {
    /// The program to compare (`./x build` makes it)
    #[arg(long)]
    punctual: PathBuf,
    /// Short rounds, few of them: to see that it works, not for figures
    #[arg(long)]
    quick: bool,
    /// Where the results go
    #[arg(long, default_value = "bench/results")]
    results: PathBuf,
}

fn main() {
    let args = Args::parse();
    let ended = compare(&args);
    if let Err(why) = ended {
        eprintln!("error: {why}");
        std::process::exit(1);
    }
}

fn compare(args: &Args) -> Result<(), String> {
    let mut results = serde_json::Map::new();
    results.insert("machine".into(), write::machine());
    results.insert("quick".into(), args.quick.into());
    results.insert("cost_of_the_loop".into(), cost::measure(args.quick)?);
    if tools::has_cyclictest() {
        results.insert("one_millisecond".into(), rounds::one_millisecond(args)?);
        results.insert("twenty_microseconds".into(), rounds::twenty_microseconds(args)?);
        results.insert("loaded".into(), rounds::loaded(args)?);
    }
    results.insert("scale".into(), scale::measure(args)?);
    write::results(&args.results, &serde_json::Value::Object(results))
}
