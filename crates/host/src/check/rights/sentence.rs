//! The answer in one sentence.

use super::answer::{Obstacle, RefusedCall, RightKind, RightsVerdict, ThreadScheduling};
use super::subject::Subject;

pub(super) fn sentence(
    verdict: RightsVerdict,
    threads: &[ThreadScheduling],
    refused: &[RefusedCall],
    obstacles: &[Obstacle],
    subject: &Subject,
) -> String {
    let real_time = threads.iter().filter(|thread| thread.policy.is_real_time()).count();
    let all = threads.len();
    let mut asked = refused.iter().filter(|call| call.right() == RightKind::RealTimePolicy);
    let asked = asked.next().map(|call| format!("{}: ", call.words())).unwrap_or_default();
    match (verdict, obstacles.first()) {
        (RightsVerdict::RealTime, _) => format!("real-time: {real_time} of {all} threads"),
        (RightsVerdict::Refused, Some(first)) => format!("{asked}{}", first.message),
        (RightsVerdict::Allowed, _) if subject.has_filter() => {
            "no limit refuses a real-time policy; whether its seccomp filter does, /proc does not \
             show"
                .to_owned()
        }
        (RightsVerdict::Allowed, _) => {
            "nothing refuses a real-time policy: its program does not ask for one".to_owned()
        }
        _ if !asked.is_empty() => format!("{asked}no limit that /proc shows explains it"),
        _ => "not known: a file that decides it cannot be read".to_owned(),
    }
}
