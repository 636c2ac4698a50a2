//! LTTng-UST, if it is installed: a separate session, and a program that passes its tracepoints.
//!
//! LTTng's library is a shared one, so a small program is compiled for it at run time. It passes a
//! batch of points for each byte that it receives, and answers with the counter's timestamps. The
//! channel overwrites: a full one would otherwise drop points, which is cheaper than writing them.

use punctual_sys::signals;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// As in `lttng.c`.
pub const BATCH: usize = 1_024;
/// The time limit for answers of a session daemon.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A recording session, and the program in it.
pub struct Lttng {
    program: Child,
    go: Option<ChildStdin>,
    stamps_from: ChildStdout,
    bytes: Vec<u8>,
    /// The stamps of the last batch, in order.
    pub stamps: Vec<u64>,
    session: String,
    /// The daemon, if none ran before.
    daemon: Option<Child>,
    directory: tempfile::TempDir,
}

impl Lttng {
    /// Compiles the program, starts the session and the program in it, and checks that its points
    /// are recorded.
    pub fn open(cpu: usize) -> Result<Lttng, String> {
        let directory = tempfile::Builder::new().prefix("punctual-lttng-").tempdir();
        let directory = directory.map_err(|why| format!("a temporary directory: {why}"))?;
        compile_program(directory.path())?;
        let mut daemon = start_daemon()?;
        let session = format!("punctual-{}", std::process::id());
        let begun = begin_session(&session, directory.path())
            .and_then(|()| start_program(directory.path(), cpu));
        let mut program = match begun {
            Ok(program) => program,
            Err(why) => {
                end_session(&session, daemon.as_mut());
                return Err(why);
            }
        };
        let (go, stamps_from) = (program.stdin.take(), program.stdout.take());
        let Some(stamps_from) = stamps_from else {
            return Err("the program has no output".to_owned());
        };
        let bytes = vec![0; (BATCH + 1) * 8];
        let stamps = Vec::with_capacity(BATCH + 1);
        let mut lttng =
            Lttng { program, go, stamps_from, bytes, stamps, session, daemon, directory };
        lttng.run_batch()?;
        lttng.check_recorded()?;
        Ok(lttng)
    }

    /// Has a batch of points passed, and takes their timestamps.
    pub(crate) fn run_batch(&mut self) -> Result<(), String> {
        let go = self.go.as_mut().ok_or("it has ended")?;
        go.write_all(b"x")
            .and_then(|()| self.stamps_from.read_exact(&mut self.bytes))
            .map_err(|why| format!("the program with LTTng's tracepoints: {why}"))?;
        self.stamps.clear();
        let words = self.bytes.chunks_exact(8).filter_map(|word| word.try_into().ok());
        self.stamps.extend(words.map(u64::from_ne_bytes));
        Ok(())
    }

    /// Stopping a session writes its buffers.
    fn check_recorded(&self) -> Result<(), String> {
        run_lttng(&["stop", &self.session])?;
        let bytes = size_below(&self.directory.path().join("trace"));
        run_lttng(&["start", &self.session])?;
        match bytes >= (BATCH * 8) as u64 {
            true => Ok(()),
            false => Err(format!(
                "the session recorded {bytes} bytes of {BATCH} points: is the event not enabled?"
            )),
        }
    }
}

impl Drop for Lttng {
    fn drop(&mut self) {
        self.go = None;
        let _ = self.program.wait();
        end_session(&self.session, self.daemon.as_mut());
    }
}

fn compile_program(directory: &Path) -> Result<(), String> {
    let files = [("lttng.c", include_str!("lttng.c")), ("lttng.h", include_str!("lttng.h"))];
    for (name, text) in files {
        fs::write(directory.join(name), text).map_err(|why| format!("{name}: {why}"))?;
    }
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-I.", "-o", "points", "lttng.c", "-llttng-ust", "-ldl"])
        .current_dir(directory);
    run_to_end(
        &mut compiler,
        "LTTng-UST is not installed with its headers and a C compiler (apt-get install gcc \
         lttng-tools liblttng-ust-dev)",
    )
}

/// Starts a session daemon if none answers. It ends with the measuring thread.
fn start_daemon() -> Result<Option<Child>, String> {
    if run_lttng(&["list"]).is_ok_and(|()| is_running()) {
        return Ok(None);
    }
    let mut command = Command::new("lttng-sessiond");
    command.arg("--no-kernel").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let lacks = |why| format!("lttng-sessiond: {why} (apt-get install lttng-tools)");
    let child = ending_with_us(&mut command).spawn().map_err(lacks)?;
    let until = Instant::now() + TIMEOUT;
    while run_lttng(&["list"]).is_err() {
        if Instant::now() > until {
            end_session("", Some(&mut { child }));
            return Err("lttng-sessiond did not answer".to_owned());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(Some(child))
}

/// Whether a session daemon is running.
fn is_running() -> bool {
    let comms = fs::read_dir("/proc").into_iter().flatten().flatten();
    let comms = comms.filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok());
    comms.into_iter().any(|comm| comm.trim() == "lttng-sessiond")
}

/// Makes a child end with punctual, and unblocks its signals: a measuring thread's are all blocked
/// and inherited, and a daemon could not be terminated.
fn ending_with_us(command: &mut Command) -> &mut Command {
    let parent = std::process::id();
    // SAFETY: between fork and exec only async-signal-safe calls are made (signal-safety(7)), on
    // memory of the stack.
    unsafe {
        command.pre_exec(move || {
            signals::allow_all();
            signals::end_with_parent(parent)
        })
    }
}

fn begin_session(session: &str, directory: &Path) -> Result<(), String> {
    let output = directory.join("trace");
    let output = output.to_string_lossy();
    run_lttng(&["create", session, "--output", &output])?;
    run_lttng(&[
        "enable-channel",
        "-u",
        "-s",
        session,
        "--overwrite",
        "--subbuf-size",
        "1M",
        "--num-subbuf",
        "8",
        "points",
    ])?;
    run_lttng(&["enable-event", "-u", "-s", session, "-c", "points", "punctual:point"])?;
    run_lttng(&["start", session])
}

fn start_program(directory: &Path, cpu: usize) -> Result<Child, String> {
    let mut command = Command::new(directory.join("points"));
    command.arg(cpu.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Waits for registration with the session daemon: points passed before would be lost.
    command.env("LTTNG_UST_REGISTER_TIMEOUT", "-1");
    ending_with_us(&mut command)
        .spawn()
        .map_err(|why| format!("the program with LTTng's tracepoints: {why}"))
}

fn end_session(session: &str, daemon: Option<&mut Child>) {
    if !session.is_empty() {
        let _ = run_lttng(&["destroy", session]);
    }
    if let Some(daemon) = daemon {
        // If it were killed, its consumer would remain.
        // SAFETY: kill takes only numbers; the child is ours and has not been reaped.
        unsafe { libc::kill(daemon.id() as libc::pid_t, libc::SIGTERM) };
        let _ = daemon.wait();
    }
}

fn run_lttng(words: &[&str]) -> Result<(), String> {
    run_to_end(
        Command::new("lttng").arg("--no-sessiond").args(words),
        "lttng (apt-get install lttng-tools)",
    )
}

/// Runs it to its end; on failure, the last line of its stderr is the reason.
fn run_to_end(command: &mut Command, what: &str) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|why| format!("{what}: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line =
        text.lines().find(|line| line.to_lowercase().contains("error")).or(text.lines().last());
    Err(format!("{what}: {}", line.unwrap_or("it failed without a message").trim()))
}

fn size_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size_below(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}
