//! `punctual cpus`: sets of CPUs as lists and masks.

use crate::exit::{Ending, Exit, Failure};
use crate::output;
use clap::ValueEnum;
use punctual_core::CpuSet;
use punctual_host::files::Root;
use punctual_host::isolate::calculate_set;
use serde::Serialize;

/// Convert and combine sets of CPUs: lists, masks, and, or, xor, minus
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual cpus 0xf0\n  punctual cpus 0-7 and 0x33 minus 1\n  \
                        echo $(punctual cpus all minus 2-3 --print mask) > \
                        /proc/irq/default_smp_affinity\n\nA set is a list (`3`, `0-2,4`, `2-N` up \
                        to the last present CPU), a hexadecimal mask (`0xf0`, or 32-bit words: \
                        `1,00000000`), or `all`, the online CPUs. Operators are applied from left \
                        to right.")]
pub struct CpusArgs {
    /// A set, then any number of an operator (and, or, xor, minus) and a further set
    #[arg(required = true, value_name = "CPUS")]
    words: Vec<String>,
    /// Print this alone
    #[arg(long, value_enum, value_name = "PART")]
    print: Option<CpusPart>,
    /// Print JSON
    #[arg(long, conflicts_with = "print")]
    json: bool,
}

/// A part of the result.
#[derive(Clone, Copy, ValueEnum)]
enum CpusPart {
    /// As a list
    List,
    /// As a mask in the kernel's 32-bit words
    Mask,
    /// The number of CPUs
    Count,
}

/// The result.
#[derive(Serialize)]
struct CpusAnswer {
    list: CpuSet,
    mask: String,
    count: usize,
}

/// Prints the result.
pub fn run(args: CpusArgs) -> Ending {
    let list = calculate_set(&Root::from_system(), &args.words).map_err(Failure::refused)?;
    let answer = CpusAnswer { mask: list.to_mask(), count: list.len(), list };
    match args.print {
        _ if args.json => output::print_json(&answer)?,
        None => {
            let CpusAnswer { list, mask, count } = &answer;
            output::print_stdout(&format!("list   {list}\nmask   {mask}\ncount  {count}\n"))?
        }
        Some(CpusPart::List) => output::print_stdout(&format!("{}\n", answer.list))?,
        Some(CpusPart::Mask) => output::print_stdout(&format!("{}\n", answer.mask))?,
        Some(CpusPart::Count) => output::print_stdout(&format!("{}\n", answer.count))?,
    }
    Ok(Exit::Done)
}
