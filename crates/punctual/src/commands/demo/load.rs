//! The demo's loads if stress-ng is missing: this program again, under another name, without any
//! other part of it. They end as all loads do, by the guard.

use crate::output;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// The first argument that makes the program a load.
pub const ARGUMENT: &str = "demo-load";
/// A process that ends at once, for the load that starts processes.
const NOTHING: &str = "nothing";

const MEMORY: usize = 64 << 20;
const PAGE: usize = 4096;
const PERIOD: Duration = Duration::from_micros(100);

/// Runs the load of this name for ever.
pub fn run_load(word: &str) -> ExitCode {
    let worked = match word {
        "compute" => load_cpus(),
        "memory" => touch_memory(),
        "processes" => start_processes(),
        "messages" => send_messages(),
        "timers" => loop {
            std::thread::sleep(PERIOD);
        },
        NOTHING => return ExitCode::SUCCESS,
        _ => return ExitCode::from(2),
    };
    let Err(why) = worked;
    output::print_stderr(&format!("{ARGUMENT} {word}: {why}\n"));
    ExitCode::FAILURE
}

/// A load ends by itself only on an error.
type Endless = Result<std::convert::Infallible, io::Error>;

/// Loads two CPUs.
fn load_cpus() -> Endless {
    let work = || {
        let mut number = 1.0_f64;
        loop {
            number = black_box((number + 2.0).sqrt());
        }
    };
    std::thread::Builder::new().spawn(work)?;
    work()
}

/// Allocates memory, touches each page, and frees it.
fn touch_memory() -> Endless {
    loop {
        let mut memory = vec![0_u8; MEMORY];
        memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        black_box(&memory);
    }
}

fn start_processes() -> Endless {
    let program = std::env::current_exe()?;
    loop {
        Command::new(&program).args([ARGUMENT, NOTHING]).stdin(Stdio::null()).status()?;
    }
}

/// Passes a byte to and fro between two threads.
fn send_messages() -> Endless {
    let (mut asked, mut ask) = io::pipe()?;
    let (mut answered, mut answer) = io::pipe()?;
    std::thread::Builder::new().spawn(move || -> io::Result<()> {
        let mut byte = [0];
        loop {
            asked.read_exact(&mut byte)?;
            answer.write_all(&byte)?;
        }
    })?;
    loop {
        ask.write_all(&[0])?;
        answered.read_exact(&mut [0])?;
    }
}
