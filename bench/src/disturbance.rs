//! The effect on timer latency of being ready to explain it: punctual's flight recorder and its
//! accounting, beside the kernel's trace buffers with the same events, overwriting (as `cyclictest
//! --breaktrace` does until it breaks) and spliced into files (as trace-cmd does). Rounds are
//! interleaved; each way is compared with the bare rounds of the same instrument.

pub mod attached;
pub mod beside;

use crate::Args;
use crate::figures::median;
use crate::tools;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A way to measure, and the data kept meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Bare,
    Flight,
    Account,
    Both,
    Overwriting,
    Spliced,
    Cyclictest,
    Breaktrace,
}

impl Way {
    /// The experiment's section on explaining.
    fn explain(self) -> &'static str {
        match self {
            Way::Flight => "[experiment]\ncalibrate = false\n[explain]\naccount = false\n",
            Way::Account => "[experiment]\ncalibrate = false\n[explain]\nworst = 0\n",
            Way::Both => "[experiment]\ncalibrate = false\n[explain]\n",
            _ => "",
        }
    }
}

const WAYS: [(Way, &str); 8] = [
    (Way::Bare, "punctual, nothing kept"),
    (Way::Flight, "punctual, flight recorder"),
    (Way::Account, "punctual, accounting"),
    (Way::Both, "punctual, flight recorder and accounting"),
    (Way::Overwriting, "punctual beside trace buffers, overwriting"),
    (Way::Spliced, "punctual beside trace buffers, spliced (trace-cmd)"),
    (Way::Cyclictest, "cyclictest"),
    (Way::Breaktrace, "cyclictest --breaktrace, with the same events"),
];

/// The events that the flight recorder keeps for a timer.
const EVENTS: [&str; 18] = [
    "sched/sched_switch",
    "sched/sched_wakeup",
    "sched/sched_wakeup_new",
    "sched/sched_migrate_task",
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "sched/sched_pi_setprio",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "ipi/ipi_send_cpu",
    "timer/hrtimer_expire_entry",
    "exceptions/page_fault_user",
    "exceptions/page_fault_kernel",
    "power/cpu_idle",
    "irq_vectors/enable",
];
/// cyclictest's option to break: at 100 s, so that only the cost until then is measured.
const NEVER_BREAKS: [&str; 2] = ["-b", "100000000"];
const TRACING: &str = "/sys/kernel/tracing";

/// p50 and p99.9 of one round, µs.
type Figures = (f64, f64);

/// Median and p99.9 of each way, and their differences from the bare rounds of the same instrument.
pub fn measure(args: &Args) -> Result<Value, String> {
    let (rounds, seconds) = if args.quick { (2, 3) } else { (11, 11) };
    let ways: Vec<(Way, &str)> = WAYS.into_iter().filter(|(way, _)| possible(*way)).collect();
    println!(
        "timer latency while something is kept, period 1 ms, {rounds} rounds of {seconds} s each \
         way, interleaved:"
    );
    let mut all: Vec<Vec<Figures>> = vec![Vec::new(); ways.len()];
    for round in 0..rounds {
        for place in 0..ways.len() {
            let place = (place + round) % ways.len();
            all[place].push(one_round(&args.punctual, ways[place].0, seconds)?);
        }
        eprint!(".");
    }
    eprintln!();
    let of = |way: Way| ways.iter().position(|(other, _)| *other == way).map(|place| &all[place]);
    let row = |((way, name), rounds): (&(Way, &str), &Vec<Figures>)| {
        let bare = of(if matches!(way, Way::Cyclictest | Way::Breaktrace) {
            Way::Cyclictest
        } else {
            Way::Bare
        });
        row(name, rounds, bare.unwrap_or(rounds))
    };
    Ok(ways.iter().zip(&all).map(row).collect())
}

/// Differences are computed between adjacent rounds.
fn row(name: &str, rounds: &[Figures], bare: &[Figures]) -> Value {
    let column = |of: fn(&Figures) -> f64| {
        let added: Vec<f64> =
            rounds.iter().zip(bare).map(|(one, base)| of(one) - of(base)).collect();
        let values: Vec<f64> = rounds.iter().map(of).collect();
        (
            median(&values),
            median(&added),
            median(&values) / median(&bare.iter().map(of).collect::<Vec<_>>()),
            values,
        )
    };
    let (p50, added50, ratio50, p50s) = column(|figures| figures.0);
    let (p999, added999, ratio999, p999s) = column(|figures| figures.1);
    println!(
        "  {name:<52} p50 {p50:>7.1} µs ({added50:>+6.1}, ratio {ratio50:.3})   p99.9 {p999:>8.1} \
         µs ({added999:>+8.1}, ratio {ratio999:.3})"
    );
    json!({
        "name": name, "p50_us": p50s, "p99_9_us": p999s, "median_p50_us": p50,
        "median_p99_9_us": p999, "added_p50_us": added50, "added_p99_9_us": added999,
        "ratio_p50": ratio50, "ratio_p99_9": ratio999,
    })
}

/// Whether it is possible; reports what is missing.
fn possible(way: Way) -> bool {
    let why = match way {
        Way::Cyclictest => return tools::has_cyclictest(),
        Way::Overwriting | Way::Spliced => {
            Instance::new(Path::new("."), false).err().map(|why| format!("{TRACING}: {why}"))
        }
        Way::Breaktrace if Command::new("cyclictest").arg("--help").output().is_err() => {
            return false;
        }
        _ => None,
    };
    if let Some(why) = &why {
        println!("SKIPPED: disturbance through trace buffers: {why}");
    }
    why.is_none()
}

fn one_round(program: &Path, way: Way, seconds: u64) -> Result<Figures, String> {
    let place = tempfile::tempdir().map_err(|e| e.to_string())?;
    let kept = Instance::of(way, place.path())?;
    let figures = match way {
        Way::Cyclictest => cyclictest(place.path(), seconds, &[]),
        Way::Breaktrace => cyclictest(place.path(), seconds, &NEVER_BREAKS),
        ours => punctual(program, place.path(), seconds, ours.explain()),
    };
    drop(kept);
    figures
}

fn punctual(program: &Path, place: &Path, seconds: u64, explain: &str) -> Result<Figures, String> {
    let measure = tools::timer(80, "1ms", &format!("{seconds}s"))?;
    fs::write(place.join("bench.toml"), format!("{explain}{measure}"))
        .map_err(|e| e.to_string())?;
    let program = std::path::absolute(program).map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.args(["run", "-q", "bench.toml", "-o", "out"]).current_dir(place);
    let ended =
        command.stdin(Stdio::null()).stdout(Stdio::null()).output().map_err(|e| e.to_string())?;
    if !matches!(ended.status.code(), Some(0 | 3 | 4)) {
        return Err(format!(
            "{command:?}: {}: {}",
            ended.status,
            String::from_utf8_lossy(&ended.stderr)
        ));
    }
    let text = fs::read(place.join("out/summary.json")).map_err(|e| e.to_string())?;
    let summary: Value = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
    let percentiles = &summary["phases"][0]["series"][0]["percentiles"];
    // A short round supports no p99.9; its p99 is used instead.
    let rare = percentiles["99.9"].as_f64().or(percentiles["99"].as_f64());
    let both = percentiles["50"].as_f64().zip(rare).ok_or("no percentiles in the summary")?;
    Ok((both.0 / 1e3, both.1 / 1e3))
}

fn cyclictest(place: &Path, seconds: u64, more: &[&str]) -> Result<Figures, String> {
    let json = place.join("out.json");
    let mut command = Command::new("cyclictest");
    command.args(["-m", "-q", "-p", "80", "-t", "1", "-h", "20000", "-i", "1000"]).args(more);
    command.args([
        "-a",
        &tools::cpu()?.to_string(),
        "-D",
        &seconds.to_string(),
        &format!("--json={}", json.display()),
    ]);
    let ended = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    if !ended.status.success() {
        return Err(format!("{command:?}: {}", ended.status));
    }
    let bins = tools::bins(&fs::read(&json).map_err(|e| e.to_string())?)?;
    let percentile = |share: f64| {
        let wanted = bins.iter().map(|(_, n)| *n).sum::<u64>() as f64 * share;
        let mut before = 0.0;
        bins.iter()
            .find(|(_, n)| {
                before += *n as f64;
                before >= wanted
            })
            .map_or(f64::NAN, |(us, _)| *us as f64 + 0.5)
    };
    Ok((percentile(0.5), percentile(if seconds >= 10 { 0.999 } else { 0.99 })))
}

/// A trace instance with the same events, spliced into files or overwriting; removed at the end.
struct Instance {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Instance {
    /// The trace buffers of a way, if it has any.
    fn of(way: Way, place: &Path) -> Result<Option<Instance>, String> {
        let traced = matches!(way, Way::Overwriting | Way::Spliced | Way::Breaktrace);
        let kept = traced.then(|| Instance::new(place, way == Way::Spliced)).transpose();
        kept.map_err(|why| format!("{TRACING}: {why}"))
    }

    fn new(place: &Path, spliced: bool) -> io::Result<Instance> {
        if !Path::new(TRACING).join("instances").exists() {
            Command::new("mount").args(["-t", "tracefs", "nodev", TRACING]).status()?;
        }
        let path = Path::new(TRACING).join("instances/punctual-disturbance");
        fs::create_dir(&path)?;
        let mut instance = Instance { path, stop: Arc::default(), threads: Vec::new() };
        fs::write(instance.path.join("buffer_size_kb"), "8192")?;
        for (number, cpu) in
            fs::read_dir(instance.path.join("per_cpu"))?.enumerate().filter(|_| spliced)
        {
            let from = OpenOptions::new()
                .read(true)
                .custom_flags(0o4000)
                .open(cpu?.path().join("trace_pipe_raw"))?;
            let (to, stop) =
                (File::create(place.join(format!("{number}.raw")))?, Arc::clone(&instance.stop));
            instance.threads.push(thread::spawn(move || splice(&from, &to, &stop)));
        }
        for event in EVENTS {
            let file = if event.ends_with("/enable") {
                event.to_owned()
            } else {
                format!("{event}/enable")
            };
            // Events that this kernel lacks are not kept by any way.
            let _ = fs::write(instance.path.join("events").join(file), "1");
        }
        Ok(instance)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::write(self.path.join("events/enable"), "0");
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
        let _ = fs::remove_dir(&self.path);
    }
}

fn splice(from: &File, to: &File, stop: &AtomicBool) {
    use rustix::pipe::{SpliceFlags, splice};
    let Ok((out, into)) = io::pipe() else { return };
    while !stop.load(Ordering::Relaxed) {
        match splice(from, None, &into, None, 64 << 10, SpliceFlags::MOVE | SpliceFlags::NONBLOCK) {
            Ok(mut left @ 1..) => {
                while left > 0 {
                    let Ok(moved) = splice(&out, None, to, None, left, SpliceFlags::MOVE) else {
                        return;
                    };
                    left -= moved;
                }
            }
            Ok(_) | Err(rustix::io::Errno::AGAIN) => thread::sleep(Duration::from_millis(10)),
            Err(_) => return,
        }
    }
}
