//! The figures of an attached program as OpenMetrics text.

use crate::cycles::Cycles;
use crate::cycles::series::CycleSeries;
use crate::cycles::thread::CycleThread;
use punctual_bundle::Verdict;
use punctual_bundle::openmetrics::{Exposition, Label};
use punctual_core::cycle::SeriesKind;
use punctual_core::{Account, MAIN_PARTS, Nanos, SeriesData};

/// Name, help, and the value for a thread, if it has one.
type ThreadMetric = (&'static str, &'static str, fn(&CycleThread) -> Option<u64>);

pub fn format_program(program: &str, cycles: &Cycles, verdict: Option<&Verdict>) -> String {
    let threads: Vec<&CycleThread> =
        cycles.seen_threads().filter(|thread| thread.label().is_some()).collect();
    let labels = |thread: &CycleThread| -> Vec<Label<'static>> {
        vec![
            ("program", program.to_owned()),
            ("thread", thread.label().unwrap_or_default().to_owned()),
            ("tid", thread.tid.to_string()),
        ]
    };
    let mut exposition = Exposition::default();
    for (kind, name, what) in [
        (
            SeriesKind::Response,
            "punctual_response_time",
            "Time from the release of a cycle to the next wait",
        ),
        (
            SeriesKind::Wakeup,
            "punctual_wakeup_latency",
            "Time from the release of a cycle to the return of the wait",
        ),
    ] {
        let data = threads.iter().filter_map(|&thread| {
            Some((labels(thread), &thread.series_of_kind(kind)?.kept.state.data))
        });
        let data: Vec<(Vec<Label<'_>>, &SeriesData)> = data.collect();
        exposition.add_histograms(&format!("{name}_seconds"), &format!("{what}."), &data);
        let worst =
            data.into_iter().filter_map(|(labels, data)| Some((labels, data.longest_latency()?)));
        let worst: Vec<(Vec<Label<'_>>, Nanos)> = worst.collect();
        exposition.time_gauges(
            &format!("{name}_worst_seconds"),
            &format!("{what}: the longest."),
            &worst,
        );
    }
    let counters: [ThreadMetric; 4] = [
        ("punctual_cycles", "Cycles that were measured.", |of| Some(of.cycles)),
        ("punctual_skipped_releases", "Releases without a cycle of their own.", |of| {
            Some(of.skipped)
        }),
        (
            "punctual_overruns",
            "Releases that passed while the previous cycle was still \
                               running.",
            |of| Some(of.overrun_count()),
        ),
        (
            "punctual_deadlines_missed",
            "Cycles longer than the deadline.",
            CycleThread::missed_deadlines,
        ),
    ];
    for (name, help, value) in counters {
        let values = threads.iter().filter_map(|thread| Some((labels(thread), value(thread)?)));
        exposition.add_counters(name, help, &values.collect::<Vec<_>>());
    }
    let causes: Vec<(Vec<Label<'_>>, Nanos)> = threads
        .iter()
        .filter_map(|thread| Some((thread, thread.series_of_kind(SeriesKind::Response)?)))
        .flat_map(|(thread, series)| {
            by_cause(series).map(|(cause, time)| {
                let cause = ("cause", cause.to_owned());
                (labels(thread).into_iter().chain([cause]).collect(), time)
            })
        })
        .collect();
    exposition.time_counters(
        "punctual_response_cause_seconds",
        "Response times by cause.",
        &causes,
    );
    let of_all = |value: u64| [(vec![("program", program.to_owned())], value)];
    let help = "Records of cycles that found no room in the kernel's buffers.";
    exposition.add_counters("punctual_records_lost", help, &of_all(cycles.lost_records()));
    let help = "Events that the kernel did not show to the BPF programs.";
    exposition.add_counters("punctual_events_unseen", help, &of_all(cycles.unseen_events()));
    if let Some(verdict) = verdict {
        exposition.add_verdict(&[("program", program.to_owned())], verdict);
    }
    exposition.finish()
}

/// The time of each cause over all cycles.
fn by_cause(series: &CycleSeries) -> impl Iterator<Item = (&'static str, Nanos)> {
    let sums = series.account().map(Account::time_by_part).unwrap_or_default();
    MAIN_PARTS.iter().map(move |part| (part.id(), Nanos(sums[*part as usize] as i64)))
}
