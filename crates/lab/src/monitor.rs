//! QEMU's monitor, for a guest that asks to be saved (docs/interop/qmp-spec.rst): once it has
//! paused itself, it is saved, and QEMU ends.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::thread::{self, JoinHandle};

/// A thread that controls QEMU until it ends.
pub struct Monitor(JoinHandle<bool>);

impl Monitor {
    /// The monitor of a QEMU on its standard input and output; none without these. The saved state
    /// gets this name.
    pub fn from_child(qemu: &mut Child, name: &'static str) -> Option<Monitor> {
        let (to, from) = qemu.stdin.take().zip(qemu.stdout.take())?;
        Some(Monitor(thread::spawn(move || save_guest(to, from, name).unwrap_or(false))))
    }

    /// Whether everything was saved; waits until QEMU has ended.
    pub(crate) fn has_saved(self) -> bool {
        self.0.join().unwrap_or(false)
    }
}

/// Saves the guest once it has paused; `None` if QEMU ended before.
fn save_guest(mut to: ChildStdin, from: ChildStdout, name: &str) -> Option<bool> {
    let mut messages = BufReader::new(from).lines().map_while(Result::ok);
    let mut next = || {
        let message = messages.next()?;
        serde_json::from_str::<Value>(&message).ok()
    };
    let mut request = |name: &str, arguments: Value| {
        let request = json!({ "execute": name, "arguments": arguments });
        writeln!(to, "{request}").ok()
    };
    // QEMU's greeting, its answer, and events meanwhile.
    request("qmp_capabilities", json!({}))?;
    // Not GUEST_PANICKED, which precedes the pause.
    while next()?["event"] != "STOP" {}
    // Only the human monitor saves synchronously; it answers with the error.
    let line = format!("savevm {name}");
    request("human-monitor-command", json!({ "command-line": line }))?;
    let answer = loop {
        let message = next()?;
        if let Some(answer) = message.get("return").or(message.get("error")) {
            break answer.clone();
        }
    };
    request("quit", json!({}))?;
    while next().is_some() {}
    Some(answer.as_str().is_some_and(|trouble| trouble.trim().is_empty()))
}
