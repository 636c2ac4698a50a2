//! What only a hypervisor can have taken: segments in which a CPU did nothing although it had to.
//!
//! A CPU that exits from idle takes the exit latency that its idle state declares, and a CPU that
//! runs takes an interrupt that is due as soon as interrupts are on. What took far longer is held
//! against the steal clock. With that evidence it is steal; without, it keeps its name,
//! and a warning reports that it is likely. Several CPUs at once are proof before this (`steal`).

use super::trace_context::TraceContext;
use super::{Cause, Mode, Part, Warning, parts};
use crate::steal::SHORTEST;
use punctual_core::Nanos;

/// An exit from idle is long from this many times the declared exit latency on.
const TIMES: i64 = 10;

/// The parts, with steal where the steal clock covers them, and the warnings about the rest.
pub fn judge(context: &TraceContext, all: Vec<Part>) -> (Vec<Part>, Vec<Warning>) {
    let mut left = context.coverage.steal.unwrap_or(Nanos::ZERO);
    let (mut judged, mut warnings): (Vec<Part>, Vec<Warning>) = (Vec::new(), Vec::new());
    for mut part in all {
        if let Some(warning) = suspicion(context, &part) {
            let is_steal = part.span() <= left;
            if is_steal {
                left = Nanos(left.ns() - part.span().ns());
                part = Part {
                    cause: Cause::Steal,
                    prio: None,
                    stack: None,
                    meanwhile: Vec::new(),
                    ..part
                };
            }
            let warning = if is_steal { Warning::StealClock } else { warning };
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        parts::join(&mut judged, part);
    }
    warnings.sort_unstable();
    (judged.into_iter().map(parts::tidy).collect(), warnings)
}

/// Whether an exit from idle took far longer than its state declares. The deepest states take some
/// hundred microseconds; where nothing is declared none takes this long.
pub fn is_long_exit(time: Nanos, declared: Option<Nanos>) -> bool {
    let declared = declared.map_or(0, |declared| declared.ns());
    time >= SHORTEST.max(Nanos(declared.saturating_mul(TIMES)))
}

/// Why a part is not what it seems to be.
fn suspicion(context: &TraceContext, part: &Part) -> Option<Warning> {
    match part.cause {
        Cause::IdleExit { state } => {
            let declared = state.and_then(|state| context.coverage.idle_latencies.get(&state));
            is_long_exit(part.span(), declared.copied()).then_some(Warning::LongIdleExit)
        }
        // Elsewhere in the kernel interrupts may have been off.
        Cause::OwnExecution { mode: Mode::User | Mode::Unknown }
        | Cause::NonPreemptible { mode: Mode::User, .. }
        | Cause::TimerIrqDelay { mode: Mode::User, .. } => {
            let within = |wait: &&crate::steal::Wait| {
                Some(wait.cpu) == part.cpu
                    && wait.to.min(part.to) - wait.from.max(part.from) >= SHORTEST
            };
            context.waits.iter().find(within).map(|_| Warning::Silent)
        }
        _ => None,
    }
}
