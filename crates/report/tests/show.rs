//! The output for each fixture bundle.

use punctual_bundle::{Bundle, Timebase};
use punctual_report::export::{Format, export_bundle};
use punctual_report::terminal::{ShowOptions, Unit, show_summary};
use punctual_stats::{phase_views, summarize_bundle};
use std::path::{Path, PathBuf};

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bundles").join(name)
}

fn bundle(name: &str) -> Bundle {
    Bundle::open(&directory(name)).unwrap()
}

fn shown(name: &str, options: &ShowOptions) -> String {
    let bundle = bundle(name);
    let text = show_summary(&summarize_bundle(&bundle), &phase_views(&bundle), options);
    // Damage is reported with the path, which differs by checkout.
    text.replace(&directory("").display().to_string(), "")
}

fn wide(width: usize) -> ShowOptions {
    ShowOptions { width, ..ShowOptions::default() }
}

#[test]
fn of_many_series_the_worst_are_shown_first() {
    let bundle = bundle("good");
    let mut summary = summarize_bundle(&bundle);
    summary.phases.truncate(1);
    let series = &mut summary.phases[0].series;
    series.truncate(1);
    for number in 1..256 {
        let mut one = series[0].clone();
        one.name = format!("timer/cpu{number}");
        one.max = Some(1_000 * number);
        series.push(one);
    }
    let text = show_summary(&summary, &[], &wide(80));
    let place = |name: &str| text.find(&format!("  {name} ")).unwrap_or(usize::MAX);
    assert!(place("timer/cpu255") < place("timer/cpu254"), "{text}");
    assert!(place("timer/cpu224") < usize::MAX && place("timer/cpu223") == usize::MAX, "{text}");
    assert!(text.contains("and 224 more: see --json"), "{text}");
}

#[test]
fn a_successful_run_is_shown() {
    insta::assert_snapshot!(shown("good", &wide(110)), @r#"
    quickstart  2026-11-21 08:00:00 UTC
    verdict     ✓ met: all 8 requirements
    figure      loaded/timer/cpu0: max 153.7 µs, required < 500.0 µs; 0 of 4,000 samples longer
    completed

    phase idle · 4.0 s · CPU 2.0 % busy · latencies in µs
      series      CPU  scheduling     samples   min  mean   p50   p75   p90   p99   max  std dev  overruns  lost
      timer/cpu0    0  SCHED_FIFO 80    4,000  1.80  2.79  2.45  3.06  3.94  6.29  76.8     2.22         0     0
      timer/cpu1    1  SCHED_FIFO 80    4,000  1.80  2.74  2.44  3.08  3.96  5.98  36.3     1.16         0     0
      hidden: terminal too narrow: p95
      too few samples for further percentiles; needed: p99.9 10,000, p99.99 100,000, p99.999 1,000,000

    phase loaded · 4.0 s · CPU 87.0 % busy · latencies in µs
      series      CPU  scheduling     samples   min  mean   p50   p75   p90   p99    max  std dev  overruns  lost
      timer/cpu0    0  SCHED_FIFO 80    4,000  1.80  4.57  3.67  5.41  7.63  14.2  153.7     4.80         0     0
      timer/cpu1    1  SCHED_FIFO 80    4,000  1.80  4.40  3.59  5.38  7.84  14.0   27.7     2.63         0     0
      hidden: terminal too narrow: p95
      too few samples for further percentiles; needed: p99.9 10,000, p99.99 100,000, p99.999 1,000,000

    distributions (number of samples by latency, both logarithmic)
      idle/timer/cpu0    ██████▇▇▇▇▇▇▆▆▆▅▅▅▅▄▄▄▃▁▁▂                 ▁▁     ▁▁ ▁     ▁▁
      idle/timer/cpu1    █████▇█▇▇▇▇▇▆▆▆▅▅▅▄▄▄▃▃▁ ▁▁▁             ▁▁     ▁
      loaded/timer/cpu0  █████████████████▇▇▇▇▇▇▇▆▆▆▆▆▅▅▅▄▄▄▃▂▃   ▁     ▁▁         ▁▁  ▁ ▁▂     ▁
      loaded/timer/cpu1  ████████████████▇█▇▇▇▇▇▇▇▇▆▆▆▅▅▅▅▄▄▃▃▃ ▁▁▂  ▁
                         1.80                            16.6                            153.7 µs

    worst samples (µs)
      latency  series             CPU  sample  due at (s on its clock)
        153.7  loaded/timer/cpu0    0   2,939           5002.939000000
        104.0  loaded/timer/cpu0    0   1,108           5001.108000000
        103.1  loaded/timer/cpu0    0   2,830           5002.830000000
         96.0  loaded/timer/cpu0    0   3,982           5003.982000000
         86.4  loaded/timer/cpu0    0     381           5000.381000000

    requirements
      verdict  requirement  series                           measured
      ✓ met    max < 500us  all 4, worst: loaded/timer/cpu0  153.7 µs
      ✓ met    p99 < 100us  all 4, worst: loaded/timer/cpu0   14.2 µs

    no warnings about these figures
    "#);
}

#[test]
fn every_loss_in_ascii_on_a_narrow_terminal() {
    insta::assert_snapshot!(shown("lossy", &ShowOptions { ascii: true, ..wide(80) }), @r#"
    lossy  2026-11-21 08:00:00 UTC
    verdict     NOT MET: max < 1ms on overruns (and 8 further reasons)
    figure      overruns: max 7,300 us, required < 1,000 us; 3 of 3,000 samples
                longer
    to do       Measure again with --explain: it keeps the events that show what
                delayed the worst samples.
    interrupted; what was measured until then is whole
    NOT REAL-TIME: 1 of 5 series are not proven to come from a real-time thread
    INVALID: samples of main/dropped: 130 of 2130 samples were lost (6.103 %)
    INVALID: scheduling of main/time-sharing: SCHED_FIFO 80 was requested, it ran as
    SCHED_OTHER

    phase main, 4.0 s, CPU 96.0 % busy, latencies in us
      series         CPU  samples     min  mean   p50   p99    max  overruns  lost
      overruns         0    3,000    2.50  11.0  5.35  28.5  7,300        10     0
        - corrected         3,010          19.1  5.36  54.5
      dropped          1    2,000    2.50  7.13  5.20  24.3  266.0         0   130
      negative         2    1,000  -1,000  6.18  5.28  27.7  146.3         0     0
      time-sharing     3    1,000   0.000  4.83  4.00  24.0  192.0         0     0
      empty            3        0       -     -     -     -      -         0     0
      hidden: terminal too narrow: p95, p75, std dev, scheduling, p90
      too few samples for further percentiles; needed: p50 20, p75 40, p90 100,
        p95 200, p99 1,000, p99.9 10,000, p99.99 100,000, p99.999 1,000,000
      corrected: with the latencies that a periodic task would have seen in the
        periods missed while late (coordinated omission)

    distributions (number of samples by latency, both logarithmic)
      main/overruns                        @@@@@@@##*+==:.-..-.::-:       .  .     .
      main/dropped                         @@@@@@###**=::.- .: ::  .
      main/negative      :                 @@@@@@###*+=-.- :  .:
      main/time-sharing  @                   @   # *+-- ::.     ..
                         0.073                    23.1                      7,300 us

    worst samples (us)
      latency  series         CPU  sample  due at (s on its clock)
        7,300  main/overruns    0     700           5000.700000000
        2,100  main/overruns    0   1,907           5001.907000000
        1,250  main/overruns    0   2,509           5002.509000000
        266.0  main/dropped     1   1,020           5001.020000000
        259.8  main/overruns    0     787           5000.787000000

    requirements
      verdict    requirement            series             measured
      INVALID    max < 10ms             main/dropped              -
      INVALID    max < 10ms             main/time-sharing         -
      NOT MET    max < 1ms              main/overruns      7,300 us
      NOT MET    overruns == 0          main/overruns            10
      NOT MET    lost == 0              main/dropped            130
      undecided  p99.999 < 1ms          main/overruns             -
      undecided  max < 1ms              main/empty                -
      met        p99 < 100us            main/overruns       28.5 us
      met        corrected p99 < 100us  main/overruns       54.5 us
      max < 10ms on main/dropped (and 1 more): main/dropped: 130 of 2130 samples
        were lost (6.103 %)
      p99.999 < 1ms on main/overruns: p99.999 needs 1000000 samples and there are
        3000
      max < 1ms on main/empty: nothing was measured

    findings
      bad      samples were lost after the measurement; no figure includes them
               main/dropped: 130 of 2130 (6.103 %)
               > give the controller thread a CPU of its own, or measure with a
                 longer period
      bad      the measuring thread did not get the requested real-time scheduling
               main/time-sharing: scheduling in force: SCHED_OTHER
               > run as root, or with CAP_SYS_NICE or an RLIMIT_RTPRIO high enough
                 (limits.conf(5))
      bad      nothing was measured
               main/empty: 0 samples recorded, 0 lost, 0 overruns
               > measure for longer than the first period and offset; see the other
                 findings
      warning  the frequency of this CPU changes with its load
               cpu 0: /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor:
               schedutil
               > cpupower frequency-set -g performance
      warning  the hypervisor took CPU time from this machine
               main: 3.10 % of the CPU time of the phase was steal time (/proc/stat)
               > measure on real hardware, or on a host whose CPUs are not shared;
                 latencies here include the host's
      warning  the load flaky failed: the system may have been less loaded than
               planned
               main/flaky: 11 of its 12 starts ended with failure
               > run its command alone to see its output, or write its output to a
                 file
      warning  missed periods (coordinated omission): plain figures count each such
               wait once, corrected figures every missed period
               main/overruns: 10 of 3010 periods
               > use the corrected figures for a periodic task; find what occupied
                 the CPU for that long
      warning  too few samples for the percentile of a requirement
               main/overruns: p99.999 needs 1000000 samples, 10 of them beyond it;
               there are 3000
               > measure until there are 1000000 samples (about 1001 s at this
                 period)
      warning  the measuring thread had page faults, which should not happen with
               its memory locked
               main/overruns: 3 minor, 1 major (getrusage(2))
               > allow it to lock its memory (CAP_IPC_LOCK or RLIMIT_MEMLOCK), and
                 keep memory locking enabled
      warning  the measuring thread was preempted: a task of the same or a higher
               priority ran
               main/overruns: 17 involuntary context switches (getrusage(2))
               > raise its priority, or move the other real-time threads of this CPU
                 away (ps -eLo cls,rtprio,psr,comm)
      warning  events came before they were due: the clock was stepped or is not
               reliable
               main/negative: 2 negative latencies on CLOCK_REALTIME, the smallest
               -1 ms
               > measure on CLOCK_MONOTONIC, which is never stepped, or stop the
                 program that sets the clock
      advice   latencies are beyond the range of the exact histogram; every other
               figure includes them
               main/overruns: 3 of 3000 samples from 1.001 ms on, the largest 7.3
                 ms
               main/negative: 24 of 1000 samples from 21 us on, the largest 146.3
                 us
               > set histogram.range (cyclictest: -h) to at least 7300us to see them
                 in it (for the first; others differ in figures)
      advice   latencies come in coarse steps: this is the resolution of the clock,
               or of the tool that wrote the figures
               main/time-sharing: no two different latencies are closer than 4 us
               > no figure is more exact than one such step; see clock_getres(2) and
                 the current_clocksource
      note     the run ended before its planned end
               run: interrupted; what was measured until then is whole
               > let a run reach its end before comparing it with others
      note     not every sample is in the log; all figures and histograms include
               every sample
               main/dropped: the first 500 of 2000 are in the log
               > raise keep_samples if exports need all of them
    "#);
}

#[test]
fn an_imported_run_is_shown() {
    insta::assert_snapshot!(shown("imported", &wide(100)), @r#"
    two  2026-11-21 09:25:59 UTC
    verdict     nothing was required
    figure      thread 1: max 11,535 µs; 1,000 samples
    completed

    phase imported · 1.0 s · latencies in µs
      series    CPU  scheduling  samples   min  mean   p50   p90     p99     max  overruns     lost
      thread 0    0  SCHED_FIFO    1,000  13.0  32.1  20.0  23.0    56.0  10,873   unknown  unknown
      thread 1    1  SCHED_FIFO    1,000  12.0  32.9  15.0  21.0  11,535  11,535   unknown  unknown
      hidden: terminal too narrow: p95, p75, std dev
      too few samples for further percentiles; needed: p99.9 10,000, p99.99 100,000, p99.999 1,000,000

    distributions (number of samples by latency, both logarithmic)
      imported/thread 0  ▄▆▇▆▇█▇▅▅▃▃▁▁  ▁▃                                                      ▃
      imported/thread 1  ▇██▇▇▆▅▄▄▃▁▂▁▁ ▁                                                       ▄
                         12.0                           372.2                           11,535 µs

    findings
      warning  cycles lay beyond the histogram and the file has only the largest of them: all are
               counted as that, so that high percentiles are upper bounds
               imported/thread 0: 7 of 1000 cycles; percentiles above p99.300
               imported/thread 1: 11 of 1000 cycles; percentiles above p98.900
               → let the tool keep a larger histogram (cyclictest: -h)
      advice   latencies are beyond the range of the exact histogram; every other figure includes them
               imported/thread 0: 7 of 1000 samples from 60 us on, the largest 10.87 ms
               imported/thread 1: 11 of 1000 samples from 60 us on, the largest 11.54 ms
               → set histogram.range (cyclictest: -h) to at least 10873us to see them in it (for the
                 first; others differ in figures)
      advice   the tool that wrote the figures has this resolution
               imported/thread 0: its latencies are whole multiples of 1 us
               imported/thread 1: its latencies are whole multiples of 1 us
               → no figure is more exact than one such step
      note     these figures were imported: single samples, standard deviation, overruns and losses are
               not known
               run: cyclictest --json; latencies are cut down to whole 1us
               → measure with punctual where those matter
    "#);
}

#[test]
fn a_truncated_run_is_marked_at_the_top() {
    let text = shown("cut-off", &wide(200));
    assert!(text.lines().nth(1).unwrap().contains("CUT OFF; "), "{text}");
    assert!(text.contains("001/0001.meta.json: no checkpoint yet"), "{text}");
    assert!(text.contains("the run was cut off: what followed is unknown"), "{text}");
}

#[test]
fn hostile_names_stay_text() {
    for width in [0, 1, 20, 80, 500] {
        for (ascii, color) in [(false, false), (true, false), (false, true)] {
            let text = shown(
                "hostile",
                &ShowOptions { width, ascii, color, unit: Unit::Micros, ..ShowOptions::default() },
            );
            let escapes =
                text.split('\u{1b}').skip(1).filter(|rest| !rest.starts_with('[')).count();
            assert_eq!(escapes, 0);
            assert!(
                color || !text.contains('\u{1b}'),
                "an escape sequence where no colour was wanted"
            );
            assert!(text.chars().all(|c| c == '\n' || c == '\u{1b}' || !c.is_control()));
            assert!(!text.contains(['\u{202e}', '\u{2066}', '\u{200b}']));
            assert!(!ascii || text.is_ascii(), "{text}");
        }
    }
}

#[test]
fn lines_do_not_exceed_the_terminal_width() {
    for name in ["good", "cut-off", "lossy", "imported", "workloads"] {
        for width in [80, 100, 120, 160] {
            for line in shown(name, &wide(width)).lines() {
                let columns = punctual_core::format::width_of(line);
                assert!(columns <= width, "{name} at {width}: {columns} in {line:?}");
            }
        }
    }
}

#[test]
fn coloured_output_differs_only_by_escape_sequences() {
    for name in ["good", "cut-off", "lossy", "hostile", "imported", "workloads"] {
        let colored = shown(name, &ShowOptions { color: true, ..wide(100) });
        let mut bare = String::new();
        for (k, part) in colored.split('\u{1b}').enumerate() {
            bare += if k == 0 { part } else { part.split_once('m').unwrap().1 };
        }
        assert_eq!(bare, shown(name, &wide(100)));
    }
}

#[test]
fn latencies_are_shown_in_nanoseconds_on_request() {
    let text = shown("good", &ShowOptions { unit: Unit::Nanos, ..wide(120) });
    assert!(text.contains("latencies in ns"), "{text}");
    assert!(!text.contains("µs"), "{text}");
}

/// A bundle as if it came from a virtual machine.
fn in_virtual_time(name: &str) -> Bundle {
    let mut bundle = bundle(name);
    let (name, started) = ("the kernel 6.1, virtual time", bundle.manifest.created);
    bundle.manifest.target = Some(punctual_bundle::RanOn::new("vm", name, started));
    bundle
}

/// A table copied out of it still shows its timebase in its unit, which is explained once.
#[test]
fn virtual_time_is_in_the_unit_of_every_section_with_times() {
    let options = ShowOptions::default();
    let of =
        |bundle: &Bundle| show_summary(&summarize_bundle(bundle), &phase_views(bundle), &options);
    assert!(!of(&bundle("good")).contains("virtual"));
    let text = of(&in_virtual_time("good"));
    let mark = format!("\n  {}\n", Timebase::Virtual.short_meaning().unwrap());
    assert_eq!(text.matches(&mark).count(), 1, "{text}");
    let mut sections = 0;
    for section in text.split("\n\n").filter(|section| section.contains("µs")) {
        assert!(section.contains("virtual µs"), "{section}");
        sections += 1;
    }
    assert!(sections >= 3, "figures, shapes and worst samples: {text}");
    let every = [
        "systress",
        "cyclictest-json",
        "cyclictest-histogram",
        "gnuplot",
        "csv",
        "csv-summary",
        "hdr",
        "junit",
        "lava",
    ];
    for format in every {
        let written = |bundle: &Bundle| {
            let mut bytes = Vec::new();
            export_bundle(bundle, Format::from_name(format).unwrap(), &mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert!(!written(&bundle("good")).contains("virtual"), "{format}");
        assert!(written(&in_virtual_time("good")).contains("virtual"), "{format}");
    }
}

#[test]
fn corrected_figures_are_shown_only_if_they_are_larger() {
    let mut summary = summarize_bundle(&bundle("lossy"));
    let of = |summary: &punctual_bundle::summary::Summary| {
        let text = show_summary(summary, &[], &wide(120));
        text.lines().find(|line| line.contains("└ corrected")).map(str::to_owned)
    };
    assert!(of(&summary).is_some_and(|line| line.contains("54.5")), "p99 is larger");
    let series = &mut summary.phases[0].series[0];
    let plain = series.percentiles.clone();
    let corrected = series.corrected.as_mut().unwrap();
    corrected.percentiles.insert("99".to_owned(), plain["99"] - 1);
    let line = of(&summary).unwrap();
    assert!(!line.contains("28.5") && !line.contains("54.5"), "{line}");
    let series = &mut summary.phases[0].series[0];
    let mean = series.mean.unwrap();
    let corrected = series.corrected.as_mut().unwrap();
    (corrected.mean, corrected.percentiles) = (mean, plain);
    assert_eq!(of(&summary), None);
}
