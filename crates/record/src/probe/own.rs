//! A probe on an empty function of this program itself: a call takes as long as a probe.

use super::empty::{self, Empty};
use super::{ProbeRequest, ProbedProcesses, Probes, cost};
use crate::start_error::StartError;
use punctual_core::CpuSet;

/// Active while it lives.
pub struct OwnProbe {
    probes: Probes,
    empty: Empty,
}

impl OwnProbe {
    /// Places a probe on entry and return of the function with the cheapest probe.
    pub fn start(cpus: &CpuSet) -> Result<OwnProbe, StartError> {
        let none =
            || StartError::Request("there is no function to probe on this architecture".into());
        let empty = *empty::all().first().ok_or_else(none)?;
        let request = ProbeRequest {
            whose: ProbedProcesses::Process(std::process::id()),
            argument: None,
            buffer: 1 << 20,
        };
        Ok(OwnProbe { probes: Probes::start(&[cost::place(&empty)?], &[], cpus, request)?, empty })
    }

    /// The first instruction of the function, which determines the cost: see
    /// [`crate::symbols::Site`].
    pub fn site(&self) -> String {
        self.empty.site.to_string()
    }

    /// Hits the probe.
    #[inline(always)]
    pub fn hit(&self) {
        // SAFETY: the functions of `empty` take nothing, return nothing and keep all registers but
        // eax, as the C calling convention allows.
        unsafe { (self.empty.call)() };
    }

    /// Discards the records, to free space.
    pub fn drain(&mut self) {
        self.probes.drain(&mut |_, _| {});
    }

    /// The number of calls counted by the kernel so far.
    pub fn counted(&self) -> u64 {
        self.probes.counts().iter().map(|count| count.entered).sum()
    }
}
