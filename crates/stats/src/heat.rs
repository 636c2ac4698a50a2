//! What slowed the machine or left it without power during a phase, in sentences.

use punctual_core::format::{count_with_noun, span_text};
use punctual_core::{Heat, Nanos, Sensor, SensorKind};

/// Sentences about each sensor that showed a limit; none if nothing happened, or is known.
pub(crate) fn describe_limits(heat: &Heat) -> Vec<String> {
    heat.sensors.iter().filter(|sensor| sensor.is_limited()).map(describe_limit).collect()
}

fn describe_limit(sensor: &Sensor) -> String {
    let Sensor { name, source, .. } = sensor;
    let lasted = match sensor.limited_for {
        Nanos::ZERO => "when it began".to_owned(),
        some => format!("for {}", span_text(some)),
    };
    let worst = sensor.worst_value().unwrap_or_default();
    match sensor.kind {
        SensorKind::FrequencyLimit => format!(
            "the frequency of {name} was limited to {} of {} MHz {lasted} ({source})",
            worst / 1_000,
            sensor.reference.unwrap_or_default() / 1_000
        ),
        SensorKind::Cooling => {
            format!("{name} slowed CPUs {lasted}, by up to {worst} steps ({source})")
        }
        SensorKind::Events => {
            format!("{name}: {} ({source})", count_with_noun(worst.unsigned_abs(), "event"))
        }
        SensorKind::Alarm | SensorKind::Temperature | SensorKind::Frequency => {
            format!("{name} {lasted} ({source})")
        }
    }
}
