#![forbid(unsafe_code)]
//! Side by side: punctual and cyclictest on the same CPU, in interleaved rounds of equal length.
//! Every ratio is reported with all its rounds.

mod build;
mod cost;
mod disturbance;
mod disturbance_rt;
mod explain;
mod figures;
mod fleet;
mod heap;
mod peers;
mod points;
mod process;
mod recording;
mod rounds;
mod scale;
mod spin;
mod switch;
mod syscall;
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
    /// The page whose table the part `peers` writes anew
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

fn main() {
    let args = Args::parse();
    let ended = compare(&args);
    if let Err(why) = ended {
        eprintln!("error: {why}");
        std::process::exit(1);
    }
}

/// A part of the comparison, by its name in the results.
type Part = (&'static str, fn(&Args) -> Result<Value, String>);

fn compare(args: &Args) -> Result<(), String> {
    let mut results = serde_json::Map::new();
    results.insert("machine".into(), write::machine());
    results.insert("quick".into(), args.quick.into());
    let parts: [Part; 20] = [
        ("cost_of_the_loop", |args| cost::measure(args.quick)),
        ("one_millisecond", rounds::one_millisecond),
        ("twenty_microseconds", rounds::twenty_microseconds),
        ("loaded", rounds::loaded),
        ("scale", scale::measure),
        ("recording", recording::measure),
        ("disturbance", disturbance::measure),
        ("disturbance_beside", disturbance::beside::measure),
        ("disturbance_attached", disturbance::attached::measure),
        ("disturbance_rt", disturbance_rt::measure),
        ("syscall", syscall::measure),
        ("switch", switch::measure),
        ("working_set", working_set::measure),
        ("spin", spin::measure),
        ("heap", heap::measure),
        ("points", points::measure),
        ("peers", peers::measure),
        ("explain", explain::measure),
        ("fleet", fleet::measure),
        ("build", build::measure),
    ];
    if let Some(unknown) = args.only.iter().find(|part| !parts.iter().any(|(name, _)| name == part))
    {
        return Err(format!("there is no part {unknown}"));
    }
    let has_cyclictest = tools::has_cyclictest();
    for (name, part) in parts {
        let wanted = args.only.is_empty() || args.only.iter().any(|only| only == name);
        if wanted
            && (has_cyclictest
                || !["one_millisecond", "twenty_microseconds", "loaded"].contains(&name))
        {
            results.insert(name.into(), part(args)?);
        }
    }
    write::results(&args.results, &Value::Object(results))
}
