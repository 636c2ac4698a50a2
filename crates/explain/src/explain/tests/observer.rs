//! The time taken by punctual itself.

use super::*;

/// Interrupts were disabled and then preemption, while thread 5 ran.
#[test]
fn threads_of_punctual_are_observers_instead_of_culprits() {
    let events = [
        vec![event(90, 0, 5, EventKind::SyscallEnter { number: 56, args: [0; 2] })],
        timer(150, 0, 5).into(),
        vec![switch(170, 0, (5, LOWER), TaskState::Preempted, (THREAD, OWN))],
    ]
    .concat();
    let explained_with = |observers: &[u32]| {
        let observers = observers.iter().map(|tid| Tid(*tid)).collect();
        let coverage = Coverage {
            observers: std::sync::Arc::new(observers),
            ..Coverage::between(MonotonicNs(0), MonotonicNs(1))
        };
        let gaps = Gaps::of(events.iter().copied());
        let explanation = explain(interval(100, 175, StartKind::Timer), &events, &coverage, &gaps);
        check(&explanation, &events);
        explanation
    };
    let own = explained_with(&[5]);
    let parts: Vec<_> = causes(&own).into_iter().filter(|(cause, _)| is_observer(cause)).collect();
    let observer = Cause::Observer { task: Tid(5) };
    assert_eq!(parts, [(observer, 50), (observer, 10)], "interrupts off, then not preempted");
    assert_eq!(own.observed(), Nanos(60));
    assert!(!causes(&own).iter().any(|(cause, _)| matches!(cause, Cause::NonPreemptible { .. })));
    let others = explained_with(&[6, THREAD]);
    assert_eq!(others.observed(), Nanos::ZERO);
}

fn is_observer(cause: &Cause) -> bool {
    matches!(cause, Cause::Observer { .. })
}
