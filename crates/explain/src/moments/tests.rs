use super::*;
use proptest::prelude::*;
use punctual_testing::{events, parse_events, parse_names};

fn found(events: &[Event]) -> Vec<(u32, i64, bool)> {
    let mut wakeups = WakeUps::default();
    events.iter().for_each(|event| wakeups.push(event));
    let of = |of: &TraceMoment| (of.tid.0, of.duration().ns() / 1_000, of.at_least);
    wakeups.finish().0.iter().map(of).collect()
}

#[test]
fn wake_ups_reach_to_the_switch_and_those_of_real_time_threads_come_first() {
    // A second decision changes nothing, nor does a wake-up of what runs. The second switch from
    // the idle task is hidden: the next event of the thread stands for it. The last wake-up has
    // not ended.
    let events = |lost: &str| {
        events!(
            "10us cpu0 0 waking 8; 100us switch S -> 8
            200us waking 7/19
            {lost}
            210us cpu0 8 waking 7/19; 220us waking 8
            230us switch R -> 7/19; 300us switch S -> 0
            400us waking 7/19; 450us 7/19 hrtimer_cancel 1; 460us switch S -> 0
            500us cpu1 waking 8 cpu1; 520us cpu0 idle_exit"
        )
    };
    let expected = [(7, 50, false), (7, 30, false), (8, 90, false), (8, 20, true)];
    assert_eq!(found(&events("")), expected);
    // What is lost between is no wake-up.
    let events = events("205us cpu0 0 lost 1 since=0");
    assert_eq!(found(&events), [(7, 50, false), (7, 20, false), (8, 90, false), (8, 20, true)]);
    let filter = MomentFilter { threads: Some(vec![Tid(8)]), ..MomentFilter::default() };
    let mut wakeups = WakeUps::new(filter);
    events.iter().for_each(|event| wakeups.push(event));
    assert_eq!(wakeups.finish().1, 2);
}

fn noise(what: NoiseKind, from: i64, own: i64) -> Noise {
    Noise { what, from: MonotonicNs(from), own: Nanos(own) }
}

#[test]
fn nested_noises_divide_a_sample_and_what_is_not_named_is_unknown() {
    let irq = |irq, from| noise(NoiseKind::Irq(irq), from, 104);
    let thread = |tid, from, own| noise(NoiseKind::Thread(Tid(tid)), from, own);
    let noises = vec![
        irq(179, 2_396),
        irq(6, 9_062),
        thread(343, 7_812, 4_740),
        irq(6, 13_907),
        thread(85, 12_864, 20_990),
    ];
    let to = MonotonicNs(34_531);
    let moment = TraceMoment {
        cpu: Some(7),
        noises,
        ..TraceMoment::from_end(MomentSource::Osnoise, to, Nanos(34_531), Tid(2_967))
    };
    let explanation = explain_stated(&moment, &[]);
    assert!(explanation.adds_up());
    let of = |wanted: Cause| {
        let totals = explanation.totals_by_cause();
        totals.iter().find(|(cause, _)| *cause == wanted).map_or(0, |(_, time)| time.ns())
    };
    assert_eq!(of(Cause::TaskNoise { by: Tid(343) }), 4_740);
    assert_eq!(of(Cause::TaskNoise { by: Tid(85) }), 20_990);
    assert_eq!(of(Cause::Interrupt(Interrupt::Hard(6))), 208);
    assert_eq!(of(Cause::Unknown), 34_531 - 4_740 - 20_990 - 312);
    assert_eq!(of(Cause::Steal), 0);
}

#[test]
fn an_interrupt_is_the_originator_of_its_thread_and_of_a_kworker_directly_after_it() {
    let irq = |irq, from| noise(NoiseKind::Irq(irq), from, 104);
    let thread = |tid, from, own| noise(NoiseKind::Thread(Tid(tid)), from, own);
    let names =
        parse_names("task 343 in 343 irq/179-dcvsh-i; task 85 in 85 kworker/7:0; task 9 in 9 bash");
    let of = |noises: &[Noise]| noise_originators(noises, &names);
    let (own, kworker) = (thread(343, 7_812, 4_740), thread(85, 12_864, 20_990));
    let whole = [irq(179, 2_396), irq(6, 9_062), own, irq(6, 13_907), kworker];
    let [one] = of(&whole)[..] else { panic!("{:?}", of(&whole)) };
    assert_eq!((one.irq, one.thread), (179, (Tid(343), Nanos(4_740))));
    assert_eq!(one.after, Some((Tid(85), Nanos(20_990))));
    // Another interrupt has no thread, and a kworker later or after another task is not its own.
    assert_eq!(of(&[irq(17, 2_396), own]), []);
    assert_eq!(of(&[irq(179, 20_000), own]), []);
    let after = |between: Noise, kworker: Noise| {
        of(&[irq(179, 2_396), own, between, kworker]).first().and_then(|one| one.after)
    };
    assert_eq!(after(thread(9, 12_700, 100), kworker), None);
    assert_eq!(after(irq(6, 13_000), thread(85, 18_000, 100)), None);
    assert!(after(irq(6, 13_000), thread(85, 14_000, 100)).is_some());
}

#[test]
fn a_marked_sample_is_counted_from_its_own_timer() {
    let to = MonotonicNs(2_110_000);
    let moment = TraceMoment::from_end(MomentSource::Marker, to, Nanos(72_000), Tid(7));
    let events = events!(
        "1020us cpu0 7 hrtimer_start 1 expires=2ms
        2068us 0 switch R -> 7/19
        2100us hrtimer_start 1 expires=3ms"
    );
    let anchored = |events: &[Event]| {
        let found = anchor_to_timer(&moment, events);
        (found.from.0 / 1_000, found.to.0 / 1_000)
    };
    assert_eq!(anchored(&events), (2_000, 2_072));
    assert_eq!(anchored(&events[1..]), (1_996, 2_068));
    assert_eq!(anchored(&[]), (2_038, 2_110));
}

proptest! {
    /// A lower bound, stated where a trace ends, is at most the figure that the rest of it shows.
    #[test]
    fn a_lower_bound_of_a_prefix_is_at_most_the_figure_of_the_whole(
        kinds in proptest::collection::vec((0u16..2, 0u32..4, 0u8..5, 0u32..4), 1..60),
        cut in 0usize..60,
    ) {
        let prio = |tid: u32| if tid == 1 { 19 } else { 120 };
        let lines = kinds.iter().enumerate().map(|(place, (cpu, tid, kind, other))| {
            let (prio, next) = (prio(*tid), format!("{other}/{}", prio(*other)));
            let what = match kind {
                0 | 1 => format!("waking {next} cpu{cpu}"),
                2 => format!("switch S -> {next}"),
                3 => "irq_entry 1".to_owned(),
                _ => "idle_exit".to_owned(),
            };
            format!("{place}us cpu{cpu} {tid}/{prio} {what}\n")
        });
        let events = parse_events(&lines.collect::<String>());
        let all = |events: &[Event]| {
            let mut wakeups = WakeUps::default();
            events.iter().for_each(|event| wakeups.push(event));
            wakeups.finish().0
        };
        let (prefix, whole) = (all(&events[..cut.min(events.len())]), all(&events));
        for bound in prefix.iter().filter(|moment| moment.at_least) {
            let same = whole.iter().find(|of| (of.tid, of.from) == (bound.tid, bound.from));
            prop_assert!(same.is_some_and(|same| same.duration() >= bound.duration()), "{bound:?}");
        }
        for moment in &whole {
            let stated = explain_stated(moment, &events);
            prop_assert!(stated.adds_up());
        }
    }

    /// Hostile noises: any that a file states.
    #[test]
    fn any_noises_divide_a_sample(
        noises in proptest::collection::vec((0i64..200, 0i64..200, 0u32..3), 0..20),
        took in 0i64..150,
    ) {
        let noises = noises.iter().map(|(from, own, of)| {
            let what = if *of == 0 { NoiseKind::Nmi } else { NoiseKind::Thread(Tid(*of)) };
            noise(what, *from, *own)
        });
        let (source, to) = (MomentSource::Osnoise, MonotonicNs(100));
        let until = TraceMoment::from_end(source, to, Nanos(took), Tid(9));
        let moment = TraceMoment { noises: noises.collect(), ..until };
        let explanation = explain_stated(&moment, &[]);
        prop_assert!(explanation.adds_up());
        let ends = |pair: &[Part]| pair[0].to == pair[1].from;
        prop_assert!(explanation.parts.windows(2).all(ends));
    }
}
