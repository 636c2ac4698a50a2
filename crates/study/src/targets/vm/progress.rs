//! The progress of running machines: their phase and the time so far. Their own time runs at
//! another speed, and querying it would change what they measure.

use punctual_core::Nanos;
use punctual_lab::{GuestControl, GuestPhase};
use punctual_session::interrupts::SignalRequests;
use punctual_session::messages::Listener;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between two updates of the line on a terminal.
const EVERY: Duration = Duration::from_millis(500);
/// How long a machine may take to end on request, even on a busy system; a second request kills it.
const END_TIMEOUT: Duration = Duration::from_secs(600);

/// Shows the progress of machines: an updated line on a terminal, a line per step elsewhere.
pub struct VmProgress {
    messages: Listener,
    planned: Option<Nanos>,
    repeats: u32,
    state: Mutex<MachineState>,
}

#[derive(Default)]
struct MachineState {
    /// The phase of each repeat so far.
    seen: Vec<(u32, GuestPhase)>,
    over: u32,
    began: Option<Instant>,
    shown: Option<(String, Instant)>,
    asked: Option<Instant>,
}

impl VmProgress {
    /// Creates the view of this many runs of this planned length by their own clock.
    pub fn new(messages: Listener, repeats: u32, planned: Option<Nanos>) -> VmProgress {
        VmProgress { messages, planned, repeats, state: Mutex::default() }
    }

    fn lock_state(&self) -> MutexGuard<'_, MachineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a step before a machine runs.
    pub(crate) fn announce_step(&self, step: &str) {
        self.show_state(&mut self.lock_state(), step);
    }

    /// Updates the state of a repeat's machine, shows all of them, and returns the user's request.
    pub(crate) fn update_machine(
        &self,
        repeat: u32,
        seen: punctual_lab::GuestProgress,
        interrupts: &SignalRequests,
    ) -> GuestControl {
        let mut state = self.lock_state();
        if interrupts.end_requested() && state.asked.is_none() {
            state.asked = Some(Instant::now());
        }
        match state.seen.iter_mut().find(|(known, _)| *known == repeat) {
            Some((_, phase)) => *phase = seen.phase,
            None => state.seen.push((repeat, seen.phase)),
        }
        state.began.get_or_insert_with(Instant::now);
        let step = self.format_step(&state);
        self.show_state(&mut state, &step);
        match state.asked {
            None => GuestControl::GoOn,
            // Nothing has been measured yet.
            Some(_) if seen.phase == GuestPhase::Booting => GuestControl::Kill,
            Some(asked) if asked.elapsed() < END_TIMEOUT => GuestControl::End,
            Some(_) => GuestControl::Kill,
        }
    }

    /// Ends the machine of a repeat.
    pub(crate) fn on_machine_end(&self, repeat: u32) {
        let mut state = self.lock_state();
        state.seen.retain(|(known, _)| *known != repeat);
        state.over += 1;
    }

    fn format_step(&self, state: &MachineState) -> String {
        let planned =
            self.planned.map(|time| format!(" (about {time} of guest time)")).unwrap_or_default();
        let word = |phase: GuestPhase| match phase {
            GuestPhase::Results => "sending the results".to_owned(),
            _ if state.asked.is_some() => "ending".to_owned(),
            GuestPhase::Booting => "booting".to_owned(),
            GuestPhase::Job => format!("running{planned}"),
        };
        match (self.repeats, state.seen.as_slice()) {
            (1, [(_, phase), ..]) => word(*phase),
            (all, seen) => {
                let count =
                    |phase: GuestPhase| seen.iter().filter(|(_, other)| *other == phase).count();
                let steps = [GuestPhase::Booting, GuestPhase::Job, GuestPhase::Results]
                    .map(|phase| (count(phase), phase));
                let steps = steps.into_iter().filter(|(count, _)| *count > 0);
                let steps = steps
                    .map(|(count, phase)| format!("{count} {}", word(phase)))
                    .collect::<Vec<_>>();
                format!("{} of {all} repeats done, {}", state.over, steps.join(", "))
            }
        }
    }

    fn show_state(&self, state: &mut MachineState, step: &str) {
        let now = Instant::now();
        let in_place = self.messages.line_width().is_some();
        let fresh = |at: &Instant| !in_place || now.duration_since(*at) < EVERY;
        if state.shown.as_ref().is_some_and(|(shown, at)| shown == step && fresh(at)) {
            return;
        }
        let since = state
            .began
            .map(|began| format!(", {} s", began.elapsed().as_secs()))
            .unwrap_or_default();
        match in_place {
            true => self.messages.replace_line(&format!("virtual machine: {step}{since}")),
            false => self.messages.show_progress(&format!("virtual machine: {step}")),
        }
        state.shown = Some((step.to_owned(), now));
    }

    pub(crate) fn clear_line(&self) {
        self.messages.replace_line("");
    }
}
