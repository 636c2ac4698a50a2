//! The attached BPF programs of a recorder: pauses and resumes them, and reads their run times as
//! counted by the kernel (BPF_STATS_RUN_TIME, since 5.8).

use crate::bpf::{Attach, sys};
use punctual_core::Fact;
use std::io;

/// Attached programs; they stay attached at least as long as this lives.
#[derive(Clone, Debug, Default)]
pub struct AttachedPrograms(Vec<(&'static str, Attach)>);

/// The run time of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunTime {
    pub recorder: &'static str,
    /// The tracepoint that it runs at.
    pub tracepoint: String,
    pub runs: u64,
    /// The time in ns.
    pub ns: u64,
}

impl AttachedPrograms {
    /// The programs of a recorder with this name.
    pub(crate) fn from_programs<'a>(
        recorder: &'static str,
        attached: impl IntoIterator<Item = &'a Attach>,
    ) -> AttachedPrograms {
        AttachedPrograms(attached.into_iter().map(|attach| (recorder, attach.clone())).collect())
    }

    pub fn extend(&mut self, more: AttachedPrograms) {
        self.0.extend(more.0);
    }

    /// Whether there are none: kernel events are recorded without BPF.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Stops running them until they are resumed; they stay loaded.
    pub fn pause_programs(&self) {
        self.0.iter().for_each(|(_, attach)| attach.pause_program());
    }

    /// Runs all of them again. Interrupts first: a switch must not occur in one whose start was
    /// unseen.
    pub fn resume_programs(&self) -> io::Result<()> {
        self.0.iter().try_for_each(|(_, attach)| attach.resume_program())
    }

    /// The time of each during `what`, on all CPUs. Counting takes two clock readings per run of
    /// every BPF program of the system.
    pub fn run_times(&self, what: impl FnOnce()) -> Fact<Vec<RunTime>> {
        if self.is_empty() {
            return Fact::Unavailable("nothing is recorded by BPF programs".to_owned());
        }
        let counting = match sys::enable_run_time() {
            Ok(counting) => counting,
            Err(why) => return Fact::Unavailable(format!("BPF_ENABLE_STATS: {why}")),
        };
        let before = self.read();
        what();
        let after = self.read();
        drop(counting);
        let Some((before, after)) = before.zip(after) else {
            let reason = "the kernel does not count the run time of BPF programs";
            return Fact::Unavailable(reason.to_owned());
        };
        let took = self.0.iter().zip(before.into_iter().zip(after));
        let took = took.map(|((recorder, attach), (before, after))| RunTime {
            recorder,
            tracepoint: attach.tracepoint_name().to_owned(),
            runs: after.1.saturating_sub(before.1),
            ns: after.0.saturating_sub(before.0),
        });
        Fact::Known(took.collect())
    }

    /// ns and runs of each so far.
    fn read(&self) -> Option<Vec<(u64, u64)>> {
        self.0.iter().map(|(_, attach)| attach.run_time()).collect()
    }
}
