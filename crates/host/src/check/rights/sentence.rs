//! The answer in one sentence.

use super::answer::{Obstacle, RefusedCall, RightKind, RightsVerdict, ThreadScheduling};
use super::subject::Subject;

pub(super) fn format_sentence(
    verdict: RightsVerdict,
    threads: &[ThreadScheduling],
    refused: &[RefusedCall],
    obstacles: &[Obstacle],
    subject: &Subject,
) -> String {
    let real_time = threads.iter().filter(|thread| thread.policy.is_real_time()).count();
    let thread_count = threads.len();
    let mut policy_calls =
        refused.iter().filter(|call| call.refused_right() == RightKind::RealTimePolicy);
    let call_prefix =
        policy_calls.next().map(|call| format!("{}: ", call.format_refusal())).unwrap_or_default();
    match (verdict, obstacles.first()) {
        (RightsVerdict::RealTime, _) => format!("real-time: {real_time} of {thread_count} threads"),
        (RightsVerdict::Refused, Some(first)) => format!("{call_prefix}{}", first.message),
        (RightsVerdict::Allowed, _) if subject.has_filter() => {
            "no limit refuses a real-time policy; whether its seccomp filter does, /proc does not \
             show"
                .to_owned()
        }
        (RightsVerdict::Allowed, _) => {
            "nothing refuses a real-time policy: its program does not ask for one".to_owned()
        }
        _ if !call_prefix.is_empty() => {
            format!("{call_prefix}no limit that /proc shows explains it")
        }
        _ => "not known: a file that decides it cannot be read".to_owned(),
    }
}
