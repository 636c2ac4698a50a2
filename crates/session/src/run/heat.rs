//! Heat, frequency and power during a run: read about each second on the controller's thread,
//! which runs beside the measured CPUs where there are others.

use super::companion::Companion;
use super::phase_run::PhaseRun;
use punctual_core::{CpuSet, Fact, Heat, Nanos};
use punctual_host::files::Root;
use punctual_host::heat::{FirmwareTool, SensorMoment, Sensors};
use punctual_sys::clock;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Why a bundle has no values.
const NO_SENSOR: &str = "this machine has no sensor of heat, frequency or power";
/// The firmware's program is started at every so many readings.
const FIRMWARE_EVERY: u32 = 10;
/// How long it may take at the begin and the end of a phase, in steps of [`FIRMWARE_STEP`].
const FIRMWARE_STEPS: u32 = 100;
const FIRMWARE_STEP: Duration = Duration::from_millis(5);

/// The sensors of the machine, and what they showed in this phase.
pub(crate) struct HeatWatch {
    files: Root,
    sensors: Sensors,
    /// `None`: the machine has no sensors, or nothing is measured.
    heat: Option<Heat>,
    readings: u32,
    /// The firmware's program while it runs.
    firmware: Option<Child>,
}

impl HeatWatch {
    /// Finds the sensors that say something about these CPUs.
    pub(crate) fn with_cpus(cpus: &CpuSet) -> HeatWatch {
        let files = Root::from_system();
        let sensors = Sensors::find_sensors(&files, cpus);
        HeatWatch { files, sensors, heat: None, readings: 0, firmware: None }
    }

    fn read(&mut self, moment: SensorMoment, phase: &PhaseRun) {
        if self.heat.is_none() {
            return;
        }
        let bits = match moment {
            SensorMoment::BeforeOrAfter => {
                self.start_firmware();
                (0..FIRMWARE_STEPS).find_map(|_| {
                    self.firmware.as_ref()?;
                    std::thread::sleep(FIRMWARE_STEP);
                    self.firmware_bits()
                })
            }
            SensorMoment::Measuring => {
                let bits = self.firmware_bits();
                self.readings += 1;
                if self.readings.is_multiple_of(FIRMWARE_EVERY) {
                    self.start_firmware();
                }
                bits
            }
        };
        let at = Nanos(clock::monotonic_now().ns() - phase.meta.started_monotonic);
        let values = self.sensors.read(&self.files, moment, bits);
        self.heat.iter_mut().for_each(|heat| heat.add(at, &values));
    }

    /// One that still runs is left to end: it waits for the firmware.
    fn start_firmware(&mut self) {
        let Some(tool) = self.sensors.firmware.as_ref().filter(|_| self.firmware.is_none()) else {
            return;
        };
        let mut command = Command::new(tool.path);
        command.arg(FirmwareTool::ARGUMENT).stdin(Stdio::null()).stderr(Stdio::null());
        self.firmware = command.stdout(Stdio::piped()).spawn().ok();
    }

    /// What it printed, if it has ended.
    fn firmware_bits(&mut self) -> Option<u32> {
        let ended = self.firmware.as_mut()?.try_wait();
        if matches!(ended, Ok(None)) {
            return None;
        }
        let mut text = String::new();
        let output = self.firmware.take()?.stdout?;
        // A line; a pipe holds more.
        output.take(256).read_to_string(&mut text).ok()?;
        FirmwareTool::parse(&text)
    }
}

impl Companion for HeatWatch {
    fn begin_phase(&mut self, phase: &mut PhaseRun) {
        self.heat = self.sensors.to_heat();
        self.readings = 0;
        self.read(SensorMoment::BeforeOrAfter, phase);
    }

    fn on_checkpoint(&mut self, phase: &mut PhaseRun) {
        self.read(SensorMoment::Measuring, phase);
    }

    fn end_phase(&mut self, phase: &mut PhaseRun) {
        self.read(SensorMoment::BeforeOrAfter, phase);
        phase.meta.heat = match self.heat.take() {
            Some(heat) => Fact::Known(heat),
            None => Fact::Unavailable(NO_SENSOR.to_owned()),
        };
    }
}
