//! Calls for a policy, for locked memory or a nice value that were refused while a program was
//! watched, with what refused each and where to grant its right.

use crate::refusals::RefusalWatch;
use crate::request;
use punctual_core::format::count_with_noun;
use punctual_core::{Finding, Severity};
use punctual_host::check::rights::{RefusedCall, RightKind, RightsAnswer, answer_rights};
use punctual_host::files::{Files, Root};
use punctual_record::Backend;
use std::collections::BTreeMap;

/// The maximum number of threads whose refusals are explained.
const THREADS: usize = 64;

/// The refusals of a program; none where they cannot be watched.
#[derive(Default)]
pub struct RefusedRights {
    watch: Option<RefusalWatch>,
    /// The refused calls of each thread, and its rights when the last one was seen.
    seen: BTreeMap<u32, (Vec<RefusedCall>, Option<RightsAnswer>)>,
}

impl RefusedRights {
    /// Watches processes and their future children.
    pub(crate) fn watch_processes(&mut self, processes: &[u32], backend: Backend) {
        let Ok(cpus) = request::online_cpus() else { return };
        self.watch = RefusalWatch::start(processes, &cpus, backend).ok();
    }

    /// Reads the rights of threads with new refusals, while they are there.
    pub(crate) fn read_new_refusals(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        if let Some(refused) = watch.new_refusals() {
            self.add_refusals(&Root::from_system(), refused);
        }
    }

    fn add_refusals(&mut self, files: &dyn Files, refused: Vec<RefusedCall>) {
        let mut now: BTreeMap<u32, Vec<RefusedCall>> = BTreeMap::new();
        for call in refused {
            now.entry(call.thread).or_default().push(call);
        }
        for (thread, calls) in now {
            let earlier_entry = self.seen.get(&thread);
            let is_new = earlier_entry.is_none_or(|(before, _)| before.len() != calls.len());
            let mut rights = earlier_entry.and_then(|(_, rights)| rights.clone());
            if is_new && (earlier_entry.is_some() || self.seen.len() < THREADS) {
                rights = answer_rights(files, thread, Some(calls.clone())).ok().or(rights);
            }
            self.seen.insert(thread, (calls, rights));
        }
    }

    /// One finding for each kind of call and obstacle.
    pub(crate) fn refusal_findings(&self, subject: &str) -> Vec<Finding> {
        let mut counted_refusals: BTreeMap<(String, String), (u64, String, Option<String>)> =
            BTreeMap::new();
        for (call, rights) in
            self.seen.values().flat_map(|(calls, of)| calls.iter().map(move |one| (one, of)))
        {
            let found = rights.as_ref().and_then(|of| of.obstacle_of_call(call));
            let (why, evidence) = match (found, rights) {
                (Some((why, evidence)), _) => (why, evidence),
                (None, Some(_)) => ("no limit that /proc shows explains it", ""),
                (None, None) => ("why is not known: the thread had ended", ""),
            };
            let is_policy = call.refused_right() == RightKind::RealTimePolicy;
            let way = rights.as_ref().filter(|_| is_policy && found.is_some());
            let evidence = [evidence, way.map_or("", |of| &of.way.message)].map(str::to_owned);
            let evidence = evidence.into_iter().filter(|text| !text.is_empty());
            let key = (call.format_refusal(), why.to_owned());
            let entry = counted_refusals.entry(key).or_insert_with(|| {
                let text = evidence.fold(String::new(), |all, one| format!("{all}; {one}"));
                (0, format!("thread {}{text}", call.thread), remedy_for_call(call, way))
            });
            entry.0 += call.times;
        }
        let finding =
            |((call, why), (times, evidence, remedy)): (_, (u64, String, Option<String>))| {
                let message = format!("{call}: {why}");
                let found = Finding::new("right-refused", Severity::Warning, subject, message)
                    .with_evidence(format!("{}: {evidence}", count_with_noun(times, "call")));
                match remedy {
                    Some(remedy) => found.with_remedy(remedy),
                    None => found,
                }
            };
        counted_refusals.into_iter().map(finding).collect()
    }
}

/// The change that grants the right. Errors of a call's own arguments have none.
fn remedy_for_call(call: &RefusedCall, way: Option<&RightsAnswer>) -> Option<String> {
    match call.refused_right() {
        RightKind::RealTimePolicy => way?.remedy.clone(),
        RightKind::LockedMemory => Some(
            "raise RLIMIT_MEMLOCK where the program is started: memlock in limits.d, \
             LimitMEMLOCK=infinity of a unit, --ulimit=memlock=-1 of a container"
                .to_owned(),
        ),
        RightKind::Nice => Some(
            "raise RLIMIT_NICE where the program is started: nice in limits.d, LimitNICE= of a \
             unit"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::Policy;

    fn call(thread: u32, call: &str, error: &str, times: u64) -> RefusedCall {
        let policy = (call == "sched_setscheduler").then_some(Policy::Fifo);
        let (call, error) = (call.to_owned(), error.to_owned());
        RefusedCall { thread, call, policy, error, without_entry: false, times }
    }

    /// A thread of a unit without rights.
    fn tree(directory: &std::path::Path) -> Root {
        let stat = |parent| {
            format!("7 (loop) S {parent} 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5{}", " 0".repeat(30))
        };
        let limits = "Max locked memory  65536  65536  bytes\nMax realtime priority  0  0\n";
        for (path, text) in [
            ("proc/7/stat", &*stat(0)),
            ("proc/7/status", "Uid:\t1000\t1000\nVmSize:\t 9000 kB\nCapEff:\t0\nSeccomp:\t0\n"),
            ("proc/7/limits", limits),
            ("proc/7/uid_map", "0 0 4294967295\n"),
            ("proc/7/cgroup", "0::/system.slice/robot.service\n"),
            ("etc/systemd/system/robot.service", "[Service]\nExecStart=/usr/bin/robot\n"),
        ] {
            let path = directory.join(path);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        Root::from_base(directory)
    }

    #[test]
    fn each_refused_call_is_a_finding_with_its_obstacle_place_and_change() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let files = tree(directory.path());
        let mut rights = RefusedRights::default();
        let first = vec![call(7, "sched_setscheduler", "EPERM", 1)];
        rights.add_refusals(&files, first);
        let calls = vec![
            call(7, "sched_setscheduler", "EPERM", 3),
            call(7, "mlockall", "ENOMEM", 1),
            // It ended before its limits were read.
            call(8, "mlockall", "ENOMEM", 2),
        ];
        rights.add_refusals(&files, calls);
        let found: Vec<String> = rights
            .refusal_findings("attached/robot")
            .into_iter()
            .map(|one| {
                let [evidence, remedy] = [one.evidence, one.remedy].map(Option::unwrap_or_default);
                format!("{}\n  {evidence}\n  {remedy}", one.message)
            })
            .collect();
        let memory = "raise RLIMIT_MEMLOCK where the program is started: memlock in limits.d, \
                      LimitMEMLOCK=infinity of a unit, --ulimit=memlock=-1 of a container";
        let expected = [
            "mlockall was refused (ENOMEM): 64 KiB of 8 MiB mapped: mlockall is refused \
             (ENOMEM)\n  1 call: thread 7; /proc/7/limits, Max locked memory is `65536`\n  ",
            "mlockall was refused (ENOMEM): why is not known: the thread had ended\n  2 calls: \
             thread 8\n  ",
            "sched_setscheduler(SCHED_FIFO) was refused (EPERM): RLIMIT_RTPRIO is 0, and it lacks \
             CAP_SYS_NICE\n  3 calls: thread 7; /proc/7/limits, Max realtime priority is `0`; \
             robot.service has no LimitRTPRIO=\n  systemctl edit robot.service, with [Service] \
             LimitRTPRIO=99 and LimitMEMLOCK=infinity; systemctl restart robot.service",
        ];
        assert_eq!(found[0], format!("{}{memory}", expected[0]));
        assert_eq!(found[1], format!("{}{memory}", expected[1]));
        assert_eq!(found[2..], expected[2..]);
    }

    #[test]
    fn a_program_whose_calls_succeed_has_no_finding() {
        let mut rights = RefusedRights::default();
        rights.add_refusals(&Root::from_system(), Vec::new());
        assert!(rights.refusal_findings("attached/robot").is_empty());
    }
}
