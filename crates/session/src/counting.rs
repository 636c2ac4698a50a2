//! Counters for the bundle and `punctual count`.

use punctual_bundle::{CountSource, EventCount};
use punctual_core::{Fact, PerfEvent};
use punctual_record::perf::Total;

/// The count of an event.
pub fn event_count(event: &PerfEvent, total: &Result<Total, String>) -> EventCount {
    let mut count = EventCount::new(event.to_string(), CountSource::PerfEvent, Fact::NotAsked);
    count.event = Some(event.to_string());
    count.is_time = event.is_time();
    let Total { reading, user_only } = match total {
        Ok(total) => *total,
        Err(why) => {
            count.count = Fact::Unavailable(why.clone());
            return count;
        }
    };
    count.user_only = user_only;
    (count.enabled, count.running) = (Some(reading.enabled), Some(reading.running));
    count.scaled = reading.running < reading.enabled;
    count.count = match reading.scaled_count() {
        Some(value) => Fact::Known(value),
        None if reading.enabled.0 <= 0 => Fact::Unavailable(
            "its counter never began: the kernel takes counters from set-user-ID programs, and \
             from those that this user may not read"
                .to_owned(),
        ),
        None => Fact::Unavailable("its counter was never scheduled on the PMU".to_owned()),
    };
    count
}
