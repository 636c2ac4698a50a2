//! The programs' counts besides the entries.

use crate::bpf::sys;
use crate::wire::layout::{self as wire, Own, OwnKey};
use punctual_core::cycle::TaskComm;
use punctual_core::entry::{EntryCounts, OwnCount, OwnEntry};
use std::os::fd::OwnedFd;

/// Reads the last part of `struct cpu`.
pub(super) fn read(cpu: &[u8]) -> Option<EntryCounts> {
    let counts = wire::EntryCounts::read(cpu.last_chunk::<{ wire::EntryCounts::SIZE }>()?);
    Some(EntryCounts {
        vectors: counts.vectors,
        irqs: counts.irqs,
        shootdowns: counts.shootdowns,
        own_lost: counts.own_lost,
    })
}

pub(super) fn own(map: &OwnedFd) -> Vec<OwnCount> {
    let (mut all, mut key) = (Vec::new(), None::<[u8; OwnKey::SIZE]>);
    loop {
        let mut next = [0; OwnKey::SIZE];
        let before = key.as_ref().map(|key| key.as_slice());
        if sys::next_key(map, before, &mut next).is_err() {
            return all;
        }
        let mut value = [0; Own::SIZE];
        if sys::look_up(map, &next, &mut value).is_ok() {
            all.push(one(OwnKey::read(&next), Own::read(&value)));
        }
        key = Some(next);
    }
}

fn one(key: OwnKey, own: Own) -> OwnCount {
    let what = match u64::from(key.what) {
        wire::OWN_FAULT_USER => OwnEntry::UserFault,
        wire::OWN_FAULT_KERNEL => OwnEntry::KernelFault,
        number => OwnEntry::SystemCall((number < wire::MAX_SYSCALLS).then_some(key.what)),
    };
    OwnCount { cpu: key.cpu, tid: key.tid, name: TaskComm(own.comm), what, count: own.count }
}
