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
        describe_sources(sink, first, probes.record_sources());
        Ok(Probing { probes, first, cpus: online.clone() })
    }

    /// Adds the names of functions and lines, and the cost of probing. Lines are points, and the
    /// only ones: those of applications are not recorded beside probes.
    pub(crate) fn add_names_to(wanted: &WantedProbes, names: &mut Names) {
        names.functions = probe::function_names(&wanted.functions);
        names.lines = probe::line_names(&wanted.lines);
        names.points = wanted.lines.iter().map(|line| line.name.clone()).collect();
        names.probe_costs = wanted.costs.clone();
    }

    pub(crate) fn drain_into(&mut self, sink: &mut RecordingSink) {
        describe_sources(sink, self.first, self.probes.record_sources());
        let (first, cpus) = (self.first, &self.cpus);
        self.probes.drain_calls(&mut |cpu, records| {
            sink.append_records(source_number(first, cpus, cpu), Encoding::KERNEL, records)
        });
    }

    /// The fill level of the fullest buffer, in hundredths.
    pub(crate) fn fill_level(&self) -> u64 {
        self.probes.fill_percent()
    }

    /// Detaches the probes and reads the rest; returns the counts of calls.
    pub fn stop(self, sink: &mut RecordingSink) -> Vec<CallCounts> {
        let (first, cpus) = (self.first, self.cpus);
        let (calls, sources) = self.probes.stop_probes(&mut |cpu, records| {
            sink.append_records(source_number(first, &cpus, cpu), Encoding::KERNEL, records)
        });
        describe_sources(sink, first, sources);
        calls
    }
}

fn describe_sources(sink: &mut RecordingSink, first: u32, sources: Vec<RecordedSource>) {
    sources
        .into_iter()
        .zip(first..)
        .for_each(|(source, number)| sink.describe_source(number, source));
}

fn source_number(first: u32, cpus: &CpuSet, cpu: u16) -> u32 {
    first + cpus.iter().take_while(|one| *one < usize::from(cpu)).count() as u32
}
