//! The effect of recording on the measurement: shifts of percentiles, and run times of BPF
//! programs.

use super::{Cell, Column, Table, Tone, Value};
use crate::format::{count_text, percent_text, span_text};
use punctual_bundle::calibration::{Calibration, PercentileShift, ProgramTime, ProgramTimes};
use punctual_core::{Fact, Nanos};

const NAMED_SHIFTS: usize = 3;

/// One row per percentile; `None` if it was not measured.
pub(crate) fn calibration_table(calibration: &Fact<Calibration>) -> Option<Table> {
    let calibration = calibration.known_value()?;
    let title = "cost of recording: latency of a timer thread, without and with it";
    let mut table = Table::new(title, calibration_columns())
        .with_rows(calibration.shifts.iter().map(shift_row));
    table.add_remark(Tone::Faint, method_remark(calibration));
    table.add_remark(Tone::Faint, programs_remark(&calibration.programs));
    Some(table)
}

/// Why it was not measured, in a sentence; `None` if it was, or nothing was recorded.
pub fn left_out(calibration: &Fact<Calibration>) -> Option<String> {
    match calibration {
        Fact::Unavailable(why) => Some(format!("cost of recording: not measured: {why}")),
        Fact::Known(_) | Fact::NotAsked => None,
    }
}

fn calibration_columns() -> Vec<Column> {
    vec![
        Column::text("percentile", 0),
        Column::figures("without", 1),
        Column::figures("added", 0),
        Column::text("95 % interval", 0)
            .with_meaning("interval of the shift, at a confidence of at least 95 %"),
        Column::text("shift", 0),
    ]
}

fn shift_row(shift: &PercentileShift) -> Vec<Cell> {
    let name = if shift.percentile == 50.0 {
        "median".to_owned()
    } else {
        format!("p{}", shift.percentile)
    };
    let verdict = match (shift.resolved, shift.added_ns) {
        (false, _) => Cell::text("not resolved").with_tone(Tone::Faint),
        (true, ..0) => Cell::text("shorter"),
        (true, _) => Cell::text("longer"),
    };
    vec![
        Cell::text(name),
        Cell::time(shift.without_ns),
        Cell::time(shift.added_ns),
        Value::Interval(Some(shift.low_ns as f64), Some(shift.high_ns as f64)).into(),
        verdict,
    ]
}

fn method_remark(of: &Calibration) -> String {
    format!(
        "{} switched on and off beside a thread on CPU {} ({}, period {}), before the run and \
         without its loads: {} turns of {} each way, {} and {} samples; nothing is subtracted \
         from any sample",
        of.recorders.join(" and "),
        of.cpu,
        of.scheduling,
        span_text(Nanos(of.period_ns)),
        of.turns,
        span_text(Nanos(of.block_ns)),
        count_text(of.samples_without),
        count_text(of.samples_with)
    )
}

/// The CPU time of the BPF programs.
fn programs_remark(times: &Fact<ProgramTimes>) -> String {
    let times = match times {
        Fact::Known(times) => times,
        Fact::Unavailable(why) => return format!("run time of BPF programs: unavailable: {why}"),
        Fact::NotAsked => return "run time of BPF programs: not counted".to_owned(),
    };
    let Some(per_run) = times.per_run_ns() else {
        return "BPF programs: none ran".to_owned();
    };
    let share_of_span = |part: u64| part as f64 / times.span_ns.max(1) as f64;
    let named =
        times.programs.iter().take(NAMED_SHIFTS).map(|of| format_program(of, times.total_ns));
    format!(
        "cost of an event: {} of CPU time (mean of {} runs of BPF programs, {} a second, {} of one \
         CPU); the most: {}",
        span_text(Nanos(per_run.round() as i64)),
        count_text(times.runs),
        count_text((share_of_span(times.runs) * 1e9).round() as u64),
        percent_text(share_of_span(times.total_ns)),
        named.collect::<Vec<_>>().join(", ")
    )
}

fn format_program(of: &ProgramTime, total: u64) -> String {
    let mean = Nanos((of.total_ns / of.runs.max(1)) as i64);
    let share = percent_text(of.total_ns as f64 / total.max(1) as f64);
    format!("{} {share} ({} a run, {})", of.tracepoint, span_text(mean), of.recorder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{ShowOptions, show_calibration};

    fn measured() -> Calibration {
        let shift = |percentile, without_ns, added_ns, low_ns, high_ns| PercentileShift {
            percentile,
            without_ns,
            added_ns,
            low_ns,
            high_ns,
            resolved: low_ns > 0 || high_ns < 0,
        };
        let program = |recorder: &str, tracepoint: &str, runs, total_ns| ProgramTime {
            recorder: recorder.to_owned(),
            tracepoint: tracepoint.to_owned(),
            runs,
            total_ns,
        };
        Calibration {
            recorders: vec!["flight recorder".to_owned(), "accounting".to_owned()],
            cpu: 1,
            scheduling: "SCHED_FIFO 80".to_owned(),
            period_ns: 1_000_000,
            turns: 10,
            block_ns: 200_000_000,
            samples_without: 1_998,
            samples_with: 2_000,
            shifts: vec![
                shift(50.0, 21_345, 1_750, 1_580, 2_080),
                shift(90.0, 24_100, 1_850, 1_650, 2_370),
                shift(99.0, 51_400, 1_100, -440, 2_860),
            ],
            programs: Fact::Known(ProgramTimes {
                span_ns: 260_000_000,
                runs: 4_000,
                total_ns: 1_600_000,
                programs: vec![
                    program("flight recorder", "sched/sched_switch", 1_000, 800_000),
                    program("accounting", "sched_switch", 1_000, 600_000),
                ],
            }),
        }
    }

    #[test]
    fn the_calibration_table_shows_shifts_and_event_costs() {
        let show = |fact: &Fact<Calibration>| show_calibration(fact, &ShowOptions::default());
        insta::assert_snapshot!("known", show(&Fact::Known(measured())));
        let why = "the run takes less than 10 s";
        let left_out = show(&Fact::Unavailable(why.to_owned()));
        assert!(left_out.contains(&format!("not measured: {why}")), "{left_out}");
        assert_eq!(show(&Fact::NotAsked), "");
    }
}
