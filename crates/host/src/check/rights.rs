//! Why the threads of a process are not real-time: which right is missing, what refuses it, and on
//! which way into this system it was granted, lost, or should have been granted.
//!
//! Everything is read from /proc and from the files that grant rights, so that each way runs on a
//! tree of files. What the kernel does not tell is *not known*: the calls that a seccomp filter
//! refuses, and what an ancestor was that has ended.

mod answer;
mod grants;
mod group;
mod obstacles;
mod pam;
mod sentence;
mod subject;
mod unit;
mod way;

pub use answer::{
    Ancestor, Obstacle, ObstacleKind, RefusedCall, Right, RightKind, RightVerdict, RightsAnswer,
    RightsVerdict, ThreadScheduling, Way, WayKind,
};
pub(super) use grants::{Grant, find_grants};
pub use subject::list_threads;

use crate::files::Files;
use sentence::format_sentence;
use subject::Subject;

/// The answer for a process; `refused`: the calls that were refused while it was watched, if it
/// was.
///
/// # Errors
/// There is no such process, or /proc shows nothing of it.
pub fn answer_rights(
    files: &dyn Files,
    process: u32,
    refused: Option<Vec<RefusedCall>>,
) -> Result<RightsAnswer, String> {
    let subject = Subject::read(files, process)?;
    let threads = list_threads(files, process);
    let calls = refused.as_deref().unwrap_or_default();
    let (rights, obstacles) = obstacles::find_obstacles(files, &subject, calls);
    let way = way::find_way(files, &subject, &obstacles);
    let observations = Seen { threads: &threads, refused: calls, rights: &rights };
    let verdict = observations.rights_verdict(&obstacles);
    let message = format_sentence(verdict, &threads, calls, &obstacles, &subject);
    let remedy = way.remedy.clone().filter(|_| verdict == RightsVerdict::Refused);
    let ancestors = subject.ancestors.iter().map(Subject::describe_ancestor).collect();
    Ok(RightsAnswer {
        process,
        name: subject.process_name().to_owned(),
        verdict,
        message,
        threads,
        refused,
        rights,
        obstacles,
        way: way.into_way(),
        ancestors,
        remedy,
    })
}

/// The refusal of a real-time policy to a process that was not watched, and the change that grants
/// it: the first obstacle, with the way as further evidence. `None`: nothing that can be seen.
pub fn find_refusal(files: &dyn Files, process: u32) -> Option<(Obstacle, Option<String>)> {
    let subject = Subject::read(files, process).ok()?;
    let (_, obstacles) = obstacles::find_obstacles(files, &subject, &[]);
    let way = way::find_way(files, &subject, &obstacles);
    let Obstacle { kind, message, evidence } = obstacles.into_iter().next()?;
    let evidence = format!("{evidence}; {}", way.message);
    Some((Obstacle { kind, message, evidence }, way.remedy))
}

struct Seen<'a> {
    threads: &'a [ThreadScheduling],
    refused: &'a [RefusedCall],
    rights: &'a [Right],
}

impl Seen<'_> {
    fn rights_verdict(&self, obstacles: &[Obstacle]) -> RightsVerdict {
        let is_real_time = self.threads.iter().any(|thread| thread.policy.is_real_time());
        let is_policy = |right: &&Right| right.right == RightKind::RealTimePolicy;
        let mut policy = self.rights.iter().filter(is_policy);
        let of_policy = |call: &RefusedCall| call.refused_right() == RightKind::RealTimePolicy;
        let is_refused = self.refused.iter().any(of_policy);
        let unknown = policy.any(|right| right.verdict == RightVerdict::Unknown);
        match () {
            () if is_real_time && !is_refused => RightsVerdict::RealTime,
            () if !obstacles.is_empty() => RightsVerdict::Refused,
            () if unknown || is_refused => RightsVerdict::Unknown,
            () => RightsVerdict::Allowed,
        }
    }
}

#[cfg(test)]
mod tests;
