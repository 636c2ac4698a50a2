//! How the command ends: the documented exit codes.

pub use punctual_session::exit::{Exit, Failure};

/// What a subcommand returns.
pub type Ending = Result<Exit, Failure>;

/// Ends with a code that may be a command's own, which the five of punctual cannot hold.
pub fn of_code(code: u8) -> Ending {
    let known = [Exit::Done, Exit::Failed, Exit::Refused, Exit::NotMet, Exit::NoEvidence];
    match known.into_iter().find(|exit| *exit as u8 == code) {
        Some(exit) => Ok(exit),
        None => std::process::exit(code.into()),
    }
}

/// What the help says at its end.
pub const HELP: &str = "Examples:\n  punctual demo\n  punctual attach --explain -- \
                        ./control-loop\n  punctual measure timer --require 'max < 2ms'\n  \
                        punctual run examples/quickstart.toml --target vm:6.12-rt\n\nKernels of \
                        virtual machines: vm:6.12 or vm:6.12-rt is Debian's (an unknown one \
                        lists all), vm:./bzImage your own image.\n\nExit codes: 0 done; 1 failed \
                        while running; 2 the request was invalid, nothing was started; 3 a stated \
                        requirement was not met; 4 measured, but the evidence cannot be used.";
