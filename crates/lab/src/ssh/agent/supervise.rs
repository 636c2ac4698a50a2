//! The supervisor: the parent of the run, in its own session, so that it outlives the connection
//! that started it.

use super::{RunDirectory, RunRequest, remove_all};
use rustix::fs::{FlockOperation, flock};
use rustix::process::setsid;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The order follows the program through the same connection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How often to check whether a client was connected.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// The maximum to keep of the run's output.
const KEPT_MAX: u64 = 8 << 20;
/// Reserved space, so that the last messages of a run can be written after the disk is full.
const RESERVE: usize = 256 << 10;

pub(crate) fn supervise_run(directory: &RunDirectory) -> io::Result<()> {
    // Fails if it leads a session already, which is fine.
    let _ = setsid();
    let mut lock = directory.lock_file()?;
    // Processes that check the lock hold it for an instant.
    flock(&lock, FlockOperation::LockExclusive)?;
    lock.set_len(0)?;
    write!(lock, "{}", std::process::id())?;
    let Some(request) = wait_for_request(directory)? else { return remove_all(&directory.path) };
    let ended =
        run_program(directory, &request).unwrap_or_else(|why| format!("not started: {why}"));
    end_with(directory, &ended)?;
    let since = Instant::now();
    while since.elapsed().min(directory.disconnected_for()) < request.keep_for
        && directory.path.exists()
    {
        std::thread::sleep(POLL_INTERVAL.min(request.keep_for));
    }
    remove_all(&directory.path)
}

fn wait_for_request(directory: &RunDirectory) -> io::Result<Option<RunRequest>> {
    let until = Instant::now() + REQUEST_TIMEOUT;
    while Instant::now() < until {
        if directory.file_path("order").exists() {
            return RunRequest::read(&directory.file_path("order")).map(Some);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(None)
}

/// Runs the program to its end and returns how it ended.
fn run_program(directory: &RunDirectory, request: &RunRequest) -> io::Result<String> {
    fs::write(directory.file_path("reserve"), vec![1; RESERVE])?;
    let mut command = directory.program_command();
    command
        .args(["run", "--output"])
        .arg(directory.file_path("bundle"))
        .args(&request.arguments)
        .arg(&request.file);
    command.current_dir(directory.file_path("work"));
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    directory.write_whole("run.pid", child.id().to_string().as_bytes())?;
    let messages =
        child.stderr.take().map(|from| copy_output(from, directory.file_path("messages")));
    let answer = child.stdout.take().map(|from| copy_output(from, directory.file_path("answer")));
    let over = Arc::<AtomicBool>::default();
    let watch = watch_contact(directory, request.keep_for, Arc::clone(&over));
    let status = child.wait()?;
    fs::remove_file(directory.file_path("run.pid"))?;
    over.store(true, Ordering::Relaxed);
    watch.thread().unpark();
    fs::remove_file(directory.file_path("reserve"))?;
    keep_files(directory, &request.file)?;
    for (kept, name) in [(messages, "messages"), (answer, "answer")] {
        // Output without room before has room now.
        let late = kept.and_then(|kept| kept.join().ok()).unwrap_or_default();
        File::options()
            .create(true)
            .append(true)
            .open(directory.file_path(name))?
            .write_all(&late)?;
    }
    Ok(format_status(status))
}

/// Adds files that loads left in the working directory to the bundle.
fn keep_files(directory: &RunDirectory, experiment: &str) -> io::Result<()> {
    let (work, bundle) = (directory.file_path("work"), directory.file_path("bundle"));
    fs::remove_file(work.join(experiment))?;
    match fs::read_dir(&work)?.next().is_some() && bundle.is_dir() {
        true => fs::rename(work, bundle.join("files")),
        false => Ok(()),
    }
}

fn format_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    }
}

/// Copies the run's output into a file; returns the rest without room there.
fn copy_output(from: impl Read + Send + 'static, path: PathBuf) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut from = from.take(KEPT_MAX);
        let mut file = File::create(&path).ok();
        let (mut late, mut chunk) = (Vec::new(), [0; 4096]);
        while let Ok(n @ 1..) = from.read(&mut chunk) {
            let written = late.is_empty()
                && file.as_mut().is_some_and(|file| append_whole(file, &chunk[..n]));
            if !written && late.len() < RESERVE / 4 {
                late.extend_from_slice(&chunk[..n]);
            }
        }
        // The rest must be read, or the run would block for ever.
        let _ = io::copy(&mut from.into_inner(), &mut io::sink());
        late
    })
}

/// Appends all bytes or none.
fn append_whole(file: &mut File, bytes: &[u8]) -> bool {
    let Ok(end) = file.stream_position() else { return false };
    let done = file.write_all(bytes).is_ok();
    if !done {
        let _ = file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end)));
    }
    done
}

/// Ends a run without a client for this long.
fn watch_contact(
    directory: &RunDirectory,
    keep_for: Duration,
    over: Arc<AtomicBool>,
) -> JoinHandle<()> {
    let directory = RunDirectory { path: directory.path.clone() };
    std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            std::thread::park_timeout(POLL_INTERVAL.min(keep_for));
            if directory.disconnected_for() >= keep_for {
                let _ = directory.interrupt_run();
            }
        }
    })
}

/// Stores how it ended, after freeing the reserve.
fn end_with(directory: &RunDirectory, how: &str) -> io::Result<()> {
    let _ = fs::remove_file(directory.file_path("reserve"));
    directory.write_whole("ended", how.as_bytes())
}
