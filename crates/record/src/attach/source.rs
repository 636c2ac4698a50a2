//! Whichever way the cycles are measured here.

use super::traced::Traced;
use super::{AttachCost, Attacher};
use crate::start_error::StartError;
use punctual_core::cycle::{Cycle, Moment, WaitingCall};
use punctual_core::{CpuSet, Fact, Finding};
use std::collections::BTreeSet;

/// What measures the cycles of threads: programs in the kernel, or where these cannot be, recorded
/// events. The methods are those of [`Attacher`].
pub struct CycleRecorder {
    source: Source,
    /// What is not measured here, and why.
    pub findings: Vec<Finding>,
}

enum Source {
    Bpf(Box<Attacher>),
    Tracefs(Box<Traced>),
}

macro_rules! by_source {
    ($self:expr, $bpf:ident => $of_bpf:expr, $traced:pat => $of_traced:expr) => {
        match $self {
            Source::Bpf($bpf) => $of_bpf,
            Source::Tracefs($traced) => $of_traced,
        }
    };
}

#[allow(missing_docs)] // As in `Attacher`.
impl CycleRecorder {
    /// The error is that of the programs in the kernel, where nothing else works either.
    pub fn start(cpus: &CpuSet, children: bool) -> Result<CycleRecorder, StartError> {
        let why = match Attacher::start(cpus, children) {
            Ok(attacher) => {
                let findings = attacher.findings.clone();
                return Ok(CycleRecorder { source: Source::Bpf(Box::new(attacher)), findings });
            }
            Err(why) => why,
        };
        match Traced::start(cpus, children) {
            Ok(traced) => {
                let findings = vec![Traced::finding(&why)];
                Ok(CycleRecorder { source: Source::Tracefs(Box::new(traced)), findings })
            }
            Err(neither) => Err(StartError::None(vec![why, neither])),
        }
    }

    pub fn watch_process(&self, process: u32) -> Result<(), StartError> {
        by_source!(&self.source, bpf => bpf.watch_process(process),
            traced => traced.watch(process, true))
    }

    pub fn watch_thread(&self, tid: u32) -> Result<(), StartError> {
        by_source!(&self.source, bpf => bpf.watch_thread(tid), traced => traced.watch(tid, false))
    }

    pub fn select(&self, tid: u32, call: Option<(WaitingCall, bool)>) -> Result<(), StartError> {
        by_source!(&self.source, bpf => bpf.select(tid, call), traced => {
            traced.select(tid, call);
            Ok(())
        })
    }

    pub fn drain(&mut self, take: &mut dyn FnMut(Cycle)) {
        by_source!(&mut self.source, bpf => bpf.drain(take), traced => traced.drain(take))
    }

    pub fn take_moments(&mut self) -> Vec<Moment> {
        by_source!(&mut self.source, bpf => bpf.take_moments(), traced => traced.take_moments())
    }

    pub fn user_stack(&self, moment: &Moment) -> Option<Vec<u64>> {
        by_source!(&self.source, bpf => bpf.user_stack(moment), _ => None)
    }

    pub fn free_stacks(&mut self, needed: impl FnOnce() -> BTreeSet<u32>) {
        by_source!(&mut self.source, bpf => bpf.free_stacks(needed), _ => ());
    }

    pub fn lost_stacks(&self) -> u64 {
        by_source!(&self.source, bpf => bpf.lost_stacks(), _ => 0)
    }

    pub fn refused(&self) -> u64 {
        by_source!(&self.source, bpf => bpf.refused(), _ => 0)
    }

    pub fn lost(&self) -> u64 {
        by_source!(&self.source, bpf => bpf.lost(), traced => traced.lost())
    }

    pub fn unseen(&self) -> u64 {
        by_source!(&self.source, bpf => bpf.unseen(), _ => 0)
    }

    pub fn cost(&mut self) -> Fact<AttachCost> {
        let unknown = || Fact::Unavailable("it is not measured through tracefs".to_owned());
        by_source!(&mut self.source, bpf => bpf.cost(), _ => unknown())
    }
}
