//! Heat, frequency and power of the machine over the time of a phase, as its sensors show them.

use crate::Nanos;
use serde::{Deserialize, Serialize};

/// The most instants that are kept: then each two neighbours become one.
const MAX_INSTANTS: usize = 600;

/// The word in the name of a sensor that knows the supply voltage.
pub const UNDER_VOLTAGE: &str = "under-voltage";

/// The kind of a sensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SensorKind {
    /// In thousandths of a degree Celsius.
    Temperature,
    /// The frequency of some CPUs, in kHz.
    Frequency,
    /// The highest frequency allowed to some CPUs at the time, in kHz.
    FrequencyLimit,
    /// The state of a device that cools by slowing CPUs; not above 0: it does not.
    Cooling,
    /// Whether a limit is exceeded: 0 or 1.
    Alarm,
    /// The number of events since the previous instant.
    Events,
}

/// A sensor with its values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sensor {
    pub kind: SensorKind,
    /// The kernel's name for it, or the CPUs: `cpu-thermal`, `CPU 0-3`.
    pub name: String,
    /// The file or program that is read.
    pub source: String,
    /// One value for each instant; `None` where it could not be read.
    pub values: Vec<Option<i64>>,
    /// The time during which it showed that the machine is slowed or lacks power.
    pub limited_for: Nanos,
    /// Of a limit the highest value; of events the counter at the last instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<i64>,
}

/// What sensors showed during a phase.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Heat {
    /// The instants of the values, since the phase began. A value stands for the time since the
    /// previous instant.
    pub times: Vec<Nanos>,
    pub sensors: Vec<Sensor>,
    /// The number of sensors beyond the bound on them.
    #[serde(default)]
    pub left_out: usize,
}

impl Sensor {
    pub fn new(kind: SensorKind, name: impl Into<String>, source: impl Into<String>) -> Sensor {
        Sensor {
            kind,
            name: name.into(),
            source: source.into(),
            values: Vec::new(),
            limited_for: Nanos::ZERO,
            reference: None,
        }
    }

    /// Whether a value shows that the machine is slowed or lacks power. A temperature and a
    /// frequency alone show neither.
    fn is_limit(&self, value: i64) -> bool {
        match self.kind {
            SensorKind::Temperature | SensorKind::Frequency => false,
            SensorKind::FrequencyLimit => self.reference.is_some_and(|highest| value < highest),
            SensorKind::Cooling | SensorKind::Alarm | SensorKind::Events => value > 0,
        }
    }

    /// Whether any value shows it.
    pub fn is_limited(&self) -> bool {
        self.values.iter().flatten().any(|value| self.is_limit(*value))
    }

    /// The value that matters most: the lowest frequency, the number of all events, else the
    /// highest.
    pub fn worst_value(&self) -> Option<i64> {
        self.values.iter().copied().fold(None, |all, value| worse_value(self.kind, all, value))
    }

    /// Adds the reading of an instant, `elapsed` after the previous one.
    fn add(&mut self, read: Option<i64>, elapsed: Nanos) {
        let value = read.map(|read| match self.kind {
            SensorKind::Events => {
                let before = self.reference.replace(read).unwrap_or(read);
                read.saturating_sub(before).max(0)
            }
            SensorKind::FrequencyLimit => {
                self.reference = self.reference.max(Some(read));
                read
            }
            _ => read,
        });
        if value.is_some_and(|value| self.is_limit(value)) {
            self.limited_for += elapsed;
        }
        self.values.push(value);
    }
}

/// The value for two instants together.
fn worse_value(kind: SensorKind, a: Option<i64>, b: Option<i64>) -> Option<i64> {
    let (Some(one), Some(other)) = (a, b) else { return a.or(b) };
    Some(match kind {
        SensorKind::Frequency | SensorKind::FrequencyLimit => one.min(other),
        SensorKind::Temperature | SensorKind::Cooling | SensorKind::Alarm => one.max(other),
        SensorKind::Events => one.saturating_add(other),
    })
}

impl Heat {
    /// Adds the readings of all sensors at an instant.
    pub fn add(&mut self, at: Nanos, read: &[Option<i64>]) {
        let elapsed = self.times.last().map_or(Nanos::ZERO, |last| at - *last);
        self.times.push(at);
        for (place, sensor) in self.sensors.iter_mut().enumerate() {
            sensor.add(read.get(place).copied().flatten(), elapsed);
        }
        if self.times.len() >= MAX_INSTANTS {
            self.halve_resolution();
        }
    }

    fn halve_resolution(&mut self) {
        let last = |pair: &[Nanos]| pair.last().copied().unwrap_or_default();
        self.times = self.times.chunks(2).map(last).collect();
        for sensor in &mut self.sensors {
            let joined = |pair: &[Option<i64>]| {
                pair.iter().copied().fold(None, |all, value| worse_value(sensor.kind, all, value))
            };
            sensor.values = sensor.values.chunks(2).map(joined).collect();
        }
    }

    /// The times since the begin of the phase in which any sensor showed that the machine was
    /// slowed or lacked power, in order and apart.
    pub fn limited_spans(&self) -> Vec<(Nanos, Nanos)> {
        let mut limited_spans: Vec<(Nanos, Nanos)> = Vec::new();
        let mut from = Nanos::ZERO;
        for (place, until) in self.times.iter().enumerate() {
            let value = |sensor: &Sensor| sensor.values.get(place).copied().flatten();
            let is_limit = |one: &Sensor| value(one).is_some_and(|value| one.is_limit(value));
            if self.sensors.iter().any(is_limit) {
                match limited_spans.last_mut() {
                    Some(last) if last.1 == from => last.1 = *until,
                    _ => limited_spans.push((from, *until)),
                }
            }
            from = *until;
        }
        limited_spans
    }

    /// The questions that no sensor answered.
    pub fn unanswered_questions(&self) -> Vec<&'static str> {
        use SensorKind::{Alarm, Cooling, Events, Frequency, FrequencyLimit, Temperature};
        let answers = |of: &dyn Fn(&Sensor) -> bool| {
            self.sensors.iter().any(|one| of(one) && one.values.iter().any(Option::is_some))
        };
        let is = |kinds: &'static [SensorKind]| move |one: &Sensor| kinds.contains(&one.kind);
        let is_voltage = |one: &Sensor| one.name.contains(UNDER_VOLTAGE);
        let questions: [(&str, bool); 4] = [
            ("temperature", answers(&is(&[Temperature]))),
            ("frequency", answers(&is(&[Frequency]))),
            ("throttling", answers(&is(&[FrequencyLimit, Cooling, Alarm, Events]))),
            (UNDER_VOLTAGE, answers(&is_voltage)),
        ];
        questions.into_iter().filter(|(_, is_known)| !is_known).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(s: i64) -> Nanos {
        Nanos::from_secs(s)
    }

    fn heat(sensors: &[SensorKind], rows: &[&[i64]]) -> Heat {
        let sensors = sensors.iter().map(|kind| Sensor::new(*kind, "a", "/a")).collect();
        let mut heat = Heat { sensors, ..Heat::default() };
        for (second, row) in rows.iter().enumerate() {
            let row: Vec<_> = row.iter().map(|value| (*value >= 0).then_some(*value)).collect();
            heat.add(seconds(second as i64), &row);
        }
        heat
    }

    #[test]
    fn limits_are_seen_by_what_their_kind_means() {
        use SensorKind::{Alarm, Cooling, Events, Frequency, FrequencyLimit, Temperature};
        let limited = |kind, values: [i64; 4]| {
            let rows: Vec<[i64; 1]> = values.iter().map(|value| [*value]).collect();
            let rows: Vec<&[i64]> = rows.iter().map(|row| &row[..]).collect();
            let of = heat(&[kind], &rows);
            (of.limited_spans(), of.sensors[0].limited_for, of.sensors[0].worst_value())
        };
        let one = |from, to| vec![(seconds(from), seconds(to))];
        assert_eq!(limited(Temperature, [9, 99, 9, 9]), (vec![], seconds(0), Some(99)));
        assert_eq!(limited(Frequency, [9, 1, 9, 9]), (vec![], seconds(0), Some(1)));
        assert_eq!(limited(FrequencyLimit, [9, 5, 4, 9]), (one(0, 2), seconds(2), Some(4)));
        assert_eq!(limited(FrequencyLimit, [5, 5, 5, 5]), (vec![], seconds(0), Some(5)));
        assert_eq!(limited(Cooling, [0, 0, 2, 0]), (one(1, 2), seconds(1), Some(2)));
        assert_eq!(limited(Alarm, [0, 1, -1, 1]).1, seconds(2));
        // Events before the phase are not its own; a counter that was reset counts nothing.
        assert_eq!(limited(Events, [40, 40, 43, 1]), (one(1, 2), seconds(1), Some(3)));
    }

    #[test]
    fn an_unread_sensor_answers_nothing() {
        let mut known = heat(&[SensorKind::Temperature, SensorKind::Alarm], &[&[-1, 0], &[-1, 0]]);
        assert_eq!(known.unanswered_questions(), ["temperature", "frequency", UNDER_VOLTAGE]);
        known.sensors[1].name = UNDER_VOLTAGE.to_owned();
        assert_eq!(known.unanswered_questions(), ["temperature", "frequency"]);
        assert!(Heat::default().unanswered_questions().len() == 4);
    }

    proptest! {
        #[test]
        fn long_phases_keep_extremes_and_counts(
            rows in proptest::collection::vec((0i64..100, 0i64..3), 2..3_000)
        ) {
            let kinds = [SensorKind::Temperature, SensorKind::Frequency, SensorKind::Events];
            let sensors = kinds.map(|kind| Sensor::new(kind, "a", "/a")).into();
            let mut heat = Heat { sensors, ..Heat::default() };
            let mut counter = 0;
            for (second, (value, events)) in rows.iter().enumerate() {
                counter += events;
                let row = [Some(*value), Some(*value), Some(counter)];
                heat.add(seconds(second as i64), &row);
                prop_assert!(heat.times.len() < MAX_INSTANTS);
            }
            prop_assert_eq!(heat.times.last(), Some(&seconds(rows.len() as i64 - 1)));
            prop_assert_eq!(heat.sensors[0].worst_value(), rows.iter().map(|row| row.0).max());
            prop_assert_eq!(heat.sensors[1].worst_value(), rows.iter().map(|row| row.0).min());
            prop_assert_eq!(heat.sensors[2].worst_value(), Some(counter - rows[0].1));
            prop_assert!(heat.sensors.iter().all(|one| one.values.len() == heat.times.len()));
        }
    }
}
