//! The time taken by punctual itself.

use super::*;

/// Interrupts were disabled and then preemption, while thread 5 ran.
#[test]
fn threads_of_punctual_are_observers_instead_of_culprits() {
    let events = events!(
        "90 cpu0 5 sys_enter 56
        150 vector_entry 0xec; +5 waking 7/19; +1 wakeup 7/19; +4 vector_exit 0xec
        170 switch R -> 7/19"
    );
    let explained_with = |observers: &[Tid]| {
        let observers = observers.iter().copied().collect();
        let coverage = Coverage { observers: std::sync::Arc::new(observers), ..coverage() };
        explain_with(interval(100, 175, StartKind::Timer), &coverage, &events)
    };
    let own = explained_with(&[Tid(5)]);
    let mut parts = causes(&own);
    parts.retain(|part| part.starts_with("Observer"));
    let expected = ["Observer { task: Tid(5) } 50", "Observer { task: Tid(5) } 10"];
    assert_eq!(parts, expected, "interrupts off, then not preempted");
    assert_eq!(own.observer_time(), Nanos(60));
    assert!(!has(&own, "NonPreemptible"));
    assert_eq!(explained_with(&[Tid(6), Tid(7)]).observer_time(), Nanos::ZERO);
}
