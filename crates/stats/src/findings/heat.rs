//! Heat and power: what slowed the machine during a phase, when, and which of the worst samples
//! were taken then.

use crate::heat::describe_limits;
use crate::{PhaseView, SeriesView};
use punctual_core::format::span_text;
use punctual_core::{Clock, Finding, Heat, Nanos, SensorKind, Severity};

/// The worst samples of each series that are compared with the seconds of a limit.
const WORST: usize = 10;
/// The worst samples are likely due to it if they are so many times denser then.
const DENSER: f64 = 2.0;
/// The most sensors and series that a finding names.
const NAMED: usize = 6;

/// The finding about a phase in which heat or a weak supply slowed the machine.
pub(crate) fn of_heat(phase: &PhaseView) -> Option<Finding> {
    let heat = phase.meta.heat.known_value()?;
    let mut said = describe_limits(heat);
    if said.is_empty() {
        return None;
    }
    said.truncate(NAMED);
    let limited = heat.limited_spans();
    let (first, last) = (limited.first()?.0, limited.last()?.1);
    said.push(format!("between {} and {} of the phase", span_text(first), span_text(last)));
    let hottest = heat.sensors.iter().filter(|one| one.kind == SensorKind::Temperature);
    let hottest = hottest.filter_map(|one| Some((one.worst_value()?, &one.name))).max();
    said.extend(hottest.map(|(of, name)| format!("{name} reached {:.1} °C", of as f64 / 1_000.0)));
    said.extend(worst_samples(phase, heat, &limited));
    let message = "throttled or under-voltage during the run: figures of these seconds are those \
                   of a slower machine";
    Some(
        Finding::new("throttled", Severity::Warning, &phase.meta.name, message)
            .with_evidence(said.join("; "))
            .with_remedy(
                "improve the cooling or the power supply, or let the machine cool down before: \
                 cool_below = \"60C\"",
            ),
    )
}

/// For each series the number of its worst samples in these times, where they are denser then.
fn worst_samples(phase: &PhaseView, heat: &Heat, limited: &[(Nanos, Nanos)]) -> Vec<String> {
    let lasted = heat.times.last().map_or(0, |last| last.ns()).max(1) as f64;
    let time: f64 = limited.iter().map(|(from, until)| until.ns() as f64 - from.ns() as f64).sum();
    let begin = phase.meta.started_monotonic;
    let describe_series = |view: &SeriesView| {
        if view.meta.clock != Clock::Monotonic {
            return None;
        }
        let worst = &view.state.data.worst[..view.state.data.worst.len().min(WORST)];
        let limited_samples = worst.iter().filter(|sample| {
            let since = |at: i64| at.saturating_sub(begin);
            let (due, woke) = (since(sample.due.ns()), since(sample.woke.ns()));
            limited.iter().any(|(from, until)| woke >= from.ns() && due <= until.ns())
        });
        let limited_count = limited_samples.count();
        let share = limited_count as f64 / worst.len().max(1) as f64;
        (limited_count > 0 && share >= DENSER * time / lasted).then(|| {
            format!(
                "{limited_count} of the {} worst samples of {} were taken then: likely due to it",
                worst.len(),
                view.meta.name
            )
        })
    };
    phase.series.iter().filter_map(describe_series).take(NAMED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{phase_meta, series_meta, series_state};
    use punctual_bundle::PhaseMeta;
    use punctual_core::{Fact, Sensor};

    const KINDS: [(SensorKind, &str); 4] = [
        (SensorKind::Temperature, "cpu-thermal"),
        (SensorKind::FrequencyLimit, "CPU 0-3"),
        (SensorKind::Cooling, "cpufreq-cpu0"),
        (SensorKind::Events, "under-voltage"),
    ];

    /// A phase of ten seconds; the values of [`KINDS`] at each.
    fn heat(row: impl Fn(i64) -> [i64; 4]) -> Fact<Heat> {
        let sensor = |(kind, name): &(SensorKind, &str)| Sensor::new(*kind, *name, "/a");
        let mut heat = Heat { sensors: KINDS.iter().map(sensor).collect(), ..Heat::default() };
        for second in 0..=10 {
            heat.add(Nanos::from_secs(second), &row(second).map(Some));
        }
        Fact::Known(heat)
    }

    fn found(heat: Fact<Heat>, worst_at: i64) -> Option<Finding> {
        let phase = PhaseMeta { heat, ..phase_meta() };
        let (meta, mut state) = (series_meta(&[]), series_state(&[100, 200]));
        for sample in &mut state.data.worst {
            let latency = sample.latency();
            sample.due = punctual_core::ClockNs(worst_at * 1_000_000_000);
            sample.woke = sample.due + latency;
        }
        let series = vec![SeriesView { meta: &meta, state: &state, account: None }];
        of_heat(&PhaseView { meta: &phase, series })
    }

    #[test]
    fn throttling_is_found_with_its_seconds_and_the_samples_then() {
        let row = |second| match second {
            4..=5 => [85_200, 600_000, 3, 7],
            6.. => [80_000, 1_800_000, 0, 8],
            _ => [70_000, 1_800_000, 0, 7],
        };
        let found_at = |at| found(heat(row), at).and_then(|found| found.evidence).expect("found");
        let lines = [
            "the frequency of CPU 0-3 was limited to 600 of 1800 MHz for 2 s (/a)",
            "cpufreq-cpu0 slowed CPUs for 2 s, by up to 3 steps (/a)",
            "under-voltage: 1 event (/a)",
            "between 3 s and 6 s of the phase",
            "cpu-thermal reached 85.2 °C",
            "2 of the 2 worst samples of cpu0 were taken then: likely due to it",
        ];
        assert_eq!(found_at(4), lines.join("; "));
        assert!(!found_at(8).contains("likely"), "samples of other seconds are not its");
    }

    #[test]
    fn without_a_limit_or_a_sensor_nothing_is_found() {
        // Hot, at a fixed lower limit, with events from before: nothing of it happened here.
        assert_eq!(found(heat(|second| [84_000 + second, 600_000, 0, 40]), 4), None);
        assert_eq!(found(Fact::Unavailable("no sensor".to_owned()), 4), None);
        assert_eq!(found(Fact::NotAsked, 4), None);
    }

    #[test]
    fn a_limit_all_the_time_explains_no_single_sample() {
        let all = found(heat(|_| [84_000, 600_000, 1, 0]), 4).and_then(|found| found.evidence);
        assert!(all.is_some_and(|text| !text.contains("likely")));
    }
}
