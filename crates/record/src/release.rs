//! The release times of a SCHED_DEADLINE thread by the kernel, in memory that the thread reads:
//! without system calls or records.
//!
//! They are the programmed expiries of the thread's own timer (`dl_timer`), taken when the kernel
//! starts it. That needs BPF with BTF; otherwise the error says so. Everything is held by file
//! descriptors, so nothing is left behind.

use crate::bpf::{Attach, BpfObject, LoadError};
use crate::start_error::StartError;
use crate::wire::layout as wire;
use aya_obj::btf::Btf;
use punctual_sys::attributes::thread_id;
use punctual_sys::mapping::{Mapping, READ_WRITE};
use std::sync::atomic::Ordering;

static PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/release.bpf.o.z"));
const BACKEND: &str = "BPF (BTF tracepoints)";

/// The releases of one thread, until this is dropped.
pub struct Releases {
    board: Mapping,
    _attached: Attach,
    _object: BpfObject,
}

impl Releases {
    /// Begins to keep those of the calling thread.
    pub fn start() -> Result<Releases, StartError> {
        Releases::load_program().map_err(|why| StartError::from_load_error(BACKEND, &why))
    }

    fn load_program() -> Result<Releases, LoadError> {
        let kernel = Btf::from_sys_fs().map_err(|why| LoadError::NoBtf(why.to_string()))?;
        let mut object = BpfObject::open(PROGRAMS, &[])?;
        object.prepare_programs(Some(&kernel))?;
        let board = object.map_page("board", READ_WRITE)?;
        board.word32_at(TID).store(thread_id() as u32, Ordering::Release);
        let attached = object.attach_btf_tracepoint(&kernel, "timer_started", "hrtimer_start")?;
        Ok(Releases { board, _attached: attached, _object: object })
    }

    /// The number of releases programmed so far.
    #[inline(always)]
    pub fn release_count(&self) -> u64 {
        self.board.word_at(ARMED).load(Ordering::Acquire)
    }

    /// A release by its number, from 0 on: on CLOCK_MONOTONIC, in ns. Only for the newest
    /// [`wire::RELEASES`].
    #[inline(always)]
    pub fn release_at(&self, number: u64) -> i64 {
        let slot = (number % wire::RELEASES) as usize;
        self.board.word_at(AT + 8 * slot).load(Ordering::Acquire) as i64
    }
}

/// Offsets in `struct wire_release`; a test compares.
const ARMED: usize = 0;
const AT: usize = 8;
const TID: usize = AT + 8 * wire::RELEASES as usize + 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_board_lies_as_the_header_says() {
        let mut bytes = [0; wire::Release::SIZE];
        let mut at = [0; wire::RELEASES as usize];
        (at[0], at[15]) = (2, 3);
        wire::Release { armed: 1, at, timer: 0, tid: 4, pad: 0 }.write(&mut bytes);
        let offsets = [ARMED, AT, AT + 8 * 15, TID];
        for (offset, value) in offsets.into_iter().zip(1..) {
            assert_eq!(bytes[offset], value);
        }
    }
}
