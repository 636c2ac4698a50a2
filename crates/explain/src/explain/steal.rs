//! Steal of a single CPU: segments in which a CPU did nothing although it had to.
//!
//! An exit from idle takes the exit latency declared by the idle state, and a running CPU takes a
//! pending interrupt as soon as interrupts are enabled. Far longer times are compared with the
//! steal clock. With that evidence they are steal; without, they keep their name, and a warning
//! reports that steal is likely. Several CPUs at once are proof earlier (`steal`).

use super::trace_context::TraceContext;
use super::{Cause, CpuMode, Part, Warning, parts};
use crate::steal::SHORTEST;
use punctual_core::Nanos;

/// The ratio to the declared exit latency from which an exit from idle is long.
const TIMES: i64 = 10;

/// The parts, as steal if the steal clock covers them, and the warnings about the others.
pub(crate) fn judge_steal(context: &TraceContext, all: Vec<Part>) -> (Vec<Part>, Vec<Warning>) {
    let mut left = context.coverage.steal.unwrap_or(Nanos::ZERO);
    let (mut judged, mut warnings): (Vec<Part>, Vec<Warning>) = (Vec::new(), Vec::new());
    for mut part in all {
        if let Some(warning) = find_suspicion(context, &part) {
            let is_steal = part.duration() <= left;
            if is_steal {
                left = Nanos(left.ns() - part.duration().ns());
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
        parts::append_part(&mut judged, part);
    }
    warnings.sort_unstable();
    (judged.into_iter().map(parts::tidy_evidence).collect(), warnings)
}

/// Whether an exit from idle took far longer than its state declares. The deepest states take some
/// hundred microseconds; without a declaration, no state takes this long.
pub fn is_long_exit(time: Nanos, declared: Option<Nanos>) -> bool {
    let declared = declared.map_or(0, |declared| declared.ns());
    time >= SHORTEST.max(Nanos(declared.saturating_mul(TIMES)))
}

/// The warning about a part that may have another reason.
fn find_suspicion(context: &TraceContext, part: &Part) -> Option<Warning> {
    match part.cause {
        Cause::IdleExit { state } => {
            let declared = state.and_then(|state| context.coverage.idle_latencies.get(&state));
            is_long_exit(part.duration(), declared.copied()).then_some(Warning::LongIdleExit)
        }
        // Elsewhere in the kernel, interrupts may have been disabled.
        Cause::OwnExecution { mode: CpuMode::User | CpuMode::Unknown }
        | Cause::NonPreemptible { mode: CpuMode::User, .. }
        | Cause::TimerIrqDelay { mode: CpuMode::User, .. } => {
            let overlaps_part = |wait: &&crate::steal::DelayedTimer| {
                Some(wait.cpu) == part.cpu
                    && wait.to.min(part.to) - wait.from.max(part.from) >= SHORTEST
            };
            context.waits.iter().find(overlaps_part).map(|_| Warning::Silent)
        }
        _ => None,
    }
}
