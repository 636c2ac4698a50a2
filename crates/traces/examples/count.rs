//! `count FILE…`: the tracepoints of traces, with the numbers of records seen and used.
use punctual_traces::{ReadAt, Trace};
use std::error::Error;
use std::fs::File;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let mut trace = match std::path::Path::new(&path).is_dir() {
            true => open_directory(path.as_ref())?,
            false => Trace::open(File::open(&path)?)?,
        };
        let mut events = 0u64;
        for event in trace.by_ref() {
            event?;
            events += 1;
        }
        let facts = trace.facts();
        println!("{path}: {}, {events} events", facts.recorded.recorder);
        println!(
            "  clock {:?}, kernel {:?}, lost {}",
            facts.clock,
            facts.kernel,
            facts.recorded.lost_count()
        );
        println!("  unreadable {}, out of order {}", facts.unreadable, facts.out_of_order);
        for (name, count) in &facts.tracepoints {
            println!("  {name} {} {}", count.seen, count.used);
        }
        for finding in &facts.recorded.findings {
            println!("  {}", finding.message);
        }
    }
    Ok(())
}

fn open_directory(path: &std::path::Path) -> Result<Trace, Box<dyn Error>> {
    let mut streams: Vec<Box<dyn ReadAt>> = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.path().is_file() && entry.file_name() != "metadata" {
            streams.push(Box::new(File::open(entry.path())?));
        }
    }
    Ok(Trace::open_ctf(File::open(path.join("metadata"))?, streams)?)
}
