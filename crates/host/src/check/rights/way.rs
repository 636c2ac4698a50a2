//! The way on which a process came into this system, where its right was granted, lost, or should
//! have been granted on that way, and the change that grants it there.

use super::answer::{Obstacle, ObstacleKind, Way, WayKind};
use super::grants::{Account, Grant, find_grants};
use super::group;
use super::pam::PamLimits;
use super::subject::{ProcessSeen, RTPRIO, Subject};
use super::unit::Unit;
use crate::files::Files;

/// A way with the change that grants the right there.
pub(super) struct WayFound {
    pub kind: WayKind,
    pub through: Option<String>,
    pub message: String,
    pub evidence: Vec<String>,
    pub remedy: Option<String>,
}

impl WayFound {
    fn new(kind: WayKind, through: Option<&str>, message: impl Into<String>) -> WayFound {
        let (through, message) = (through.map(str::to_owned), message.into());
        WayFound { kind, through, message, evidence: Vec::new(), remedy: None }
    }
    fn with_evidence(mut self, evidence: impl IntoIterator<Item = String>) -> WayFound {
        self.evidence.extend(evidence);
        self
    }
    fn with_remedy(mut self, remedy: impl Into<String>) -> WayFound {
        self.remedy = Some(remedy.into());
        self
    }

    pub(super) fn into_way(self) -> Way {
        let WayFound { kind, through, message, evidence, .. } = self;
        Way { kind, through, message, evidence }
    }
}

/// The way, by what stands in it.
pub(super) fn find_way(files: &dyn Files, subject: &Subject, obstacles: &[Obstacle]) -> WayFound {
    let has = |kind: ObstacleKind| obstacles.iter().any(|obstacle| obstacle.kind == kind);
    let entrance = Entrance::from_subject(files, subject);
    let limit = has(ObstacleKind::Limit) || has(ObstacleKind::UserNamespace);
    let dropped = find_dropped_right(subject);
    let mut way = match (&entrance, find_lost_limit(subject)) {
        _ if !limit => entrance.granted_way(),
        (Entrance::Container(runtime), _) => in_container(*runtime, subject),
        (Entrance::Unit(name), _) => in_unit(files, name, subject),
        (_, Some((above, below))) => lost_between(above, below, subject),
        _ if has(ObstacleKind::UserNamespace) => in_namespace(subject),
        (Entrance::UserManager(manager), None) => in_user_manager(files, manager),
        (Entrance::Login(by), None) if dropped.is_none() => in_login(files, by, subject),
        (_, None) => match dropped {
            Some((above, below)) => dropped_between(above, below, subject),
            None => in_other(&entrance, files, subject),
        },
    };
    if has(ObstacleKind::Seccomp) {
        by_filter(&mut way, files, &entrance);
    }
    if has(ObstacleKind::GroupBudget) {
        by_budget(&mut way, files, subject);
    }
    way
}

/// What started a process in this system.
enum Entrance {
    Container(Runtime),
    /// A system service.
    Unit(String),
    /// `user@1000.service`, the manager of a user's services.
    UserManager(String),
    /// The program that began the login.
    Login(String),
    /// The session's first process has ended.
    Gone,
    Started,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Runtime {
    Podman,
    Docker,
    Kubernetes,
    Lxc,
    Nspawn,
}

impl Runtime {
    /// By a word in the path of a control group, or a file that the runtime puts into a container.
    const BY_GROUP: [(&str, Runtime); 7] = [
        ("kubepods", Runtime::Kubernetes),
        ("libpod-", Runtime::Podman),
        ("docker-", Runtime::Docker),
        ("/docker/", Runtime::Docker),
        ("lxc.payload", Runtime::Lxc),
        ("/lxc/", Runtime::Lxc),
        ("systemd-nspawn@", Runtime::Nspawn),
    ];
    const BY_FILE: [(&str, Runtime); 2] =
        [("/run/.containerenv", Runtime::Podman), ("/.dockerenv", Runtime::Docker)];

    fn name(self) -> &'static str {
        match self {
            Runtime::Podman => "podman",
            Runtime::Docker => "docker",
            Runtime::Kubernetes => "Kubernetes",
            Runtime::Lxc => "LXC",
            Runtime::Nspawn => "systemd-nspawn",
        }
    }

    /// Grants the right when the container is started.
    fn grant_command(self) -> &'static str {
        match self {
            Runtime::Podman => {
                "podman run --cap-add=SYS_NICE --ulimit=rtprio=99 --ulimit=memlock=-1"
            }
            Runtime::Docker => {
                "docker run --cap-add=SYS_NICE --ulimit=rtprio=99 --ulimit=memlock=-1"
            }
            Runtime::Kubernetes => {
                "in the pod: securityContext: {capabilities: {add: [SYS_NICE, IPC_LOCK]}}; a pod \
                 has no ulimits"
            }
            Runtime::Lxc => "in its configuration: lxc.prlimit.rtprio = 99",
            Runtime::Nspawn => "systemd-nspawn --rlimit=RTPRIO=99 --capability=CAP_SYS_NICE",
        }
    }
}

/// Programs that begin a login, by the beginning of their name: the service of PAM that each uses,
/// if its name is another (`sshd-session`; login(1) and cron(8) use their own).
const LOGINS: [(&str, &str); 14] = [
    ("sshd", "sshd"),
    ("login", "login"),
    ("sudo", "sudo"),
    ("su", "su"),
    ("runuser", "runuser"),
    ("doas", "doas"),
    ("crond", "crond"),
    ("cron", "cron"),
    ("atd", "atd"),
    ("gdm-session-wor", "gdm-password"),
    ("sddm-helper", "sddm"),
    ("lightdm", "lightdm"),
    ("xrdp-sesman", "xrdp-sesman"),
    ("tailscaled", "tailscaled"),
];

fn login_service(name: &str) -> Option<&'static str> {
    let is = |known: &str| {
        name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    LOGINS.iter().find(|(known, _)| is(known)).map(|(_, service)| *service)
}

impl Entrance {
    fn from_subject(files: &dyn Files, subject: &Subject) -> Entrance {
        let paths: Vec<&str> =
            subject.groups.lines().filter_map(|line| line.splitn(3, ':').nth(2)).collect();
        let named = |word: &str| paths.iter().any(|path| path.contains(word));
        let by_group = Runtime::BY_GROUP.iter().find(|(word, _)| named(word));
        // A container whose first processes have the right did not take it.
        let has_it = subject.ancestors.iter().any(|one| one.has_sys_nice() == Some(true));
        let by_file = || Runtime::BY_FILE.iter().find(|(path, _)| !has_it && files.exists(path));
        if let Some((_, runtime)) = by_group.or_else(by_file) {
            return Entrance::Container(*runtime);
        }
        let parts = || paths.iter().flat_map(|path| path.split('/'));
        let is_service = |part: &&str| part.ends_with(".service");
        let is_manager = |part: &&str| part.starts_with("user@");
        if let Some(manager) = parts().filter(is_service).find(is_manager) {
            return Entrance::UserManager(manager.to_owned());
        }
        let login = login_of(subject);
        match (parts().rfind(is_service), login) {
            // A login's processes may stay in the group of the service that took it.
            (_, Some(login)) => Entrance::Login(login.stat.name.clone()),
            (Some(unit), None) => Entrance::Unit(unit.to_owned()),
            (None, None) if !subject.session_there => Entrance::Gone,
            (None, None) => Entrance::Started,
        }
    }

    /// Nothing on the way is missing.
    fn granted_way(&self) -> WayFound {
        let (kind, through) = match self {
            Entrance::Container(runtime) => (WayKind::Container, Some(runtime.name())),
            Entrance::Unit(name) => (WayKind::Unit, Some(name.as_str())),
            Entrance::UserManager(name) => (WayKind::UserManager, Some(name.as_str())),
            Entrance::Login(by) => (WayKind::Login, Some(by.as_str())),
            Entrance::Gone => (WayKind::Unknown, None),
            Entrance::Started => (WayKind::Started, None),
        };
        let message = match through {
            Some(through) => format!("it came through {through}, with the right to the priority"),
            None => "it was started with the right to the priority".to_owned(),
        };
        WayFound::new(kind, through, message)
    }
}

/// The ancestor that began the login: a program known to do so, or the first one that belongs to
/// root, where this process does not, and that is of another session: a login begins one. A user
/// changed within a session, as by setpriv(1), is no login.
fn login_of(subject: &Subject) -> Option<&ProcessSeen> {
    let user = subject.own.effective_user()?;
    let begins = |one: &&ProcessSeen| {
        let is_of_root = user != 0 && one.effective_user() == Some(0);
        let is_outside = one.stat.session != subject.own.stat.session;
        login_service(&one.stat.name).is_some() || is_of_root && is_outside
    };
    subject.ancestors.iter().filter(|one| one.pid != 1).find(begins)
}

/// The nearest ancestor whose limit allows what its child's does not.
fn find_lost_limit(subject: &Subject) -> Option<(&ProcessSeen, &ProcessSeen)> {
    let mut below = &subject.own;
    for above in &subject.ancestors {
        let has = |one: &ProcessSeen| one.may_by_limit();
        if has(above)? {
            return Some((above, below));
        }
        below = above;
    }
    None
}

/// The nearest ancestor with CAP_SYS_NICE whose child has it no more, where no login is between it
/// and the process.
fn find_dropped_right(subject: &Subject) -> Option<(&ProcessSeen, &ProcessSeen)> {
    let login = login_of(subject).map(|one| one.pid);
    let inside_login =
        subject.ancestors.iter().take_while(|one| Some(one.pid) != login && one.pid != 1);
    let mut below = &subject.own;
    for above in inside_login {
        if above.has_sys_nice()? {
            return Some((above, below));
        }
        below = above;
    }
    None
}

fn dropped_between(above: &ProcessSeen, below: &ProcessSeen, subject: &Subject) -> WayFound {
    let user = |one: &ProcessSeen| {
        one.effective_user().map_or("not known".into(), |user| user.to_string())
    };
    let users = match above.effective_user() == below.effective_user() {
        true => String::new(),
        false => format!(" and its user from {} to {}", user(above), user(below)),
    };
    let (from, to, pid) = (above.label(), below.label(), subject.own.pid);
    let message =
        format!("{to}, started by {from}, gave up CAP_SYS_NICE{users}: no login did that");
    let evidence = [above, below].map(|one| format!("/proc/{}/status, CapEff", one.pid));
    let name = &below.stat.name;
    WayFound::new(WayKind::Started, Some(name), message).with_evidence(evidence).with_remedy(
        format!(
            "start it so that the limit stays: prlimit --rtprio=99 COMMAND, as user 0; for this \
         process: prlimit --pid {pid} --rtprio=99"
        ),
    )
}

fn lost_between(above: &ProcessSeen, below: &ProcessSeen, subject: &Subject) -> WayFound {
    let limit =
        above.soft_limit(RTPRIO).flatten().map_or("unlimited".into(), |limit| limit.to_string());
    let message = format!(
        "it was lost between {} and {}: RLIMIT_RTPRIO is {limit} above and 0 below",
        above.label(),
        below.label()
    );
    let evidence = [above, below].map(|one| format!("/proc/{}/limits, {RTPRIO}", one.pid));
    WayFound::new(WayKind::Started, Some(&below.stat.name), message)
        .with_evidence(evidence)
        .with_remedy(format!(
            "start {} without lowering it (ulimit -r, prlimit, LimitRTPRIO=); for this process: \
             prlimit --pid {} --rtprio={limit}",
            below.stat.name, subject.own.pid
        ))
}

fn in_container(runtime: Runtime, subject: &Subject) -> WayFound {
    let name = runtime.name();
    let message = match subject.first_namespace.known_value() {
        Some(false) => format!(
            "{name} made a user namespace for it: capabilities of the container do not count for \
             the scheduler, and it got no limit"
        ),
        _ => format!("{name} gives a container neither the capability nor the limit by default"),
    };
    let rootless = match subject.first_namespace.known_value() {
        Some(false) => ", as a user whose own limit is as high (ulimit -Hr)",
        _ => "",
    };
    let group = subject.groups.lines().last().unwrap_or_default();
    WayFound::new(WayKind::Container, Some(name), message)
        .with_evidence([format!("/proc/{}/cgroup has `{group}`", subject.own.pid)])
        .with_remedy(format!("{}{rootless}", runtime.grant_command()))
}

fn in_namespace(subject: &Subject) -> WayFound {
    let pid = subject.own.pid;
    WayFound::new(
        WayKind::Started,
        None,
        "its user namespace was entered with RLIMIT_RTPRIO 0, and capabilities within do not count",
    )
    .with_evidence([format!("/proc/{pid}/uid_map")])
    .with_remedy(
        "raise the limit before the namespace is entered: prlimit --rtprio=99 unshare … (as root), \
         or start the program outside of it",
    )
}

fn in_unit(files: &dyn Files, name: &str, subject: &Subject) -> WayFound {
    let unit = Unit::read(files, name);
    let granted = unit.last_value("LimitRTPRIO");
    let bounded = unit.last_value("CapabilityBoundingSet");
    let only_pam = match find_grants(files, "rtprio", "1").first() {
        Some(Grant { path, line, .. }) => {
            format!("`{line}` of {path} does not reach it: only PAM, at a login, reads that; ")
        }
        None => String::new(),
    };
    let files_of = unit.paths.clone();
    let begin = WayFound::new(WayKind::Unit, Some(name), String::new());
    let message = match (granted, bounded) {
        _ if unit.paths.is_empty() => {
            format!("{only_pam}the file of {name} is not found: what it grants is not known")
        }
        (Some((value, path)), _) if value != "0" => {
            let message = format!(
                "{path} has LimitRTPRIO={value}, and its process {} has 0: it was started before, \
                 or lowered it itself",
                subject.own.pid
            );
            let restart = format!("systemctl daemon-reload && systemctl restart {name}");
            return WayFound { message, ..begin }.with_evidence(files_of).with_remedy(restart);
        }
        (_, Some((value, path))) => format!(
            "{only_pam}{name} has no LimitRTPRIO=, and {path} takes CAP_SYS_NICE \
             (CapabilityBoundingSet={value})"
        ),
        _ => format!("{only_pam}{name} has no LimitRTPRIO="),
    };
    let remedy = format!(
        "systemctl edit {name}, with [Service] LimitRTPRIO=99 and LimitMEMLOCK=infinity; \
         systemctl restart {name}"
    );
    WayFound { message, ..begin }.with_evidence(files_of).with_remedy(remedy)
}

fn in_user_manager(files: &dyn Files, manager: &str) -> WayFound {
    let unit = Unit::read(files, manager);
    let message = match unit.last_value("LimitRTPRIO") {
        Some((value, path)) => {
            format!("the user's service manager was started before {path} got LimitRTPRIO={value}")
        }
        None => format!(
            "the user's service manager started it: {manager} has no LimitRTPRIO=, and what it \
             starts has no more than itself, whatever the login has"
        ),
    };
    WayFound::new(WayKind::UserManager, Some(manager), message).with_evidence(unit.paths)
        .with_remedy(format!(
        "systemctl edit {manager}, with [Service] LimitRTPRIO=99; log out of all sessions and in"
    ))
}

/// Services of PAM to compare with, of which the first that calls pam_limits is named.
const OTHERS: [&str; 3] = ["sshd", "login", "su"];

fn in_login(files: &dyn Files, by: &str, subject: &Subject) -> WayFound {
    let service = login_service(by).unwrap_or(by);
    let account = subject.own.effective_user().map(|uid| Account::read(files, uid));
    let grants = find_grants(files, "rtprio", "1");
    let naming = account.as_ref().and_then(|account| {
        grants.iter().find_map(|grant| account.named_by(grant).map(|group| (grant, group)))
    });
    let begin = |message: String| WayFound::new(WayKind::Login, Some(by), message);
    let way = match PamLimits::from_service(files, service) {
        PamLimits::Called(path) if service == "sshd" && !ssh_uses_pam(files) => {
            let message = "this login came through sshd, whose configuration has no `UsePAM yes`: \
                           it does not call pam_limits";
            begin(message.to_owned())
                .with_evidence(["/etc/ssh/sshd_config".to_owned(), path])
                .with_remedy("set `UsePAM yes` in /etc/ssh/sshd_config, restart sshd, log in again")
        }
        PamLimits::Called(path) => {
            let calls = format!("this login came through {by}, which calls pam_limits");
            return with_pam(begin, &calls, account.as_ref(), &grants, naming, subject)
                .with_evidence([path]);
        }
        other => {
            let mut message =
                format!("this login came through {by}, which does not call pam_limits");
            let calls =
                |name: &&&str| matches!(PamLimits::from_service(files, name), PamLimits::Called(_));
            let instead = OTHERS.iter().filter(|name| **name != service).find(calls);
            if let Some(instead) = instead {
                message += &format!("; {instead}'s would");
            }
            let (evidence, remedy) = match (&other, instead) {
                (PamLimits::NotCalled(path), _) => (
                    path.clone(),
                    format!("add `session required pam_limits.so` to {path}, log in again"),
                ),
                (_, Some(instead)) => (
                    format!("/etc/pam.d/{service} is not there"),
                    format!("log in through {instead}"),
                ),
                (_, None) => (
                    format!("/etc/pam.d/{service} is not there"),
                    format!("as root: prlimit --pid {} --rtprio=99", subject.own.pid),
                ),
            };
            begin(message).with_evidence([evidence]).with_remedy(remedy)
        }
    };
    match (naming, grants.first()) {
        (Some((grant, _)), _) => {
            let message =
                format!("{}; so `{}` of {} does not apply", way.message, grant.line, grant.path);
            WayFound { message, ..way }
        }
        _ => {
            let line = account.map_or("@realtime".to_owned(), |account| account.label());
            let also = format!("{}; nor does a line of limits.conf name this user", way.message);
            let remedy = way
                .remedy
                .map(|remedy| format!("echo '{line} - rtprio 99' > {CONF}; then {remedy}"));
            WayFound { message: also, remedy, ..way }
        }
    }
}

const CONF: &str = "/etc/security/limits.d/realtime.conf";

/// The login read limits.conf.
fn with_pam(
    begin: impl Fn(String) -> WayFound,
    calls: &str,
    account: Option<&Account>,
    grants: &[Grant],
    naming: Option<(&Grant, Option<u32>)>,
    subject: &Subject,
) -> WayFound {
    let who = account.map_or("this user".to_owned(), Account::label);
    let evidence = grants.iter().map(|grant| grant.path.clone()).take(1);
    let Some((Grant { path, line, .. }, group)) = naming else {
        let message = match grants.first() {
            None => {
                format!("{calls}; no line of /etc/security/limits.conf or limits.d grants rtprio")
            }
            Some(Grant { path, line, .. }) => {
                format!("{calls}; `{line}` of {path} does not name {who}")
            }
        };
        let remedy = format!("echo '{who} - rtprio 99' > {CONF}, and log in again");
        return begin(message).with_evidence(evidence).with_remedy(remedy);
    };
    let is_new = group.is_some_and(|gid| !subject.own.group_ids().contains(&gid));
    let message = match is_new {
        true => format!("{calls}; {who} joined the group of `{line}` ({path}) after this login"),
        false => format!(
            "{calls}, and `{line}` of {path} names {who}: this login is older than that line, or \
             the limit was lowered by an ancestor that is gone"
        ),
    };
    begin(message).with_evidence(evidence).with_remedy("log out of all sessions, and in again")
}

/// `UsePAM` is off unless it is set (sshd_config(5)); the first value counts.
fn ssh_uses_pam(files: &dyn Files) -> bool {
    const MAIN: &str = "/etc/ssh/sshd_config";
    let drop_ins = files.list(&format!("{MAIN}.d")).unwrap_or_default();
    let drop_ins = drop_ins.into_iter().map(|name| format!("{MAIN}.d/{name}"));
    let texts: Vec<String> =
        drop_ins.chain([MAIN.to_owned()]).filter_map(|path| files.read(&path).ok()).collect();
    let value = texts.iter().flat_map(|text| text.lines()).find_map(|line| {
        let mut words = line.split_whitespace();
        words.next().filter(|key| key.eq_ignore_ascii_case("UsePAM")).and(words.next())
    });
    // Without a readable configuration, what distributions ship.
    texts.is_empty() || value.is_some_and(|value| value.eq_ignore_ascii_case("yes"))
}

fn in_other(entrance: &Entrance, files: &dyn Files, subject: &Subject) -> WayFound {
    let session = subject.own.stat.session;
    let way = match entrance {
        Entrance::Gone => WayFound::new(
            WayKind::Unknown,
            None,
            format!(
                "process {session}, which began its session, has ended: through what it came is \
                 not known"
            ),
        ),
        _ => WayFound::new(
            WayKind::Started,
            None,
            "it came through no login and no service: no ancestor that is still there has it",
        ),
    };
    let evidence = find_grants(files, "rtprio", "1").into_iter().take(1);
    let evidence = evidence.map(|Grant { path, line, .. }| {
        format!("{path} has `{line}`, which only PAM reads, at a login")
    });
    way.with_evidence(evidence).with_remedy(format!(
        "as root, for this process: prlimit --pid {} --rtprio=99; before it is started: prlimit \
         --rtprio=99 COMMAND",
        subject.own.pid
    ))
}

/// The filter's place: the unit, the container, or the program itself.
fn by_filter(way: &mut WayFound, files: &dyn Files, entrance: &Entrance) {
    let (message, remedy) = match entrance {
        Entrance::Unit(name) => match Unit::read(files, name).filter_setting() {
            Some(setting) => (
                format!("its unit installs the filter: {setting}"),
                format!("systemctl edit {name}: unset that setting; systemctl restart {name}"),
            ),
            None => (format!("{name} or its program installs the filter"), own_filter()),
        },
        Entrance::Container(runtime) => (
            format!("{} installs a filter", runtime.name()),
            "add sched_setscheduler and sched_setattr to the profile (--security-opt \
             seccomp=PROFILE.json)"
                .to_owned(),
        ),
        _ => ("the program, or what started it, installs the filter".to_owned(), own_filter()),
    };
    way.message = message;
    way.remedy = Some(join_both(remedy, way.remedy.take()));
}

fn own_filter() -> String {
    "allow sched_setscheduler and sched_setattr in the filter, or ask for the policy before it is \
     installed"
        .to_owned()
}

fn by_budget(way: &mut WayFound, files: &dyn Files, subject: &Subject) {
    let Ok(Some(group)) = group::without_budget(files, subject) else { return };
    let remedy = match group.files.is_empty() {
        true => "boot with rt_group_sched=0, or move it into the root group: echo PID > \
                 /sys/fs/cgroup/cgroup.procs"
            .to_owned(),
        false => {
            let writes = group.files.iter().map(|path| format!("echo 100000 > {path}"));
            writes.collect::<Vec<_>>().join("; ")
        }
    };
    let place = format!("the budget is to be granted by the group ({})", group.evidence);
    way.message = match way.remedy.is_some() {
        true => format!("{}; and {place}", way.message),
        false => place,
    };
    way.evidence.push(group.evidence);
    way.remedy = Some(join_both(remedy, way.remedy.take()));
}

/// Both are needed.
fn join_both(first: String, second: Option<String>) -> String {
    match second {
        Some(second) => format!("{first}; and {second}"),
        None => first,
    }
}
