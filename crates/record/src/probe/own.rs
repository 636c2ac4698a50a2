//! A probe on an empty function of this program itself: calling it costs what a probe costs.

use super::empty::{self, Empty};
use super::{ProbeRequest, Probes, Whose, cost};
use crate::start_error::StartError;
use punctual_core::CpuSet;

/// In force while it lives.
pub struct OwnProbe {
    probes: Probes,
    empty: Empty,
}

impl OwnProbe {
    /// Puts a probe on entry and return of the function that is cheapest to probe.
    pub fn start(cpus: &CpuSet) -> Result<OwnProbe, StartError> {
        let none =
            || StartError::Request("there is no function to probe on this architecture".into());
        let empty = *empty::all().first().ok_or_else(none)?;
        let request = ProbeRequest {
            whose: Whose::Process(std::process::id()),
            argument: None,
            buffer: 1 << 20,
        };
        Ok(OwnProbe { probes: Probes::start(&[cost::place(&empty)?], &[], cpus, request)?, empty })
    }

    /// How the function begins, which decides the cost: see [`crate::symbols::Site`].
    pub fn site(&self) -> String {
        self.empty.site.to_string()
    }

    /// Runs into the probe.
    #[inline(always)]
    pub fn hit(&self) {
        // SAFETY: the functions of `empty` take nothing, return nothing and keep all registers but
        // eax, as the C calling convention allows.
        unsafe { (self.empty.call)() };
    }

    /// Throws away what was recorded, so that there is room.
    pub fn drain(&mut self) {
        self.probes.drain(&mut |_, _| {});
    }

    /// Calls that the kernel has counted so far.
    pub fn counted(&self) -> u64 {
        self.probes.counts().iter().map(|count| count.entered).sum()
    }
}
