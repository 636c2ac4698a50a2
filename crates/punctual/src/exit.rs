//! How the command ends: the documented exit codes.

pub use punctual_session::exit::{Exit, Failure};

/// What a subcommand returns.
pub type Ending = Result<Exit, Failure>;

/// What the help says at its end.
pub const HELP: &str = "Examples:\n  punctual check\n  punctual run examples/quickstart.toml\n  \
                        punctual isolate create 3\n\nExit codes: 0 done; 1 failed while running; \
                        2 the request was invalid, nothing was started; 3 a stated requirement was \
                        not met; 4 measured, but the evidence cannot be used.";
