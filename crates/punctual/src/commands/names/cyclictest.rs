//! This program under the name cyclictest: its options, its output, its exit codes.

use super::options::{CyclictestOptions, Pinned, Refusal};
use crate::exit::Failure;
use crate::{live, output};
use punctual_bundle::{Bundle, Outcome};
use punctual_core::{CpuSet, Nanos};
use punctual_plan::text::quoted;
use punctual_report::export::cyclictest_output::{CyclictestOutput, ShownThread};
use punctual_session::continuing::Continuation;
use punctual_session::end::Further;
use punctual_session::options::RunOptions;
use punctual_session::request::{self, ExperimentRequest};
use punctual_session::run::{self as session, RunContext};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The variable with the path of the bundle that is left.
const BUNDLE: &str = "PUNCTUAL_BUNDLE";
/// Bundles of one variable.
const MOST_BUNDLES: usize = 10_000;

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

/// Measures, and prints what cyclictest prints.
pub fn serve(words: &[String]) -> ExitCode {
    let options = match CyclictestOptions::read(words) {
        Ok(options) => options,
        Err(refusal) => {
            let (why, code) = match refusal {
                Refusal::Unknown(why) => (why, ExitCode::SUCCESS),
                Refusal::Wrong(why) => (why, ExitCode::FAILURE),
            };
            output::say(&format!("cyclictest: {why}\n"));
            let _ = output::print(HELP);
            return code;
        }
    };
    let command = ["cyclictest"].into_iter().chain(words.iter().map(String::as_str));
    let command = command.collect::<Vec<_>>().join(" ");
    match measure(options, &command) {
        Ok(code) => code,
        Err(failure) => {
            output::complain(&failure.render(false));
            ExitCode::FAILURE
        }
    }
}

fn measure(mut options: CyclictestOptions, command: &str) -> Result<ExitCode, Failure> {
    let online = request::online_cpus()?;
    options.reconcile(online.iter().count()).iter().for_each(|said| output::say(said));
    let options = &options;
    let threads = threads(options, &online);
    // A bundle that nobody asked for is removed with its directory.
    let (directory, kept) = match std::env::var_os(BUNDLE).filter(|path| !path.is_empty()) {
        Some(path) => (None, unused(PathBuf::from(path))?),
        None => {
            let directory = tempfile::tempdir().map_err(|why| {
                Failure::failed(format!("cannot make a temporary directory: {why}"))
            })?;
            let place = directory.path().join("bundle");
            (Some(directory), place)
        }
    };
    let run = RunOptions { output: Some(kept), quiet: true, repeat: 1, ..RunOptions::default() };
    let text = experiment(options, &threads);
    let asked = ExperimentRequest::of_text(Path::new("cyclictest.toml"), text.into_bytes(), &run);
    let messages = output::messages(true);
    let (loaded, plan) = asked.resolve(messages)?;
    let plan = run.apply(plan, &online)?;
    begin(options, &threads, &online)?;
    let is_shown = !options.quiet && output::terminal_size(std::io::stdout()).is_some();
    let mut watcher = live::watcher(!is_shown);
    let further = Further { continuation: None::<Continuation>, baseline: None };
    let differs = option_env!("PUNCTUAL_DIFFERS");
    let context = RunContext { metrics: None, further, attached: None, differs, messages };
    let finished = session::run(&plan, &loaded, context, &mut *watcher);
    watcher.end();
    drop(watcher);
    let bundle = Bundle::open(&finished?.directory).map_err(Failure::failed)?;
    print(options, &threads, &bundle, command)?;
    let mut series = bundle.series().zip(&threads);
    let all_asked = series.all(|((_, of), thread)| of.meta.real_time || thread.priority == 0);
    drop(directory);
    if !all_asked {
        output::say("Unable to change scheduling policy!\n");
        output::say("either run as root or join realtime group\n");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// This path, or with a number if a bundle is there: a script may measure several times.
fn unused(path: PathBuf) -> Result<PathBuf, Failure> {
    let numbered = |number: usize| match number {
        1 => path.clone(),
        number => {
            let mut name = path.clone().into_os_string();
            name.push(format!("-{number}"));
            PathBuf::from(name)
        }
    };
    let free = (1..=MOST_BUNDLES).map(numbered).find(|path| !path.exists());
    free.ok_or_else(|| Failure::refused(format!("{BUNDLE}: all names are in use")))
}

/// A thread, by its number.
struct Thread {
    cpus: Option<CpuSet>,
    /// In µs.
    interval: u64,
    priority: u8,
}

fn threads(options: &CyclictestOptions, online: &CpuSet) -> Vec<Thread> {
    let number = options.threads.unwrap_or_else(|| online.iter().count());
    // With a histogram all have the same interval, unless a distance is asked for.
    let distance = options.distance.unwrap_or(if options.histogram.is_some() { 0 } else { 500 });
    let cpu = |number: usize| match &options.pinned {
        Pinned::No => None,
        Pinned::Each => in_turn(online, number),
        Pinned::In(cpus) => in_turn(cpus, number),
    };
    let priority = |number: usize| match options.spread {
        true => options.priority.saturating_sub(number.min(99) as u8),
        false => options.priority,
    };
    let thread = |number: usize| Thread {
        cpus: cpu(number).map(CpuSet::single),
        interval: options.interval.saturating_add(distance.saturating_mul(number as u64)),
        priority: priority(number),
    };
    (0..number).map(thread).collect()
}

fn in_turn(cpus: &CpuSet, number: usize) -> Option<usize> {
    let all: Vec<usize> = cpus.iter().collect();
    all.get(number % all.len().max(1)).copied()
}

/// The experiment: a measure for each thread.
fn experiment(options: &CyclictestOptions, threads: &[Thread]) -> String {
    let mut text = String::from("[experiment]\nname = \"cyclictest\"\n");
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key} = {value}");
    };
    line("memory_lock", options.lock_memory.to_string());
    let dma = options.dma_latency.map_or("leave".to_owned(), |us| format!("{us}us"));
    line("dma_latency", quoted(&dma));
    if let Some(cpus) = &options.main_cpus {
        line("cpus", quoted(&cpus.to_string()));
    }
    let is_endless = options.loops == 0 && options.duration.is_none();
    line("forever", is_endless.to_string());
    line("calibrate", "false".to_owned());
    let shortest = threads.iter().map(|thread| thread.interval).min().unwrap_or(1);
    for (number, thread) in threads.iter().enumerate() {
        line("[[measure]]\nname", quoted(&format!("t{number}")));
        line("kind", quoted("timer"));
        line("threads", "1".to_owned());
        line("period", quoted(&format!("{}us", thread.interval)));
        if let Some(cpus) = &thread.cpus {
            line("cpus", quoted(&cpus.to_string()));
        }
        // A thread without a priority cannot have a real-time policy.
        let policy = match (options.policy.as_deref(), thread.priority) {
            (None | Some("fifo" | "rr"), 0) => "other",
            (policy, _) => policy.unwrap_or("other"),
        };
        line("policy", quoted(policy));
        if ["fifo", "rr"].contains(&policy) {
            line("priority", thread.priority.to_string());
        }
        if options.realtime_clock {
            line("clock", quoted("realtime"));
        }
        let method = match (options.relative, options.posix_timer) {
            (_, true) => "posix-timer",
            (true, false) => "nanosleep-relative",
            (false, false) => "nanosleep-absolute",
        };
        line("method", quoted(method));
        match options.duration {
            Some(duration) => line("duration", quoted(&duration.to_string())),
            None if is_endless => {}
            // cyclictest ends with the thread of the shortest interval.
            None => {
                let loops = u128::from(options.loops) * u128::from(shortest);
                let loops = loops / u128::from(thread.interval.max(1));
                line("samples", loops.max(1).to_string());
            }
        }
        if let Some(us) = options.histogram {
            let (range, step) = if options.nanoseconds { ("ns", "1ns") } else { ("us", "1us") };
            let range = quoted(&format!("{us}{range}"));
            line("histogram", format!("{{ range = {range}, resolution = \"{step}\" }}"));
        }
        if let Some(us) = options.break_above {
            line("stop_above", quoted(&format!("{us}us")));
        }
    }
    text
}

/// The lines before the measurement.
fn begin(options: &CyclictestOptions, threads: &[Thread], online: &CpuSet) -> Result<(), Failure> {
    let mut text = String::new();
    let mut line = |words: String| {
        let _ = writeln!(text, "{words}");
    };
    if options.verbose {
        let cpus = online.iter().count();
        line(format!("Max CPUs = {cpus}\nOnline CPUs = {cpus}"));
    }
    if let Some(us) = options.dma_latency {
        line(format!("# /dev/cpu_dma_latency set to {us}us"));
    }
    if options.verbose {
        for (number, thread) in threads.iter().enumerate() {
            line(format!("Thread {number} Interval: {}", thread.interval));
        }
    }
    output::print(&text)
}

fn print(
    options: &CyclictestOptions,
    threads: &[Thread],
    bundle: &Bundle,
    command: &str,
) -> Result<(), Failure> {
    let shown = threads.iter().map(|thread| {
        let (priority, interval) = (thread.priority, thread.interval);
        ShownThread { priority, interval }
    });
    let output = CyclictestOutput {
        bundle,
        threads: shown.collect(),
        nanoseconds: options.nanoseconds,
        rows: options.histogram.unwrap_or_default(),
        of_all: options.of_all,
        command,
    };
    let mut text = Vec::new();
    let add = |written: std::io::Result<()>| written.map_err(Failure::failed);
    if options.verbose {
        add(output.verbose(&mut text))?;
    }
    let has_table = match options.quiet {
        true => options.histogram.is_none(),
        false => !options.verbose,
    };
    if has_table {
        if !options.quiet {
            let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            let policy = threads.first().map_or("other", |of| match of.priority {
                0 => "other",
                _ => options.policy.as_deref().unwrap_or("fifo"),
            });
            text.extend(
                format!("policy: {policy}: loadavg: {}          \n\n", load.trim()).bytes(),
            );
        }
        add(output.threads(&mut text))?;
    }
    if options.histogram.is_some() {
        match &options.histogram_file {
            Some(file) => {
                let mut own = Vec::new();
                add(output.histogram(&mut own))?;
                output::write_to(Some(Path::new(file)), &own)?;
            }
            None => add(output.histogram(&mut text))?,
        }
    }
    let outcome = bundle.manifest.ending.as_ref().map(|ending| &ending.outcome);
    if let Some(Outcome::StoppedAbove { series, latency, .. }) = outcome {
        add(output.stopped(series, Nanos(*latency), &mut text))?;
    }
    output::print(&String::from_utf8_lossy(&text))?;
    if let Some(file) = &options.json {
        let mut json = Vec::new();
        add(output.json(&mut json))?;
        output::write_to(Some(Path::new(file)), &json)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> (CyclictestOptions, String) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut options = CyclictestOptions::read(&words).expect("valid");
        options.reconcile(4);
        let online = "0-3".parse().expect("a list");
        let text = experiment(&options, &threads(&options, &online));
        (options, text)
    }

    #[test]
    fn each_thread_is_a_measure_with_its_own_interval() {
        let (_, text) = of("-t 3 -a 1,2 -p 80 --priospread -l 100 -d 250 -i 500");
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
        let (_, text) = of("-S -h 400 -p 95 -D 10");
        assert_eq!(text.matches("period = \"1000us\"").count(), 4, "{text}");
        assert!(text.contains("range = \"400us\", resolution = \"1us\""), "{text}");
        // As rt-tests' process_options: a priority and a policy that do not fit are made to.
        let key = |line: &str, name: &str| {
            let table: toml::Table = of(line).1.parse().expect("TOML");
            let all = table["measure"].as_array().expect("measures").clone();
            all.iter().map(|one| one[name].to_string().replace('"', "")).collect::<Vec<_>>()
        };
        assert_eq!(key("--policy=other -p80 -l10", "policy"), ["fifo"]);
        assert_eq!(key("--policy=fifo -l10", "priority"), ["2"]);
        assert_eq!(key("-t3 --priospread -l10", "priority"), ["4", "3", "2"]);
        assert_eq!(key("--policy=rr -p5 -l10", "policy"), ["rr"]);
        let (_, text) = of("-q");
        assert!(text.contains("forever = true") && text.contains("policy = \"other\""), "{text}");
    }
}
