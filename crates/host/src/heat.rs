//! Sensors of heat, frequency and power, where they exist. A board has those that its kernel has
//! drivers for: without one, the answer is unknown, never that all is well.

mod firmware;
mod sources;

pub use firmware::FirmwareTool;

use crate::files::Files;
use punctual_core::{CpuSet, Heat, Sensor, SensorKind};
use sources::Source;

/// The most sensors of one kind: a server has one cooling device for each of its CPUs.
const MAX_OF_A_KIND: usize = 32;

/// Words in the type of a thermal zone at the CPUs, of all the drivers' names: `cpu-thermal`,
/// `soc-thermal`, `package-thermal`, `x86_pkg_temp`, `bigcore0-thermal`, `tj-thermal`.
const AT_THE_CPUS: [&str; 6] = ["cpu", "soc", "package", "pkg", "core", "tj"];

/// When sensors are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SensorMoment {
    /// Nothing is measured yet, or no longer.
    BeforeOrAfter,
    /// While latencies are measured: sensors that disturb CPUs are left out.
    Measuring,
}

/// The sensors of a machine, found once.
#[derive(Debug)]
pub struct Sensors {
    sources: Vec<Source>,
    left_out: usize,
    /// The Raspberry Pi's own program, whose sensors are behind the others.
    pub firmware: Option<FirmwareTool>,
}

impl Sensors {
    /// Finds those that say something about these CPUs; about all if the set is empty.
    pub fn find_sensors(files: &dyn Files, cpus: &CpuSet) -> Sensors {
        let mut sources = sources::find_sources(files, cpus);
        let source_count = sources.len();
        let mut seen_kinds: Vec<SensorKind> = Vec::new();
        sources.retain(|source| {
            seen_kinds.push(source.kind);
            seen_kinds.iter().filter(|kind| **kind == source.kind).count() <= MAX_OF_A_KIND
        });
        let left_out = source_count - sources.len();
        Sensors { sources, left_out, firmware: FirmwareTool::find_tool(files) }
    }

    /// Its sensors without values; `None` if the machine has none.
    pub fn to_heat(&self) -> Option<Heat> {
        let source_sensors =
            self.sources.iter().map(|of| Sensor::new(of.kind, &*of.name, &*of.path));
        let firmware = self.firmware.iter().flat_map(FirmwareTool::list_sensors);
        let sensors: Vec<Sensor> = source_sensors.chain(firmware).collect();
        (!sensors.is_empty()).then_some(Heat { sensors, left_out: self.left_out, times: vec![] })
    }

    /// Reads them, in the order of [`Sensors::to_heat`], with what the firmware's program printed
    /// since.
    pub fn read(
        &self,
        files: &dyn Files,
        moment: SensorMoment,
        firmware: Option<u32>,
    ) -> Vec<Option<i64>> {
        let of_files = self.sources.iter().map(|source| {
            let disturbs = source.disturbs && moment == SensorMoment::Measuring;
            (!disturbs).then(|| source.read(files)).flatten()
        });
        let bits = self.firmware.iter().flat_map(|_| FirmwareTool::sensor_values(firmware));
        of_files.chain(bits).collect()
    }

    /// The hottest thermal zone at the CPUs, else of all: its name and temperature in thousandths
    /// of a degree. `None`: none can be read.
    pub fn hottest_zone(&self, files: &dyn Files) -> Option<(String, i64)> {
        let zones = self.sources.iter().filter(|of| of.kind == SensorKind::Temperature);
        let read = zones.filter_map(|zone| Some((zone.name.clone(), zone.read(files)?)));
        let temperatures: Vec<(String, i64)> = read.collect();
        let at_cpus = |name: &str| AT_THE_CPUS.iter().any(|word| name.contains(word));
        let near =
            temperatures.iter().filter(|(name, _)| at_cpus(name)).max_by_key(|(_, value)| *value);
        near.or_else(|| temperatures.iter().max_by_key(|(_, value)| *value)).cloned()
    }
}

#[cfg(test)]
mod tests;
