//! The probes of a recording, and their source numbers.

use super::request::WantedProbes;
use super::sink::RecordingSink;
use crate::exit::Failure;
use punctual_bundle::recording::Encoding;
use punctual_core::CpuSet;
use punctual_core::event::{CallCounts, Names, RecordedSource};
use punctual_record::probe::{self, Probes};

pub struct Probing {
    probes: Probes,
    /// The number of their first source; the others follow, in the order of the CPUs.
    first: u32,
    cpus: CpuSet,
}

impl Probing {
    /// Attaches the probes on all online CPUs, independent of the CPUs of kernel events: a call
    /// that migrates must not be lost.
    pub fn start(
        wanted: &WantedProbes,
        online: &CpuSet,
        sink: &mut RecordingSink,
    ) -> Result<Probing, Failure> {
        let probes = Probes::start(&wanted.functions, &wanted.lines, online, wanted.request)
            .map_err(Failure::refused)?;
        let numbers: Vec<u32> = online.iter().map(|_| sink.add_source()).collect();
        let first = numbers.first().copied().unwrap_or(0);
        describe(sink, first, probes.sources());
        Ok(Probing { probes, first, cpus: online.clone() })
    }

    /// Adds the names of functions and lines, and the cost of probing. Lines are points, and the
    /// only ones: those of applications are not recorded beside probes.
    pub fn name(wanted: &WantedProbes, names: &mut Names) {
        names.functions = probe::names(&wanted.functions);
        names.lines = probe::line_names(&wanted.lines);
        names.points = wanted.lines.iter().map(|line| line.name.clone()).collect();
        names.probe_costs = wanted.costs.clone();
    }

    pub fn take(&mut self, sink: &mut RecordingSink) {
        describe(sink, self.first, self.probes.sources());
        let (first, cpus) = (self.first, &self.cpus);
        self.probes.drain(&mut |cpu, records| {
            sink.append(number(first, cpus, cpu), Encoding::KERNEL, records)
        });
    }

    /// The fill level of the fullest buffer, in hundredths.
    pub fn fill(&self) -> u64 {
        self.probes.fill()
    }

    /// Detaches the probes and reads the rest; returns the counts of calls.
    pub fn stop(self, sink: &mut RecordingSink) -> Vec<CallCounts> {
        let (first, cpus) = (self.first, self.cpus);
        let (calls, sources) = self.probes.stop(&mut |cpu, records| {
            sink.append(number(first, &cpus, cpu), Encoding::KERNEL, records)
        });
        describe(sink, first, sources);
        calls
    }
}

fn describe(sink: &mut RecordingSink, first: u32, sources: Vec<RecordedSource>) {
    sources.into_iter().zip(first..).for_each(|(source, number)| sink.describe(number, source));
}

fn number(first: u32, cpus: &CpuSet, cpu: u16) -> u32 {
    first + cpus.iter().take_while(|one| *one < usize::from(cpu)).count() as u32
}
