//! The ways to be without the right, each on a tree.

use super::*;
use crate::check::testing::FakeFiles;
use proptest::prelude::*;
use punctual_core::Policy;

/// A process of a tree.
struct Task {
    pid: u32,
    name: &'static str,
    parent: u32,
    user: u32,
    rtprio: &'static str,
    capabilities: u64,
}

const ROOT_CAPABILITIES: u64 = 0x1ff_ffff_ffff;

fn task(pid: u32, name: &'static str, parent: u32, user: u32) -> Task {
    let capabilities = if user == 0 { ROOT_CAPABILITIES } else { 0 };
    Task { pid, name, parent, user, rtprio: "0", capabilities }
}

fn stat(pid: u32, name: &str, parent: u32, policy: u32) -> String {
    let priority = if policy == 1 { 80 } else { 0 };
    format!(
        "{pid} ({name}) S {parent} 700 700 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 \
         0 0 0 0 0 0 0 17 0 {priority} {policy} 0 0 0"
    )
}

/// The tree of these processes on a kernel without groups' budgets; the first is asked about.
fn tree(tasks: &[Task]) -> FakeFiles {
    let mut files = FakeFiles::new()
        .with_file("/proc/sys/kernel/osrelease", "6.12.0")
        .with_file("/boot/config-6.12.0", "CONFIG_HZ=250\n")
        .with_file("/proc/sys/kernel/sched_rt_runtime_us", "950000")
        .with_file("/proc/cmdline", "quiet")
        .with_file("/proc/700/stat", &stat(700, "bash", 1, 0))
        .with_file("/etc/passwd", "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n")
        .with_file("/etc/group", "root:x:0:\nann:x:1000:\nrealtime:x:777:ann\n");
    for Task { pid, name, parent, user, rtprio, capabilities } in tasks {
        let at = |file: &str| format!("/proc/{pid}/{file}");
        let line = stat(*pid, name, *parent, 0);
        files = files
            .with_file(&at("stat"), &line)
            .with_file(&at(&format!("task/{pid}/stat")), &line)
            .with_file(
                &at("status"),
                &format!(
                    "Name:\t{name}\nUid:\t{user}\t{user}\t{user}\t{user}\nGid:\t{user}\t{user}\n\
                     Groups:\t{user} 777\nVmSize:\t   20000 kB\nCapEff:\t{capabilities:016x}\n\
                     NoNewPrivs:\t0\nSeccomp:\t0\n"
                ),
            )
            .with_file(
                &at("limits"),
                &format!(
                    "Max locked memory         8388608              8388608              bytes\n\
                     Max nice priority         0                    0\n\
                     Max realtime priority     {rtprio}                    {rtprio}\n"
                ),
            )
            .with_file(&at("uid_map"), "         0          0 4294967295\n")
            .with_file(&at("cgroup"), "0::/user.slice/user-1000.slice/session-3.scope\n");
    }
    files
}

/// A login of ann through this program.
fn login(by: &'static str) -> [Task; 4] {
    [
        task(900, "loop", 700, 1000),
        task(700, "bash", 600, 1000),
        task(600, by, 1, 0),
        task(1, "systemd", 0, 0),
    ]
}

fn of(files: &FakeFiles) -> RightsAnswer {
    answer_rights(files, 900, None).expect("it is there")
}

/// Verdict, obstacles, way and remedy, for a comparison.
fn shown(files: &FakeFiles) -> String {
    shown_of(&of(files))
}

fn shown_of(answer: &RightsAnswer) -> String {
    let kinds = answer.obstacles.iter().map(|one| format!("{:?}", one.kind)).collect::<Vec<_>>();
    let through = answer.way.through.as_deref().unwrap_or("-");
    format!(
        "{:?} by {}: {}\n{:?} {through}: {}\n-> {}",
        answer.verdict,
        kinds.join("+"),
        answer.message,
        answer.way.kind,
        answer.way.message,
        answer.remedy.as_deref().unwrap_or("-")
    )
}

const GRANT: (&str, &str) = ("/etc/security/limits.d/rt.conf", "@realtime - rtprio 99\n");
const LIMITS: &str = "session required pam_limits.so\n";

#[test]
fn a_login_without_pam_limits_is_named_with_one_that_calls_it() {
    let files = tree(&login("tailscaled"))
        .with_file(GRANT.0, GRANT.1)
        .with_file("/etc/pam.d/sshd", "@include common-session\n")
        .with_file("/etc/pam.d/common-session", LIMITS);
    insta::assert_snapshot!(shown(&files), @"
    Refused by Limit: RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE
    Login tailscaled: this login came through tailscaled, which does not call pam_limits; sshd's would; so `@realtime - rtprio 99` of /etc/security/limits.d/rt.conf does not apply
    -> log in through sshd
    ");
    let ancestors = of(&files).ancestors;
    let seen: Vec<_> = ancestors.iter().map(|one| (one.process, one.rtprio.as_deref())).collect();
    assert_eq!(seen, [(700, Some("0")), (600, Some("0")), (1, Some("0"))]);
}

#[test]
fn a_login_that_reads_the_limits_lacks_a_line_or_the_group() {
    let files = tree(&login("sshd-session")).with_file("/etc/pam.d/sshd", LIMITS);
    insta::assert_snapshot!(shown(&files), @"
    Refused by Limit: RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE
    Login sshd-session: this login came through sshd-session, which calls pam_limits; no line of /etc/security/limits.conf or limits.d grants rtprio
    -> echo 'ann - rtprio 99' > /etc/security/limits.d/realtime.conf, and log in again
    ");
    let other = files.clone().with_file(GRANT.0, "@audio - rtprio 95\n");
    insta::assert_snapshot!(shown(&other), @"
    Refused by Limit: RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE
    Login sshd-session: this login came through sshd-session, which calls pam_limits; `@audio - rtprio 95` of /etc/security/limits.d/rt.conf does not name ann
    -> echo 'ann - rtprio 99' > /etc/security/limits.d/realtime.conf, and log in again
    ");
    let status = "Uid:\t1000\t1000\nGid:\t1000\nGroups:\t1000\nCapEff:\t0\nSeccomp:\t0\n";
    let new = files.clone().with_file(GRANT.0, GRANT.1).with_file("/proc/900/status", status);
    insta::assert_snapshot!(shown(&new), @"
    Refused by Limit: RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE
    Login sshd-session: this login came through sshd-session, which calls pam_limits; ann joined the group of `@realtime - rtprio 99` (/etc/security/limits.d/rt.conf) after this login
    -> log out of all sessions, and in again
    ");
    let without = files.with_file("/etc/ssh/sshd_config", "Port 22\n");
    assert!(of(&without).message.contains("RLIMIT_RTPRIO is 0"));
    assert!(of(&without).way.message.contains("UsePAM"), "{:?}", of(&without).way);
}

#[test]
fn a_unit_needs_a_setting_of_its_own() {
    let tasks = || [task(900, "robot", 1, 1000), task(1, "systemd", 0, 0)];
    let group = "0::/system.slice/robot.service\n";
    let path = "/etc/systemd/system/robot.service";
    let files = tree(&tasks())
        .with_file(GRANT.0, GRANT.1)
        .with_file("/proc/900/cgroup", group)
        .with_file(path, "[Service]\nUser=ann\nExecStart=/usr/bin/robot\n");
    insta::assert_snapshot!(shown(&files), @"
    Refused by Limit: RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE
    Unit robot.service: `@realtime - rtprio 99` of /etc/security/limits.d/rt.conf does not reach it: only PAM, at a login, reads that; robot.service has no LimitRTPRIO=
    -> systemctl edit robot.service, with [Service] LimitRTPRIO=99 and LimitMEMLOCK=infinity; systemctl restart robot.service
    ");
    let granted = files.with_file(&format!("{path}.d/rt.conf"), "[Service]\nLimitRTPRIO=99\n");
    insta::assert_snapshot!(shown(&granted), @"
    Refused by Limit: RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE
    Unit robot.service: /etc/systemd/system/robot.service.d/rt.conf has LimitRTPRIO=99, and its process 900 has 0: it was started before, or lowered it itself
    -> systemctl daemon-reload && systemctl restart robot.service
    ");
}

#[test]
fn capabilities_of_a_user_namespace_do_not_count() {
    let mut tasks = login("sshd");
    tasks[0].capabilities = ROOT_CAPABILITIES;
    let files = tree(&tasks).with_file("/proc/900/uid_map", "         0       1000          1\n");
    insta::assert_snapshot!(shown(&files), @"
    Refused by UserNamespace: it is in a user namespace: its CAP_SYS_NICE does not count for the scheduler, and RLIMIT_RTPRIO is 0
    Started -: its user namespace was entered with RLIMIT_RTPRIO 0, and capabilities within do not count
    -> raise the limit before the namespace is entered: prlimit --rtprio=99 unshare … (as root), or start the program outside of it
    ");
    let limit = "Max realtime priority     10                   10\n";
    let answer = of(&files.with_file("/proc/900/limits", limit));
    assert_eq!(answer.verdict, RightsVerdict::Allowed, "the limit counts there: {answer:?}");
}

#[test]
fn a_container_gets_it_when_it_is_started() {
    let files = tree(&login("conmon"));
    let with = |group: &str| shown(&files.clone().with_file("/proc/900/cgroup", group));
    insta::assert_snapshot!(with("0::/machine.slice/libpod-7d1f.scope/container\n"), @"
    Refused by Limit: RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE
    Container podman: podman gives a container neither the capability nor the limit by default
    -> podman run --cap-add=SYS_NICE --ulimit=rtprio=99 --ulimit=memlock=-1
    ");
    insta::assert_snapshot!(with("0::/kubepods.slice/kubepods-pod1.slice/cri-1.scope\n"), @"
    Refused by Limit: RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE
    Container Kubernetes: Kubernetes gives a container neither the capability nor the limit by default
    -> in the pod: securityContext: {capabilities: {add: [SYS_NICE, IPC_LOCK]}}; a pod has no ulimits
    ");
}

#[test]
fn a_group_without_a_budget_refuses_whoever_has_the_right() {
    let mut tasks = login("sshd");
    tasks[0].rtprio = "99";
    let files = tree(&tasks)
        .with_file("/boot/config-6.12.0", "CONFIG_RT_GROUP_SCHED=y\n")
        .with_file("/proc/self/mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n")
        .with_file("/proc/900/cgroup", "3:cpu:/lab/robot\n")
        .with_file("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", "950000")
        .with_file("/sys/fs/cgroup/cpu/lab/cpu.rt_runtime_us", "0")
        .with_file("/sys/fs/cgroup/cpu/lab/robot/cpu.rt_runtime_us", "0");
    insta::assert_snapshot!(shown(&files), @"
    Refused by GroupBudget: its control group has no real-time budget: a new one has none
    Login sshd: the budget is to be granted by the group (/sys/fs/cgroup/cpu/lab/robot/cpu.rt_runtime_us is `0`)
    -> echo 100000 > /sys/fs/cgroup/cpu/lab/cpu.rt_runtime_us; echo 100000 > /sys/fs/cgroup/cpu/lab/robot/cpu.rt_runtime_us
    ");
    let granted = files.clone().with_file("/sys/fs/cgroup/cpu/lab/robot/cpu.rt_runtime_us", "1000");
    assert_eq!(of(&granted).verdict, RightsVerdict::Allowed);
    let off = files.with_file("/proc/sys/kernel/sched_rt_runtime_us", "-1");
    assert_eq!(of(&off).verdict, RightsVerdict::Allowed, "no group's is asked for");
}

#[test]
fn a_filter_shows_as_a_refusal_without_an_entry() {
    let mut tasks = [task(900, "robot", 1, 0), task(1, "systemd", 0, 0)];
    tasks[0].user = 0;
    let status = "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t2\n";
    let unit = "/usr/lib/systemd/system/robot.service";
    let files = tree(&tasks)
        .with_file("/proc/900/status", status)
        .with_file("/proc/900/cgroup", "0::/system.slice/robot.service\n")
        .with_file(unit, "[Service]\nRestrictRealtime=yes\n");
    let call = RefusedCall {
        thread: 900,
        call: "sched_setscheduler".into(),
        policy: Some(Policy::Fifo),
        error: "EPERM".into(),
        without_entry: true,
        times: 1,
    };
    let seen = answer_rights(&files, 900, Some(vec![call.clone()])).expect("it is there");
    insta::assert_snapshot!(shown_of(&seen), @"
    Refused by Seccomp: sched_setscheduler(SCHED_FIFO) was refused (EPERM): a seccomp filter refuses sched_setscheduler: the call ends before it begins
    Unit robot.service: its unit installs the filter: /usr/lib/systemd/system/robot.service: RestrictRealtime=yes
    -> systemctl edit robot.service: unset that setting; systemctl restart robot.service
    ");
    // The filter alone is no proof, and a refusal with an entry is none of it.
    assert_eq!(of(&files).verdict, RightsVerdict::Allowed);
    assert!(of(&files).message.contains("/proc does not show"), "{}", of(&files).message);
    let entered =
        answer_rights(&files, 900, Some(vec![RefusedCall { without_entry: false, ..call }]));
    assert_eq!(entered.expect("it is there").verdict, RightsVerdict::Unknown);
}

/// setpriv(1), or a program that changes its user itself, below a shell of root.
#[test]
fn a_user_changed_within_a_session_is_no_login() {
    let mut tasks = login("sshd");
    tasks[1].user = 0;
    tasks[1].capabilities = ROOT_CAPABILITIES;
    let files = tree(&tasks).with_file("/etc/pam.d/sshd", LIMITS);
    insta::assert_snapshot!(shown(&files), @"
    Refused by Limit: RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE
    Started loop: loop (900), started by bash (700), gave up CAP_SYS_NICE and its user from 0 to 1000: no login did that
    -> start it so that the limit stays: prlimit --rtprio=99 COMMAND, as user 0; for this process: prlimit --pid 900 --rtprio=99
    ");
    // An unknown daemon that begins a session for another user is a login.
    let session = stat(600, "ttyd", 1, 0).replace(" 700 700 ", " 600 600 ");
    let files = tree(&login("ttyd")).with_file("/proc/600/stat", &session);
    assert_eq!(of(&files).way.through.as_deref(), Some("ttyd"));
    // In the same session, it has changed its user.
    assert!(of(&tree(&login("robotd"))).way.message.contains("started by robotd (600)"));
}

/// Each refusal has the limit of its own right.
#[test]
fn refused_memory_is_not_explained_by_the_limit_on_priorities() {
    let files = tree(&login("sshd"));
    let of = |call: &str, error: &str| RefusedCall {
        thread: 900,
        call: call.into(),
        policy: None,
        error: error.into(),
        without_entry: false,
        times: 1,
    };
    let calls =
        [of("mlockall", "ENOMEM"), of("setpriority", "EACCES"), of("sched_setattr", "EPERM")];
    let seen = answer_rights(&files, 900, Some(calls.to_vec())).expect("it is there");
    let why =
        |call: &RefusedCall| seen.obstacle_of_call(call).map(|(message, _)| message.to_owned());
    let why: Vec<String> = calls.iter().map(|call| why(call).expect("refused")).collect();
    assert_eq!(why[0], "8 MiB of 19 MiB mapped: mlockall is refused (ENOMEM)");
    assert_eq!(why[1], "no value below 0");
    assert!(why[2].starts_with("RLIMIT_RTPRIO is 0"), "{why:?}");
    assert!(seen.message.starts_with("sched_setattr was refused (EPERM): RLIMIT"), "{seen:?}");
    // A program without the right to lock memory alone.
    let mut tasks = login("sshd");
    tasks[0].rtprio = "99";
    let seen = answer_rights(&tree(&tasks), 900, Some(calls[..1].to_vec())).expect("it is there");
    assert_eq!(seen.verdict, RightsVerdict::Allowed);
}

#[test]
fn what_was_lost_on_the_way_is_found_at_the_ancestor() {
    let mut tasks = login("sshd");
    tasks[1].rtprio = "99";
    insta::assert_snapshot!(shown(&tree(&tasks)), @"
    Refused by Limit: RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE
    Started loop: it was lost between bash (700) and loop (900): RLIMIT_RTPRIO is 99 above and 0 below
    -> start loop without lowering it (ulimit -r, prlimit, LimitRTPRIO=); for this process: prlimit --pid 900 --rtprio=99
    ");
}

#[test]
fn an_ancestor_that_is_gone_is_not_known() {
    let files = tree(&[task(900, "loop", 1, 1000), task(1, "systemd", 0, 0)])
        .with_file("/proc/900/cgroup", "0::/\n")
        .without_path("/proc/700");
    insta::assert_snapshot!(shown(&files), @"
    Refused by Limit: RLIMIT_RTPRIO is 0, and it lacks CAP_SYS_NICE
    Unknown -: process 700, which began its session, has ended: through what it came is not known
    -> as root, for this process: prlimit --pid 900 --rtprio=99; before it is started: prlimit --rtprio=99 COMMAND
    ");
}

#[test]
fn a_real_time_thread_and_one_that_may_be_are_not_refused() {
    let mut tasks = login("sshd");
    tasks[0].rtprio = "50";
    let files = tree(&tasks);
    let allowed = of(&files);
    assert_eq!((allowed.verdict, allowed.remedy), (RightsVerdict::Allowed, None));
    let fifo = files.with_file("/proc/900/task/901/stat", &stat(901, "worker", 700, 1));
    assert_eq!(of(&fifo).verdict, RightsVerdict::RealTime);
    assert_eq!(of(&fifo).message, "real-time: 1 of 2 threads");
}

#[test]
fn what_cannot_be_read_is_not_known() {
    let files = tree(&login("sshd")).without_path("/proc/900/limits");
    assert_eq!(of(&files).verdict, RightsVerdict::Unknown);
    let mut tasks = login("sshd");
    tasks[0].capabilities = ROOT_CAPABILITIES;
    let files = tree(&tasks).without_path("/proc/900/uid_map");
    assert_eq!(of(&files).verdict, RightsVerdict::Unknown, "whose capabilities count is not known");
    assert!(answer_rights(&FakeFiles::new(), 900, None).is_err());
}

proptest! {
    #[test]
    fn no_tree_panics(text in "\\PC{0,80}", line in "\\PC{0,40}") {
        let mut files = tree(&login("sshd"));
        for path in ["/proc/900/limits", "/proc/900/cgroup", "/proc/900/uid_map", "/etc/passwd",
                     "/etc/group", GRANT.0, "/etc/pam.d/sshd", "/proc/900/status",
                     "/etc/ssh/sshd_config"] {
            files = files.with_file(path, &format!("{text}\n{line}\n"));
        }
        of(&files);
    }
}
