//! Each remedy appears if its evidence is present, and not otherwise.

use super::*;
use crate::remedies::table::Remedy;
use punctual_core::event::{Group, RecordedSource};
use punctual_core::{MonotonicNs, Nanos, Severity, Tid};
use punctual_explain::explain::CpuMode;
use serde_json::json;

/// The facts of a case; initially only the kind.
#[derive(Clone)]
struct Known {
    blame: Blame,
    rules: &'static [(&'static str, &'static str)],
    is_locked: bool,
    recorder: Option<&'static str>,
    groups: &'static [Group],
    lost: u64,
    is_partial: bool,
}

fn known(what: Blamed) -> Known {
    let blame = Blame::new(what, None, 1.0);
    Known {
        blame,
        rules: &[],
        is_locked: false,
        recorder: None,
        groups: GROUPS,
        lost: 0,
        is_partial: false,
    }
}

fn kind(kind: CauseKind) -> Known {
    known(Blamed::Kind(kind))
}

fn cause(cause: Cause) -> Known {
    known(Blamed::Cause(cause))
}

impl Known {
    fn by(mut self, who: &str) -> Known {
        self.blame.who = Some(who.to_owned());
        self
    }
    fn rank(mut self, rank: u32) -> Known {
        self.blame.rank = Some(rank);
        self
    }
    fn prio(mut self, prio: i16) -> Known {
        self.blame.prio = Some(prio);
        self
    }
    fn longest(mut self, us: i64) -> Known {
        self.blame.longest = Some(Nanos(us * 1_000));
        self
    }
    fn held_below(mut self, inherits: Option<bool>) -> Known {
        (self.blame.is_held_below, self.blame.inherits) = (true, inherits);
        self
    }
    fn rule(self, rules: &'static [(&'static str, &'static str)]) -> Known {
        Known { rules, ..self }
    }
    fn locked(self) -> Known {
        Known { is_locked: true, ..self }
    }
    fn recorder(self, recorder: &'static str, lost: u64) -> Known {
        Known { recorder: Some(recorder), lost, ..self }
    }
    fn partial(self) -> Known {
        Known { is_partial: true, ..self }
    }
    fn groups(self, groups: &'static [Group]) -> Known {
        Known { groups, ..self }
    }
}

fn names() -> Names {
    let mut names = Names::default();
    let vectors = [(1, "local_timer"), (2, "reschedule"), (3, "thermal_apic"), (4, "irq_work")];
    names.vectors.extend(vectors.map(|(vector, name)| (vector, name.to_owned())));
    let softirqs = ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED"];
    let softirqs = softirqs.into_iter().chain(["HRTIMER", "RCU"]).map(str::to_owned);
    names.softirqs.extend((0u8..).zip(softirqs));
    names.idle_latencies.extend([(0, Nanos(0)), (3, Nanos(100_000))]);
    names
}

fn recorded(known: &Known) -> Option<Recorded> {
    let mut recorded = Recorded::without_events(known.recorder?, MonotonicNs(0));
    recorded.groups = known.groups.to_vec();
    let (name, lost) = ("cpu 0".to_owned(), known.lost);
    recorded.sources.push(RecordedSource { name, cpu: Some(0), recorded: 9, lost, torn: 0 });
    Some(recorded)
}

/// The chosen row, and all remedies given.
fn judged(known: &Known) -> (Option<&'static Remedy>, Vec<String>) {
    let rule = |(id, verdict): &(&str, &str)| {
        let applies = *verdict != "n/a";
        let verdict = if applies { *verdict } else { "ok" };
        json!({"id": id, "verdict": verdict, "applies": applies, "message": "", "fix": null})
    };
    let rules = json!({"rules": known.rules.iter().map(rule).collect::<Vec<_>>()});
    let message = "page faults in 3 of 9 cycles; the memory is locked";
    let found = Finding::new("page-faults-in-cycle", Severity::Warning, "main/loop", message);
    let (rules, names, recorded) = (Rules::from_document(Some(&rules)), names(), recorded(known));
    let findings: &[&Finding] = if known.is_locked { &[&found] } else { &[] };
    let (recorded, is_partial) = (recorded.as_ref(), known.is_partial);
    let evidence = RemedyEvidence { names: &names, recorded, is_partial, rules: &rules, findings };
    let kind = match &known.blame.what {
        Blamed::Cause(cause) => cause.kind(),
        Blamed::Kind(kind) => *kind,
        Blamed::Entry { .. } => panic!("an entry has no row"),
    };
    let about = DelayFacts { kind, blame: &known.blame, evidence: &evidence };
    let given = find_remedies(std::slice::from_ref(&known.blame), &evidence);
    (about.fitting_remedy(), given.into_iter().map(|advice| advice.text).collect())
}

fn vector(vector: u8) -> Known {
    cause(Cause::Interrupt(Interrupt::Vector(vector)))
}

fn softirq(vector: u8) -> Known {
    cause(Cause::Interrupt(Interrupt::Soft(vector)))
}

fn late_timer(mode: CpuMode) -> Known {
    cause(Cause::TimerIrqDelay { running: Tid(9), mode })
}

fn idle(state: u32) -> Known {
    cause(Cause::IdleExit { state: Some(state) })
}

fn throttled(budget: Budget) -> Known {
    cause(Cause::Throttled { running: Tid(9), budget })
}

fn lock(kernel: bool) -> Known {
    cause(Cause::Lock { holder: Some(Tid(9)), kernel }).by("panel")
}

fn inversion() -> Known {
    cause(Cause::Inversion { holder: Tid(9), by: Tid(8) })
}

fn own(mode: CpuMode) -> Known {
    cause(Cause::OwnExecution { mode })
}

const RT: &[(&str, &str)] = &[("preemption-model", "ok")];
const GUEST: &[(&str, &str)] = &[("hypervisor", "warning")];
const BARE: &[(&str, &str)] = &[("hypervisor", "ok")];
const GUEST_HALTS: &[(&str, &str)] = &[("hypervisor", "warning"), ("idle-states", "ok")];
const SHALLOW: &[(&str, &str)] = &[("hypervisor", "ok"), ("idle-states", "ok")];
const BPF: &str = "BPF (BTF tracepoints)";

/// A remedy, a case in which it must appear, and a case with the same cause in which it must not.
fn cases() -> Vec<(&'static str, Known, Known)> {
    use CauseKind as K;
    vec![
        ("timer-late-in-user-mode", late_timer(CpuMode::User), late_timer(CpuMode::Syscall(1))),
        ("timer-of-own-tick", vector(1), vector(2)),
        ("ipi-of-others", vector(2), vector(1)),
        ("too-hot", vector(3), vector(4)),
        ("own-vector", vector(4), cause(Cause::Interrupt(Interrupt::Hard(24)))),
        (
            "interrupt-already-threaded",
            kind(K::Irq).rule(&[("threaded-interrupts", "ok")]),
            kind(K::Irq).rule(&[("threaded-interrupts", "advice")]),
        ),
        (
            "nmi-without-watchdog",
            kind(K::Nmi).rule(&[("nmi-watchdog", "n/a")]),
            kind(K::Nmi).rule(&[("nmi-watchdog", "advice")]),
        ),
        ("packets", softirq(3), softirq(9)),
        ("rcu-callbacks-here", softirq(9), softirq(9).rule(&[("rcu-callbacks", "ok")])),
        ("rcu-callbacks-here", softirq(9).rule(&[("rcu-callbacks", "n/a")]), softirq(3)),
        ("timers-set-here", softirq(8), softirq(6)),
        ("load-balancer", softirq(7), softirq(6)),
        ("block-requests", softirq(4), softirq(6)),
        ("no-idle-state-takes-this-long", idle(0).by("POLL"), idle(3).by("C6").longest(150)),
        ("no-idle-state-takes-this-long", idle(3).by("C6").longest(60_000), kind(K::IdleExit)),
        ("guest-halts", kind(K::IdleExit).rule(GUEST_HALTS), kind(K::IdleExit).rule(GUEST)),
        ("no-deep-states-left", kind(K::IdleExit).rule(SHALLOW), kind(K::IdleExit).rule(BARE)),
        (
            "not-preempted-with-rt",
            kind(K::NonPreemptible).by("hog").rule(RT),
            kind(K::NonPreemptible).rule(&[("preemption-model", "bad")]),
        ),
        (
            "preempted-by-stopper",
            kind(K::Preempted).by("migration/1").prio(0),
            kind(K::Preempted).by("hog").prio(0),
        ),
        (
            "preempted-by-interrupt-thread",
            kind(K::Preempted).by("irq/24-eth0"),
            kind(K::Preempted).by("iris"),
        ),
        (
            "preempted-by-the-highest",
            kind(K::Preempted).by("hog").prio(0),
            kind(K::Preempted).by("hog").prio(9),
        ),
        ("queued-without-policy", kind(K::Runqueue).rank(0), kind(K::Runqueue).rank(80)),
        ("quota-of-group", throttled(Budget::Group), throttled(Budget::RealTime).rank(0)),
        ("quota-of-group", kind(K::Throttled).rank(0), kind(K::Throttled).rank(80)),
        ("runtime-of-deadline", throttled(Budget::Deadline), throttled(Budget::RealTime)),
        ("lock-in-the-kernel", lock(true), lock(false)),
        (
            "lock-inherits-already",
            lock(false).held_below(Some(true)),
            lock(false).held_below(Some(false)),
        ),
        ("lock-to-inherit", lock(false).held_below(None), lock(false).held_below(Some(true))),
        ("lock-to-inherit", lock(false).held_below(Some(false)), lock(false)),
        (
            "inversion-although-inherited",
            inversion().by("panel").held_below(Some(true)),
            inversion().by("panel").held_below(Some(false)),
        ),
        (
            "inversion-to-inherit",
            inversion().by("panel").held_below(Some(false)),
            inversion().by("panel").held_below(Some(true)),
        ),
        ("faults-although-locked", kind(K::PageFault).locked(), kind(K::PageFault)),
        ("reclaim-although-locked", kind(K::Reclaim).locked(), kind(K::Reclaim)),
        ("woken-by-task", kind(K::Waiting).by("peer"), kind(K::Waiting)),
        ("timeout-in-ticks", kind(K::Timeout).by("recvfrom"), kind(K::Timeout).by("ppoll")),
        ("timeout-by-timer", kind(K::Timeout).by("ppoll"), kind(K::Timeout).by("recvfrom")),
        ("timeout-by-timer", kind(K::Timeout).by("epoll_pwait2"), kind(K::Timeout)),
        ("stopped-by-task", kind(K::Stopped).by("gdb"), kind(K::Stopped)),
        ("own-call", own(CpuMode::Syscall(1)).by("write"), own(CpuMode::User)),
        ("own-or-switch", own(CpuMode::Unknown), own(CpuMode::User)),
        ("steal-without-hypervisor", kind(K::Steal).rule(BARE), kind(K::Steal).rule(GUEST)),
        ("hardware-of-host", kind(K::HwLatency).rule(GUEST), kind(K::HwLatency).rule(BARE)),
        (
            "events-lost-here",
            cause(Cause::Unknown).recorder(BPF, 3),
            cause(Cause::Unknown).recorder(BPF, 0),
        ),
        (
            "events-lost-here",
            cause(Cause::Unknown).recorder(BPF, 0).partial(),
            cause(Cause::Unknown).recorder("perf", 9),
        ),
        (
            "events-lost-elsewhere",
            cause(Cause::Unknown).recorder("trace-cmd 3.3", 3),
            cause(Cause::Unknown).recorder("trace-cmd 3.3", 0),
        ),
        (
            "recorded-without-types",
            cause(Cause::Unknown).recorder("tracefs", 0),
            // Text of ftrace that others recorded.
            cause(Cause::Unknown).recorder("ftrace, tracer osnoise", 0).groups(&[Group::Sched]),
        ),
        (
            "events-not-recorded-elsewhere",
            cause(Cause::Unknown).recorder("perf", 0).groups(&[Group::Sched]),
            cause(Cause::Unknown).recorder("perf", 0),
        ),
    ]
}

#[test]
fn each_remedy_requires_its_evidence() {
    let cases = cases();
    for (id, with, without) in &cases {
        let remedy = REMEDIES.iter().find(|one| one.id == *id).unwrap_or_else(|| panic!("no {id}"));
        let (chosen, given) = judged(with);
        assert_eq!(chosen.map(|one| one.id), Some(*id));
        assert_eq!(given, [remedy.text.replace("{who}", with.blame.who.as_deref().unwrap_or("?"))]);
        let (chosen, others) = judged(without);
        assert_ne!(chosen.map(|one| one.id), Some(*id));
        assert!(!others.contains(&given[0]), "{id}: {others:?}");
    }
    for (place, remedy) in REMEDIES.iter().enumerate() {
        assert!(cases.iter().any(|(id, ..)| *id == remedy.id), "{} has no case", remedy.id);
        assert!(REMEDIES[..place].iter().all(|other| other.id != remedy.id), "{} twice", remedy.id);
    }
}

#[test]
fn without_evidence_a_cause_has_its_general_remedy() {
    for one in CauseKind::ALL {
        let (chosen, given) = judged(&kind(*one));
        assert!(chosen.is_none(), "{}", one.id());
        match one {
            CauseKind::Unknown => assert!(given.is_empty(), "{given:?}"),
            one => assert_eq!(given, [one.advice()]),
        }
    }
    // Completely recorded by punctual itself, with kernel types: no recording is advised.
    assert!(judged(&cause(Cause::Unknown).recorder(BPF, 0)).1.is_empty());
}

#[test]
fn remedies_are_sorted_and_omitted_for_small_shares_and_repetitions() {
    let blame =
        |cause: Cause, share| Blame { share, ..Blame::new(Blamed::Cause(cause), None, share) };
    let by = |who: &str| Blame { who: Some(who.to_owned()), ..blame(Cause::PageFault, 0.1) };
    let blamed = [
        blame(Cause::Unknown, 0.69),
        by("one"),
        by("other"),
        blame(Cause::Io { device: 1 }, 0.04),
        Blame::new(Blamed::Entry { kind: "tick".to_owned(), words: "tick".to_owned() }, None, 0.5),
        blame(Cause::Steal, 0.06),
    ];
    let (names, rules) = (Names::default(), Rules::default());
    let recorded = recorded(&kind(CauseKind::Unknown).recorder(BPF, 3));
    let recorded = recorded.as_ref();
    let evidence =
        RemedyEvidence { names: &names, recorded, is_partial: false, rules: &rules, findings: &[] };
    let given = find_remedies(&blamed, &evidence);
    assert_eq!(given.iter().map(|one| one.place).collect::<Vec<_>>(), [1, 5, 0]);
}

#[test]
fn names_in_remedies_are_harmless() {
    let (_, given) = judged(&kind(CauseKind::Stopped).by("\u{1b}[31mred\n"));
    assert!(!given[0].contains(['\u{1b}', '\n']), "{given:?}");
}

const PAGE: &str = "\
# Remedies

The remedy for a delay follows from the evidence: of those for its cause the first one whose
condition holds, else the one that [the glossary](glossary.md) has for the cause. A share of less
than 5 % gets none, and *not attributed* comes last: it has a remedy only where events are missing.
Rules are those of [`punctual check`](check.md), as it judged the machine at the beginning of the
run; the fix of the first one that is not met follows the remedy. The table is generated from
`crates/report/src/remedies/table.rs`; each row has a case in which it must appear, and one in which
it must not.

| cause | condition | what to do | rules |
|---|---|---|---|
";

/// Findings have their remedies in their own documents.
const ELSEWHERE: &str = "
A finding has its remedy where it is found: [rules of `check`](check.md), [the practice of
programs](attach.md), [entries of a CPU](attach-cpus.md), [the validity of a run](validity.md).
";

#[test]
fn the_documented_table_of_remedies_is_up_to_date() {
    let mut page = PAGE.to_owned();
    for Remedy { cause, when, text, rules, .. } in REMEDIES {
        let rules: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
        let text = text.replace("{who}", "*NAME*");
        page += &format!("| {} | {when} | {text} | {} |\n", cause.words(), rules.join(", "));
    }
    page += ELSEWHERE;
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/remedies.md");
    if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        std::fs::write(path, page).expect("the page can be written");
        return;
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == page,
        "docs/reference/remedies.md is out of date; regenerate it: \
        PUNCTUAL_WRITE_DOCS=1 cargo test -p punctual-report --lib remedies::"
    );
}
