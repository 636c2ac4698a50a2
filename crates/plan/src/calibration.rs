//! Whether what recording costs is measured before it begins.

use punctual_core::{Fact, Nanos};

/// What takes less measures it only if requested.
const FROM: Nanos = Nanos::from_secs(10);

/// Whether it is, and why not. `asked`: what the user says; `time`: how long it is recorded, `None`
/// where that has no end.
pub fn decide(asked: Option<bool>, time: Option<Nanos>) -> Fact<()> {
    let is_long = time.is_none_or(|time| time >= FROM);
    match asked {
        Some(true) => Fact::Known(()),
        None if is_long => Fact::Known(()),
        Some(false) => Fact::Unavailable(
            "it was left out (--no-calibration, or `calibrate = false`)".to_owned(),
        ),
        None => Fact::Unavailable(format!(
            "unless requested (--calibrate), only what lasts {FROM} or longer measures it"
        )),
    }
}
