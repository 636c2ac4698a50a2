//! Pairs of threads that pass a byte to and fro through pipes, each pair on its own CPU: every
//! hand-over is a context switch.

use punctual_core::{CpuSet, Policy, Priority};
use punctual_sys::attributes::{self, Scheduling};
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// One pair per CPU, except the last, which is left to the recorders.
pub fn pair_count() -> Result<usize, String> {
    match thread::available_parallelism().map_err(|e| e.to_string())?.get() {
        1 => Err("a recorder needs a CPU beside the recorded one".to_owned()),
        cpus => Ok((cpus - 1).min(3)),
    }
}

/// The time of this many turns.
pub fn run_turns(pairs: usize, turns: u64) -> Result<Duration, String> {
    let begin = Arc::new(Barrier::new(pairs * 2 + 1));
    let mut threads = Vec::new();
    for cpu in 0..pairs {
        let (one_reads, other_writes) = pipe().map_err(|e| e.to_string())?;
        let (other_reads, one_writes) = pipe().map_err(|e| e.to_string())?;
        // The first ball is in play before the start: both wait first, and each hand-over is a
        // switch.
        let mut serve = one_writes.try_clone().map_err(|e| e.to_string())?;
        threads.push(spawn_player(cpu, one_reads, one_writes, turns, Arc::clone(&begin)));
        threads.push(spawn_player(cpu, other_reads, other_writes, turns, Arc::clone(&begin)));
        serve.write_all(&[0]).map_err(|e| e.to_string())?;
    }
    begin.wait();
    let start = Instant::now();
    for thread in threads {
        thread.join().map_err(|_| "a ping-pong thread failed".to_owned())??;
    }
    Ok(start.elapsed())
}

type Player = thread::JoinHandle<Result<(), String>>;

/// SCHED_FIFO: no other task's work is among the switches.
fn spawn_player(
    cpu: usize,
    mut from: PipeReader,
    mut to: PipeWriter,
    turns: u64,
    begin: Arc<Barrier>,
) -> Player {
    thread::spawn(move || {
        let pinned = attributes::set_affinity(0, &CpuSet::from_cpu(cpu));
        let fifo = Scheduling::new(Policy::Fifo, Priority::new(50));
        let prepared = pinned.and_then(|()| attributes::set_scheduling(0, &fifo));
        begin.wait();
        prepared.map_err(|e| e.to_string())?;
        let mut byte = [0];
        for turn in 1..=turns {
            from.read_exact(&mut byte).map_err(|e| e.to_string())?;
            match to.write_all(&byte) {
                // The other has finished all its turns.
                Err(why) if why.kind() == io::ErrorKind::BrokenPipe && turn == turns => {}
                written => written.map_err(|e| e.to_string())?,
            }
        }
        Ok(())
    })
}
