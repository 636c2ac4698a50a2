//! cyclictest's histogram text: `-h`, `-H` and `--histfile`, with every row and a total (up to rt-tests 2.6) or without rows of zeros
//! (from 2.7), and whatever the tool printed before it.

use super::Malformed;
use super::recorded::{self, MAX_COUNT, MAX_LATENCY, Recorded, Thread};
use punctual_core::Nanos;
use punctual_core::cpuset::MAX_CPUS;

/// What the lines told so far.
#[derive(Default)]
struct Reading {
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
    status: Vec<Status>,
    /// From `policy: fifo: loadavg: …`, the head of the live display.
    policy: Option<String>,
    break_thread: Option<u64>,
    break_value: Option<u64>,
}

/// A line of one number a thread.
struct Footer {
    line: usize,
    numbers: Vec<u64>,
}

/// `T: 0 ( 7753) P:80 I:1000 C:   2000 Min:     12 Act:   33 Avg:   22 Max:    1529`
struct Status {
    index: usize,
    tid: Option<i32>,
    priority: Option<u8>,
    interval: Option<u64>,
}

/// Reads the text.
pub fn parse(text: &str, nanoseconds: bool) -> Result<Recorded, Malformed> {
    let mut reading = Reading::default();
    let mut lines = 0;
    for (k, line) in text.lines().enumerate() {
        lines = k + 1;
        reading.line(lines, line.trim_end())?;
    }
    let recorded = reading.recorded(lines.max(1), if nanoseconds { Nanos(1) } else { Nanos::MICRO })?;
    recorded.check_size()?;
    Ok(recorded)
}

impl Reading {
    fn line(&mut self, at: usize, line: &str) -> Result<(), Malformed> {
        let line = without_cursor_moves(line);
        if let Some(comment) = line.strip_prefix('#') {
            return self.comment(at, comment.trim());
        }
        if let Some(status) = line.strip_prefix("T:") {
            if let Some(status) = Status::read(status) {
                self.status.retain(|before| before.index != status.index);
                self.status.push(status);
            }
            return Ok(());
        }
        if let Some(policy) = line.strip_prefix("policy:").and_then(|rest| rest.split(':').next()) {
            self.policy = Some(policy.trim().to_owned());
            return Ok(());
        }
        match self.begun {
            Some(_) if !line.trim().is_empty() => self.row(at, line),
            _ => Ok(()),
        }
    }

    fn comment(&mut self, at: usize, comment: &str) -> Result<(), Malformed> {
        if comment == "Histogram" {
            return match self.begun.replace(at) {
                Some(first) => Err(Malformed::at(
                    at,
                    format!("a second histogram; the first begins in line {first}: give one run at a time"),
                )),
                None => Ok(()),
            };
        }
        let Some((name, rest)) = comment.split_once(':') else { return Ok(()) };
        let (place, bound) = match name.trim() {
            "Total" => (&mut self.totals, u64::MAX),
            "Min Latencies" => (&mut self.min, MAX_LATENCY),
            "Avg Latencies" => (&mut self.mean, MAX_LATENCY),
            "Max Latencies" => (&mut self.max, MAX_LATENCY),
            "Histogram Overflows" => (&mut self.overflows, MAX_COUNT),
            "Thread Ids" => (&mut self.ids, u64::MAX),
            "Break thread" => return number_of(rest, at).map(|n| self.break_thread = Some(n)),
            "Break value" => return number_of(rest, at).map(|n| self.break_value = Some(n)),
            _ => return Ok(()),
        };
        let numbers: Vec<u64> = numbers(rest, at)?;
        numbers.iter().try_for_each(|n| recorded::bounded(*n, bound, name, at).map(drop))?;
        if place.replace(Footer { line: at, numbers }).is_some() {
            return Err(Malformed::at(at, format!("a second line `# {name}:`")));
        }
        Ok(())
    }

    fn row(&mut self, at: usize, line: &str) -> Result<(), Malformed> {
        if self.max.is_some() {
            return Err(Malformed::at(at, "something other than a comment stands after the histogram"));
        }
        let numbers = numbers(line, at)?;
        let [latency, counts @ ..] = numbers.as_slice() else { return Err(Malformed::at(at, "an empty row")) };
        let latency = recorded::bin(*latency, at)?;
        if self.last_row.is_none() {
            self.columns.resize_with(counts.len(), Vec::new);
        }
        if counts.len() != self.columns.len() || counts.is_empty() || counts.len() > MAX_CPUS + 1 {
            let expected = self.columns.len();
            return Err(Malformed::at(at, format!("{} counts in this row, {expected} in the first", counts.len())));
        }
        if self.last_row.is_some_and(|last| last >= latency) {
            return Err(Malformed::at(at, format!("the latency {latency} comes twice or out of order")));
        }
        self.last_row = Some(latency);
        for (column, count) in self.columns.iter_mut().zip(counts) {
            let count = recorded::bounded(*count, MAX_COUNT, "the count", at)?;
            if count > 0 {
                column.push((latency, count));
            }
        }
        Ok(())
    }

    fn recorded(mut self, lines: usize, unit: Nanos) -> Result<Recorded, Malformed> {
        self.begun
            .ok_or_else(|| Malformed::at(lines, "there is no line `# Histogram` in it (run cyclictest with -h)"))?;
        let cut = |what: &str| {
            Malformed::at(
                lines,
                format!("it ends without a line `# {what}:`: it was cut off, or its comments were removed"),
            )
        };
        let min = self.min.take().ok_or_else(|| cut("Min Latencies"))?;
        let mean = self.mean.take().ok_or_else(|| cut("Avg Latencies"))?;
        let max = self.max.take().ok_or_else(|| cut("Max Latencies"))?;
        let overflows = self.overflows.take().ok_or_else(|| cut("Histogram Overflows"))?;
        let threads = min.numbers.len();
        self.check_columns(threads, [&mean, &max, &overflows])?;
        self.check_totals()?;
        // Where rows of zeros are left out, the histogram may have been larger: how much is not told.
        let range = self.last_row.map(|last| last + 1);
        let mut bins = std::mem::take(&mut self.columns).into_iter();
        let thread = |index: usize| Thread {
            index,
            bins: bins.next().unwrap_or_default(),
            range,
            overflows: overflows.numbers[index],
            min: min.numbers[index],
            mean: mean.numbers[index] as f64,
            max: max.numbers[index],
            policy: self.policy.clone(),
            tid: self.id(index),
            ..self.status.iter().find(|status| status.index == index).map(Status::thread).unwrap_or_default()
        };
        let threads = (0..threads).map(thread).collect();
        let details = [("source".to_owned(), "cyclictest histogram text".to_owned())];
        Ok(Recorded { unit, threads, stopped: self.stopped(), details: details.into(), ..Recorded::default() })
    }

    /// The kernel's id of a thread.
    fn id(&self, index: usize) -> Option<i32> {
        let listed = self.ids.as_ref().and_then(|ids| ids.numbers.get(index)).and_then(|id| i32::try_from(*id).ok());
        listed.or_else(|| self.status.iter().find(|status| status.index == index).and_then(|status| status.tid))
    }

    /// The thread whose latency ended the run (`-b`), which is told by its id, and that latency.
    fn stopped(&self) -> Option<(String, u64)> {
        let (id, latency) = self.break_thread.zip(self.break_value)?;
        let ids = self.ids.as_ref().map_or(&[][..], |ids| &ids.numbers);
        let name = match ids.iter().position(|listed| *listed == id) {
            Some(index) => format!("thread {index}"),
            None => format!("thread with id {id}"),
        };
        Some((name, latency.min(MAX_LATENCY)))
    }

    /// Every line tells of the same threads; with `-H` there is one more column, the sum, which is checked and left out.
    fn check_columns(&mut self, threads: usize, footers: [&Footer; 3]) -> Result<(), Malformed> {
        let begun = self.begun.unwrap_or(1);
        if threads == 0 {
            return Err(Malformed::at(begun, "no thread has a minimum"));
        }
        for footer in footers {
            if footer.numbers.len() != threads && footer.numbers.len() != threads + 1 {
                return Err(Malformed::at(
                    footer.line,
                    format!("{} numbers for {threads} threads", footer.numbers.len()),
                ));
            }
        }
        match self.columns.len() {
            0 => self.columns.resize_with(threads, Vec::new),
            n if n == threads => {}
            n if n == threads + 1 => self.check_sums()?,
            n => return Err(Malformed::at(begun, format!("rows of {n} counts for {threads} threads"))),
        }
        Ok(())
    }

    fn check_sums(&mut self) -> Result<(), Malformed> {
        let sums = self.columns.pop().unwrap_or_default();
        let mut all = std::collections::BTreeMap::new();
        for (latency, count) in self.columns.iter().flatten() {
            *all.entry(*latency).or_insert(0u64) += count;
        }
        if !all.into_iter().eq(sums) {
            return Err(Malformed::at(self.begun.unwrap_or(1), "the last column is not the sum of the others"));
        }
        Ok(())
    }

    /// The total of each column, where there is one, is that of its rows.
    fn check_totals(&self) -> Result<(), Malformed> {
        let Some(totals) = &self.totals else { return Ok(()) };
        for (thread, (column, total)) in self.columns.iter().zip(&totals.numbers).enumerate() {
            let sum: u64 = column.iter().map(|(_, n)| n).sum();
            if sum != *total {
                return Err(Malformed::at(
                    totals.line,
                    format!("thread {thread} has {sum} cycles in its rows, not {total}"),
                ));
            }
        }
        Ok(())
    }
}

impl Status {
    fn read(line: &str) -> Option<Status> {
        let (index, rest) = line.split_once('(')?;
        let (tid, rest) = rest.split_once(')')?;
        let field = |name: &str| rest.split_once(name).and_then(|(_, rest)| rest.split_ascii_whitespace().next());
        Some(Status {
            index: index.trim().parse().ok()?,
            tid: tid.trim().parse().ok(),
            priority: field("P:").and_then(|p| p.parse().ok()).filter(|p| *p <= 99),
            interval: field("I:").and_then(|i| i.parse().ok()).filter(|i| (1..=MAX_LATENCY).contains(i)),
        })
    }

    fn thread(&self) -> Thread {
        Thread { priority: self.priority, interval: self.interval, ..Thread::default() }
    }
}

/// The line behind the escape sequence (`ESC [ 2 A`) with which the live display goes back to its first line.
fn without_cursor_moves(line: &str) -> &str {
    let Some(at) = line.rfind('\u{1b}') else { return line };
    let parameters = line[at + 1..].trim_start_matches(|c: char| c == '[' || c == ';' || c.is_ascii_digit());
    parameters.trim_start_matches(|c: char| c.is_ascii_alphabetic() && c != 'T')
}

/// Numbers separated by white space.
fn numbers(text: &str, line: usize) -> Result<Vec<u64>, Malformed> {
    text.split_ascii_whitespace().map(|word| number(word, line)).collect()
}

fn number_of(text: &str, line: usize) -> Result<u64, Malformed> {
    number(text.trim(), line)
}

fn number(word: &str, line: usize) -> Result<u64, Malformed> {
    let shown = || word.chars().take(40).collect::<String>();
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(Malformed::at(line, format!("{:?} is not a number", shown())));
    }
    word.parse().map_err(|_| Malformed::at(line, format!("{} is too large a number", shown())))
}
