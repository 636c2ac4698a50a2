//! The command `punctual`: one file per subcommand.

// These macros panic if the terminal was closed: `output` does not.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod cli;
mod commands;
mod exit;
mod live;
mod output;

use commands::demo::load;
use exit::Exit;
use punctual_lab::ssh::agent;
use punctual_measure::load::{guard, launch};
use punctual_measure::workload::heap;
use punctual_sys::signals;
use rustix::process::{Resource, getrlimit};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Setting a handler that does nothing fails only for an invalid signal.
    let _ = signals::survive_file_limit();
    punctual_lab::announce_waits(|text| output::print_stderr(&format!("{text}\n")));
    on_a_stack(dispatch_arguments)
}

/// The limit of the main thread's stack (`ulimit -s`) may be too small, and raising it would affect
/// programs that we start: then another thread does the work, whose stack is ordinary memory.
fn on_a_stack(work: fn() -> ExitCode) -> ExitCode {
    let limit = getrlimit(Resource::Stack).current;
    if limit.is_none_or(|limit| limit >= STACK as u64) {
        return work();
    }
    let worker =
        std::thread::Builder::new().name("punctual".to_owned()).stack_size(STACK).spawn(work);
    match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) => ExitCode::from(Exit::Failed as u8),
        Err(why) => {
            output::print_error(&format!("cannot allocate a stack of {STACK} bytes: {why}"));
            ExitCode::from(Exit::Failed as u8)
        }
    }
}

/// Many times the deepest stack of any command.
const STACK: usize = 4 << 20;

/// A shell's exit code for a program that it cannot execute.
const NOT_EXECUTED: u8 = 126;

fn dispatch_arguments() -> ExitCode {
    // The guard of the loads is this program again, without any other part of it.
    if std::env::args_os().nth(1).is_some_and(|first| first == guard::ARGUMENT) {
        return if guard::run_guard().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    // The process that becomes a measured program is also this program.
    if std::env::args_os().nth(1).is_some_and(|first| first == launch::ARGUMENT) {
        let exec_error = launch::exec_on_sigcont(std::env::args_os().skip(2));
        output::print_error(&format!("cannot execute the program: {exec_error}"));
        return ExitCode::from(NOT_EXECUTED);
    }
    // So is the allocating process, if the machine has no C library of its own.
    if std::env::args_os().nth(1).is_some_and(|first| first == heap::ARGUMENT) {
        heap::run_heap_program();
    }
    // So are the demo's own loads.
    if std::env::args_os().nth(1).is_some_and(|first| first == load::ARGUMENT) {
        return load::run_load(&std::env::args().nth(2).unwrap_or_default());
    }
    // So is punctual on another system, with a run sent there.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == agent::ARGUMENT) {
        return ExitCode::from(agent::run_agent(arguments));
    }
    // By another tool's name it is that tool.
    if let Some(code) = commands::names::run_as_tool() {
        return code;
    }
    let ended = cli::parse().command.run();
    commands::bundle::remove_temporary();
    let exit = ended.unwrap_or_else(|failure| {
        output::print_error(&failure.render(output::is_colored(&std::io::stderr())));
        failure.exit
    });
    ExitCode::from(exit as u8)
}
