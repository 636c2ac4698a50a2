//! The output of cyclictest, cyclicdeadline and jitterdebugger: status lines (`T: 0 …`), the
//! values of `-v`, and cyclictest's histogram (`-h`, `-H` and `--histfile`), with every row and a
//! total (up to rt-tests 2.6) or without rows of zeros (from 2.7).

use super::recorded::{ImportedFile, Thread};
use super::scan::{
    MAX_COUNT, MAX_LATENCY, ThreadProgress, add_bin, check_bin, check_bound, read_cpu,
    read_interval, read_number, read_numbers, read_priority, refuse_second_run, scan_lines,
    without_cursor_moves,
};
use super::{Malformed, Tool};
use punctual_core::cpuset::MAX_CPUS;
use punctual_core::{Finding, Nanos, Severity};
use std::collections::BTreeMap;

/// The content of the lines so far.
#[derive(Default)]
struct ThreadsReading {
    /// The line being read.
    at: usize,
    /// The line of `# Histogram`.
    begun: Option<usize>,
    /// Counts by column, each with its bins ascending; with `-H` the last column is the sum.
    columns: Vec<Vec<(u64, u64)>>,
    last_row: Option<u64>,
    totals: Option<Footer>,
    min: Option<Footer>,
    mean: Option<Footer>,
    max: Option<Footer>,
    overflows: Option<Footer>,
    ids: Option<Footer>,
    status: Vec<ThreadStatus>,
    /// The values of `-v` by thread.
    values: BTreeMap<usize, ThreadValues>,
    /// From `policy: fifo: loadavg: …`, the header of the live display.
    policy: Option<String>,
    break_thread: Option<u64>,
    break_value: Option<u64>,
    /// jitterdebugger's `Thread 614 on CPU 0 hit 51 us latency`: the kernel's id, and the latency.
    hit: Option<(u64, u64)>,
    nanoseconds: bool,
    /// The number of times that cyclictest reported keeping CPUs awake, which it does once per run.
    begins: usize,
}

/// The values of a thread: `       0:      17:      42`; the second number is its cycle.
#[derive(Default)]
struct ThreadValues {
    latencies: Vec<u64>,
    last_cycle: Option<u64>,
    missing: u64,
    /// The number of values below 0, and the lowest value.
    negative: u64,
    least: i64,
}

/// A line with one number per thread.
struct Footer {
    line: usize,
    numbers: Vec<u64>,
}

/// `T: 0 ( 7753) P:80 I:1000 C:   2000 Min:     12 Act:   33 Avg:   22 Max:    1529`; of
/// jitterdebugger `T: 0 (  614) A: 0 C:     13476 Min:         3 Avg:    3.08 Max:        10`.
struct ThreadStatus {
    index: usize,
    tid: Option<i32>,
    priority: Option<u8>,
    interval: Option<u64>,
    /// The CPU that a thread of jitterdebugger is bound to.
    cpu: Option<u32>,
    cycles: Option<u64>,
    min: Option<i64>,
    mean: Option<f64>,
    max: Option<i64>,
}

/// The layout of a text, as its lines show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ThreadsLayout {
    Histogram,
    /// With the values of `-v`.
    Values,
    Status,
}

/// The tool and the layout that a text looks like; `from` decides between cyclictest and
/// cyclicdeadline, as old versions lack the fields that distinguish them.
pub(crate) fn recognize_layout(text: &str, from: Option<Tool>) -> Option<(Tool, ThreadsLayout)> {
    let mut lines = text.lines().map(without_cursor_moves);
    let status = lines.find_map(|line| ThreadStatus::read(line.trim_start().strip_prefix("T:")?));
    if text.lines().any(|line| line.trim() == "# Histogram") {
        return Some((Tool::Cyclictest, ThreadsLayout::Histogram));
    }
    let named = from.filter(|tool| matches!(tool, Tool::Cyclictest | Tool::Cyclicdeadline));
    // cyclictest names priority and interval, cyclicdeadline no priority, and jitterdebugger a CPU
    // instead of both. Lines without an interval are of other programs, too.
    let tool = match &status {
        Some(status) if status.cpu.is_some() => Tool::Jitterdebugger,
        Some(status) if status.interval.is_none() => named?,
        Some(status) if status.priority.is_none() => named.unwrap_or(Tool::Cyclicdeadline),
        _ => named.unwrap_or(Tool::Cyclictest),
    };
    let values = text.lines().any(|line| read_value(line).is_some());
    match (values, status) {
        (true, _) => Some((tool, ThreadsLayout::Values)),
        (false, Some(_)) => Some((tool, ThreadsLayout::Status)),
        (false, None) => None,
    }
}

/// A line of `-v`: thread, cycle, value.
fn read_value(line: &str) -> Option<(u64, u64, i64)> {
    let mut parts = line.split(':').map(str::trim);
    let (thread, cycle, value) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if parts.next().is_some() || !whole(thread) || !whole(cycle) {
        return None;
    }
    Some((thread.parse().ok()?, cycle.parse().ok()?, value.parse().ok()?))
}

pub fn parse(
    text: &str,
    tool: Tool,
    layout: ThreadsLayout,
    nanoseconds: bool,
) -> Result<ImportedFile, Malformed> {
    let mut reading = ThreadsReading::default();
    let lines = scan_lines(text, |line| reading.read_line(line.trim_end()))?;
    let mut recorded = ImportedFile::new(tool, source_name(tool, layout));
    let nanoseconds = nanoseconds || reading.nanoseconds;
    recorded.unit = if nanoseconds { Nanos(1) } else { Nanos::MICRO };
    match layout {
        ThreadsLayout::Histogram => {
            reading.add_histogram(&mut recorded).map_err(|defect| defect.or_at(lines))?;
        }
        ThreadsLayout::Values | ThreadsLayout::Status => reading.add_threads(&mut recorded)?,
    }
    Ok(recorded)
}

fn source_name(tool: Tool, layout: ThreadsLayout) -> &'static str {
    match (tool, layout) {
        (Tool::Cyclicdeadline, _) => "cyclicdeadline status lines",
        (Tool::Jitterdebugger, _) => "jitterdebugger status lines",
        (_, ThreadsLayout::Histogram) => "cyclictest histogram text",
        (_, ThreadsLayout::Values) => "cyclictest -v",
        (_, ThreadsLayout::Status) => "cyclictest status lines",
    }
}

impl ThreadsReading {
    fn read_line(&mut self, line: &str) -> Result<(), Malformed> {
        self.at += 1;
        let line = without_cursor_moves(line);
        let line = line.trim_start();
        if let Some(comment) = line.strip_prefix('#') {
            return self.read_comment(comment.trim());
        }
        if let Some(status) = line.strip_prefix("T:") {
            return ThreadStatus::read(status).map_or(Ok(()), |status| self.add_status(status));
        }
        if let Some(hit) = line.strip_prefix("Thread ").and_then(read_hit) {
            let (tid, latency, nanoseconds) = hit;
            self.hit = self.hit.or(Some((tid, latency)));
            self.nanoseconds |= nanoseconds;
            return Ok(());
        }
        if let Some(policy) = line.strip_prefix("policy:").and_then(|rest| rest.split(':').next()) {
            self.policy = Some(policy.trim().to_owned());
            return Ok(());
        }
        match self.begun {
            Some(_) if !line.trim().is_empty() => self.read_row(line),
            Some(_) => Ok(()),
            None => read_value(line).map_or(Ok(()), |value| self.add_value(value)),
        }
    }

    /// A status line, which replaces the previous one of its thread.
    fn add_status(&mut self, status: ThreadStatus) -> Result<(), Malformed> {
        // The histogram is the tool's last output.
        refuse_second_run(self.max.is_some())?;
        if let Some(place) = self.status.iter().position(|before| before.index == status.index) {
            let before = self.status.remove(place);
            status.thread_progress().check_same_run(&before.thread_progress())?;
        }
        self.status.push(status);
        Ok(())
    }

    /// A value of `-v`. Values that the tool could not print in time leave gaps in the cycle count.
    fn add_value(&mut self, (thread, cycle, value): (u64, u64, i64)) -> Result<(), Malformed> {
        let index = usize::try_from(thread).ok().filter(|index| *index < MAX_CPUS);
        let index = index.ok_or_else(|| format!("no thread has the index {thread}"))?;
        // The timer expired early, or a clock was set: counted as 0 and reported.
        let latency = check_bound(value.max(0) as u64, MAX_LATENCY, "the value")?;
        check_bound(cycle, MAX_COUNT, "the cycle")?;
        let values = self.values.entry(index).or_default();
        values.negative += u64::from(value < 0);
        values.least = values.least.min(value);
        let expected = values.last_cycle.map_or(0, |last| last + 1);
        refuse_second_run(cycle == 0 && expected > 0)?;
        let missing = cycle.checked_sub(expected);
        values.missing +=
            missing.ok_or_else(|| format!("cycle {cycle} of thread {index} is out of order"))?;
        values.last_cycle = Some(cycle);
        values.latencies.push(latency);
        Ok(())
    }

    fn read_comment(&mut self, comment: &str) -> Result<(), Malformed> {
        if comment.starts_with("/dev/cpu_dma_latency set to") {
            self.begins += 1;
            return refuse_second_run(self.begins > 1);
        }
        if comment == "Histogram" {
            let second = |first| {
                format!(
                    "a second histogram; the first begins in line {first}: give one run at a time"
                )
            };
            return self.begun.replace(self.at).map_or(Ok(()), |first| Err(second(first).into()));
        }
        let Some((name, rest)) = comment.split_once(':') else { return Ok(()) };
        let (place, bound) = match name.trim() {
            "Total" => (&mut self.totals, u64::MAX),
            "Min Latencies" => (&mut self.min, MAX_LATENCY),
            "Avg Latencies" => (&mut self.mean, MAX_LATENCY),
            "Max Latencies" => (&mut self.max, MAX_LATENCY),
            "Histogram Overflows" => (&mut self.overflows, MAX_COUNT),
            "Thread Ids" => (&mut self.ids, u64::MAX),
            "Break thread" => return read_number(rest.trim()).map(|n| self.break_thread = Some(n)),
            "Break value" => return read_number(rest.trim()).map(|n| self.break_value = Some(n)),
            _ => return Ok(()),
        };
        let numbers = read_numbers(rest)?;
        numbers.iter().try_for_each(|n| check_bound(*n, bound, name).map(drop))?;
        if place.replace(Footer { line: self.at, numbers }).is_some() {
            return Err(format!("a second line `# {name}:`").into());
        }
        Ok(())
    }

    fn read_row(&mut self, line: &str) -> Result<(), Malformed> {
        if self.max.is_some() {
            return Err("the histogram is followed by something other than a comment".into());
        }
        let numbers = read_numbers(line)?;
        let [latency, counts @ ..] = numbers.as_slice() else {
            return Err("an empty row".into());
        };
        let latency = check_bin(*latency)?;
        if self.last_row.is_none() {
            self.columns.resize_with(counts.len(), Vec::new);
        }
        if counts.len() != self.columns.len() || counts.is_empty() || counts.len() > MAX_CPUS + 1 {
            let (counts, expected) = (counts.len(), self.columns.len());
            return Err(format!("{counts} counts in this row, {expected} in the first").into());
        }
        if self.last_row.is_some_and(|last| last >= latency) {
            return Err(format!("the latency {latency} comes twice or out of order").into());
        }
        self.last_row = Some(latency);
        for (column, count) in self.columns.iter_mut().zip(counts) {
            add_bin(column, latency, *count)?;
        }
        Ok(())
    }

    fn add_histogram(mut self, into: &mut ImportedFile) -> Result<(), Malformed> {
        let cut = |what: &str| {
            format!(
                "it ends without a line `# {what}:`: it was cut off, or its comments were removed"
            )
        };
        let min = self.min.take().ok_or_else(|| cut("Min Latencies"))?;
        let mean = self.mean.take().ok_or_else(|| cut("Avg Latencies"))?;
        let max = self.max.take().ok_or_else(|| cut("Max Latencies"))?;
        let overflows = self.overflows.take().ok_or_else(|| cut("Histogram Overflows"))?;
        let threads = min.numbers.len();
        let begun = self.begun.unwrap_or(1);
        let checked = self.check_columns(threads, [&mean, &max, &overflows]);
        checked.map_err(|defect| defect.or_at(begun))?;
        self.check_totals()?;
        // Without rows of zeros, the histogram may have been larger by an unknown amount.
        let range = self.last_row.map(|last| last + 1);
        let mut bins = std::mem::take(&mut self.columns).into_iter();
        let thread = |index: usize| Thread {
            bins: bins.next().unwrap_or_default(),
            range,
            overflows: overflows.numbers[index],
            min: min.numbers[index],
            mean: mean.numbers[index] as f64,
            max: max.numbers[index],
            ..self.base_thread(index)
        };
        into.threads = (0..threads).map(thread).collect();
        into.stopped = self.find_stop(into);
        Ok(())
    }

    /// The threads of status lines and values; complete values provide a distribution.
    fn add_threads(mut self, into: &mut ImportedFile) -> Result<(), Malformed> {
        let mut indices: Vec<usize> = self.status.iter().map(|status| status.index).collect();
        indices.extend(self.values.keys());
        indices.sort_unstable();
        indices.dedup();
        for index in indices {
            let mut values = self.values.remove(&index).unwrap_or_default();
            let status = self.status.iter().find(|status| status.index == index);
            let of_status = status.map(|status| status.status_figures(index)).transpose()?;
            let cycles = of_status.as_ref().map(|(cycles, ..)| *cycles);
            // Values are complete unless the file shows a gap: the tool loses the newest when it
            // ends.
            let complete = values.missing == 0
                && cycles.is_none_or(|cycles| cycles == values.latencies.len() as u64);
            let base_thread = self.base_thread(index);
            let thread = match of_status {
                Some((cycles, min, mean, max)) if !complete || values.latencies.is_empty() => {
                    Thread { undistributed: cycles, min, mean, max, ..base_thread }
                }
                of_status => {
                    let thread = Thread::of_values(index, std::mem::take(&mut values.latencies));
                    let (min, max) =
                        of_status.map_or((thread.min, thread.max), |(_, min, _, max)| (min, max));
                    let mean = of_status.map_or(thread.mean, |(_, _, mean, _)| mean);
                    Thread {
                        bins: thread.bins,
                        beyond: thread.beyond,
                        min,
                        mean,
                        max,
                        ..base_thread
                    }
                }
            };
            if values.missing > 0 {
                into.findings.push(missing_values(&thread, values.missing));
            }
            let status_min =
                status.filter(|_| thread.cycle_count() > 0).and_then(|status| status.min);
            let smallest_value = values.least.min(status_min.unwrap_or(0));
            if smallest_value < 0 {
                into.findings.push(negative_values(
                    &thread,
                    values.negative.max(1),
                    smallest_value,
                ));
            }
            into.threads.push(thread);
        }
        into.stopped = self.find_stop(into);
        Ok(())
    }

    /// The properties of a thread besides its figures.
    fn base_thread(&self, index: usize) -> Thread {
        let status = self.status.iter().find(|status| status.index == index);
        Thread {
            index,
            policy: status.map_or(self.policy.clone(), |status| self.policy_of(status)),
            cpu: status.and_then(|status| status.cpu),
            tid: self.thread_id(index),
            priority: status.and_then(|status| status.priority),
            interval: status.and_then(|status| status.interval),
            ..Thread::default()
        }
    }

    /// cyclictest's header names one policy, or two if some threads have no priority
    /// (`fifo/other`). jitterdebugger always uses SCHED_FIFO and fails without permission.
    fn policy_of(&self, status: &ThreadStatus) -> Option<String> {
        if status.cpu.is_some() {
            return Some("fifo".into());
        }
        let head = self.policy.as_deref()?;
        let policy = match head.split_once('/') {
            Some((_, second)) if status.priority == Some(0) => second,
            Some((first, _)) => first,
            None => head,
        };
        Some(policy.to_owned())
    }

    /// The kernel's id of a thread.
    fn thread_id(&self, index: usize) -> Option<i32> {
        let listed = self
            .ids
            .as_ref()
            .and_then(|ids| ids.numbers.get(index))
            .and_then(|id| i32::try_from(*id).ok());
        listed.or_else(|| {
            self.status.iter().find(|status| status.index == index).and_then(|status| status.tid)
        })
    }

    /// The thread whose latency ended the run (`-b`), found by its id, and that latency.
    fn find_stop(&self, into: &ImportedFile) -> Option<(String, Nanos)> {
        let (id, latency) = self.hit.or(self.break_thread.zip(self.break_value))?;
        let listed =
            self.ids.as_ref().and_then(|ids| ids.numbers.iter().position(|listed| *listed == id));
        let of_status =
            || self.status.iter().find(|status| status.tid.is_some_and(|tid| tid as u64 == id));
        let name = match listed.or_else(|| of_status().map(|status| status.index)) {
            Some(index) => format!("thread {index}"),
            None => format!("thread with id {id}"),
        };
        Some((name, into.unit * latency.min(MAX_LATENCY) as i64))
    }

    /// Checks that every line has the same number of threads. With `-H` there is an additional
    /// column, the sum, which is checked and dropped.
    fn check_columns(&mut self, threads: usize, footers: [&Footer; 3]) -> Result<(), Malformed> {
        if threads == 0 {
            return Err("no thread has a minimum".into());
        }
        for footer in footers {
            if footer.numbers.len() != threads && footer.numbers.len() != threads + 1 {
                let reason = format!("{} numbers for {threads} threads", footer.numbers.len());
                return Err(Malformed::with_line(footer.line, reason));
            }
        }
        match self.columns.len() {
            0 => self.columns.resize_with(threads, Vec::new),
            n if n == threads => {}
            n if n == threads + 1 => self.check_sums()?,
            n => return Err(format!("rows of {n} counts for {threads} threads").into()),
        }
        Ok(())
    }

    fn check_sums(&mut self) -> Result<(), Malformed> {
        let sums = self.columns.pop().unwrap_or_default();
        let mut total_bins = BTreeMap::new();
        for (latency, count) in self.columns.iter().flatten() {
            *total_bins.entry(*latency).or_insert(0u64) += count;
        }
        match total_bins.into_iter().eq(sums) {
            true => Ok(()),
            false => Err("the last column is not the sum of the others".into()),
        }
    }

    /// Checks that the total of each column, if present, is the sum of its rows.
    fn check_totals(&self) -> Result<(), Malformed> {
        let Some(totals) = &self.totals else { return Ok(()) };
        for (thread, (column, total)) in self.columns.iter().zip(&totals.numbers).enumerate() {
            let sum: u64 = column.iter().map(|(_, n)| n).sum();
            if sum != *total {
                let reason = format!("thread {thread} has {sum} cycles in its rows, not {total}");
                return Err(Malformed::with_line(totals.line, reason));
            }
        }
        Ok(())
    }
}

/// Values missing in the file: the status line's figures cover all cycles, and no distribution
/// exists.
fn missing_values(thread: &Thread, missing: u64) -> Finding {
    let kept = thread.undistributed == 0;
    let message = match kept {
        true => "the tool did not print every value: the figures are of those that it printed",
        false => "the tool did not print every value: there is no distribution",
    };
    Finding::new("values-missing", Severity::Warning, thread.series_name(), message)
        .with_evidence(format!(
            "{}: {missing} cycles are missing between its values",
            thread.series_name()
        ))
        .with_remedy("let the tool keep a histogram (cyclictest: -h), which loses nothing")
}

/// Latencies below 0: the clock was set, or a timer expired early.
fn negative_values(thread: &Thread, count: u64, least: i64) -> Finding {
    let name = thread.series_name();
    let message = "negative latencies are invalid and count as 0: minimum, mean and median include \
                   invalid samples";
    Finding::new("negative-latencies", Severity::Warning, name.clone(), message)
        .with_evidence(format!(
            "{name}: at least {count} of {}, down to {least}",
            thread.cycle_count()
        ))
        .with_remedy("measure with CLOCK_MONOTONIC (cyclictest: without -c 1)")
}

/// `614 on CPU 0 hit 51 us latency`: the kernel's id, the latency, and whether it is in ns. The CPU
/// is the thread's number.
fn read_hit(rest: &str) -> Option<(u64, u64, bool)> {
    let (tid, rest) = rest.split_once(" on CPU ")?;
    let mut words = rest.split_once(" hit ")?.1.split(' ');
    let (latency, unit) = (words.next()?.parse().ok()?, words.next()?);
    Some((tid.parse().ok()?, latency, unit == "ns"))
}

impl ThreadStatus {
    fn thread_progress(&self) -> ThreadProgress {
        let ThreadStatus { tid, cycles, max, .. } = *self;
        ThreadProgress { tid, cycles, max }
    }

    fn read(line: &str) -> Option<ThreadStatus> {
        let (index, rest) = line.split_once('(')?;
        let (tid, rest) = rest.split_once(')')?;
        // `C:   2000 Min:     12`: the name up to its colon, then the number.
        let field = |name: &str| {
            rest.split_once(name).and_then(|(_, rest)| rest.split_ascii_whitespace().next())
        };
        let signed = |name: &str| field(name).and_then(|text| text.parse::<i64>().ok());
        Some(ThreadStatus {
            index: index.trim().parse().ok().filter(|index| *index < MAX_CPUS)?,
            tid: tid.trim().parse().ok().filter(|tid| *tid >= 0),
            priority: field(" P:").and_then(read_priority),
            interval: field(" I:").and_then(read_interval),
            cpu: field(" A:").and_then(read_cpu),
            cycles: field(" C:").and_then(|c| c.parse().ok()),
            min: signed(" Min:"),
            mean: field(" Avg:").and_then(|mean| mean.parse().ok()).filter(|m: &f64| m.is_finite()),
            max: signed(" Max:"),
        })
    }

    /// Cycles, minimum, mean and maximum, which are meaningless without cycles.
    fn status_figures(&self, index: usize) -> Result<(u64, u64, f64, u64), Malformed> {
        let absent = |what: &str| format!("the status line of thread {index} has no `{what}:`");
        let cycles = self.cycles.ok_or_else(|| absent("C"))?;
        check_bound(cycles, MAX_COUNT, "the count of cycles")?;
        if cycles == 0 {
            return Ok((0, 0, 0.0, 0));
        }
        let figure = |value: Option<i64>, what: &str| {
            let value = value.ok_or_else(|| absent(what))?;
            check_bound(value.max(0) as u64, MAX_LATENCY, what)
        };
        let (min, max) = (figure(self.min, "Min")?, figure(self.max, "Max")?);
        let mean = self.mean.ok_or_else(|| absent("Avg"))?.max(0.0);
        check_bound(mean as u64, MAX_LATENCY, "Avg")?;
        Ok((cycles, min, mean, max))
    }
}
