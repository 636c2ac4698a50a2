//! The answer, as `punctual check --pid --json` prints it.

use punctual_core::Policy;
use serde::Serialize;

/// Why a process's threads are, or are not, real-time. Texts contain names of tasks and lines of
/// files: escape them for display.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RightsAnswer {
    pub process: u32,
    pub name: String,
    pub verdict: RightsVerdict,
    /// The answer in one sentence.
    pub message: String,
    pub threads: Vec<ThreadScheduling>,
    /// The calls that the kernel refused while the process was watched; `None`: it was not.
    pub refused: Option<Vec<RefusedCall>>,
    pub rights: Vec<Right>,
    /// What refuses a real-time policy, in the order in which the kernel asks.
    pub obstacles: Vec<Obstacle>,
    pub way: Way,
    /// From the parent up.
    pub ancestors: Vec<Ancestor>,
    /// The one change that gives the right on this way.
    pub remedy: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RightsVerdict {
    /// A thread has a real-time policy.
    RealTime,
    /// Nothing that can be seen refuses one: the program does not ask for it.
    Allowed,
    Refused,
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ThreadScheduling {
    pub thread: u32,
    pub name: String,
    pub policy: Policy,
    /// 1 to 99 under SCHED_FIFO and SCHED_RR.
    pub priority: Option<u32>,
    pub nice: i32,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RefusedCall {
    pub thread: u32,
    /// The system call.
    pub call: String,
    /// That it asked for, where the call's arguments show it.
    pub policy: Option<Policy>,
    /// `EPERM`, or the number of an error without a name here.
    pub error: String,
    /// The kernel recorded no entry: a seccomp filter refuses a call before it begins.
    pub without_entry: bool,
    pub times: u64,
}

impl RefusedCall {
    pub fn refused_right(&self) -> RightKind {
        match self.call.as_str() {
            call if call.starts_with("mlock") => RightKind::LockedMemory,
            "setpriority" => RightKind::Nice,
            _ => RightKind::RealTimePolicy,
        }
    }

    /// The call, with the policy: `sched_setscheduler(SCHED_FIFO) was refused (EPERM)`.
    pub fn format_refusal(&self) -> String {
        let RefusedCall { call, error, .. } = self;
        let policy = self.policy.map(|of| format!("(SCHED_{})", of.as_str().to_uppercase()));
        format!("{call}{} was refused ({error})", policy.unwrap_or_default())
    }
}

impl RightsAnswer {
    /// The obstacle of a call, with its evidence; `None`: nothing that /proc shows.
    pub fn obstacle_of_call(&self, call: &RefusedCall) -> Option<(&str, &str)> {
        let is_filter = |of: &&Obstacle| of.kind == ObstacleKind::Seccomp && call.without_entry;
        let filter = self.obstacles.iter().find(is_filter);
        let refused =
            |of: &&Right| of.right == call.refused_right() && of.verdict == RightVerdict::Refused;
        let right = || self.rights.iter().find(refused).map(|of| (&*of.message, &*of.evidence));
        filter.map(|of| (&*of.message, &*of.evidence)).or_else(right)
    }
}

/// What a process may want.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RightKind {
    /// SCHED_FIFO and SCHED_RR.
    RealTimePolicy,
    /// mlockall(2).
    LockedMemory,
    /// A nice value below 0.
    Nice,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RightVerdict {
    Granted,
    /// Up to a limit.
    Limited,
    Refused,
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Right {
    pub right: RightKind,
    pub verdict: RightVerdict,
    pub message: String,
    /// The file and its value.
    pub evidence: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObstacleKind {
    Seccomp,
    /// RLIMIT_RTPRIO is 0, and CAP_SYS_NICE is missing.
    Limit,
    /// CAP_SYS_NICE holds in a user namespace only.
    UserNamespace,
    /// The control group has no real-time budget.
    GroupBudget,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Obstacle {
    pub kind: ObstacleKind,
    pub message: String,
    pub evidence: String,
}

/// How a process came into this system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WayKind {
    Container,
    Unit,
    UserManager,
    Login,
    /// None of these: started by an ancestor that is shown.
    Started,
    /// The process that began its session has ended.
    Unknown,
}

/// Where the right was granted or lost, or should have been granted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Way {
    pub kind: WayKind,
    /// `podman`, `robot.service`, `sshd`.
    pub through: Option<String>,
    pub message: String,
    pub evidence: Vec<String>,
}

/// A process above, and what it has. `None`: not known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Ancestor {
    pub process: u32,
    pub name: String,
    pub user: Option<u32>,
    /// RLIMIT_RTPRIO and RLIMIT_MEMLOCK: a number, or `unlimited`.
    pub rtprio: Option<String>,
    pub memlock: Option<String>,
    pub cap_sys_nice: Option<bool>,
}
