//! The output of `perf sched timehist` and `perf sched latency`: how long each thread was ready
//! without running. perf's wait time includes sleep and is not a latency: it is only in the table.
//!
//! ```text
//!            time    cpu  task name                       wait time  sch delay   run time
//!                         [tid/pid]                          (msec)     (msec)     (msec)
//!    38456.720806 [0001]  schbench[28634/28574]               4.917      4.768      1.004
//! ```

use super::recorded::{ImportedFile, Thread, UNKNOWN_MIN, file_note, file_warning, make_table};
use super::scan::{MAX_COUNT, clip_text, read_bounded, read_microseconds, scan_lines};
use super::{Malformed, TextReader, Tool};
use punctual_core::notes::{Cell, Table};
use punctual_core::{Finding, Nanos};
use std::collections::BTreeMap;

pub(super) const READER: TextReader = TextReader {
    what: "text of perf sched",
    recognize: |text| recognize_layout(text).map(|_| Tool::PerfSched),
    parse: |text, _, _| parse(text, recognize_layout(text).unwrap_or(SchedLayout::Latency)),
    may_lack_unit: false,
};

/// The maximum number of threads kept: those with the longest delays.
const MAX_THREADS: usize = 256;
/// The maximum number of threads and switches read.
const MAX_READ: usize = 1 << 16;
const MAX_SWITCHES: usize = 1 << 24;
const MAX_LINE: usize = 4_096;

/// The perf command that printed the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchedLayout {
    Timehist,
    Latency,
}

fn recognize_layout(text: &str) -> Option<SchedLayout> {
    let has = |line: &str, all: &[&str]| all.iter().all(|part| line.contains(part));
    text.lines().take(1_000).find_map(|line| {
        if has(line, &["task name", "wait time", "sch delay"]) {
            Some(SchedLayout::Timehist)
        } else if has(line, &["Task", "Runtime ms", "delay ms", "|"]) {
            Some(SchedLayout::Latency)
        } else {
            None
        }
    })
}

/// The figures of a thread, times in µs.
#[derive(Default)]
struct SchedTask {
    name: String,
    delays: Vec<u64>,
    /// For `latency`: the number of switches, and the mean of the delays.
    stated: Option<(u64, f64)>,
    longest: u64,
    /// When and where the longest delay ended.
    place: String,
    longest_wait: u64,
}

fn parse(text: &str, layout: SchedLayout) -> Result<ImportedFile, Malformed> {
    let mut tasks: BTreeMap<String, SchedTask> = BTreeMap::new();
    let mut switches = 0;
    let lines = scan_lines(text, |line| {
        let read = match layout {
            SchedLayout::Timehist => read_switch(line),
            SchedLayout::Latency => read_total(line)?,
        };
        let Some((name, one)) = read else { return Ok(()) };
        switches += 1;
        if tasks.len() >= MAX_READ || switches > MAX_SWITCHES {
            return Err("more threads or switches than are read".into());
        }
        let task = tasks.entry(name.clone()).or_default();
        if one.longest >= task.longest || task.name.is_empty() {
            (task.longest, task.place) = (one.longest, one.place);
        }
        task.name = name;
        task.longest_wait = task.longest_wait.max(one.longest_wait);
        task.delays.extend(one.delays);
        task.stated = one.stated;
        Ok(())
    })?;
    if tasks.is_empty() {
        return Err(Malformed::with_line(lines, "there is no thread in it"));
    }
    let mut tasks: Vec<SchedTask> = tasks.into_values().collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(task.longest));
    let source = match layout {
        SchedLayout::Timehist => "perf sched timehist",
        SchedLayout::Latency => "perf sched latency",
    };
    let mut into = ImportedFile::new(Tool::PerfSched, source);
    if tasks.len() > MAX_THREADS {
        let message = "only the threads with the longest delays are kept";
        let evidence = format!("{MAX_THREADS} of {} threads", tasks.len());
        into.findings.push(file_warning("threads-left-out", message).with_evidence(evidence));
        tasks.truncate(MAX_THREADS);
    }
    into.findings.push(causes_elsewhere());
    into.notes.tables.push(delay_table(&tasks));
    into.threads = tasks.into_iter().enumerate().map(|(k, task)| task.into_thread(k)).collect();
    Ok(into)
}

impl SchedTask {
    fn into_thread(self, index: usize) -> Thread {
        let (name, tid) = (Some(self.name.clone()), parse_tid(&self.name));
        match self.stated {
            Some((undistributed, mean)) => Thread {
                index,
                name,
                tid,
                undistributed,
                min: UNKNOWN_MIN,
                mean,
                max: self.longest,
                ..Thread::default()
            },
            None => Thread { name, tid, ..Thread::of_values(index, self.delays) },
        }
    }
}

/// The id in `schbench[28634/28574]`, `rcu_preempt[18]`, `rustc:21104`.
fn parse_tid(name: &str) -> Option<i32> {
    let ids = name.rsplit_once(['[', ':'])?.1.trim_end_matches(']');
    ids.split('/').next()?.parse().ok()
}

/// A switch away from a thread: name, and the figures before its last run.
fn read_switch(line: &str) -> Option<(String, SchedTask)> {
    // A hostile line takes time quadratic in its length.
    let line = Some(line).filter(|line| line.len() <= MAX_LINE)?;
    let (time, rest) = line.trim_start().split_once(" [")?;
    let (cpu, rest) = rest.split_once(']')?;
    let (seconds, _) = time.trim().split_once('.')?;
    seconds.parse::<u64>().ok()?;
    let cpu: u32 = cpu.parse().ok()?;
    // The name ends with its ids and can contain blanks; a picture of the CPUs may precede it.
    let end = rest.match_indices(']').find_map(|(at, _)| {
        let mut figures = rest[at + 1..].split_ascii_whitespace();
        let three = [figures.next()?, figures.next()?, figures.next()?].map(read_milliseconds);
        Some((at + 1, [three[0]?, three[1]?, three[2]?]))
    });
    let (name, [wait, delay, _]) = match end {
        Some((end, figures)) => (rest[..end].rsplit("  ").next()?, figures),
        // The idle task has no id.
        None => return None,
    };
    let name = clip_text(name.trim(), 60);
    let place = format!("{} on CPU {cpu}", time.trim());
    let task = SchedTask {
        longest: delay,
        longest_wait: wait,
        place,
        delays: vec![delay],
        ..SchedTask::default()
    };
    Some((name, task))
}

/// A thread in the table of `perf sched latency`.
fn read_total(line: &str) -> Result<Option<(String, SchedTask)>, Malformed> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [name, _, switches, mean, longest, rest @ ..] = cells.as_slice() else { return Ok(None) };
    let figure = |cell: &str, name: &str| {
        let cell = cell.trim_start_matches(name).trim_start_matches(':');
        read_milliseconds(cell.trim().trim_end_matches("ms").trim())
    };
    let Some((mean, longest)) = figure(mean, "avg").zip(figure(longest, "max")) else {
        return Ok(None);
    };
    let switches = read_bounded(switches, MAX_COUNT, "the count of switches")?;
    let end = rest.iter().find_map(|cell| cell.strip_prefix("max end:"));
    let name = clip_text(name, 60);
    let place = end.map(|end| end.trim().to_owned()).unwrap_or_default();
    let stated = Some((switches, mean as f64));
    Ok(Some((name, SchedTask { longest, place, stated, ..SchedTask::default() })))
}

/// Milliseconds with three decimals, in µs.
fn read_milliseconds(word: &str) -> Option<u64> {
    let (whole, decimals) = word.split_once(['.', ','])?;
    (decimals.len() == 3)
        .then(|| read_microseconds(&format!("{whole}{decimals}")))
        .flatten()
        .map(|time| (time.ns() / 1_000) as u64)
}

fn delay_table(tasks: &[SchedTask]) -> Table {
    let columns = [("thread", ""), ("longest delay", "ns"), ("at", ""), ("longest wait", "ns")];
    let us = |us: u64| Cell::from(Nanos::MICRO * us as i64);
    let row = |task: &SchedTask| {
        let wait = task.stated.map_or_else(|| us(task.longest_wait), |_| Cell::Nothing);
        vec![task.name.as_str().into(), us(task.longest), task.place.as_str().into(), wait]
    };
    let title = "the longest scheduling delay of each thread; a wait includes sleep";
    make_table("sched-delays", title, &columns, tasks.iter().map(row).collect())
}

fn causes_elsewhere() -> Finding {
    let message = "a delay of `perf sched` has no cause: the table does not show which tasks ran \
                   meanwhile";
    file_note("causes-not-in-source", message).with_remedy(
        "`punctual explain perf.data` shows it, of the file that perf sched record wrote",
    )
}
