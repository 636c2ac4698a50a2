//! Whether the cost of recording is measured before the recording begins.

use punctual_core::{Fact, Nanos};

/// Shorter recordings measure it only on request.
const FROM: Nanos = Nanos::from_secs(10);

/// Whether it is measured, or why not. `asked`: the user's choice; `time`: the length of the
/// recording, `None` if it has no end.
pub fn decide_calibration(asked: Option<bool>, time: Option<Nanos>) -> Fact<()> {
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
