//! `count FILE…`: the tracepoints of traces, as often as each was seen and used.
use punctual_traces::Trace;
use std::error::Error;
use std::fs::File;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let mut trace = Trace::open(File::open(&path)?)?;
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
            facts.recorded.lost()
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
