//! The time that network softirqs and the driver of one device had any CPU, kept by BPF programs in
//! memory that a task reads without a system call. It needs BPF with BTF.

use crate::bpf::{Attach, BpfObject, LoadError};
use crate::count::possible_cpus;
use crate::start_error::StartError;
use crate::wire::layout::NETWORK_CPUS;
use aya_obj::btf::Btf;
use punctual_sys::mapping::Mapping;
use std::ops::Sub;
use std::sync::atomic::Ordering;

static PROGRAMS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/network.bpf.o.z"));
const BACKEND: &str = "BPF (BTF tracepoints)";
/// Ends first: none is seen without its start.
const POINTS: [(&str, &str); 4] = [
    ("network_soft_exit", "softirq_exit"),
    ("network_soft_entry", "softirq_entry"),
    ("network_sent", "net_dev_xmit"),
    ("network_sends", "net_dev_start_xmit"),
];

/// An end of a connection: an interface's index, and the inode of its network namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetworkEnd {
    pub index: u32,
    pub space: u32,
}

/// Time on all CPUs in ns, and frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetworkTime {
    /// The transmit function of the ends' drivers (ndo_start_xmit).
    pub driver: i64,
    /// NET_RX and NET_TX of every device, without `driver`, with interrupts within them.
    pub softirq: i64,
    /// Those that the driver took.
    pub frames: u64,
}

impl Sub for NetworkTime {
    type Output = NetworkTime;
    fn sub(self, earlier: NetworkTime) -> NetworkTime {
        NetworkTime {
            driver: self.driver - earlier.driver,
            softirq: self.softirq - earlier.softirq,
            frames: self.frames - earlier.frames,
        }
    }
}

/// The totals, until it is dropped.
pub struct NetworkShares {
    board: Mapping,
    cpus: usize,
    _attached: Vec<Attach>,
    _object: BpfObject,
}

impl NetworkShares {
    /// Starts counting for these interfaces.
    ///
    /// # Errors
    /// BPF or BTF are missing, or the machine has more than 128 CPUs.
    pub fn start(ends: [NetworkEnd; 2]) -> Result<NetworkShares, StartError> {
        NetworkShares::load_programs(ends).map_err(|why| StartError::from_load_error(BACKEND, &why))
    }

    fn load_programs(ends: [NetworkEnd; 2]) -> Result<NetworkShares, LoadError> {
        let cpus = possible_cpus();
        if u64::from(cpus) > NETWORK_CPUS {
            return Err(LoadError::Unfit(format!("{cpus} CPUs; at most {NETWORK_CPUS}")));
        }
        let kernel = Btf::from_sys_fs().map_err(|why| LoadError::NoBtf(why.to_string()))?;
        let words = |word: fn(&NetworkEnd) -> u32| -> Vec<u8> {
            ends.iter().flat_map(|end| word(end).to_ne_bytes()).collect()
        };
        let (index, space) = (words(|end| end.index), words(|end| end.space));
        let constants = [("want_index", &*index), ("want_space", &*space)];
        let mut object = BpfObject::open(PROGRAMS, &constants)?;
        object.prepare_programs(Some(&kernel))?;
        let board = object.map_page("board", libc::PROT_READ)?;
        let attach =
            |(program, point): (&str, &str)| object.attach_btf_tracepoint(&kernel, program, point);
        let attached = POINTS.into_iter().map(attach).collect::<Result<_, _>>()?;
        Ok(NetworkShares { board, cpus: cpus as usize, _attached: attached, _object: object })
    }

    /// The totals at an instant of CLOCK_MONOTONIC that was read just now; what runs is in them.
    #[inline]
    pub fn totals_at(&self, now: i64) -> NetworkTime {
        let mut network_time = NetworkTime::default();
        for at in (0..self.cpus).map(|cpu| 32 * cpu) {
            let word = |at| self.board.word_at(at).load(Ordering::Acquire);
            let time = |at| time_until(word(at) as i64, now);
            network_time.driver += time(at);
            network_time.softirq += time(at + 8);
            network_time.frames += word(at + 16);
        }
        network_time
    }
}

/// A word of the board is time so far; while more is added, less the instant since when.
fn time_until(word: i64, now: i64) -> i64 {
    if word < 0 { word + now } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::layout;

    #[test]
    fn the_network_board_lies_as_the_header_says() {
        let mut bytes = [0; layout::Network::SIZE];
        let read = layout::Network::read(&bytes);
        layout::Network { driver: 1, softirq: 2, frames: 3, ..read }.write(&mut bytes);
        assert_eq!((bytes.len(), [0, 8, 16].map(|at| bytes[at])), (32, [1, 2, 3]));
        assert_eq!(time_until(7, 100), 7);
        // 7 so far, and since 90.
        assert_eq!(time_until(7 - 90, 100), 17);
    }
}
