//! The recorders, each with buffers of 8 MiB per CPU and a file on the same disk.

use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Events that a recorder lost: its own count, and the known switches that are missing in its
/// recording.
#[derive(Clone, Copy, Debug)]
pub struct Lost(pub u64);

/// A way to record sched_switch, sched_waking and sched_wakeup.
#[derive(Clone, Debug)]
pub enum Recorder {
    /// No recorder: only the ping-pongs.
    None,
    /// `punctual trace --events sched`.
    Punctual(PathBuf),
    /// `perf record -a`.
    Perf,
    /// The kernel's trace buffers, spliced into files.
    Ftrace,
}

const EVENTS: [&str; 3] = ["sched_switch", "sched_waking", "sched_wakeup"];
const TRACING: &str = "/sys/kernel/tracing";

/// The recorders that this machine has, first none; reports what is missing.
pub fn available_recorders(punctual: &Path) -> Vec<Recorder> {
    let mut recorders = vec![Recorder::None, Recorder::Punctual(punctual.to_owned())];
    match Command::new("perf").arg("--version").output() {
        Ok(_) => recorders.push(Recorder::Perf),
        Err(_) => println!("SKIPPED: recording lacks the program perf (Debian package linux-perf)"),
    }
    match Instance::new() {
        Ok(_) => recorders.push(Recorder::Ftrace),
        Err(why) => println!("SKIPPED: recording through trace buffers: {why}"),
    }
    recorders
}

impl Recorder {
    pub fn name(&self) -> &'static str {
        match self {
            Recorder::None => "none",
            Recorder::Punctual(_) => "punctual trace",
            Recorder::Perf => "perf record",
            Recorder::Ftrace => "trace buffers, spliced (trace-cmd)",
        }
    }

    /// Starts it; it is active on return.
    pub fn start_recording(&self, place: &Path) -> Result<Running, String> {
        match self {
            Recorder::None => Ok(Running::None),
            Recorder::Punctual(program) => {
                let mut command =
                    Command::new(std::path::absolute(program).map_err(|e| e.to_string())?);
                command.args([
                    "trace",
                    "-q",
                    "--events",
                    "sched",
                    "--no-points",
                    "--output",
                    "out",
                ]);
                let child = spawn_quietly(command.current_dir(place))?;
                let segment = place.join("out/recording/00-000000.events");
                wait_for("punctual's first events", || segment.exists())?;
                Ok(Running::Punctual(program.clone(), child, place.to_owned()))
            }
            Recorder::Perf => {
                let mut command = Command::new("perf");
                command.args(["record", "-q", "-a", "-m", "2048", "-o", "perf.data"]);
                command.args(
                    EVENTS.iter().flat_map(|event| ["-e".to_owned(), format!("sched:{event}")]),
                );
                let child = spawn_quietly(command.current_dir(place))?;
                let data = place.join("perf.data");
                wait_for("perf's first events", || {
                    data.metadata().is_ok_and(|data| data.len() > 0)
                })?;
                thread::sleep(Duration::from_millis(500));
                Ok(Running::Perf(child, place.to_owned()))
            }
            Recorder::Ftrace => Spliced::start_splicing(place)
                .map(Running::Ftrace)
                .map_err(|e| format!("{TRACING}: {e}")),
        }
    }
}

/// An active recorder.
pub enum Running {
    None,
    Punctual(PathBuf, Child, PathBuf),
    Perf(Child, PathBuf),
    Ftrace(Spliced),
}

impl Running {
    /// Ends it and counts the missing events out of at least this many switches.
    pub fn stop_and_count(self, switches: u64) -> Result<Lost, String> {
        match self {
            Running::None => Ok(Lost(0)),
            Running::Punctual(program, child, place) => {
                interrupt_child(child, &[0, 4])?;
                let program = std::path::absolute(program).map_err(|e| e.to_string())?;
                let show_output = Command::new(program)
                    .args(["show", "--json", "out"])
                    .current_dir(place)
                    .output();
                let shown_summary = show_output.map_err(|e| e.to_string())?;
                let summary: Value =
                    serde_json::from_slice(&shown_summary.stdout).map_err(|e| e.to_string())?;
                let recording = &summary["recording"];
                let found =
                    recording["events"]["sched"]["sched_switch"].as_u64().unwrap_or_default();
                let lost = recording["lost"].as_u64().ok_or("no losses in the summary")?;
                Ok(Lost(lost.max(switches.saturating_sub(found))))
            }
            Running::Perf(child, place) => {
                interrupt_child(child, &[0, 130])?;
                let mut report = Command::new("perf");
                report.args(["report", "--stats", "-i", "perf.data"]).current_dir(place);
                let stats = stats_of(&mut report)?;
                let found = sample_count(&stats, "sched:sched_switch");
                // Each switch of a ping-pong has a waking and a wake-up, lost at the same rate:
                // perf counts only chunks.
                Ok(Lost(switches.saturating_sub(found) * EVENTS.len() as u64))
            }
            Running::Ftrace(spliced) => {
                spliced.stop_splicing().map(Lost).map_err(|e| format!("{TRACING}: {e}"))
            }
        }
    }
}

fn stats_of(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The number in `… stats:` / `SAMPLE events: N` of one event.
fn sample_count(stats: &str, event: &str) -> u64 {
    let after = stats.split_once(&format!("{event} stats:")).map_or("", |(_, rest)| rest);
    let line = after.lines().find(|line| line.contains("SAMPLE events:")).unwrap_or_default();
    line.split("SAMPLE events:")
        .nth(1)
        .and_then(|n| n.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}

fn spawn_quietly(command: &mut Command) -> Result<Child, String> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.spawn().map_err(|e| format!("{command:?}: {e}"))
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        if Instant::now() > until {
            return Err(format!("{what} never came"));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn interrupt_child(mut child: Child, accepted: &[i32]) -> Result<(), String> {
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .map_err(|e| e.to_string())?;
    let ended = child.wait().map_err(|e| e.to_string())?;
    // perf dies of the signal that ends it.
    let well = ended.code().is_none_or(|code| accepted.contains(&code));
    if sent.success() && well { Ok(()) } else { Err(format!("a recorder ended with {ended}")) }
}

/// A trace instance, removed at the end.
struct Instance(PathBuf);

impl Instance {
    fn new() -> io::Result<Instance> {
        if !Path::new(TRACING).join("instances").exists() {
            Command::new("mount").args(["-t", "tracefs", "nodev", TRACING]).status()?;
        }
        let path = Path::new(TRACING).join("instances/punctual-bench");
        fs::create_dir(&path)?;
        Ok(Instance(path))
    }
    fn write_setting(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.0.join(file), value)
    }
    fn cpu_directories(&self) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(self.0.join("per_cpu"))?.map(|entry| entry.map(|entry| entry.path())).collect()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A thread per CPU that moves pages from its trace buffer into a file.
pub struct Spliced {
    instance: Instance,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Spliced {
    fn start_splicing(place: &Path) -> io::Result<Spliced> {
        let instance = Instance::new()?;
        instance.write_setting("buffer_size_kb", "8192")?;
        let stop = Arc::<AtomicBool>::default();
        let mut threads = Vec::new();
        for (number, cpu) in instance.cpu_directories()?.into_iter().enumerate() {
            // O_NONBLOCK: the recorded tasks wake no reader.
            let from = OpenOptions::new()
                .read(true)
                .custom_flags(0o4000)
                .open(cpu.join("trace_pipe_raw"))?;
            let to = File::create(place.join(format!("{number}.raw")))?;
            let stop = Arc::clone(&stop);
            threads.push(thread::spawn(move || splice_until_stopped(&from, &to, &stop)));
        }
        for event in EVENTS {
            instance.write_setting(&format!("events/sched/{event}/enable"), "1")?;
        }
        Ok(Spliced { instance, stop, threads })
    }

    fn stop_splicing(self) -> io::Result<u64> {
        self.instance.write_setting("events/enable", "0")?;
        let mut lost = 0;
        for cpu in self.instance.cpu_directories()? {
            let stats = fs::read_to_string(cpu.join("stats"))?;
            let number = |key: &str| {
                stats.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok())
            };
            lost += ["overrun:", "commit overrun:", "dropped events:"]
                .iter()
                .filter_map(|key| number(key))
                .sum::<u64>();
        }
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| io::Error::other("a splicing thread failed"))??;
        }
        Ok(lost)
    }
}

fn splice_until_stopped(from: &File, to: &File, stop: &AtomicBool) -> io::Result<()> {
    use rustix::pipe::SpliceFlags;
    let (out, into) = io::pipe()?;
    loop {
        let last = stop.load(Ordering::Relaxed);
        match rustix::pipe::splice(
            from,
            None,
            &into,
            None,
            64 << 10,
            SpliceFlags::MOVE | SpliceFlags::NONBLOCK,
        ) {
            Ok(mut left @ 1..) => {
                while left > 0 {
                    left -= rustix::pipe::splice(&out, None, to, None, left, SpliceFlags::MOVE)?;
                }
            }
            Ok(_) | Err(rustix::io::Errno::AGAIN) if last => return Ok(()),
            Ok(_) | Err(rustix::io::Errno::AGAIN) => thread::sleep(Duration::from_millis(10)),
            Err(why) => return Err(why.into()),
        }
    }
}
