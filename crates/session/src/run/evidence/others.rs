//! Other measurements on the same CPUs, found by their announcement sockets.

use punctual_bundle::evidence::OtherMeasurement;
use punctual_core::{CpuSet, Fact};
use punctual_host::files::{Files, Root};
use punctual_sys::observers::{self, Claim, PREFIX, SOCKETS};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The maximum length of a CPU list in a name (sun_path has 108 bytes); longer ones are split.
const LIST: usize = 70;
/// The number of CPUs that always fits into a name.
const PIECE: usize = 12;

/// The announcement of this process, and the others seen.
#[derive(Default)]
pub struct Announcement {
    cpus: CpuSet,
    /// Held as long as this lives.
    _sockets: Vec<UnixDatagram>,
    found: Vec<OtherMeasurement>,
    trouble: Option<String>,
}

impl Announcement {
    /// Announces that this process measures on these CPUs from now on.
    pub fn from_cpus(cpus: CpuSet) -> Announcement {
        let me = std::process::id();
        let names: Vec<String> = match cpus.to_string() {
            list if list.len() <= LIST => vec![list],
            _ => cpus
                .iter()
                .collect::<Vec<_>>()
                .chunks(PIECE)
                .map(|some| some.iter().copied().collect::<CpuSet>().to_string())
                .collect(),
        };
        let bind = |list: &String| {
            let address = SocketAddr::from_abstract_name(format!("{PREFIX}{me}/{list}"))?;
            UnixDatagram::bind_addr(&address)
        };
        // A process that cannot announce itself still sees the others.
        let _sockets = names.iter().filter_map(|list| bind(list).ok()).collect();
        Announcement { cpus, _sockets, ..Announcement::default() }
    }

    pub fn poll(&mut self, files: &Root) {
        match files.read(SOCKETS) {
            Ok(text) => {
                let new = on_cpus(&observers::other_claims(&text), &self.cpus);
                let is_new = |other: &OtherMeasurement| !self.found.contains(other);
                let new: Vec<OtherMeasurement> = new.into_iter().filter(is_new).collect();
                self.found.extend(new);
            }
            Err(why) => self.trouble = Some(why.to_string()),
        }
    }

    pub(crate) fn into_measurements(self) -> Fact<Vec<OtherMeasurement>> {
        match self.trouble {
            Some(why) if self.found.is_empty() => Fact::Unavailable(why),
            _ => Fact::Known(self.found),
        }
    }
}

/// Those that measure on any of these CPUs.
fn on_cpus(claims: &[Claim<'_>], cpus: &CpuSet) -> Vec<OtherMeasurement> {
    let overlapping_claim = |claim: &Claim<'_>| {
        let cpus = claim.cpus.parse::<CpuSet>().ok()?.intersection(cpus);
        (!cpus.is_empty()).then_some(OtherMeasurement { pid: claim.pid, cpus })
    };
    claims.iter().filter_map(overlapping_claim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_measurements_on_the_same_cpus_are_found() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n0000000000000000: \
                    00000002 00000000 00000000 0002 01 123 \
                    @punctual/measures/41/0-1\n0000000000000000: 00000002 00000000 00000000 0002 \
                    01 124 @punctual/measures/42/2\n0000000000000000: 00000002 00000000 00000000 \
                    0002 01 125 @punctual/measures/43/1\n0000000000000000: 00000002 00000000 \
                    00010000 0001 01 126 /run/x\n0000000000000000: 00000002 00000000 00000000 \
                    0002 01 127 @punctual/measures/x/\n";
        let cpus: CpuSet = "1-3".parse().unwrap();
        let claims: Vec<Claim<'_>> = observers::parse_claims(text).collect();
        let found = on_cpus(&claims, &cpus);
        let found: Vec<_> = found.iter().map(|o| (o.pid, o.cpus.to_string())).collect();
        assert_eq!(found, [(41, "1".to_owned()), (42, "2".to_owned()), (43, "1".to_owned())]);
    }

    #[test]
    fn announced_cpus_are_visible_in_proc() {
        let cpu = CpuSet::from_cpu(1_000);
        let held = Announcement::from_cpus(cpu.clone());
        let is_seen = || {
            let text = Root::from_system().read(SOCKETS).unwrap();
            let claims: Vec<Claim<'_>> = observers::parse_claims(&text).collect();
            on_cpus(&claims, &cpu).iter().any(|other| other.pid == std::process::id())
        };
        assert!(is_seen());
        drop(held);
        assert!(!is_seen());
    }
}
