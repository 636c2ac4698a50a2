//! The interface to the tuned machine: this one, or a simulated one.

use super::candidate::settling;
use super::procedure::Tuning;
use super::request::{BlockPurpose, BlockRequest, MeasuredBlock, TuneStep};
use punctual_core::Nanos;

/// A machine with switchable settings, on which blocks are measured.
pub trait TunableMachine {
    type Error;

    /// Switches to these settings; all others are restored to their state before the tuning.
    fn apply(&mut self, on: &[bool]) -> Result<(), Self::Error>;
    /// Waits for settings with slow effect.
    fn settle(&mut self, time: Nanos) -> Result<(), Self::Error>;
    /// Measures a block: the figure in ns, or `None` if the block is unusable.
    fn measure(&mut self, request: &BlockRequest) -> Result<Option<f64>, Self::Error>;
    /// Measures the throughput beside a block of the last comparison, which shows the cost of the
    /// set: runs per second, or `None` if not requested or unknown.
    fn throughput(&mut self) -> Result<Option<f64>, Self::Error> {
        Ok(None)
    }
    /// The time since the tuning began.
    fn elapsed(&self) -> Nanos;
    /// Stores a block before the next one begins.
    fn keep(&mut self, request: &BlockRequest, block: MeasuredBlock) -> Result<(), Self::Error>;
}

/// Continues to the end. The caller must restore the final settings.
pub fn conduct<M: TunableMachine>(tuning: &mut Tuning, machine: &mut M) -> Result<(), M::Error> {
    let mut now: Option<Vec<bool>> = None;
    while let TuneStep::Measure(request) = tuning.next() {
        let request = request.clone();
        if now.as_ref() != Some(&request.on) {
            let before = now.unwrap_or_else(|| vec![false; request.on.len()]);
            let wait = settling(tuning.candidates(), &before, &request.on);
            machine.apply(&request.on)?;
            machine.settle(wait)?;
            now = Some(request.on.clone());
        }
        let figure = machine.measure(&request)?;
        let throughput = match (request.purpose, figure) {
            (BlockPurpose::Confirm, Some(_)) => machine.throughput()?,
            _ => None,
        };
        let block = MeasuredBlock { figure, throughput, elapsed: machine.elapsed() };
        machine.keep(&request, block)?;
        tuning.record(block);
    }
    Ok(())
}

/// Whether a block is measured on the untouched machine.
fn is_untouched(request: &BlockRequest) -> bool {
    request.purpose == BlockPurpose::Pilot || !request.on.contains(&true)
}
