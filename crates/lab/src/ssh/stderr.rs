//! Why ssh failed, from its output with `-v`.

use super::destination::Destination;
use super::{ErrorPlace, SshError};

/// Interprets the messages of a failed connection.
pub(crate) fn judge_failure(to: &Destination, log: &str) -> SshError {
    let key = log.lines().find_map(|line| line.trim().strip_prefix("debug1: Server host key: "));
    let offered = key.map_or_else(|| "a key".to_owned(), |key| format!("the key {key}"));
    let (trouble, message) = if log.contains("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        let offending_line = log
            .lines()
            .find_map(|line| line.trim().strip_prefix("Offending "))
            .unwrap_or("somewhere");
        // ssh knows the file by its name in the connection's directory.
        let file = to
            .known_hosts
            .as_ref()
            .map_or_else(|| "known_hosts".to_owned(), |path| path.display().to_string());
        let known_place = offending_line.replace(" known_hosts:", &format!(" {file}:"));
        (
            ErrorPlace::HostKey,
            format!(
                "{to} shows {offered}, which differs from the known one ({known_place}): the \
                 system was reinstalled, or the connection is intercepted. Find out which; \
                 compare with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` typed at the \
                 system itself; if it is right, remove the old one with `ssh-keygen -R` and \
                 connect once by hand: {}",
                to.by_hand()
            ),
        )
    } else if log.contains("Host key verification failed") || log.contains("is known for") {
        (
            ErrorPlace::HostKey,
            format!(
                "{to} shows {offered}, and no key of this host is known{}. Compare it with what \
                 `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` says at the system itself; if \
                 it is right, connect once by hand and accept it: {}",
                to.known_hosts
                    .as_ref()
                    .map(|path| format!(" in {}", path.display()))
                    .unwrap_or_default(),
                to.by_hand()
            ),
        )
    } else if log.contains("Permission denied (") {
        (
            ErrorPlace::Denied,
            format!(
                "{to} does not accept this user without a password: {}. Provide a key \
                 (`identity`, ssh-agent, ssh-copy-id); `{}` must work without any prompt",
                last_messages(log),
                to.by_hand()
            ),
        )
    } else {
        (ErrorPlace::Unreachable, format!("no connection to {to}: {}", last_messages(log)))
    };
    SshError::new(trouble, message)
}

/// The last two lines of ssh that are not debug output.
pub(crate) fn last_messages(log: &str) -> String {
    let lines = log.lines().map(str::trim).filter(|line| {
        let noise = ["debug", "OpenSSH_", "Authenticated to", "Transferred:", "Bytes per second"];
        !line.is_empty() && !noise.iter().any(|start| line.starts_with(start))
    });
    let lines: Vec<&str> = lines.collect();
    match lines[lines.len().saturating_sub(2)..].join("; ") {
        nothing if nothing.is_empty() => "ssh ended without a message".to_owned(),
        words => words.chars().take(400).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(log: &str) -> SshError {
        let to = Destination { host: "board".into(), port: Some(22), ..Destination::default() };
        judge_failure(&to, log)
    }

    #[test]
    fn an_unknown_key_is_shown() {
        let log = "debug1: Server host key: ssh-ed25519 SHA256:abc\r\nNo ED25519 host key is \
                   known for board and you have requested strict checking.\r\nHost key \
                   verification failed.\r\n";
        let error = judged(log);
        assert_eq!(error.trouble, ErrorPlace::HostKey);
        insta::assert_snapshot!(error, @"board:22 shows the key ssh-ed25519 SHA256:abc, and no key of this host is known. Compare it with what `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` says at the system itself; if it is right, connect once by hand and accept it: ssh -p 22 board");
    }

    #[test]
    fn a_changed_host_key_is_reported_with_its_known_hosts_line() {
        let log = "debug1: Server host key: ssh-ed25519 SHA256:abc\n@ WARNING: REMOTE HOST \
                   IDENTIFICATION HAS CHANGED! @\nOffending ED25519 key in /k:3\nHost key \
                   verification failed.\n";
        let error = judged(log);
        assert_eq!(error.trouble, ErrorPlace::HostKey);
        assert!(
            error.message.contains("ED25519 key in /k:3") && error.message.contains("SHA256:abc"),
            "{error}"
        );
    }

    #[test]
    fn other_ssh_errors_are_reported_in_its_own_words() {
        let error = judged(
            "OpenSSH_9.2p1\ndebug1: Connecting\nssh: connect to host board port 22: Connection \
             refused\n",
        );
        insta::assert_snapshot!(error, @"no connection to board:22: ssh: connect to host board port 22: Connection refused");
        assert!(error.is_passing());
        assert_eq!(
            judged("root@board: Permission denied (publickey).").trouble,
            ErrorPlace::Denied
        );
        assert!(judged("").message.contains("without a message"));
    }
}
