//! This program under the name cyclictest: its options, its output, its exit codes (rt-tests 2.4,
//! src/cyclictest/cyclictest.c).

use super::getopt::Takes::{Nothing, Perhaps, Value};
use super::getopt::{self, Known, Options, Unknown, leading_number, parse_cpus, parse_duration};
use super::{BUNDLE, carry_out, unused_path};
use crate::exit::Failure;
use crate::live::{self, TextFrames};
use crate::output;
use punctual_bundle::{Bundle, Outcome};
use punctual_core::{CpuSet, Nanos};
use punctual_plan::text::quote_toml;
use punctual_report::export::cyclictest_output::{CyclictestOutput, ShownThread};
use punctual_session::options::RunOptions;
use punctual_session::request::{self, ExperimentRequest};
use punctual_session::run::watcher::{RunWatcher, Snapshot};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The usage, with the options that are supported.
const HELP: &str = "cyclictest V 2.40 (punctual)
Usage:
cyclictest <options>

-a [CPUSET] --affinity     run thread #N on processor #N, or on CPUSET in turn
-b USEC  --breaktrace=USEC end when latency > USEC
-c CLOCK --clock=CLOCK     0 = CLOCK_MONOTONIC (default), 1 = CLOCK_REALTIME
         --default-system  do not suppress power management
-d DIST  --distance=DIST   distance of thread intervals in us, default=500
-D       --duration=TIME   length of the test run, with 'm', 'h', or 'd'
-h       --histogram=US    dump a latency histogram to stdout after the run
-H       --histofall=US    same as -h except with an additional summary column
         --histfile=<path> dump the latency histogram to <path> instead of stdout
-i INTV  --interval=INTV   base interval of thread in us default=1000
         --json=FILENAME   write final results into FILENAME, JSON formatted
         --laptop          as --default-system
         --latency=PM_QOS  value for /dev/cpu_dma_latency, default=0
-l LOOPS --loops=LOOPS     number of loops: default=0(endless)
         --mainaffinity=CPUSET  run the main thread on CPUSET
-m       --mlockall        lock current and future memory allocations
-M       --refresh_on_max  no effect
-N       --nsecs           print results in ns instead of us (default us)
-p PRIO  --priority=PRIO   priority of highest prio thread
         --policy=NAME     other, normal, batch, idle, fifo or rr
         --priospread      spread priority levels starting at specified value
-q       --quiet           print a summary only on exit
-r       --relative        use relative timer instead of absolute
-S       --smp             options -a -t and same priority of all threads
-t [NUM] --threads=NUM     number of threads; without NUM one per processor
-u       --unbuffered      no effect
-v       --verbose         output values: n:c:v n=tasknum c=count v=value in us
-x       --posix_timers    use POSIX timers instead of clock_nanosleep
";

/// Where the CPUs of the threads are from.
#[derive(Clone, PartialEq, Debug, Default)]
enum Pinned {
    /// Not pinned.
    #[default]
    No,
    /// Thread N on CPU N.
    Each,
    /// In turn on these.
    In(CpuSet),
}

/// The request.
#[derive(Clone, Debug, Default)]
pub struct Cyclictest {
    pinned: Pinned,
    /// `None`: 1; 0: one for each CPU.
    threads: Option<usize>,
    smp: bool,
    priority: u8,
    policy: Option<String>,
    spread: bool,
    interval: Option<u64>,
    distance: Option<u64>,
    loops: u64,
    duration: Option<Nanos>,
    histogram: Option<u64>,
    /// Whether the histogram has a column of all threads.
    of_all: bool,
    histogram_file: Option<String>,
    json: Option<String>,
    break_above: Option<u64>,
    realtime_clock: bool,
    relative: bool,
    posix_timer: bool,
    nanoseconds: bool,
    lock_memory: bool,
    /// Idle states are as the system has them.
    is_default_system: bool,
    /// The bound on the latency of idle states, in µs.
    dma_latency: u64,
    main_cpus: Option<CpuSet>,
    quiet: bool,
    verbose: bool,
    /// An option that makes no sense.
    wrong: Option<String>,
    online: CpuSet,
}

const KNOWN: &[Known<Cyclictest>] = &[
    Known('a', "affinity", Perhaps, |o, text| match text {
        "" => o.pinned = Pinned::Each,
        _ => match parse_cpus(text) {
            Ok(cpus) => o.pinned = Pinned::In(cpus),
            Err(why) => o.wrong = Some(why),
        },
    }),
    Known('b', "breaktrace", Value, |o, us| o.break_above = parse_nonzero(us)),
    Known('c', "clock", Value, |o, clock| o.realtime_clock = leading_number(clock) == 1),
    Known('d', "distance", Value, |o, us| o.distance = Some(leading_number(us))),
    Known('D', "duration", Value, |o, text| o.duration = parse_duration(text)),
    Known('h', "histogram", Value, |o, us| (o.histogram, o.of_all) = (parse_nonzero(us), false)),
    Known('H', "histofall", Value, |o, us| (o.histogram, o.of_all) = (parse_nonzero(us), true)),
    Known('i', "interval", Value, |o, us| o.interval = Some(leading_number(us))),
    Known('l', "loops", Value, |o, loops| o.loops = leading_number(loops)),
    Known('m', "mlockall", Nothing, |o, _| o.lock_memory = true),
    // This and -u change how the live table is drawn.
    Known('M', "refresh_on_max", Nothing, |_, _| {}),
    Known('N', "nsecs", Nothing, |o, _| o.nanoseconds = true),
    Known('p', "priority", Value, |o, text| match leading_number(text) {
        priority @ 0..=99 => o.priority = priority as u8,
        _ => o.wrong = Some("the priority is not 0 to 99".to_owned()),
    }),
    Known('q', "quiet", Nothing, |o, _| o.quiet = true),
    Known('r', "relative", Nothing, |o, _| o.relative = true),
    Known('S', "smp", Nothing, |o, _| o.smp = true),
    Known('t', "threads", Perhaps, |o, text| match (text, leading_number(text)) {
        ("", _) => o.threads = Some(0),
        (_, 0) => o.wrong = Some("there must be a thread".to_owned()),
        (_, threads) => o.threads = Some(threads as usize),
    }),
    Known('u', "unbuffered", Nothing, |_, _| {}),
    Known('v', "verbose", Nothing, |o, _| o.verbose = true),
    Known('x', "posix_timers", Nothing, |o, _| o.posix_timer = true),
    Known(' ', "default-system", Nothing, |o, _| o.is_default_system = true),
    Known(' ', "histfile", Value, |o, path| o.histogram_file = Some(path.to_owned())),
    Known(' ', "json", Value, |o, path| o.json = Some(path.to_owned())),
    Known(' ', "laptop", Nothing, |o, _| o.is_default_system = true),
    Known(' ', "latency", Value, |o, us| o.dma_latency = leading_number(us)),
    Known(' ', "mainaffinity", Value, |o, text| match parse_cpus(text) {
        Ok(cpus) => o.main_cpus = Some(cpus),
        Err(why) => o.wrong = Some(why),
    }),
    Known(' ', "policy", Value, |o, text| o.policy = Some(parse_policy(text))),
    Known(' ', "priospread", Nothing, |o, _| o.spread = true),
];

/// The number, unless it is 0.
fn parse_nonzero(text: &str) -> Option<u64> {
    Some(leading_number(text)).filter(|number| *number > 0)
}

/// Another word is SCHED_OTHER.
fn parse_policy(text: &str) -> String {
    let known_policies = ["batch", "idle", "fifo", "rr"];
    let word = known_policies.iter().find(|word| text.to_lowercase().starts_with(*word));
    (*word.unwrap_or(&"other")).to_owned()
}

/// Options of cyclictest that are refused as if they did not exist.
const REFUSED: &[&str] = &[
    "aligned",
    "dbg_cyclictest",
    "fifo",
    "help",
    "oscope",
    "resolution",
    "secaligned",
    "smi",
    "spike",
    "spike-nodes",
    "system",
    "tracemark",
    "numa",
];

/// Prints why an option is refused as cyclictest does: one that it does not know, or one that makes
/// no sense.
fn refuse_option(why: &str, is_unknown: bool) -> ExitCode {
    output::print_stderr(&format!("cyclictest: {why}\n"));
    let _ = output::print_stdout(HELP);
    ExitCode::from(u8::from(!is_unknown))
}

/// What this program does as cyclictest with these words.
pub fn run_as_cyclictest(words: &[String]) -> ExitCode {
    let command = ["cyclictest"].into_iter().chain(words.iter().map(String::as_str));
    let command = command.collect::<Vec<_>>().join(" ");
    let ended = match getopt::read(&Options(KNOWN, REFUSED), words) {
        Ok(options) => run_measurement(options, &command),
        Err(Unknown(why)) => return refuse_option(&why, true),
    };
    ended.unwrap_or_else(|failure| {
        output::print_error(&failure.render(false));
        ExitCode::FAILURE
    })
}

fn run_measurement(mut options: Cyclictest, command: &str) -> Result<ExitCode, Failure> {
    let online = request::online_cpus()?;
    match options.complete_options(&online) {
        Ok(remarks) => output::print_stderr(&remarks),
        Err(why) => return Ok(refuse_option(&why, false)),
    }
    // Without the variable, the bundle is removed with its directory.
    let (directory, kept) = match std::env::var_os(BUNDLE).filter(|path| !path.is_empty()) {
        Some(path) => (None, unused_path(PathBuf::from(path))?),
        None => {
            let directory = tempfile::tempdir().map_err(|why| {
                Failure::failed(format!("cannot make a temporary directory: {why}"))
            })?;
            let place = directory.path().join("bundle");
            (Some(directory), place)
        }
    };
    let run = RunOptions {
        output: Some(kept),
        quiet: true,
        repeat: 1,
        force: true,
        ..RunOptions::default()
    };
    let file = Path::new("cyclictest.toml");
    let experiment_request =
        ExperimentRequest::of_text(file, options.format_experiment().into_bytes(), &run);
    let (_, _, bundle) =
        carry_out(&experiment_request, &run, &online, output::stderr_messages(true), |_| {
            output::print_stdout(&options.format_opening())?;
            Ok(options.run_watcher())
        })?;
    let code = options.print_result(&bundle, command);
    drop(directory);
    code
}

/// Writes the text of a report to standard output, or to a file.
fn write_report(
    path: Option<&str>,
    write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let mut text = Vec::new();
    write(&mut text).map_err(Failure::failed)?;
    match path {
        Some(path) => output::write_to(Some(Path::new(path)), &text),
        None => output::print_stdout(&String::from_utf8_lossy(&text)),
    }
}

impl Cyclictest {
    /// Makes priority and policy fit, as rt-tests' process_options does.
    fn complete_options(&mut self, online: &CpuSet) -> Result<String, String> {
        if let Some(why) = self.wrong.take() {
            return Err(why);
        }
        if self.smp {
            (self.threads, self.pinned) = (Some(0), Pinned::Each);
        }
        self.online = online.clone();
        let highest = self.thread_count().saturating_add(1).min(99) as u8;
        let is_real_time = matches!(self.policy.as_deref(), Some("fifo" | "rr"));
        let mut remarks = String::new();
        if self.priority == 0 && (self.spread || is_real_time) {
            self.priority = highest;
            remarks += &format!("defaulting realtime priority to {highest}\n");
        }
        if self.priority > 0 && !is_real_time {
            if self.policy.is_some() {
                remarks += "policy and priority don't match: setting policy to SCHED_FIFO\n";
            }
            self.policy = Some("fifo".to_owned());
        }
        Ok(remarks)
    }

    /// A measure for each thread.
    fn format_experiment(&self) -> String {
        let threads = self.requested_threads();
        let mut text = String::from("[experiment]\nname = \"cyclictest\"\n");
        let mut line = |key: &str, value: String| {
            let _ = writeln!(text, "{key} = {value}");
        };
        line("memory_lock", self.lock_memory.to_string());
        let dma = match self.is_default_system {
            true => "leave".to_owned(),
            false => format!("{}us", self.dma_latency),
        };
        line("dma_latency", quote_toml(&dma));
        if let Some(cpus) = &self.main_cpus {
            line("cpus", quote_toml(&cpus.to_string()));
        }
        let is_endless = self.loops == 0 && self.duration.is_none();
        line("forever", is_endless.to_string());
        line("calibrate", "false".to_owned());
        let shortest = threads.iter().map(|thread| thread.interval).min().unwrap_or(1);
        for (number, thread) in threads.iter().enumerate() {
            line("[[measure]]\nname", quote_toml(&format!("t{number}")));
            line("kind", quote_toml("timer"));
            line("threads", "1".to_owned());
            line("period", quote_toml(&format!("{}us", thread.interval)));
            if let Some(cpus) = &thread.cpus {
                line("cpus", quote_toml(&cpus.to_string()));
            }
            // A thread without a priority cannot have a real-time policy.
            let policy = match (self.policy.as_deref(), thread.priority) {
                (None | Some("fifo" | "rr"), 0) => "other",
                (policy, _) => policy.unwrap_or("other"),
            };
            line("policy", quote_toml(policy));
            if ["fifo", "rr"].contains(&policy) {
                line("priority", thread.priority.to_string());
            }
            if self.realtime_clock {
                line("clock", quote_toml("realtime"));
            }
            let method = match (self.relative, self.posix_timer) {
                (_, true) => "posix-timer",
                (true, false) => "nanosleep-relative",
                (false, false) => "nanosleep-absolute",
            };
            line("method", quote_toml(method));
            // cyclictest ends with the thread of the shortest interval, or with the time.
            let us = u128::from(self.loops) * u128::from(shortest);
            match self.duration.filter(|of| us == 0 || of.ns() as u128 <= us * 1_000) {
                Some(duration) => line("duration", quote_toml(&duration.to_string())),
                None if is_endless => {}
                None => {
                    let loops = us / u128::from(thread.interval.max(1));
                    line("samples", loops.max(1).to_string());
                }
            }
            if let Some(us) = self.histogram {
                let (range, step) = if self.nanoseconds { ("ns", "1ns") } else { ("us", "1us") };
                let range = quote_toml(&format!("{us}{range}"));
                line("histogram", format!("{{ range = {range}, resolution = \"{step}\" }}"));
            }
            if let Some(us) = self.break_above {
                line("stop_above", quote_toml(&format!("{us}us")));
            }
        }
        text
    }

    fn format_opening(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            let _ = writeln!(text, "{words}");
        };
        if self.verbose {
            let cpus = self.online.iter().count();
            line(format!("Max CPUs = {cpus}\nOnline CPUs = {cpus}"));
        }
        if !self.is_default_system {
            line(format!("# /dev/cpu_dma_latency set to {}us", self.dma_latency));
        }
        if self.verbose {
            for (number, thread) in self.requested_threads().iter().enumerate() {
                line(format!("Thread {number} Interval: {}", thread.interval));
            }
        }
        text
    }

    fn run_watcher(&self) -> Box<dyn RunWatcher> {
        match self.has_live_table() {
            true => {
                let frames = TextFrames::new(|text| drop(output::print_stdout(text)));
                Box::new(LiveTable(self.clone(), frames))
            }
            false => live::stderr_watcher(true),
        }
    }

    fn print_result(&self, bundle: &Bundle, command: &str) -> Result<ExitCode, Failure> {
        let threads = self.requested_threads();
        let output = CyclictestOutput {
            bundle,
            threads: threads.iter().map(Thread::to_shown).collect(),
            nanoseconds: self.nanoseconds,
            rows: self.histogram.unwrap_or_default(),
            of_all: self.of_all,
            command,
        };
        write_report(None, |text| {
            if self.verbose {
                output.write_samples(text)?;
            }
            let has_table = match self.quiet {
                true => self.histogram.is_none(),
                false => !self.verbose,
            };
            if has_table {
                if !self.quiet {
                    write!(text, "{}", self.format_title())?;
                }
                output.write_threads(text)?;
            }
            if self.histogram.is_some() && self.histogram_file.is_none() {
                output.write_histogram(text)?;
            }
            let outcome = bundle.manifest.ending.as_ref().map(|ending| &ending.outcome);
            if let Some(Outcome::StoppedAbove { series, latency, .. }) = outcome {
                output.write_break(series, Nanos(*latency), text)?;
            }
            Ok(())
        })?;
        if let (Some(_), Some(file)) = (self.histogram, &self.histogram_file) {
            write_report(Some(file), |text| output.write_histogram(text))?;
        }
        if let Some(file) = &self.json {
            write_report(Some(file), |text| output.write_json(text))?;
        }
        let mut series = bundle.all_series().zip(&threads);
        let all_asked = series.all(|((_, of), thread)| of.meta.real_time || thread.priority == 0);
        if !all_asked {
            output::print_stderr("Unable to change scheduling policy!\n");
            output::print_stderr("either run as root or join realtime group\n");
        }
        Ok(ExitCode::from(u8::from(!all_asked)))
    }
}

/// The table of the threads, drawn over itself, on a terminal.
struct LiveTable(Cyclictest, TextFrames);

impl RunWatcher for LiveTable {
    fn show_snapshot(&mut self, snapshot: &Snapshot) {
        let mut text = self.0.format_title().into_bytes();
        let (threads, figures) = (self.0.requested_threads(), live::live_figures(snapshot));
        for (thread, of) in threads.iter().zip(&figures) {
            let _ = thread.to_shown().write_line(of, self.0.nanoseconds, &mut text);
        }
        let lines = figures.len().min(threads.len()) + 2;
        self.1.show_text(format!("{}\x1b[{lines}A", String::from_utf8_lossy(&text)));
    }

    fn on_run_end(&mut self) {
        self.1.finish();
    }
}

/// A thread, by its number.
struct Thread {
    cpus: Option<CpuSet>,
    /// In µs.
    interval: u64,
    priority: u8,
}

impl Thread {
    fn to_shown(&self) -> ShownThread {
        ShownThread { priority: self.priority, interval: self.interval }
    }
}

impl Cyclictest {
    fn thread_count(&self) -> usize {
        match self.threads {
            Some(0) => self.online.iter().count(),
            threads => threads.unwrap_or(1),
        }
    }

    fn has_live_table(&self) -> bool {
        let is_shown = !self.quiet && !self.verbose;
        is_shown && output::terminal_size(std::io::stdout()).is_some()
    }

    /// The lines above the table.
    fn format_title(&self) -> String {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let policy = match (self.priority, self.policy.as_deref()) {
            (0, policy) => format!("{}/other", policy.unwrap_or("other")),
            (_, policy) => policy.unwrap_or("fifo").to_owned(),
        };
        format!("policy: {policy}: loadavg: {}          \n\n", load.trim())
    }

    fn requested_threads(&self) -> Vec<Thread> {
        // With a histogram all have the same interval, unless a distance is asked for.
        let distance = self.distance.unwrap_or(if self.histogram.is_some() { 0 } else { 500 });
        let cpu = |number: usize| match &self.pinned {
            Pinned::No => None,
            Pinned::Each => in_turn(&self.online, number),
            Pinned::In(cpus) => in_turn(cpus, number),
        };
        let priority = |number: usize| match self.spread {
            true => self.priority.saturating_sub(number.min(99) as u8),
            false => self.priority,
        };
        let interval = self.interval.unwrap_or(1_000);
        let thread = |number: usize| Thread {
            cpus: cpu(number).map(CpuSet::from_cpu),
            interval: interval.saturating_add(distance.saturating_mul(number as u64)),
            priority: priority(number),
        };
        (0..self.thread_count()).map(thread).collect()
    }
}

fn in_turn(cpus: &CpuSet, number: usize) -> Option<usize> {
    let cpu_list: Vec<usize> = cpus.iter().collect();
    cpu_list.get(number % cpu_list.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Cyclictest, (String, bool)> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut options =
            getopt::read(&Options(KNOWN, REFUSED), &words).map_err(|why| (why.0, true))?;
        options.complete_options(&"0-3".parse().expect("a list")).map_err(|why| (why, false))?;
        Ok(options)
    }

    fn of(line: &str) -> String {
        read(line).expect("valid").format_experiment()
    }

    #[test]
    fn each_thread_is_a_measure_with_its_own_interval() {
        let text = of("-t 3 -a 1,2 -p 80 --priospread -l 100 -d 250 -i 500");
        let table: toml::Table = text.parse().unwrap_or_else(|why| panic!("{text}: {why}"));
        let measures = table["measure"].as_array().expect("measures");
        let key = |name: &str| -> Vec<String> {
            measures.iter().map(|one| one[name].to_string().replace('"', "")).collect()
        };
        assert_eq!(key("period"), ["500us", "750us", "1000us"]);
        assert_eq!(key("cpus"), ["1", "2", "1"]);
        assert_eq!(key("priority"), ["80", "79", "78"]);
        assert_eq!(key("samples"), ["100", "66", "50"]);
        assert_eq!(key("policy"), ["fifo"; 3]);
        let text = of("-S -h 400 -p 95 -D 10");
        assert_eq!(text.matches("period = \"1000us\"").count(), 4, "{text}");
        assert!(text.contains("range = \"400us\", resolution = \"1us\""), "{text}");
        // As rt-tests' process_options: a priority and a policy that do not fit are made to.
        let key = |line: &str, name: &str| {
            let table: toml::Table = of(line).parse().expect("TOML");
            let all = table["measure"].as_array().expect("measures").clone();
            all.iter().map(|one| one[name].to_string().replace('"', "")).collect::<Vec<_>>()
        };
        assert_eq!(key("--policy=other -p80 -l10", "policy"), ["fifo"]);
        assert_eq!(key("--policy=fifo -l10", "priority"), ["2"]);
        assert_eq!(key("-t3 --priospread -l10", "priority"), ["4", "3", "2"]);
        assert_eq!(key("--policy=rr -p5 -l10", "policy"), ["rr"]);
        let text = of("-q");
        assert!(text.contains("forever = true") && text.contains("policy = \"other\""), "{text}");
    }

    /// The end is that which comes first.
    #[test]
    fn loops_and_a_duration_end_together() {
        assert!(of("-D 10 -l 100").contains("samples = 100"));
        assert!(of("-D 1 -l 100000").contains("duration = \"1s\""));
    }

    #[test]
    fn letters_may_be_joined_and_values_attached() {
        let of = read("-S -m -p95 -i1000 -D10 -h400 -q").expect("valid");
        assert_eq!((of.pinned.clone(), of.threads), (Pinned::Each, Some(0)));
        assert_eq!((of.priority, of.interval, of.histogram), (95, Some(1_000), Some(400)));
        assert!(of.lock_memory && of.quiet && of.duration == Some(Nanos::from_secs(10)));
        // rteval's line.
        let of = read("-i100 -qmu -h3500 -p95 -t2 -a0-1 -b50").expect("valid");
        assert_eq!((of.threads, of.break_above), (Some(2), Some(50)));
        assert_eq!(of.pinned, Pinned::In("0-1".parse().expect("a list")));
        // The line of Linaro's test definitions.
        let of = read("-q -p 98 -i 1000 -t 1 -a 0 -D 1m -m --json=/tmp/x.json").expect("valid");
        assert_eq!((of.threads, of.json.as_deref()), (Some(1), Some("/tmp/x.json")));
        assert_eq!(of.duration, Some(Nanos::from_secs(60)));
        let of = read("--priority=80 --interval 200 --dist=0 --threads --affinity=1,3 -l5")
            .expect("valid");
        assert_eq!((of.threads, of.distance, of.loops), (Some(0), Some(0), 5));
        assert_eq!((of.priority, of.interval), (80, Some(200)));
    }

    #[test]
    fn what_cannot_be_done_is_refused_like_an_unknown_option() {
        let unknown = |line: &str| match read(line) {
            Err((why, true)) => why,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(unknown("--bogus"), "unrecognized option '--bogus'");
        assert_eq!(unknown("--smi"), "unrecognized option '--smi'");
        assert_eq!(unknown("-h"), "option requires an argument -- 'h'");
        assert_eq!(unknown("-qR"), "invalid option -- 'R'");
        assert_eq!(unknown("--quiet=1"), "option '--quiet' doesn't allow an argument");
        assert!(unknown("--s").contains("ambiguous"));
        assert!(matches!(read("-p 200"), Err((_, false))));
        assert!(matches!(read("-t 0"), Err((_, false))));
    }

    /// Every option of the real program is known or refused, and each of ours is one of theirs.
    #[test]
    fn the_options_are_those_of_cyclictest() {
        let Ok(help) = std::process::Command::new("cyclictest").arg("--help").output() else {
            println!("SKIPPED: cyclictest is not installed");
            return;
        };
        let help = String::from_utf8_lossy(&help.stdout).into_owned();
        let is_part = |c: &char| c.is_alphanumeric() || "-_".contains(*c);
        let named = |line: &str| -> String {
            let rest = line.split("--").nth(1).unwrap_or_default();
            rest.chars().take_while(is_part).collect()
        };
        let names: Vec<String> = help.lines().map(named).filter(|name| !name.is_empty()).collect();
        assert!(names.len() >= 30, "{help}");
        for name in &names {
            let is_known = KNOWN.iter().any(|Known(_, known, ..)| known == name);
            assert!(is_known || REFUSED.contains(&name.as_str()), "{name}");
        }
        for Known(_, name, ..) in KNOWN {
            assert!(names.iter().any(|of| of == name), "{name}");
        }
    }
}
