//! `vcgencmd get_throttled` of the Raspberry Pi: the firmware's own view of its supply. The file
//! `get_throttled` of the vendor's kernel is deprecated, and was seen to stay 0 while the program
//! said otherwise (github.com/raspberrypi/linux, issue 2367).

use crate::environment::read_text;
use crate::files::Files;
use punctual_core::heat::UNDER_VOLTAGE;
use punctual_core::{Sensor, SensorKind};

/// Where the distributions have it.
const PLACES: [&str; 3] = ["/usr/bin/vcgencmd", "/usr/local/bin/vcgencmd", "/opt/vc/bin/vcgencmd"];
/// Bits 0 to 3 are the present, 16 to 19 the same since the last boot.
const BITS: [&str; 4] = [UNDER_VOLTAGE, "frequency capped", "throttled", "soft temperature limit"];
/// The distance of a bit of the present to that of the past.
const PAST: u32 = 16;

/// The program, to be started by the caller.
#[derive(Clone, Debug)]
pub struct FirmwareTool {
    /// The program's path.
    pub path: &'static str,
}

impl FirmwareTool {
    /// Its argument.
    pub const ARGUMENT: &str = "get_throttled";

    pub(super) fn find_tool(files: &dyn Files) -> Option<FirmwareTool> {
        let model = read_text(files, "/proc/device-tree/model");
        let is_its = model.known_value().is_some_and(|model| model.contains("Raspberry Pi"));
        let path = PLACES.into_iter().find(|path| is_its && files.exists(path))?;
        Some(FirmwareTool { path })
    }

    /// The bits of its output, `throttled=0x50005`.
    pub fn parse(output: &str) -> Option<u32> {
        let digits = output.trim().strip_prefix("throttled=0x")?;
        u32::from_str_radix(digits, 16).ok()
    }

    pub(super) fn list_sensors(&self) -> Vec<Sensor> {
        let source = format!("vcgencmd {}", FirmwareTool::ARGUMENT);
        let one = |kind| move |name: &&str| (kind, (*name).to_owned());
        let kinds_and_names = BITS.iter().map(one(SensorKind::Alarm)).chain(
            // A bit of the past that becomes set is an event of the phase.
            BITS.iter().map(one(SensorKind::Events)),
        );
        kinds_and_names.map(|(kind, name)| Sensor::new(kind, name, &*source)).collect()
    }

    /// The values of its sensors.
    pub(super) fn sensor_values(bits: Option<u32>) -> Vec<Option<i64>> {
        let bit = |place: u32| bits.map(|bits| i64::from(bits >> place & 1));
        let count = BITS.len() as u32;
        (0..count).map(bit).chain((PAST..PAST + count).map(bit)).collect()
    }
}
