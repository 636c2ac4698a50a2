//! The supervisor: parent of the run, in a session of its own, so that it outlives the connection that it was started through.

use super::{Order, Place, remove_all};
use rustix::fs::{FlockOperation, flock};
use rustix::process::setsid;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The order follows the program through the same connection.
const ORDER_WITHIN: Duration = Duration::from_secs(60);
/// Between looks at whether anybody still cares.
const LOOK: Duration = Duration::from_secs(30);
/// What is kept of what the run prints.
const KEPT_MAX: u64 = 8 << 20;
/// Space held back, so that the last words of a run that filled the disk find room.
const RESERVE: usize = 256 << 10;

pub fn supervise(place: &Place) -> io::Result<()> {
    // Fails where it leads a session already, which is as good.
    let _ = setsid();
    let mut lock = place.lock_file()?;
    // Those who look whether it is held hold it for an instant.
    flock(&lock, FlockOperation::LockExclusive)?;
    lock.set_len(0)?;
    write!(lock, "{}", std::process::id())?;
    let Some(order) = wait_for_order(place)? else { return remove_all(&place.directory) };
    let ended = run(place, &order).unwrap_or_else(|why| format!("not started: {why}"));
    end_with(place, &ended)?;
    let since = Instant::now();
    while since.elapsed().min(place.alone_for()) < order.keep_for && place.directory.exists() {
        std::thread::sleep(LOOK.min(order.keep_for));
    }
    remove_all(&place.directory)
}

fn wait_for_order(place: &Place) -> io::Result<Option<Order>> {
    let until = Instant::now() + ORDER_WITHIN;
    while Instant::now() < until {
        if place.file("order").exists() {
            return Order::read(&place.file("order")).map(Some);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(None)
}

/// Runs it to its end and says how that was.
fn run(place: &Place, order: &Order) -> io::Result<String> {
    fs::write(place.file("reserve"), vec![1; RESERVE])?;
    let mut command = Command::new(place.file("punctual"));
    command.args(["run", "--output"]).arg(place.file("bundle")).args(&order.arguments).arg(&order.file);
    command.current_dir(place.file("work"));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    place.write_whole("run.pid", child.id().to_string().as_bytes())?;
    let messages = child.stderr.take().map(|from| keep(from, place.file("messages")));
    let answer = child.stdout.take().map(|from| keep(from, place.file("answer")));
    let over = Arc::<AtomicBool>::default();
    let watch = watch(place, order.keep_for, Arc::clone(&over));
    let status = child.wait()?;
    fs::remove_file(place.file("run.pid"))?;
    over.store(true, Ordering::Relaxed);
    watch.thread().unpark();
    fs::remove_file(place.file("reserve"))?;
    keep_files(place, &order.file)?;
    for (kept, name) in [(messages, "messages"), (answer, "answer")] {
        // What found no room before finds it now.
        let late = kept.and_then(|kept| kept.join().ok()).unwrap_or_default();
        File::options().create(true).append(true).open(place.file(name))?.write_all(&late)?;
    }
    Ok(told(status))
}

/// What loads left where the run was started goes with the bundle.
fn keep_files(place: &Place, experiment: &str) -> io::Result<()> {
    let (work, bundle) = (place.file("work"), place.file("bundle"));
    fs::remove_file(work.join(experiment))?;
    match fs::read_dir(&work)?.next().is_some() && bundle.is_dir() {
        true => fs::rename(work, bundle.join("files")),
        false => Ok(()),
    }
}

fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    }
}

/// Moves what the run prints into a file; answers with what found no room there.
fn keep(from: impl Read + Send + 'static, path: PathBuf) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut from = from.take(KEPT_MAX);
        let mut file = File::create(&path).ok();
        let (mut late, mut chunk) = (Vec::new(), [0; 4096]);
        while let Ok(n @ 1..) = from.read(&mut chunk) {
            let written = late.is_empty() && file.as_mut().is_some_and(|file| append(file, &chunk[..n]));
            if !written && late.len() < RESERVE / 4 {
                late.extend_from_slice(&chunk[..n]);
            }
        }
        // The rest must be read, or the run would wait for ever.
        let _ = io::copy(&mut from.into_inner(), &mut io::sink());
        late
    })
}

/// All of it or nothing.
fn append(file: &mut File, bytes: &[u8]) -> bool {
    let Ok(end) = file.stream_position() else { return false };
    let done = file.write_all(bytes).is_ok();
    if !done {
        let _ = file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end)));
    }
    done
}

/// Ends a run that nobody has asked after for so long.
fn watch(place: &Place, keep_for: Duration, over: Arc<AtomicBool>) -> JoinHandle<()> {
    let place = Place { directory: place.directory.clone() };
    std::thread::spawn(move || {
        while !over.load(Ordering::Relaxed) {
            std::thread::park_timeout(LOOK.min(keep_for));
            if place.alone_for() >= keep_for {
                let _ = place.interrupt();
            }
        }
    })
}

/// Writes down how it ended, the reserve being gone.
fn end_with(place: &Place, how: &str) -> io::Result<()> {
    let _ = fs::remove_file(place.file("reserve"));
    place.write_whole("ended", how.as_bytes())
}
