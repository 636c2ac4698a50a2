//! The end of the command: the documented exit codes.

pub use punctual_session::exit::{Exit, Failure};

/// The result of a subcommand.
pub type Ending = Result<Exit, Failure>;

/// Ends with a code that may be a command's own, outside punctual's five.
pub fn of_code(code: u8) -> Ending {
    let own_codes = [Exit::Done, Exit::Failed, Exit::Refused, Exit::NotMet, Exit::NoEvidence];
    match own_codes.into_iter().find(|exit| *exit as u8 == code) {
        Some(exit) => Ok(exit),
        None => std::process::exit(code.into()),
    }
}

/// How a command ends whose result was printed, or could not be.
pub fn ending_of_output(printed: Result<(), Failure>, exit: Exit) -> Ending {
    printed.map_err(|why| why.of_result(exit)).map(|()| exit)
}

/// What is written and printed of a known result, each for itself: a failure keeps no other away
/// and leaves the exit code of a verdict as it is, but *done* becomes *failed*.
#[derive(Default)]
pub struct Outputs(Option<Failure>);

impl Outputs {
    /// Takes the outcome of one of them; what it made.
    pub fn add<T>(&mut self, outcome: Result<T, Failure>) -> Option<T> {
        let failure = match outcome {
            Ok(made) => return Some(made),
            Err(why) => why,
        };
        match &mut self.0 {
            None => self.0 = Some(failure),
            Some(all) => {
                all.exit = if all.exit == Exit::Done { failure.exit } else { all.exit };
                all.parts.extend(failure.parts);
            }
        }
        None
    }

    /// The end of a command with this result.
    pub fn into_ending(self, exit: Exit) -> Ending {
        ending_of_output(self.0.map_or(Ok(()), Err), exit)
    }

    /// All failures, if there are any.
    pub fn into_failure(self) -> Option<Failure> {
        self.0
    }
}

/// The end of the help.
pub const HELP: &str = "Examples:\n  punctual demo\n  punctual attach --explain -- \
                        ./control-loop\n  punctual measure timer --require 'max < 2ms'\n  \
                        punctual run examples/quickstart.toml --target vm:6.12-rt\n\nKernels of \
                        virtual machines: vm:6.12 or vm:6.12-rt is Debian's (an unknown one \
                        lists all), vm:./bzImage your own image.\n\nExit codes: 0 done; 1 failed \
                        while running; 2 the request was invalid, nothing was started; 3 a stated \
                        requirement was not met; 4 measured, but the evidence cannot be used.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_not_a_failure() {
        let gone = || Err::<(), _>(Failure::from(std::io::Error::from_raw_os_error(32)));
        let codes = [Exit::Done, Exit::NotMet]
            .map(|exit| ending_of_output(gone(), exit).map_err(|of| of.exit));
        assert_eq!(codes, [Err(Exit::Done), Err(Exit::NotMet)]);
        let mut outputs = Outputs::default();
        outputs.add(gone());
        outputs.add::<()>(Err(Failure::failed("full")));
        assert_eq!(outputs.into_ending(Exit::Done).map_err(|of| of.exit), Err(Exit::Failed));
    }
}
