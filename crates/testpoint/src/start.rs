//! Before `main`.

use crate::point::CONTROL;
use crate::process::PROCESS;

/// The dynamic loader and static programs' start code call what is in this section.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    PROCESS.start((&raw const CONTROL.control).cast_mut(), None);
}
