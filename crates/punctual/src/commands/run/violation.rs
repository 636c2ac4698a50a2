//! `--on-violation`, once or several times: one command for sh(1).

/// What is done when a requirement is violated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ViolationAction {
    Shell(String),
    /// A signal to a process.
    Signal {
        signal: String,
        pid: String,
    },
    /// The run ends.
    Stop,
    /// The events around the worst samples are kept.
    Trace,
    /// The run goes on, as it does without.
    Continue,
}

/// Reads an action; what is none of the words is a command.
pub fn parse_action(text: &str) -> Result<ViolationAction, String> {
    let refused =
        || "write a command, shell=CMD, signal=N,pid=PID, stop, trace or continue".to_owned();
    if let Some(command) = text.strip_prefix("shell=") {
        let is_empty = command.trim().is_empty();
        return if is_empty {
            Err(refused())
        } else {
            Ok(ViolationAction::Shell(command.to_owned()))
        };
    }
    if let Some(rest) = text.strip_prefix("signal=") {
        let (signal, pid) = rest.split_once(",pid=").ok_or_else(refused)?;
        let is_signal = !signal.is_empty() && signal.bytes().all(|b| b.is_ascii_alphanumeric());
        let is_pid = pid == "parent" || pid.parse::<u32>().is_ok_and(|pid| pid > 0);
        // `parent` is the parent of the run, as with rtla: of the one on another system there.
        let pid = match pid {
            "parent" => "\"$(sed 's/.*) . //; s/ .*//' \"/proc/$PPID/stat\")\"".to_owned(),
            pid => pid.to_owned(),
        };
        let signal = signal.to_owned();
        return (is_signal && is_pid)
            .then_some(ViolationAction::Signal { signal, pid })
            .ok_or_else(refused);
    }
    match text.trim() {
        "" => Err(refused()),
        "stop" => Ok(ViolationAction::Stop),
        "trace" => Ok(ViolationAction::Trace),
        "continue" => Ok(ViolationAction::Continue),
        _ => Ok(ViolationAction::Shell(text.to_owned())),
    }
}

/// All actions in one command, in order; a failed one does not prevent the next, and the last
/// failure is the result.
pub fn join_actions(actions: &[ViolationAction]) -> Option<String> {
    let lines: Vec<String> = actions
        .iter()
        .filter_map(|action| match action {
            ViolationAction::Shell(command) => Some(command.clone()),
            ViolationAction::Signal { signal, pid } => Some(format!("kill -s {signal} {pid}")),
            // The parent of the shell is the run.
            ViolationAction::Stop => Some("kill -s INT $PPID".to_owned()),
            ViolationAction::Trace | ViolationAction::Continue => None,
        })
        .collect();
    match lines.as_slice() {
        // A run that keeps its events needs no command.
        [] => None,
        [only] => Some(only.clone()),
        several => {
            let guarded_lines = several.iter().map(|line| format!("(\n{line}\n) || code=$?\n"));
            Some(format!("code=0\n{}exit $code", guarded_lines.collect::<String>()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Option<String> {
        let all: Result<Vec<_>, _> = texts.iter().map(|text| parse_action(text)).collect();
        join_actions(&all.expect("actions"))
    }

    #[test]
    fn one_command_stays_what_it_is() {
        assert_eq!(
            of(&["logger \"$PUNCTUAL_SERIES\""]).as_deref(),
            Some("logger \"$PUNCTUAL_SERIES\"")
        );
        assert_eq!(of(&["shell=true", "trace", "continue"]).as_deref(), Some("true"));
        assert_eq!(of(&["trace"]), None);
        assert_eq!(of(&["stop"]).as_deref(), Some("kill -s INT $PPID"));
        for wrong in ["", "shell=", "signal=2", "signal=2,pid=0", "signal=2;x,pid=1"] {
            assert!(parse_action(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn several_run_one_after_the_other_whatever_fails() {
        let script = of(&["echo a # not the end", "shell=exit 3", "echo c", "signal=0,pid=1"]);
        let ran =
            std::process::Command::new("sh").arg("-c").arg(script.expect("a script")).output();
        let ran = ran.expect("sh");
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "a\nc\n");
        assert_ne!(ran.status.code(), Some(0));
    }

    #[test]
    fn the_parent_is_that_of_the_run_wherever_it_runs() {
        let script = of(&["signal=0,pid=parent"]).expect("a script");
        // The run is the shell's parent.
        let script = script.replace("kill -s 0", "echo");
        let ran = std::process::Command::new("sh").arg("-c").arg(script).output().expect("sh");
        let parent = std::os::unix::process::parent_id().to_string();
        assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), parent);
    }
}
