//! The time of a virtual machine.

use punctual_bundle::Timebase;
use punctual_plan::Acceleration;

/// The time base of such a machine's figures.
pub fn timebase(accel: Acceleration) -> Timebase {
    match accel {
        Acceleration::VirtualTime => Timebase::Virtual,
        Acceleration::Tcg => Timebase::Emulated,
        Acceleration::Kvm => Timebase::Guest,
    }
}
