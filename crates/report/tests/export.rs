//! Every export of every fixture bundle, read back by independent readers if there are any.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use punctual_bundle::import::{ImportOptions, import_results};
use punctual_bundle::summary::Summary;
use punctual_bundle::{Bundle, Reason, Series};
use punctual_core::Sample;
use punctual_report::export::{ExportError, Format, export_bundle, export_files};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const BUNDLES: [&str; 6] = ["good", "cut-off", "lossy", "hostile", "imported", "workloads"];

fn open(name: &str) -> Bundle {
    Bundle::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/bundles").join(name))
        .unwrap()
}

fn exported(name: &str, format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    export_bundle(&open(name), format, &mut bytes).unwrap();
    bytes
}

fn text(name: &str, format: Format) -> String {
    String::from_utf8(exported(name, format)).unwrap()
}

/// Runs a program on an input; `None`, with a message, if it is missing.
fn run(program: &str, arguments: &[&str], input: &[u8]) -> Option<(bool, String)> {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("SKIPPED: {program} is not installed");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // In a thread: a program may answer before it has read all input.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    let sentence = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Some((output.status.success(), sentence))
}

#[test]
fn every_format_of_every_bundle_is_written_or_refused_with_a_reason() {
    for name in BUNDLES {
        let bundle = open(name);
        for format in Format::ALL {
            let mut bytes = Vec::new();
            match export_bundle(&bundle, format, &mut bytes) {
                Ok(()) => {
                    assert!(format == Format::Lava || !bytes.is_empty(), "{name} {}", format.name())
                }
                Err(ExportError::Impossible { why, .. }) => {
                    let of_samples = name == "imported" && format.is_of_samples();
                    assert!(
                        of_samples
                            || format == Format::Folded
                            || format.is_of_recording()
                            || format == Format::ParquetTables,
                        "{name} {}: {why}",
                        format.name()
                    );
                }
                Err(error) => panic!("{name} {}: {error}", format.name()),
            }
        }
    }
}

#[test]
fn formats_are_found_by_their_names() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(format));
    }
    assert_eq!(Format::from_name("excel"), None);
}

/// The rows and the last line of a systress file.
fn read_systress(text: &str, between: char) -> (BTreeMap<u64, u64>, Vec<String>) {
    let row = |line: &str| {
        let (us, count) = line.split_once(between).unwrap();
        (us.parse().unwrap(), count.parse().unwrap())
    };
    let rows =
        text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(row).collect();
    let last = text.lines().last().unwrap().trim_start_matches('#').trim();
    let cells = last.split([',', ' ']).filter(|cell| !cell.is_empty()).map(String::from).collect();
    (rows, cells)
}

#[test]
fn systress_exports_contain_histogram_and_summary() {
    for (format, between) in [(Format::Systress, ' '), (Format::SystressCsv, ',')] {
        let bundle = open("good");
        let files = export_files(&bundle, format).unwrap();
        for ((name, bytes), (_, series)) in files.iter().zip(bundle.all_series()) {
            let (rows, cells) = read_systress(std::str::from_utf8(bytes).unwrap(), between);
            let data = &series.state.data;
            let bins: Vec<u64> = rows.values().copied().collect();
            assert_eq!(bins, data.exact.bins, "{name}");
            assert_eq!(rows.keys().copied().collect::<Vec<_>>(), (0..=1_000).collect::<Vec<_>>());
            assert_eq!(cells[2], data.sample_count().to_string());
            assert_eq!(cells[3], (data.min.unwrap().ns() / 1_000).to_string());
            assert_eq!(cells[6], data.exact.inside_count().to_string());
            let mean: f64 = rows.iter().map(|(us, n)| us * n).sum::<u64>() as f64
                / data.exact.inside_count() as f64;
            assert_eq!(cells[7], format!("{mean:.2}"));
        }
        let names: Vec<&str> =
            files.iter().map(|(name, _)| name.split('.').next().unwrap()).collect();
        assert_eq!(
            names,
            [
                "000-timer_thread00",
                "000-timer_thread01",
                "001-timer_thread00",
                "001-timer_thread01"
            ]
        );
    }
    let lossy = export_files(&open("lossy"), Format::Systress).unwrap();
    assert_eq!(lossy[0].0, "timer_thread00.txt");
    let summary: String = String::from_utf8(lossy[0].1.clone())
        .unwrap()
        .lines()
        .skip(1_001)
        .collect::<Vec<_>>()
        .join("\n");
    insta::assert_snapshot!(summary, @r#"
    #
    # SUMMARY (latencies in us; columns ending in _H are of the samples within the histogram)
    #      Index        TID    Samples      L_min      L_max      L_avg  Samples_H    L_avg_H    L_med_H    L_std_H   L_mode_H
    #          0       4000       3000          2       7300      10.99       2997       6.94          5      12.41          3
    "#);
}

#[test]
fn the_stream_of_systress_is_one_data_set_a_series_for_gnuplot() {
    let script = text("good", Format::Systress);
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data.txt");
    std::fs::write(&data, script).unwrap();
    let commands = format!(
        "set terminal dumb; plot for [i=0:3] '{0}' index i using 1:2 with steps; stats '{0}' \
         using 1:2 nooutput; print STATS_blocks",
        data.display()
    );
    if let Some((success, sentence)) = run("gnuplot", &["-e", &commands], b"") {
        assert!(success, "{sentence}");
        assert!(sentence.trim_end().ends_with('4'), "{sentence}");
    }
}

/// The data of a series that cyclictest's formats preserve: bins below `end`, overflows, count,
/// minimum and maximum in whole µs.
fn essence(series: &Series, end: i64) -> (BTreeMap<i64, u64>, u64, u64, i64, i64) {
    let data = &series.state.data;
    let mut bins: BTreeMap<i64, u64> = data
        .exact
        .occupied_bins()
        .map(|(edge, n)| (edge.ns(), n))
        .filter(|(edge, _)| *edge < end)
        .collect();
    if data.exact.below > 0 {
        *bins.entry(0).or_default() += data.exact.below;
    }
    let beyond = data.sample_count() - bins.values().sum::<u64>();
    let whole =
        |latency: Option<punctual_core::Nanos>| latency.map_or(0, |l| l.ns().max(0) / 1_000);
    (bins, beyond, data.sample_count(), whole(data.min), whole(data.max))
}

#[test]
fn cyclictest_exports_are_imported_unchanged() {
    for name in ["good", "cut-off", "lossy", "imported"] {
        for format in [Format::CyclictestJson, Format::CyclictestHistogram] {
            let place = tempfile::tempdir().unwrap();
            let directory = place.path().join("b");
            let bytes = exported(name, format);
            let options = ImportOptions { name: name.into(), ..ImportOptions::default() };
            import_results(
                &mut bytes.as_slice(),
                &directory,
                &options,
                punctual_stats::summarize_bundle,
            )
            .unwrap();
            let (before, after) = (open(name), Bundle::open(&directory).unwrap());
            // The text has one range for all threads; one of the lossy ones overflows from 21 µs
            // on.
            let end = if name == "lossy" && format == Format::CyclictestHistogram {
                21_000
            } else {
                i64::MAX
            };
            let essences = |bundle: &Bundle| {
                bundle.all_series().map(|(_, s)| essence(s, end)).collect::<Vec<_>>()
            };
            assert_eq!(essences(&after), essences(&before), "{name} {}", format.name());
        }
    }
}

#[test]
fn json_and_xml_exports_are_parsed_by_python() {
    for name in BUNDLES {
        for format in [Format::Json, Format::CyclictestJson] {
            if let Some((success, sentence)) = run(
                "python3",
                &["-c", "import json,sys; json.load(sys.stdin)"],
                &exported(name, format),
            ) {
                assert!(success, "{name} {}: {sentence}", format.name());
            }
        }
        let count = "import sys; import xml.etree.ElementTree as e; \
                     print(len(e.parse(sys.stdin.buffer).findall('.//testcase')))";
        if let Some((success, sentence)) =
            run("python3", &["-c", count], &exported(name, Format::Junit))
        {
            let stated: usize =
                open(name).all_series().map(|(_, series)| series.meta.requirements.len()).sum();
            // And one for each other reason against the verdict.
            let summary = punctual_stats::summarize_bundle(&open(name));
            let is_other = |reason: &&Reason| !matches!(reason, Reason::Requirement { .. });
            let stated = stated + summary.verdict.adverse_reasons().filter(is_other).count();
            assert!(success && sentence.trim() == stated.to_string(), "{name}: {sentence}");
        }
    }
}

#[test]
fn the_json_export_is_the_summary() {
    for name in BUNDLES {
        let read: Summary = serde_json::from_str(&text(name, Format::Json)).unwrap();
        assert!(
            read == punctual_stats::summarize_bundle(&open(name)),
            "{name} is not read as it was written"
        );
    }
}

#[test]
fn gnuplot_draws_the_exported_script_without_executing_names() {
    for name in BUNDLES {
        let draw = ["-e", "set terminal svg", "-"];
        let Some((success, sentence)) = run("gnuplot", &draw, &exported(name, Format::Gnuplot))
        else {
            return;
        };
        let drawn = open(name)
            .all_series()
            .filter(|(_, series)| series.state.data.exact.inside_count() > 0)
            .count();
        assert!(success, "{name}: {sentence}");
        assert_eq!(sentence.matches("<g id=\"gnuplot_plot_").count(), drawn, "{name}");
        assert!(!sentence.contains("uid="), "`id` was run");
    }
}

#[test]
fn the_csv_export_contains_every_kept_sample() {
    for name in ["good", "cut-off", "lossy", "hostile"] {
        let python = "import csv,sys; rows=list(csv.reader(sys.stdin)); assert all(len(r)==8 for \
                      r in rows); print(len(rows)-1, sum(int(r[5]) for r in rows[1:]))";
        let samples: Vec<Sample> = open(name)
            .all_series()
            .flat_map(|(_, series)| series.load_log().unwrap().samples)
            .collect();
        let sum: i128 = samples.iter().map(|s| i128::from(s.latency().ns())).sum();
        if let Some((success, sentence)) =
            run("python3", &["-c", python], &exported(name, Format::Csv))
        {
            assert!(success, "{name}: {sentence}");
            assert_eq!(sentence.trim(), format!("{} {sum}", samples.len()), "{name}");
        }
    }
    let head: Vec<String> = text("good", Format::Csv).lines().take(3).map(String::from).collect();
    insta::assert_snapshot!(head.join("\n"), @r#"
    phase,series,seq,due_ns,woke_ns,latency_ns,cpu,timebase
    idle,timer/cpu0,0,5000000000000,5000000001911,1911,0,
    idle,timer/cpu0,1,5000001000000,5000001005069,5069,0,
    "#);
    insta::assert_snapshot!(text("lossy", Format::CsvSummary), @r#"
    phase,series,cpus,scheduling,real_time,count,min_ns,mean_ns,max_ns,stddev_ns,p50_ns,p75_ns,p90_ns,p95_ns,p99_ns,p99.9_ns,p99.99_ns,p99.999_ns,overruns,skipped,lost,above_range,negative,timebase
    main,overruns,0,SCHED_FIFO 80,true,3000,2501,10994.393,7300000,140862.511,5347,8191,12183,15351,28543,,,,10,10,0,3,0,
    main,dropped,1,SCHED_FIFO 80,true,2000,2501,7129.256,265975,10107.859,5199,8083,12303,15055,24255,,,,0,0,130,0,0,
    main,negative,2,SCHED_FIFO 80,true,1000,-1000000,6176.470,146340,32967.946,5283,8187,12503,15799,27679,,,,0,0,0,24,2,
    main,time-sharing,3,SCHED_OTHER,false,1000,0,4828.000,192000,9226.181,4001,8003,8003,12007,24015,,,,0,0,0,0,0,
    main,empty,3,SCHED_FIFO 80,true,0,,,,,,,,,,,,,0,0,0,0,0,
    "#);
}

#[test]
fn the_hdr_log_is_read_by_its_own_reader() {
    for name in BUNDLES {
        let (bundle, bytes) = (open(name), exported(name, Format::Hdr));
        let mut read: Vec<(String, Histogram<u64>)> = Vec::new();
        for entry in IntervalLogIterator::new(&bytes) {
            if let LogEntry::Interval(interval) = entry.unwrap() {
                use base64::prelude::{BASE64_STANDARD, Engine};
                let encoded = BASE64_STANDARD.decode(interval.encoded_histogram()).unwrap();
                let tag = interval.tag().unwrap().as_str().to_owned();
                read.push((tag, Deserializer::new().deserialize(&mut encoded.as_slice()).unwrap()));
            }
        }
        let plain: Vec<&Histogram<u64>> =
            read.iter().filter(|(tag, _)| !tag.ends_with("/corrected")).map(|(_, h)| h).collect();
        let expected: Vec<&Histogram<u64>> =
            bundle.all_series().map(|(_, s)| &s.state.data.whole).collect();
        assert_eq!(plain, expected, "{name}");
    }
}

#[test]
fn parquet_exports_are_read_back_exactly() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    for name in ["good", "lossy", "hostile"] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&exported(name, Format::Parquet)).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let mut rows = reader.get_row_iter(None).unwrap();
        for (phase, series) in open(name).all_series() {
            for sample in series.load_log().unwrap().samples {
                let row = rows.next().unwrap().unwrap();
                assert_eq!(
                    (row.get_string(0).unwrap().as_str(), row.get_string(1).unwrap().as_str()),
                    (phase, series.meta.name.as_str())
                );
                assert_eq!(
                    (row.get_ulong(2).unwrap(), row.get_long(3).unwrap()),
                    (sample.seq, sample.due.ns())
                );
                assert_eq!(
                    (row.get_long(4).unwrap(), row.get_long(5).unwrap()),
                    (sample.woke.ns(), sample.latency().ns())
                );
                assert_eq!(row.get_uint(6).unwrap(), sample.cpu);
            }
        }
        assert!(rows.next().is_none());
    }
}

#[test]
fn verdicts_are_exported_for_lava_and_junit() {
    insta::assert_snapshot!(text("lossy", Format::Lava), @r#"
    # valid-main-dropped-samples: 130 of 2130 samples were lost (6.103 %)
    valid-main-dropped-samples fail
    # valid-main-time-sharing-scheduling: SCHED_FIFO 80 was requested, it ran as SCHED_OTHER
    valid-main-time-sharing-scheduling fail
    main-overruns-max-lt-1ms fail 7300.000 us
    main-overruns-p99-lt-100us pass 28.543 us
    main-overruns-overruns-eq-0 fail 10 count
    main-overruns-corrected-p99-lt-100us pass 54.495 us
    main-overruns-p99.999-lt-1ms unknown
    # main-dropped-max-lt-10ms: invalid: main/dropped: 130 of 2130 samples were lost (6.103 %)
    main-dropped-max-lt-10ms fail
    main-dropped-lost-eq-0 fail 130 count
    # main-time-sharing-max-lt-10ms: invalid: main/time-sharing: SCHED_FIFO 80 was requested, it ran as SCHED_OTHER
    main-time-sharing-max-lt-10ms fail
    main-empty-max-lt-1ms unknown
    "#);
    insta::assert_snapshot!(text("lossy", Format::Junit), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="lossy" tests="11" skipped="0" errors="6" failures="3">
        <testsuite name="main" tests="11" skipped="0" errors="6" failures="3">
            <testcase name="valid: samples" classname="main/dropped">
                <error message="main/dropped: 130 of 2130 samples were lost (6.103 %)" type="invalid"/>
            </testcase>
            <testcase name="valid: scheduling" classname="main/time-sharing">
                <error message="main/time-sharing: SCHED_FIFO 80 was requested, it ran as SCHED_OTHER" type="invalid"/>
            </testcase>
            <testcase name="max &lt; 1ms" classname="main/overruns">
                <failure message="measured 7300.000 us" type="not-met"/>
            </testcase>
            <testcase name="p99 &lt; 100us" classname="main/overruns"/>
            <testcase name="overruns == 0" classname="main/overruns">
                <failure message="measured 10" type="not-met"/>
            </testcase>
            <testcase name="corrected p99 &lt; 100us" classname="main/overruns"/>
            <testcase name="p99.999 &lt; 1ms" classname="main/overruns">
                <error message="p99.999 needs 1000000 samples and there are 3000" type="undecided"/>
            </testcase>
            <testcase name="max &lt; 10ms" classname="main/dropped">
                <error message="main/dropped: 130 of 2130 samples were lost (6.103 %)" type="invalid"/>
            </testcase>
            <testcase name="lost == 0" classname="main/dropped">
                <failure message="measured 130" type="not-met"/>
            </testcase>
            <testcase name="max &lt; 10ms" classname="main/time-sharing">
                <error message="main/time-sharing: SCHED_FIFO 80 was requested, it ran as SCHED_OTHER" type="invalid"/>
            </testcase>
            <testcase name="max &lt; 1ms" classname="main/empty">
                <error message="nothing was measured" type="undecided"/>
            </testcase>
        </testsuite>
    </testsuites>
    "#);
    let hostile = text("hostile", Format::Lava);
    assert!(
        hostile.is_ascii()
            && hostile
                .lines()
                .all(|line| line.starts_with('#') || matches!(line.split(' ').count(), 2 | 4)),
        "{hostile}"
    );
}

/// Every status, figures with their unit, and no foreign name that is not a valid name.
#[test]
fn a_submission_to_kcidb_holds_every_verdict() {
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&exported(name, Format::Kcidb)).unwrap()
    };
    let lossy = read("lossy");
    let tests = lossy["tests"].as_array().unwrap();
    let lines: Vec<String> = tests
        .iter()
        .map(|test| {
            let number = &test["number"];
            let figure = if number.is_null() { String::new() } else { format!(" {number}") };
            let text = |key: &str| test[key].as_str().unwrap().to_owned();
            format!("{} {}{figure}", text("path"), text("status"))
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    punctual.lossy.valid.main-dropped.samples MISS
    punctual.lossy.valid.main-time-sharing.scheduling MISS
    punctual.lossy.main.overruns.max-lt-1ms FAIL {"prefix":"metric","unit":"s","value":0.0073}
    punctual.lossy.main.overruns.p99-lt-100us PASS {"prefix":"metric","unit":"s","value":0.000028543}
    punctual.lossy.main.overruns.overruns-eq-0 FAIL {"value":10.0}
    punctual.lossy.main.overruns.corrected-p99-lt-100us PASS {"prefix":"metric","unit":"s","value":0.000054495}
    punctual.lossy.main.overruns.p99_999-lt-1ms ERROR
    punctual.lossy.main.dropped.max-lt-10ms MISS
    punctual.lossy.main.dropped.lost-eq-0 FAIL {"value":130.0}
    punctual.lossy.main.time-sharing.max-lt-10ms MISS
    punctual.lossy.main.empty.max-lt-1ms ERROR
    punctual.lossy.main.negative.max DONE {"prefix":"metric","unit":"s","value":0.00014634}
    "#);
    assert_eq!(lossy["builds"][0]["architecture"], "x86_64");
    assert_eq!(lossy["builds"][0]["checkout_id"], lossy["checkouts"][0]["id"]);
    for name in BUNDLES {
        let document = read(name);
        let mut ids = std::collections::BTreeSet::new();
        for test in document["tests"].as_array().unwrap() {
            assert!(ids.insert(test["id"].as_str().unwrap().to_owned()), "{name}: {}", test["id"]);
            assert_eq!(test["build_id"], document["builds"][0]["id"], "{name}");
            let path = test["path"].as_str().unwrap();
            let is_node = |node: &str| {
                let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
                !node.is_empty() && node.bytes().all(fits)
            };
            assert!(path.split('.').all(is_node), "{name}: {path}");
        }
        assert!(!ids.is_empty(), "{name}");
        let raw = text(name, Format::Kcidb);
        assert!(!raw.chars().any(|c| c != '\n' && c.is_control()), "{name}");
        assert!(!raw.contains("\\u0000") && !raw.contains("null"), "{name}");
    }
}

/// KCIDB's own schema, if its library is installed.
#[test]
fn kcidb_takes_every_submission() {
    let found = run("python3", &["-c", "import kcidb_io"], b"");
    if !found.is_some_and(|(is_there, _)| is_there) {
        return println!("SKIPPED: kcidb_takes_every_submission lacks kcidb-io (pip)");
    }
    let script = "import json, sys; from kcidb_io import schema; \
                  data = json.load(sys.stdin); schema.V5_0.validate(data); \
                  schema.LATEST.upgrade(data); schema.LATEST.validate(data)";
    for name in BUNDLES {
        let (is_valid, message) =
            run("python3", &["-c", script], &exported(name, Format::Kcidb)).unwrap();
        assert!(is_valid, "{name}: {message}");
    }
}
