//! Waits before a phase until the machine has cooled down (`cool_below`), for a bounded time.

use crate::engine::EngineClock;
use punctual_core::format::span_text;
use punctual_core::{Finding, Nanos, Severity};
use punctual_plan::Temperature;

/// Time between two readings, and between two looks at a request to end.
const READ_EVERY: Nanos = Nanos::SECOND;
const STEP: Nanos = Nanos::from_millis(100);

/// How a wait ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cooled {
    /// It is cool enough, after this time.
    Below(Nanos),
    /// The bound was reached: this zone still has this temperature.
    TooHot { zone: String, temperature: Temperature },
    /// No sensor shows the temperature.
    NotKnown,
    /// The user asked for the end.
    EndRequested,
}

/// A wait for a temperature.
pub(crate) struct Cooling<'a> {
    pub(crate) below: Temperature,
    pub(crate) at_most: Nanos,
    pub(crate) clock: &'a dyn EngineClock,
    pub(crate) end_requested: &'a dyn Fn() -> bool,
}

impl Cooling<'_> {
    /// Waits; `hottest` reads the hottest zone in thousandths of a degree, `say` shows progress.
    pub(crate) fn wait_until_cool(
        &self,
        hottest: &mut dyn FnMut() -> Option<(String, i64)>,
        say: &mut dyn FnMut(&str),
    ) -> Cooled {
        let began = self.clock.now();
        loop {
            let Some((zone, read)) = hottest() else { return Cooled::NotKnown };
            let (temperature, waited) = (Temperature(read), self.clock.now() - began);
            if temperature < self.below {
                return Cooled::Below(waited);
            }
            if waited >= self.at_most {
                return Cooled::TooHot { zone, temperature };
            }
            let left = span_text(self.at_most - waited);
            say(&format!(
                "waiting until the machine has cooled below {}: {zone} has {temperature}, at most \
                 {left} more",
                self.below
            ));
            let next = self.clock.now() + READ_EVERY;
            while self.clock.now() < next {
                if (self.end_requested)() {
                    return Cooled::EndRequested;
                }
                self.clock.pause(STEP);
            }
        }
    }

    /// The finding about a phase that begins without being known to be cool.
    pub(crate) fn cooling_finding(&self, phase: &str, cooled: &Cooled) -> Option<Finding> {
        let (message, remedy, evidence) = match cooled {
            Cooled::Below(_) | Cooled::EndRequested => return None,
            Cooled::NotKnown => (
                "whether the machine had cooled down before the phase is not known",
                "load the driver of its sensor, or leave cool_below out",
                "no thermal zone in /sys/class/thermal can be read".to_owned(),
            ),
            Cooled::TooHot { zone, temperature } => (
                "the phase began although the machine had not cooled down",
                "improve the cooling, raise cool_below, or let it wait longer: cool_wait",
                format!(
                    "{zone} had {temperature} after {}, cool_below is {}",
                    span_text(self.at_most),
                    self.below
                ),
            ),
        };
        Some(
            Finding::new("not-cooled", Severity::Warning, phase, message)
                .with_evidence(evidence)
                .with_remedy(remedy),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::scripted::SimulatedClock;

    /// Waits with these readings, one a second; the last one stays.
    fn waited(script: &[Option<i64>], end_after: Option<usize>) -> (Cooled, Vec<String>) {
        let clock = SimulatedClock::new();
        let (mut readings, mut said) = (0, Vec::new());
        let seen = std::cell::Cell::new(0);
        let cooling = Cooling {
            below: Temperature(60_000),
            at_most: Nanos::from_secs(5),
            clock: &clock,
            end_requested: &|| end_after.is_some_and(|after| seen.get() > after),
        };
        let cooled = cooling.wait_until_cool(
            &mut || {
                let read = script[readings.min(script.len() - 1)];
                readings += 1;
                seen.set(readings);
                read.map(|read| ("cpu-thermal".to_owned(), read))
            },
            &mut |text| said.push(text.to_owned()),
        );
        (cooled, said)
    }

    #[test]
    fn a_phase_waits_until_it_is_cool() {
        let (cooled, said) =
            waited(&[Some(71_500), Some(64_000), Some(60_000), Some(59_900)], None);
        assert_eq!(cooled, Cooled::Below(Nanos::from_secs(3)));
        assert_eq!(
            said,
            ["71.5C, at most 5 s", "64C, at most 4 s", "60C, at most 3 s"].map(|rest| format!(
                "waiting until the machine has cooled below 60C: cpu-thermal has {rest} more"
            ))
        );
        assert_eq!(waited(&[Some(20_000)], None), (Cooled::Below(Nanos::ZERO), vec![]));
    }

    #[test]
    fn a_wait_ends_at_its_bound_by_the_user_and_without_a_sensor() {
        let (cooled, said) = waited(&[Some(70_000)], None);
        let hot = Cooled::TooHot { zone: "cpu-thermal".into(), temperature: Temperature(70_000) };
        assert_eq!((&cooled, said.len()), (&hot, 5));
        assert_eq!(waited(&[Some(70_000)], Some(1)).0, Cooled::EndRequested);
        assert_eq!(waited(&[Some(70_000), None], None).0, Cooled::NotKnown);
        let clock = SimulatedClock::new();
        let cooling = Cooling {
            below: Temperature(60_000),
            at_most: Nanos::from_secs(5),
            clock: &clock,
            end_requested: &|| false,
        };
        let evidence =
            |cooled| cooling.cooling_finding("p", &cooled).and_then(|found| found.evidence);
        let expected = "cpu-thermal had 70C after 5 s, cool_below is 60C";
        assert_eq!(evidence(hot).as_deref(), Some(expected));
        assert!(evidence(Cooled::NotKnown).is_some_and(|text| text.contains("no thermal zone")));
        assert_eq!(evidence(Cooled::Below(Nanos::ZERO)), None);
    }
}
