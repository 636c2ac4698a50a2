//! Calls for a policy, for locked memory or a nice value that the kernel refuses to a program.

use punctual_core::event::Group;
use punctual_core::{CpuSet, Event, EventKind};
use punctual_host::check::rights::RefusedCall;
use punctual_record::{Backend, Recorder, Request, StartError, syscall_number, wire};
use punctual_sys::attributes;
use std::collections::BTreeMap;

/// The call whose second argument is a policy.
const SETSCHEDULER: &str = "sched_setscheduler";
/// SCHED_RESET_ON_FORK, which may be added to it.
const RESET_ON_FORK: u64 = libc::SCHED_RESET_ON_FORK as u64;
const CALLS: [&str; 7] =
    [SETSCHEDULER, "sched_setattr", "sched_setparam", "mlockall", "mlock", "mlock2", "setpriority"];
const BUFFER: usize = 256 << 10;
/// Calls beyond this are not counted.
const MAX_EVENTS: usize = 100_000;

/// Watches processes and their future children.
pub struct RefusalWatch {
    recorder: Recorder,
    calls: BTreeMap<u32, &'static str>,
    events: Vec<Event>,
    /// Whether events were lost.
    lost: bool,
}

impl RefusalWatch {
    /// # Errors
    /// Kernel events cannot be recorded here.
    pub fn start(
        processes: &[u32],
        cpus: &CpuSet,
        backend: Backend,
    ) -> Result<RefusalWatch, StartError> {
        let number = |name: &&'static str| Some((syscall_number(name)?, *name));
        let calls: BTreeMap<u32, &'static str> = CALLS.iter().filter_map(number).collect();
        let request = Request {
            pids: processes.to_vec(),
            backend,
            follow_children: true,
            syscalls: calls.keys().copied().collect(),
            buffer: BUFFER,
            ..Request::new(&[Group::Syscall], cpus.clone())
        };
        let recorder = Recorder::start(request)?;
        Ok(RefusalWatch { recorder, calls, events: Vec::new(), lost: false })
    }

    /// The refusals so far, if there are new events or losses.
    pub fn new_refusals(&mut self) -> Option<Vec<RefusedCall>> {
        let RefusalWatch { recorder, calls, events, lost } = self;
        let before = (events.len(), *lost);
        recorder.drain(&mut |_, bytes| {
            let room = MAX_EVENTS.saturating_sub(events.len());
            events.extend(wire::decode(bytes).flatten().take(room));
        });
        *lost = recorder.losses_by_cpu().iter().any(|(_, lost)| *lost > 0);
        if before == (events.len(), *lost) {
            return None;
        }
        // A call may begin on one CPU and end on another.
        events.sort_by_key(|event| event.at);
        Some(find_refusals(events, calls, *lost))
    }
}

/// Thread, number of the call, the policy asked for, result, and whether it began.
type Key = (u32, u32, Option<u64>, i64, bool);

/// The calls that ended with an error. Where events were lost, an entry may be among them.
fn find_refusals(
    events: &[Event],
    calls: &BTreeMap<u32, &'static str>,
    lost: bool,
) -> Vec<RefusedCall> {
    let mut entered: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
    let mut refused: BTreeMap<Key, u64> = BTreeMap::new();
    for event in events {
        match event.what {
            EventKind::SyscallEnter { number, args } => {
                entered.insert(event.tid.0, (number, args[1]));
            }
            EventKind::SyscallExit { number, result } => {
                let began = entered.remove(&event.tid.0).filter(|(begun, _)| *begun == number);
                let setscheduler_call = began.filter(|_| calls.get(&number) == Some(&SETSCHEDULER));
                if result < 0 {
                    let asked_policy = setscheduler_call.map(|(_, second)| second & !RESET_ON_FORK);
                    let key = (event.tid.0, number, asked_policy, result, began.is_some() || lost);
                    *refused.entry(key).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    let call = |((thread, number, asked, result, began), times): (Key, u64)| {
        let call = (*calls.get(&number)?).to_owned();
        let policy = asked.and_then(|of| attributes::policy_from_number(u32::try_from(of).ok()?));
        let (error, without_entry) = (error_name(-result), !began);
        Some(RefusedCall { thread, call, policy, error, without_entry, times })
    };
    refused.into_iter().filter_map(call).collect()
}

/// The name of an error of these calls.
fn error_name(number: i64) -> String {
    const NAMES: [(i32, &str); 7] = [
        (libc::EPERM, "EPERM"),
        (libc::EACCES, "EACCES"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EINVAL, "EINVAL"),
        (libc::ESRCH, "ESRCH"),
        (libc::EBUSY, "EBUSY"),
        (libc::ENOSYS, "ENOSYS"),
    ];
    let name = NAMES.iter().find(|(known, _)| i64::from(*known) == number);
    name.map_or_else(|| format!("error {number}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_testing::events;

    fn shown(events: &[Event], lost: bool) -> Vec<(u32, String, bool, u64)> {
        let calls = BTreeMap::from([(144, "sched_setscheduler"), (151, "mlockall")]);
        let all = find_refusals(events, &calls, lost).into_iter();
        all.map(|one| (one.thread, one.format_refusal(), one.without_entry, one.times)).collect()
    }

    #[test]
    fn a_refusal_without_an_entry_is_told_from_one_with_it() {
        // The second argument has SCHED_RESET_ON_FORK.
        let policy = 1 | RESET_ON_FORK;
        let events = events!(
            "0 7 sys_enter 144 0 {policy}; 1 8 sys_exit 144 -1; 2 7 sys_exit 144 -1
            3 7 sys_enter 151 0 {policy}; 4 7 sys_exit 151 -12
            5 9 sys_enter 144 0 {policy}; 6 9 sys_exit 144"
        );
        let of = |thread, words: &str, filter| (thread, words.to_owned(), filter, 1);
        let expected = vec![
            of(7, "sched_setscheduler(SCHED_FIFO) was refused (EPERM)", false),
            of(7, "mlockall was refused (ENOMEM)", false),
            of(8, "sched_setscheduler was refused (EPERM)", true),
        ];
        assert_eq!(shown(&events, false), expected);
        // Its entry may be what was lost.
        assert!(shown(&events, true).iter().all(|one| !one.2));
    }
}
