//! This program as other tools, read by the parsers of others.

use crate::common::{Place, text};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A place with the links, and the program by another name.
struct Named {
    place: Place,
}

impl Named {
    fn new() -> Named {
        let place = Place::with("");
        let made = place.line("names links");
        assert_eq!(made.status.code(), Some(0), "{}", text(&made));
        Named { place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn cyclictest(&self, line: &str) -> Output {
        Command::new(self.path("links/cyclictest"))
            .args(line.split_whitespace())
            .current_dir(self.place.path())
            .env("PUNCTUAL_BUNDLE", self.path("bundle"))
            .stdin(Stdio::null())
            .output()
            .expect("it starts")
    }
}

fn python(script: &str, arguments: &[&Path]) -> Option<String> {
    let ran = Command::new("python3").arg("-c").arg(script).args(arguments).output().ok()?;
    assert!(ran.status.success(), "{}", text(&ran));
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// How rteval reads the histogram: the steps of `_WorkloadCleanup` and `_parse_max_latencies` of
/// rteval/modules/measurement/cyclictest.py (kernelorg-mirror/utils_rteval_rteval), with its
/// options.
const RTEVAL: &str = r"
import sys
cpus, buckets, maxima, broke = int(sys.argv[2]), {}, None, None
for line in open(sys.argv[1], 'rb'):
    line = bytes.decode(line)
    if line.startswith('#'):
        if line.startswith('# Break value: '):
            broke = int(line.split(':')[1])
        elif line.startswith('# Max Latencies: '):
            maxima = [int(x) for x in line.split(':')[1].split()]
        continue
    values = line.split()
    if not values:
        continue
    index = int(values[0])
    for core in range(cpus):
        buckets[core] = buckets.get(core, 0) + int(values[core + 1])
print(len(maxima), 0 < sum(buckets.values()) <= 200, broke)
";

#[test]
fn rteval_reads_the_histogram() {
    let named = Named::new();
    let ran = named.cyclictest("-i1000 -qmu -h 3500 -p95 -t1 -a0 -l 200");
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let file = named.path("out");
    std::fs::write(&file, &ran.stdout).expect("written");
    let Some(read) = python(RTEVAL, &[&file, Path::new("1")]) else { return };
    assert_eq!(read, "1 True None\n");
    assert!(named.path("bundle/bundle.json").exists(), "a bundle is left");
}

/// How the test definitions of Linaro, which KernelCI (config/runtime/tests/preempt-rt.jinja2) and
/// LAVA run, read the table of text:
/// `parse_cyclictest` of automated/lib/parse_rt_tests_results.py (Linaro/test-definitions).
const LINARO: &str = r"
import re, sys
r = re.compile('[ :\n]+')
for line in open(sys.argv[1]).readlines():
    if not line.startswith('T:'):
        continue
    data, res = [x.lower() for x in r.split(line)], {}
    it = iter(data)
    for e in it:
        if e in ['t', 'min', 'avg', 'max']:
            res[e] = next(it)
    low, mean, high = (int(res[e]) for e in ['min', 'avg', 'max'])
    print('t{} {} {}'.format(res['t'], low <= mean, mean <= high))
";

/// Its newer form reads the file of `--json`: minimum, average and maximum of each thread.
const LINARO_JSON: &str = r"
import json, sys
for number, thread in json.load(open(sys.argv[1]))['thread'].items():
    print('t{} {}'.format(number, thread['min'] <= thread['avg'] <= thread['max']))
";

/// A pattern for the lines of the table as scripts have it (fields of cyclictest's `print_stat`).
const PATTERN: &str = r"
import re, sys
pattern = re.compile(r'T:\s*\d+\s*\(\s*\d+\)\s*P:\s*\d+\s*I:\s*\d+\s*C:\s*(\d+)\s*'
                     r'Min:\s*(\d+)\s*Act:\s*\d+\s*Avg:\s*(\d+)\s*Max:\s*(\d+)')
print(len(pattern.findall(open(sys.argv[1]).read())))
";

#[test]
fn the_test_definitions_of_linaro_read_the_table_and_the_json() {
    let named = Named::new();
    let json = named.path("out.json");
    let line = format!("-q -p 98 -i 1000 -t 2 -l 100 -m --json={}", json.display());
    let ran = named.cyclictest(&line);
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let file = named.path("out");
    std::fs::write(&file, &ran.stdout).expect("written");
    let Some(read) = python(LINARO, &[&file]) else { return };
    assert_eq!(read, "t0 True True\nt1 True True\n");
    assert_eq!(python(PATTERN, &[&file]).as_deref(), Some("2\n"));
    assert_eq!(python(LINARO_JSON, &[&json]).as_deref(), Some("t0 True\nt1 True\n"));
    let stored: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&json).expect("there")).expect("JSON");
    assert_eq!(stored["cmdline:"], format!("cyclictest {line}"));
    assert_eq!((&stored["num_threads"], &stored["return_code"]), (&2.into(), &0.into()));
    // The second thread has a longer interval, as there.
    let cycles = |thread: &str| stored["thread"][thread]["cycles"].as_u64();
    assert_eq!((cycles("0"), cycles("1")), (Some(100), Some(66)));
}

/// The lines with 9 for each number, each line once.
fn form(text: &str) -> Vec<String> {
    let blank = |c: char| if c.is_ascii_digit() { '9' } else { c };
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with("# Thread "))
        .map(|line| line.chars().map(blank).collect::<String>())
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .map(|line| (0..8).fold(line, |line, _| line.replace("99", "9")).replace("( ", "("))
        .collect();
    lines.dedup();
    lines
}

/// The lines are those of the program itself, number by number.
#[test]
fn the_output_has_the_form_of_cyclictest() {
    let named = Named::new();
    for line in [
        "-q -t 2 -l 20 -p 80",
        "-q -t 2 -l 20 -h 5 -p 80",
        "-q -t 2 -l 20 -H 5 -p 80",
        "-v -q -t 1 -l 5",
        "-q -N -l 5",
        "-q -b 1 -l 1000 -p 50",
    ] {
        let Ok(real) = Command::new("cyclictest").args(line.split_whitespace()).output() else {
            println!("SKIPPED: cyclictest is not installed");
            return;
        };
        let ours = named.cyclictest(line);
        assert_eq!(ours.status.code(), real.status.code(), "{line}: {}", text(&ours));
        let [ours, real] = [&ours.stdout, &real.stdout].map(|of| String::from_utf8_lossy(of));
        assert_eq!(form(&ours), form(&real), "{line}: {ours}\n{real}");
    }
    let refused = named.cyclictest("--smi -l 5");
    assert_eq!(refused.status.code(), Some(0), "as cyclictest ends");
    assert!(text(&refused).contains("unrecognized option '--smi'"), "{}", text(&refused));
}

/// Users of systress read of its output: the rows of each block by their columns, the shares of
/// the CPUs, and the sums of each result file's two columns, as gnuplot would use them.
const SYSTRESS: &str = r"
import re, sys
text = open(sys.argv[1]).read()
blocks = text.split('      Index')[1:]
rows = [line.split() for line in blocks[-1].splitlines()[1:3]]
for index, tid, samples, low, high, last, mean in rows:
    lines = open('timer_thread%02d.txt' % int(index)).read().splitlines()
    data = [tuple(map(int, line.split())) for line in lines if not line.startswith('#')]
    summary = lines[-1].lstrip('#').split()
    inside = sum(count for _, count in data)
    average = sum(us * count for us, count in data) / inside
    print(index, summary[:5] == [index, tid, samples, low, high], int(summary[6]) == inside,
          summary[7] == '%.2f' % average, len(data), int(low) <= int(mean) <= int(high))
cpus = re.findall(r'^CPU#\d+ : \d+\.\d%$', text, re.M)
alone = re.findall(r'^CPU : \d+\.\d%$', text, re.M)
print(len(blocks) >= 3, len(alone) >= 2, len(cpus) % len(alone) == 0)
print(text.splitlines()[-3:-1], text.splitlines()[-1].startswith('Total elapsed time: '))
";

#[test]
fn systress_by_its_name_prints_blocks_and_leaves_its_files() {
    let named = Named::new();
    let thread = |index: u32| {
        format!(
            "timer_thread[{index}] {{\n cpu_affinity 0\n lifetime.duration 900 ms\n \
             stats.histo_size 20 ms\n}}\n"
        )
    };
    let cfg = "main {\n stats.period 250 ms\n stats.cpu_load all\n}\n".to_owned();
    named.place.write("stress.cfg", (cfg + &thread(1) + &thread(3)).as_bytes());
    let run = |line: &str| {
        let mut command = Command::new(named.path("links/systress"));
        command.args(line.split_whitespace()).current_dir(named.place.path());
        command.stdin(Stdio::null()).output().expect("it starts")
    };
    let ran = run("-c stress.cfg -d 0");
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    std::fs::write(named.path("out"), &ran.stdout).expect("written");
    let mut python = Command::new("python3");
    let python = python.args(["-c", SYSTRESS, "out"]).current_dir(named.place.path());
    let Ok(read) = python.output() else { return };
    let right = "1 True True True 20001 True\n3 True True True 20001 True\nTrue True True\n\
                 [\"Statistics for timer_thread01 in 'timer_thread01.txt'\", \"Statistics for \
                 timer_thread03 in 'timer_thread03.txt'\"] True\n";
    assert_eq!(String::from_utf8_lossy(&read.stdout), right, "{}{}", text(&read), text(&ran));
    assert!(String::from_utf8_lossy(&run("-V").stdout).starts_with("systress "));
    assert_eq!(run("-c no-such.cfg").status.code(), Some(1));
    assert_eq!(run("-x").status.code(), Some(1));
}
