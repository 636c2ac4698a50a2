//! SIGINT and SIGTERM: the first ends the run cleanly, the second at once. SIGHUP always ends it
//! cleanly: closing a terminal sends it twice, from the shell and from the kernel (tty_io.c,
//! `__tty_hangup`). If it is ignored from the start, by nohup(1), it stays ignored, as requested.

use crate::exit::Failure;
use punctual_sys::signals;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The error of something ended by a signal.
pub fn interruption_failure() -> Failure {
    Failure::failed("interrupted")
}

/// The requests by signals.
#[derive(Clone)]
pub struct SignalRequests {
    asked: Arc<AtomicBool>,
    hung_up: Arc<AtomicBool>,
}

impl SignalRequests {
    /// Handles the signals from now on.
    pub fn listen() -> Result<SignalRequests, Failure> {
        let (asked, hung_up) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let cannot = |signal| {
            move |why| Failure::failed(format!("cannot listen for signal {signal}: {why}"))
        };
        if !signals::is_ignored(SIGHUP) {
            flag::register(SIGHUP, Arc::clone(&hung_up)).map_err(cannot(SIGHUP))?;
        }
        for signal in [SIGINT, SIGTERM] {
            // Order matters: a signal that finds the flag set ends the process before it would set
            // it again. Shells use 128 + n for a process that died of signal n.
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))
                .and_then(|_| flag::register(signal, Arc::clone(&asked)))
                .map_err(cannot(signal))?;
        }
        let interrupts = SignalRequests { asked, hung_up };
        let same = interrupts.clone();
        punctual_lab::end_waits_when(move || same.end_requested());
        Ok(interrupts)
    }

    /// Whether the end was requested.
    pub fn end_requested(&self) -> bool {
        self.asked.load(Ordering::Relaxed) || self.hung_up.load(Ordering::Relaxed)
    }
}
