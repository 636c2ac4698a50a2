//! Trees of boards as the kernel's sources and documents describe them.

use super::*;
use crate::check::testing::FakeFiles;
use punctual_core::Nanos;

const RASPBERRY_PI: &str = include_str!("boards/raspberry-pi.txt");
const JETSON: &str = include_str!("boards/jetson-orin.txt");
const IMX8MP: &str = include_str!("boards/imx8mp.txt");
const RK3588: &str = include_str!("boards/rk3588.txt");
const X86: &str = include_str!("boards/x86.txt");

/// A tree of lines `path = value`; a value `?11` is the error 11.
fn tree(text: &str) -> FakeFiles {
    let lines = text.lines().filter(|line| line.starts_with('/'));
    lines.fold(FakeFiles::new(), |files, line| {
        let (path, value) = line.split_once(" =").expect("path and value");
        match value.trim().strip_prefix('?') {
            Some(errno) => files.with_refusal(path, errno.parse().expect("a number")),
            None => files.with_file(path, &format!("{}\n", value.trim())),
        }
    })
}

fn cpus(list: &str) -> CpuSet {
    list.parse().expect("a list of CPUs")
}

/// The values of all sensors at an instant, one line each.
fn shown(files: &FakeFiles, measured: &str, moment: SensorMoment, bits: Option<u32>) -> String {
    let sensors = Sensors::find_sensors(files, &cpus(measured));
    let heat = sensors.to_heat().expect("it has sensors");
    let read = sensors.read(files, moment, bits);
    assert_eq!(read.len(), heat.sensors.len());
    let line = |(of, value): (&Sensor, &Option<i64>)| {
        let value = value.map_or("-".to_owned(), |value| value.to_string());
        format!("{:?} {} {value}\n", of.kind, of.name)
    };
    heat.sensors.iter().zip(&read).map(line).collect()
}

#[test]
fn a_raspberry_pi_has_its_alarm_and_the_bits_of_its_firmware() {
    let bits = FirmwareTool::parse("throttled=0x50005\n");
    let text = shown(&tree(RASPBERRY_PI), "3", SensorMoment::Measuring, bits);
    insta::assert_snapshot!(text, @r"
    Temperature cpu-thermal 61835
    Frequency CPU 0-3 1800000
    FrequencyLimit CPU 0-3 1800000
    Cooling cpufreq-cpu0 0
    Alarm under-voltage 0
    Alarm under-voltage 1
    Alarm frequency capped 0
    Alarm throttled 1
    Alarm soft temperature limit 0
    Events under-voltage 1
    Events frequency capped 0
    Events throttled 1
    Events soft temperature limit 0
    ");
    for wrong in ["", "throttled=", "throttled=0xg", "error=1", "throttled=0x123456789"] {
        assert_eq!(FirmwareTool::parse(wrong), None, "{wrong}");
    }
    // Without the vendor's kernel and program nothing knows the voltage.
    let plain =
        tree(RASPBERRY_PI).without_path("/sys/class/hwmon").without_path("/usr/bin/vcgencmd");
    let sensors = Sensors::find_sensors(&plain, &cpus("3"));
    let mut heat = sensors.to_heat().expect("it has a zone");
    heat.add(Nanos::ZERO, &sensors.read(&plain, SensorMoment::BeforeOrAfter, None));
    assert_eq!(heat.unanswered_questions(), ["under-voltage"]);
}

#[test]
fn a_jetson_counts_and_a_zone_may_refuse() {
    let text = shown(&tree(JETSON), "2", SensorMoment::Measuring, None);
    insta::assert_snapshot!(text, @r"
    Temperature cpu-thermal 47312
    Temperature cv0-thermal -
    Temperature tj-thermal 48093
    Frequency CPU 0-3 1510400
    FrequencyLimit CPU 0-3 1510400
    Alarm over-current (channel 1) 0
    Alarm over-current (channel 2) 0
    Events under-voltage (oc1) 0
    Events over-current (oc2) 7
    Events over-current (oc3) 2
    ");
}

#[test]
fn boards_without_a_sensor_of_their_supply_say_so() {
    for (board, measured) in [(IMX8MP, "3"), (RK3588, "4-5")] {
        let files = tree(board);
        let sensors = Sensors::find_sensors(&files, &cpus(measured));
        let mut heat = sensors.to_heat().expect("it has sensors");
        heat.add(Nanos::ZERO, &sensors.read(&files, SensorMoment::Measuring, None));
        assert_eq!(heat.unanswered_questions(), ["under-voltage"]);
        assert_eq!(heat.limited_spans(), []);
    }
    // Only the policy of the measured CPUs; a slowed GPU slows no CPU.
    let text = shown(&tree(RK3588), "4-5", SensorMoment::Measuring, None);
    assert_eq!(text.matches("CPU 4-5").count(), 2, "{text}");
    assert!(!text.contains("CPU 0-3") && !text.contains("Cooling devfreq"), "{text}");
}

#[test]
fn on_x86_what_interrupts_measured_cpus_is_read_outside_only() {
    let text = shown(&tree(X86), "0", SensorMoment::Measuring, None);
    insta::assert_snapshot!(text, @r"
    Temperature acpitz -
    Temperature x86_pkg_temp -
    Frequency CPU 0 -
    FrequencyLimit CPU 0 3400000
    Cooling Processor 0
    Cooling Processor 0
    Cooling intel_powerclamp -1
    Events throttling of CPU 0 3
    Events throttling of package 0 12
    ");
    let outside = shown(&tree(X86), "0", SensorMoment::BeforeOrAfter, None);
    assert!(outside.contains("x86_pkg_temp 58000\nFrequency CPU 0 3000000"), "{outside}");
    // The register is read on the package's first CPU, which is not measured here; newer kernels
    // do not interrupt a CPU for its frequency.
    let newer = tree(X86).with_file("/proc/sys/kernel/osrelease", "6.1.0");
    let text = shown(&newer, "1", SensorMoment::Measuring, None);
    assert!(text.contains("x86_pkg_temp 58000\nFrequency CPU 1 2900000"), "{text}");
}

#[test]
fn the_hottest_zone_is_that_of_the_cpus() {
    let hottest = |board: &str| {
        Sensors::find_sensors(&tree(board), &CpuSet::new()).hottest_zone(&tree(board))
    };
    assert_eq!(hottest(RK3588), Some(("bigcore0-thermal".to_owned(), 59_153)));
    assert_eq!(hottest(JETSON), Some(("tj-thermal".to_owned(), 48_093)));
    assert_eq!(hottest(X86), Some(("x86_pkg_temp".to_owned(), 58_000)));
    assert_eq!(hottest("/proc/sys/kernel/osrelease = 6.1"), None);
}

#[test]
fn a_machine_without_sensors_has_no_heat() {
    let guest = tree("/proc/sys/kernel/osrelease = 6.1");
    assert_eq!(Sensors::find_sensors(&guest, &CpuSet::new()).to_heat(), None);
}

#[test]
fn sensors_are_bounded_by_kind() {
    let many = (0..500).fold(tree(RASPBERRY_PI), |files, number| {
        let zone = format!("/sys/class/thermal/thermal_zone{number}");
        files.with_file(&format!("{zone}/type"), "a").with_file(&format!("{zone}/temp"), "1")
    });
    let heat = Sensors::find_sensors(&many, &CpuSet::new()).to_heat().expect("it has sensors");
    let zones = heat.sensors.iter().filter(|one| one.kind == SensorKind::Temperature).count();
    assert_eq!((zones, heat.left_out), (MAX_OF_A_KIND, 500 - MAX_OF_A_KIND));
}
