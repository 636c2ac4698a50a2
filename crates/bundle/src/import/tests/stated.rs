//! Statements of tools beyond a distribution: causes of a latency, the one that stopped them,
//! counts of overruns and system management interrupts; tables, percentiles, other layouts.

use super::*;
use punctual_core::{Cell, Finding};

macro_rules! data {
    ($name:literal) => {
        include_str!(concat!("../testdata/", $name))
    };
}

type Figures = (String, u64, Option<i64>, Option<i64>);

/// Name, count, smallest and largest in ns of each series.
fn figures(text: &str) -> Vec<Figures> {
    let of = |series: &&Series| {
        let data = &series.state.data;
        let ns = |time: Option<Nanos>| time.map(Nanos::ns);
        (series.meta.name.clone(), data.sample_count(), ns(data.min), ns(data.max))
    };
    series(&imported(text)).iter().map(of).collect()
}

fn of(name: &str, count: u64, min: i64, max: i64) -> Figures {
    (name.to_owned(), count, Some(min), Some(max))
}

fn outcome(text: &str) -> Outcome {
    imported(text).manifest.ending.unwrap().outcome
}

/// A series with its delays: cause, culprit and share in percent.
type Stated = (String, Vec<(String, Option<String>, i64)>);

fn delays(text: &str) -> Vec<Stated> {
    let bundle = imported(text);
    let all = bundle.phases[0].meta.delayed_by.clone();
    all.into_iter()
        .map(|one| {
            assert_eq!((one.source.as_deref(), one.samples), (Some("rtla"), 1));
            let causes = one.causes.into_iter();
            let causes = causes.map(|of| (of.cause, of.who, (of.share * 100.0).round() as i64));
            (one.series.unwrap(), causes.collect())
        })
        .collect()
}

fn finding(text: &str, id: &str) -> Finding {
    let bundle = imported(text);
    let found = bundle.findings.iter().find(|finding| finding.id == id);
    found.unwrap_or_else(|| panic!("no {id}: {:?}", bundle.findings)).clone()
}

fn table(text: &str, name: &str) -> Vec<Vec<Cell>> {
    let bundle = imported(text);
    let tables = &bundle.phases[0].meta.measures[0].notes.tables;
    tables.iter().find(|table| table.name == name).expect("the table").rows.clone()
}

#[test]
fn an_rtla_analysis_without_histogram_is_imported_as_its_latency() {
    let text = data!("field/timerlat-top-auto-analysis.txt");
    assert_eq!(figures(text), [of("CPU 1/irq", 1, 709_250, 709_250)]);
    assert_eq!(outcome(text), stopped_above("CPU 1/irq", 709_250));
    // The handler delay of 0 is that of the previous cycle: rtla knows only the task.
    let who = Some("ip:3567 in igb_update_mc_addr_list".to_owned());
    let by = vec![("timer-irq-delay".to_owned(), who, 100)];
    assert_eq!(delays(text), [("CPU 1/irq".to_owned(), by)]);
    assert_eq!(table(text, "rtla-stack").len(), 21);
    finding(text, "only-above-threshold");
}

#[test]
fn columns_with_a_zero_count_are_not_imported_as_series() {
    let text = data!("field/timerlat-no-sample-on-cpu2.txt");
    let names: Vec<String> = figures(text).into_iter().map(|of| of.0).collect();
    assert_eq!(names, ["CPU 1/irq", "CPU 1/thread", "CPU 1/user", "CPU 2/irq", "CPU 2/thread"]);
    assert_eq!(outcome(text), stopped_above("CPU 2/thread", 52_930));
    let [(series, causes)] = &delays(text)[..] else { panic!("{:?}", delays(text)) };
    assert_eq!(series, "CPU 2/thread");
    assert_eq!(causes[0], ("idle-exit".to_owned(), None, 91));
    assert_eq!(causes[2].1.as_deref(), Some("swapper/2:0"));
    // Without the line of the longest exit from idle, the only column with that maximum decides.
    let (without, _) = text.split_once("  Max timerlat").unwrap();
    assert_eq!(outcome(without), stopped_above("CPU 2/thread", 52_930));
    let twice = without.replace("36         0", "52         0");
    let twice =
        twice.replace("max:          2        33        36", "max:          2        52        36");
    assert_eq!(outcome(&twice), Outcome::Completed, "either CPU had it");
    finding(&twice, "stopped-by-threshold");
}

/// The lines of timerlat_aa.c, of rtla 6.5 (tabs, a line without its end) and later.
#[test]
fn every_part_of_an_analysis_is_a_cause() {
    let head = "## CPU 3 hit stop tracing, analyzing it ##\n";
    let parts = data!("made/analysis.txt");
    let expected = [
        ("non-preemptible", Some("a b c:4048 in cgroup_rstat_flush"), 50),
        ("preempted", Some("migration/3:30"), 35),
        ("softirq", Some("NET_RX:3"), 5),
        ("nmi", None, 3),
        ("irq", Some("local_timer:236"), 3),
        ("timer-irq-delay", None, 2),
        ("irq", Some("eth0:16"), 2),
        ("irq", None, 1),
    ];
    let expected: Vec<_> = expected
        .map(|(cause, who, share)| (cause.to_owned(), who.map(str::to_owned), share))
        .into();
    let delay = "  IRQ handler delay:\t\t                \t    18.06 us (1.80 %)\n";
    let previous = "  Previous IRQ interference:\t\t\tup to      2.22 us";
    for text in [
        format!("{head}{delay}{parts}"),
        format!("{head}{previous}\n{delay}{parts}"),
        format!("{head}{previous}{delay}{parts}"),
        format!("{head}{delay}{parts}").replace('.', ","),
        format!("{head}{delay}{parts}").replace('\t', "   ").replace("(100%)", "(100 %)"),
        format!("{delay}{parts}\nMax timerlat IRQ latency from idle: 20.00 us in cpu 3\n")
            .replace("delay:\t\t   ", "delay:\t\t(exit from idle)"),
    ] {
        let [(series, causes)] = &delays(&text)[..] else { panic!("{text}") };
        assert_eq!(series, "CPU 3/thread", "{text}");
        assert_eq!(outcome(&text), stopped_above("CPU 3/thread", 1_000_000));
        let same =
            |cause: &str| if cause == "idle-exit" { "timer-irq-delay" } else { cause }.into();
        let causes: Vec<_> =
            causes.iter().map(|(c, who, share)| (same(c), who.clone(), *share)).collect();
        assert_eq!(causes, expected, "{text}");
    }
    // Two CPUs crossed the threshold: both are analysed, the first is named.
    let other = format!("{head}{delay}{parts}").replace("CPU 3", "CPU 5");
    let both = format!("{head}{delay}{parts}{other}");
    assert_eq!(delays(&both).len(), 2);
    assert_eq!(outcome(&both), stopped_above("CPU 3/thread", 1_000_000));
    assert!(refused(&format!("{other}{other}")).contains("CPU 5/irq is analysed twice"));
}

#[test]
fn a_stop_that_is_not_explained_names_no_series() {
    let text = data!("rtla-6.1/timerlat-stop.txt");
    assert_eq!(outcome(text), Outcome::Completed);
    let found = finding(text, "stopped-by-threshold");
    let evidence = found.evidence.unwrap();
    assert!(evidence.contains("/irq ") && evidence.contains("/thread "), "{evidence}");
}

#[test]
fn tables_of_top_are_figures_without_a_distribution() {
    let text = data!("rtla-6.12/timerlat-top.txt");
    let expected = [
        of("CPU 0/irq", 896, 48_000, 9_120_000),
        of("CPU 0/thread", 896, 76_000, 9_318_000),
        of("CPU 0/user", 896, 96_000, 9_384_000),
        of("CPU 1/irq", 911, 38_000, 8_443_000),
        of("CPU 1/thread", 911, 52_000, 8_525_000),
        of("CPU 1/user", 911, 59_000, 8_559_000),
    ];
    assert_eq!(figures(text), expected);
    assert_eq!(imported(text).phases[0].meta.duration, Some(Nanos::SECOND * 3));
    finding(text, "counts-of-interrupts");
    // In ns; without titles (so with an assumed unit); printed repeatedly.
    let ns = text.replace("(us)", "(ns)");
    assert_eq!(figures(&ns)[0], of("CPU 0/irq", 896, 48, 9_120));
    let rows: String =
        text.lines().filter(|line| line.contains('#')).map(|line| format!("{line}\n")).collect();
    assert_eq!(figures(&rows), expected);
    finding(&rows, "unit-assumed");
    let earlier = text.replace("00:00:03", "00:00:02").replace("#896", "#596");
    assert_eq!(figures(&format!("\u{1b}c{earlier}\u{1b}c{text}")), expected);
    assert!(refused(&format!("{text}{earlier}")).contains("a second run begins here"));
    // The thread of a CPU never ran.
    let none = text.replace("76       490      9318", "-         -         -");
    assert_eq!(figures(&none).len(), 5);
    let coloured = data!("rtla-6.1/timerlat-top.txt");
    assert_eq!(figures(coloured)[3], figures(&coloured.replace("\u{1b}[0;0;0m", ""))[3]);
    assert_eq!(figures(coloured)[0], of("CPU 0/irq", 670, 44_000, 27_700_000));
}

#[test]
fn osnoise_is_imported_as_series_and_its_counts_as_table() {
    let text = data!("rtla-6.12/osnoise-top.txt");
    let noise = |name: &str, count, max| (name.to_owned(), count, None, Some(max));
    let expected = [noise("CPU 0/noise", 2, 574_538_000), noise("CPU 1/noise", 2, 584_773_000)];
    assert_eq!(figures(text), expected);
    assert_eq!(series(&imported(text))[0].state.data.mean(), Some(570_555_500.0));
    assert_eq!(table(text, "osnoise")[1][6], Cell::Number(2752.0));
    let rows: String = text.lines().skip(3).map(|line| format!("{line}\n")).collect();
    assert_eq!(figures(&rows), expected);
    // `rtla hwnoise` counts hardware and NMIs alone.
    let hw = text.replace("Operating System Noise", "Hardware-related Noise");
    let hw: String = hw
        .lines()
        .map(|line| format!("{}\n", line.chars().take(103).collect::<String>()))
        .collect();
    assert_eq!(figures(&hw), expected);
    assert_eq!(table(&hw, "osnoise")[1][8], Cell::Nothing);
    let missed = format!("{text}12 (0%) events missed, results might not be accurate\n");
    finding(&missed, "source-lost-events");
}

#[test]
fn histograms_without_column_names_or_totals_are_imported() {
    let text = data!("rtla-6.12/timerlat.txt");
    let bare: String = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("Index"))
        .map(|line| format!("{line}\n"))
        .collect();
    let (all, bare_all) = (figures(text), figures(&bare));
    assert_eq!(bare_all.len(), all.len());
    for ((_, count, min, max), (name, n, least, most)) in all.iter().zip(&bare_all) {
        assert_eq!((count, min, max), (n, least, most), "{name}");
    }
    assert_eq!(bare_all[0].0, "column 1/irq");
    finding(&bare, "columns-not-named");
    let noise = data!("rtla-6.12/osnoise.txt");
    let bare: String = noise.lines().skip(4).map(|line| format!("{line}\n")).collect();
    assert_eq!(series(&imported(&bare))[0].meta.workload, "osnoise", "its means have decimals");
    // --no-summary, as rteval runs it.
    let labels = ["count:", "min:", "avg:", "max:", "ALL:"];
    let is_summary = |line: &&str| labels.iter().any(|label| line.starts_with(label));
    let no_summary: String = data!("field/timerlat-indented.txt")
        .lines()
        .map(str::trim)
        .filter(|line| !is_summary(line))
        .map(|l| format!("{l}\n"))
        .collect();
    assert_eq!(figures(&no_summary)[0], of("CPU 0/irq", 60_002, 0, 12_000));
    let cut = data!("rtla-6.12/timerlat-stop.txt").replace("over:         0", "over:         1");
    let cut: String =
        cut.lines().filter(|line| !is_summary(line)).map(|l| format!("{l}\n")).collect();
    assert!(refused(&cut).contains("1 latencies of CPU 1/irq lay beyond"), "{}", refused(&cut));
    for bare in [data!("rtla-6.1/timerlat-bare.txt"), data!("rtla-6.12/timerlat-bare.txt")] {
        assert!(refused(bare).contains("latencies of column 1 lay beyond the histogram"), "{bare}");
    }
    let no_index = text.replace("Index   IRQ", "        IRQ");
    assert!(refused(&no_index).contains("run rtla without --no-index"), "{}", refused(&no_index));
}

#[test]
fn the_tracers_own_table_is_an_import() {
    let text = data!("field/osnoise-table.txt");
    let expected =
        [of("CPU 2/noise", 3, 1_298_000, 1_312_000), of("CPU 2/single", 3, 12_000, 14_000)];
    assert_eq!(figures(text), expected);
    assert_eq!(table(text, "osnoise")[0][8], Cell::Number(3008.0));
    let tick = finding(text, "noise-of-the-tick");
    assert_eq!(
        tick.message,
        "1003 interrupts a second of about 1.2 us: the tick at HZ=1000, probably"
    );
    for (other, why) in [
        (text.replace("   1003   ", "   1903   "), "no frequency of a tick"),
        (text.replace("14      0      0", "14      1      0"), "hardware"),
        (text.replace("     31      0\n", "     31      2\n"), "a thread"),
    ] {
        assert_ne!(other, text);
        let found = imported(&other);
        assert!(!finding_ids(&found).contains(&"noise-of-the-tick"), "{why}");
    }
    assert!(is_tracer_table(text.as_bytes()));
    let timerlat = data!("made/timerlat-tracer.txt");
    let expected = [of("CPU 0/irq", 1, 932, 932), of("CPU 0/thread", 1, 11_700, 11_700)];
    assert_eq!(figures(timerlat), expected);
    let hwlat = data!("made/hwlat-tracer.txt");
    assert_eq!(figures(hwlat), [of("inner", 1, 12_000, 12_000), of("outer", 2, 14_000, 15_000)]);
    assert_eq!(table(hwlat, "gaps")[0][1], Cell::Text("3".into()));
    assert!(is_tracer_table(hwlat.as_bytes()));
    let event = "   <...>-867 [000] d..2 54.029340: sched_switch: prev_comm=a prev_pid=1\n";
    assert!(!is_tracer_table(format!("{timerlat}{event}").as_bytes()), "a trace");
    assert!(!is_tracer_table(b"# tracer: osnoise\n#\n"));
}

#[test]
fn coverage_and_smis_of_hwlatdetect_are_reported() {
    let text = data!("field/hwlatdetect-with-smis.txt");
    let smis = finding(text, "smis");
    assert!(smis.message.starts_with("3 system management interrupts"), "{smis:?}");
    assert_eq!(smis.evidence.as_deref(), Some("3 on CPU 0"));
    let watched = finding(text, "watched-in-part");
    assert_eq!(
        watched.message,
        "gaps were looked for in 50 % of the time, on one CPU at once: the largest is not an \
         upper bound"
    );
    assert!(watched.evidence.unwrap().ends_with("on each of 4 CPUs"));
    let gaps = table(text, "gaps");
    let row = |time: &str, cpu: &str, inner: Cell, outer: Cell| {
        vec![Cell::Text(time.into()), Cell::Text(cpu.into()), inner, outer]
    };
    let second = row("1787951687.285011204", "1", Cell::Nothing, Cell::Number(22_000.0));
    assert_eq!((gaps.len(), &gaps[1]), (5, &second));
    // Unstated properties are not reported: all of the time is sampled, no SMI counter exists.
    let all = text.replace("Sample width:      500000us", "Sample width:      1000000us");
    let all = all.replace("CPU list:          0-3", "CPU list:          2");
    let all = all.split_once("3 SMIs").unwrap().0.to_owned();
    let found = imported(&all);
    for id in ["smis", "watched-in-part"] {
        assert!(!finding_ids(&found).contains(&id), "{id}");
    }
    let none = text.replace("3 SMIs occured on cpu 0\n", "").replace("run: 3", "run: 0");
    assert!(!finding_ids(&imported(&none)).contains(&"smis"), "none was counted");
}

#[test]
fn xenomais_overruns_are_missed_periods() {
    let text = data!("field/xenomai-latency.txt");
    assert_eq!(figures(text), [of("latency", 599_943, 1_175, 374_075)]);
    let bundle = imported(text);
    let one = series(&bundle)[0];
    assert_eq!((one.state.data.losses.skipped, one.meta.are_losses_known()), (40, true));
    assert_eq!(one.meta.period, Some(Nanos::from_micros(100)));
    assert_eq!((one.meta.scheduling.as_str(), one.meta.real_time), ("SCHED_FIFO", true));
    let missed = finding(text, "missed-periods").evidence.unwrap();
    assert!(
        missed.starts_with("40 overruns of 599943 cycles; while the longest lasted"),
        "{missed}"
    );
    assert!(
        missed.contains("3 were due, with latencies of 274.1 us, 174.1 us, 74.08 us"),
        "{missed}"
    );
    // Without -s the number of latencies follows from period and duration.
    let plain: String =
        text.lines().filter(|l| !l.starts_with("HS")).map(|l| format!("{l}\n")).collect();
    assert_eq!(figures(&plain)[0].1, 599_960);
    finding(&plain, "count-derived");
    // Stopped before its last line; older versions have no column of mode switches.
    let cut = plain.split_once("---|").unwrap().0;
    assert_eq!(figures(cut)[0], of("latency", 119_979, 1_263, 374_075));
    let older = cut.replace("|     0|      1.", "|      1.").replace("|---msw", "");
    assert_eq!(figures(&older)[0].3, Some(374_075));
    assert!(refused(&format!("{text}{text}")).contains("a second run begins here"));
    let early = plain.replace("RTS|      1.175", "RTS|     -1.175");
    assert_eq!(figures(&early)[0].2, Some(0));
    finding(&early, "negative-latency");
    let exceeded = format!("{text}\nMaximum latency exceeded:     374.075 > 300\n");
    assert_eq!(outcome(&exceeded), stopped_above("latency", 374_075));
}

/// Lines of latency.c and latmus.c with invented figures.
#[test]
fn a_histogram_of_xenomai_corrects_for_missed_periods() {
    let latency = data!("made/xenomai-h.txt");
    let plot = data!("made/xenomai-g.txt");
    let latmus = data!("made/latmus-g.txt");
    for (text, name) in [(latency, "latency"), (plot, "latency"), (latmus, "user")] {
        assert_eq!(figures(text), [of(name, 9_998, 1_000, 250_500)], "{text}");
        let bundle = imported(text);
        let data = &series(&bundle)[0].state.data;
        let corrected = data.corrected.as_ref().expect("missed periods");
        assert_eq!((data.whole.len(), corrected.len()), (9_998, 10_000));
        assert_eq!(corrected.count_between(149_000, 151_000), 1);
        assert_eq!(corrected.count_between(49_000, 51_000), 1);
    }
    let one = imported(latmus);
    assert_eq!(series(&one)[0].meta.cpus.to_string(), "1");
    assert_eq!(series(&one)[0].meta.workload, "latmus");
    // Outliers are in the last bin.
    let beyond = latmus.replace("250 1\n", "200+ 1\n");
    let bundle = imported(&beyond);
    assert_eq!(series(&bundle)[0].state.data.exact.above, 1);
    let met = latency.replace("|       2|", "|       0|");
    assert!(!finding_ids(&imported(&met)).contains(&"missed-periods"));
    assert!(series(&imported(&met))[0].state.data.corrected.is_none());
    let live = "warming up on CPU1...\nRTT|  00:00:01  (user, 1000 us period, priority 98, CPU1)\n\
                RTD|      1.211|      1.325|      2.476|       0|     0|      1.211|      2.476\n";
    assert_eq!(figures(live), [of("user", 1_000, 1_211, 2_476)]);
}

#[test]
fn scheduling_delays_of_perf_sched_are_imported_as_series() {
    let text = data!("field/perf-sched-timehist.txt");
    let all = figures(text);
    assert_eq!(all[0], of("schbench[28773/28574]", 1, 60_237_000, 60_237_000));
    assert_eq!(all[2], of("schbench[28634/28574]", 2, 4_000, 4_768_000));
    assert_eq!(series(&imported(text))[2].meta.tid, Some(28_634));
    let row = table(text, "sched-delays")[0].clone();
    assert_eq!(row[2], Cell::Text("38456.722800 on CPU 2".into()));
    assert_eq!(row[3], Cell::Number(60_371_000.0));
    assert!(finding(text, "causes-not-in-source").remedy.unwrap().contains("punctual explain"));
    // With pictures of CPUs, states and wake-ups in between, the switches are the same.
    let (plain, all) = (data!("perf-6.1/timehist.txt"), data!("perf-6.1/timehist-all.txt"));
    let last = all.lines().last().unwrap().split_ascii_whitespace().next().unwrap();
    let is_later = |at: &str| at.parse::<f64>().is_ok_and(|at| at > last.parse().unwrap());
    let until = |line: &&str| !line.split_ascii_whitespace().next().is_some_and(is_later);
    let plain: String = plain.lines().filter(until).map(|line| format!("{line}\n")).collect();
    assert_eq!(figures(&plain), figures(all));
    assert!(figures(all).iter().any(|of| of.0.starts_with("opt cgu.0[")), "a name with a blank");
    let latency = data!("perf-6.1/sched-latency.txt");
    let rustc = figures(latency).into_iter().find(|of| of.0.starts_with("rustc")).unwrap();
    assert_eq!((rustc.1, rustc.2, rustc.3), (291, None, Some(48_019_000)));
    let many: String = (0..300)
        .map(|k| format!("   1.{k:06} [0000]  t[{k}]   0.000      0.{k:03}      0.001\n"))
        .collect();
    let head = text.lines().take(3).map(|line| format!("{line}\n")).collect::<String>();
    assert_eq!(figures(&format!("{head}{many}")).len(), 256);
    finding(&format!("{head}{many}"), "threads-left-out");
}

#[test]
fn reports_of_rteval_have_the_figures_of_each_core() {
    let (xml, text) = (data!("rteval-3.8/cyclictest.xml"), data!("rteval-3.8/cyclictest.txt"));
    let expected = [of("CPU 0", 3_971, 4_000, 1_699_000), of("CPU 1", 3_983, 5_000, 1_671_000)];
    assert_eq!((figures(xml), figures(text)), (expected.to_vec(), expected.to_vec()));
    let bundle = imported(xml);
    let data = &series(&bundle)[0].state.data;
    assert_eq!((data.exact.total_count(), data.whole.len()), (3_971, 3_971));
    assert_eq!(series(&bundle)[0].meta.details["measured_by"], "cyclictest");
    assert_eq!(series(&bundle)[0].meta.scheduling, "SCHED_FIFO");
    let said = refused(data!("rteval-3.8/overflow.xml"));
    assert!(said.contains("it has no figures of a core"), "{said}");
    finding(data!("rteval-3.8/timerlat.xml"), "kinds-mixed");
    assert!(refused(&format!("{xml}{xml}")).contains("a second run begins here"));
    // rteval's statement about a stop: the latency of cyclictest, the analysis of rtla.
    let abort = "<abort_report reason=\"breaktrace\"><breaktrace latency_threshold=\"1000\" \
                 measured_latency=\"1671\"/></abort_report><system";
    assert_eq!(outcome(&xml.replacen("<system", abort, 1)), stopped_above("CPU 1", 1_671_000));
    let unknown = xml.replacen("<system", &abort.replace("1671", "1234"), 1);
    assert_eq!(outcome(&unknown), Outcome::Completed);
    finding(&unknown, "stopped-by-threshold");
    let cores = data!("rteval-3.8/timerlat.xml").split_once("<system").unwrap().1;
    let stop = data!("rteval-3.8/stopped.xml").split_once("<stoptrace_report").unwrap().1;
    let stop = stop.split_once("</timerlat").unwrap().0;
    let head = "<rteval version=\"3.8\">\n<timerlat command_line=\"rtla timerlat hist\">\n";
    let stopped = format!("{head}<stoptrace_report{stop}\n<system{cores}");
    assert_eq!(outcome(&stopped), stopped_above("CPU 1", 52_930));
    let [(series, causes)] = &delays(&stopped)[..] else { panic!("{:?}", delays(&stopped)) };
    assert_eq!((series.as_str(), causes[0].0.as_str(), causes[0].2), ("CPU 1", "idle-exit", 91));
    assert_eq!(causes[2].1.as_deref(), Some("swapper/2:0"));
}

#[test]
fn text_of_an_unsupported_tool_is_refused_with_a_suggestion() {
    for (text, name, to_do) in [
        (data!("perf-6.1/sched-map.txt"), "perf sched map", "punctual explain perf.data"),
        ("# Overhead  Command\n", "perf report", "punctual explain perf.data"),
        (" Performance counter stats for 'ls':\n", "perf stat", "punctual count"),
        (
            "     usecs               : count     distribution\n",
            "a histogram of BCC",
            "punctual measure",
        ),
        ("stress-ng: info:  [1] dispatching hogs: 2 cpu\n", "stress-ng", "as a load"),
        ("           CPU0       CPU1\n  0:   1   2\n", "/proc/interrupts", "attach --cpus"),
    ] {
        let said = refused(text);
        assert!(said.contains(&format!("text of {name}")) && said.contains(to_do), "{said}");
    }
    assert!(refused("nothing of note\n").starts_with("this is not the output of a tool"));
}

#[test]
fn a_negative_latency_of_a_list_of_values_is_a_finding() {
    let text = data!("rt-tests-2.6/verbose.txt");
    let value = "       1:       2:      42\n";
    let negative = text.replacen(value, "       1:       2:     -42\n", 1);
    assert_ne!(text, negative);
    let found = finding(&negative, "negative-latencies");
    assert!(found.evidence.iter().any(|of| of.contains("at least 1 of")), "{found:?}");
    assert!(imported(text).findings.iter().all(|of| of.id != "negative-latencies"));
}
