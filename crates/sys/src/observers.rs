//! punctual's own processes on this machine: this one, and others that measure. A process that
//! measures says so by a socket without a file (unix(7), abstract): it needs no right, is seen by
//! all of the same network namespace in /proc/net/unix, and goes with its process, also after
//! kill -9. Any user can bind such a name: it counts where the socket is root's or this user's.

use crate::socket_owners::{self, Owners};
use std::collections::BTreeSet;
use std::{fs, io};

/// The prefix of all names; the process and its CPUs follow.
pub const PREFIX: &str = "punctual/measures/";
/// The file in which the kernel lists the names.
pub const SOCKETS: &str = "/proc/net/unix";

/// The names of the threads of a measurement: their effects on each other are part of it.
const MEASURING: [&str; 4] = ["measure", "ring", "raiser", "target"];

/// A process that says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim<'t> {
    pub pid: u32,
    /// Its CPUs as it wrote them.
    pub cpus: &'t str,
    inode: u32,
}

/// Those in a text of [`SOCKETS`].
pub fn parse_claims(text: &str) -> impl Iterator<Item = Claim<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(6);
        let inode = words.next()?.parse().ok()?;
        let (pid, cpus) = words.next()?.strip_prefix('@')?.strip_prefix(PREFIX)?.split_once('/')?;
        Some(Claim { pid: pid.parse().ok()?, cpus, inode })
    })
}

/// The other processes in a text of [`SOCKETS`] that measure, by sockets of this user or of root.
pub fn other_claims(text: &str) -> Vec<Claim<'_>> {
    // SAFETY: takes nothing, and cannot fail.
    let (me, user) = (std::process::id(), unsafe { libc::geteuid() });
    retain_counted(
        parse_claims(text).filter(|claim| claim.pid != me).collect(),
        user,
        socket_owners::read,
    )
}

/// Those whose owner is this user or root. Where the kernel does not say whose a socket is (before
/// 5.3, or without unix_diag), it counts: it can make a verdict *invalid* or *undecided*, and never
/// *met*. Owners are read only where there is a claim: the kernel may load unix_diag for it.
fn retain_counted<'t>(
    mut claims: Vec<Claim<'t>>,
    user: u32,
    owners: impl FnOnce() -> io::Result<Owners>,
) -> Vec<Claim<'t>> {
    if !claims.is_empty()
        && let Ok(owners) = owners()
    {
        // A socket that is not among them has gone since.
        let counts = |owner: &Option<u32>| owner.is_none_or(|owner| owner == 0 || owner == user);
        claims.retain(|claim| owners.get(&claim.inode).is_some_and(counts));
    }
    claims
}

/// This process and all others that are measuring.
pub fn measuring_processes() -> BTreeSet<u32> {
    let text = fs::read_to_string(SOCKETS).unwrap_or_default();
    other_claims(&text).iter().map(|claim| claim.pid).chain([std::process::id()]).collect()
}

/// The current threads of these processes.
pub fn threads_of(processes: &BTreeSet<u32>) -> impl Iterator<Item = u32> {
    let task_directory = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task"));
    let entries = processes.iter().flat_map(task_directory).flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a thread of this name in one of these processes is not part of this process's
/// measurement.
pub fn is_observer(process: u32, comm: &str, processes: &BTreeSet<u32>) -> bool {
    let measures = process == std::process::id() && MEASURING.contains(&comm);
    processes.contains(&process) && !measures
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    #[test]
    fn measuring_threads_of_punctual_are_no_observers() {
        let me = std::process::id();
        let processes = BTreeSet::from([me, me + 1]);
        assert!(!is_observer(me, "measure", &processes) && is_observer(me, "punctual", &processes));
        assert!(
            is_observer(me + 1, "measure", &processes)
                && !is_observer(me + 2, "punctual", &processes)
        );
        assert!(
            threads_of(&super::measuring_processes())
                .any(|tid| tid as i32 == crate::attributes::thread_id())
        );
    }

    #[test]
    fn socket_names_of_other_programs_are_ignored() {
        let text = "0: 2 0 0 2 01 123 @punctual/measures/41/0-1\n0: 2 0 0 2 01 5 \
                    @punctual/measures/x/1\n0: 2 0 1 1 01 126 /run/x\n";
        let claim = Claim { pid: 41, cpus: "0-1", inode: 123 };
        assert_eq!(parse_claims(text).collect::<Vec<_>>(), [claim]);
    }

    #[test]
    fn only_claims_of_root_the_same_user_or_unknown_owners_count() {
        let of = |inode| Claim { pid: 1_000 + inode, cpus: "0", inode };
        let owners = Owners::from([(1, Some(0)), (2, Some(1_000)), (3, Some(65_534)), (4, None)]);
        for (user, expected) in [(0, vec![1, 4]), (1_000, vec![1, 2, 4]), (7, vec![1, 4])] {
            let found = retain_counted((1..=5).map(of).collect(), user, || Ok(owners.clone()));
            assert_eq!(found, expected.into_iter().map(of).collect::<Vec<_>>(), "user {user}");
        }
        let without = || Err(io::ErrorKind::NotFound.into());
        assert_eq!(retain_counted(vec![of(3)], 0, without), [of(3)]);
        retain_counted(Vec::new(), 0, || unreachable!("there is no claim"));
    }

    /// The user of a socket is that with which its thread reaches files (setfsuid(2)).
    fn claimed_by(user: u32, pid: u32) -> UnixDatagram {
        let bind = move || {
            // SAFETY: takes a number; it is of this thread alone, which ends.
            unsafe { libc::setfsuid(user) };
            let name = format!("{PREFIX}{pid}/4000");
            let address = SocketAddr::from_abstract_name(name).expect("an address");
            UnixDatagram::bind_addr(&address).expect("a name that is free")
        };
        std::thread::spawn(bind).join().expect("it ends")
    }

    #[test]
    fn owners_of_claims_are_read_from_the_kernel() {
        // SAFETY: takes nothing, and cannot fail.
        let user = unsafe { libc::geteuid() };
        let (own, foreign) = (1 << 30, (1 << 30) + 1);
        let _own = claimed_by(user, own);
        assert!(measuring_processes().contains(&own));
        if user != 0 {
            return println!("SKIPPED: lacks the right to be another user");
        }
        let _foreign = claimed_by(65_534, foreign);
        let text = fs::read_to_string(SOCKETS).expect("it is readable");
        assert!(parse_claims(&text).any(|claim| claim.pid == foreign));
        let owners = socket_owners::read();
        let Ok(owners) = owners else { return println!("SKIPPED: lacks unix_diag in the kernel") };
        if !owners.values().all(Option::is_none) {
            assert!(
                !measuring_processes().contains(&foreign) && measuring_processes().contains(&own)
            );
            let seen = retain_counted(parse_claims(&text).collect(), 65_534, || Ok(owners));
            assert!(seen.iter().any(|claim| claim.pid == own), "root's counts for a user");
            assert!(seen.iter().any(|claim| claim.pid == foreign));
        }
    }
}
