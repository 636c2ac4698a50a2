//! The destination: an address that ssh(1), its configuration and shells treat only as an address.

use super::{ErrorPlace, SshError};
use std::fmt;
use std::path::PathBuf;

/// Another system, in the terms of ssh(1), including host names of ssh_config(5).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Destination {
    /// Name, address, or alias of ~/.ssh/config.
    pub host: String,
    /// The user there; `None`: ssh's default.
    pub user: Option<String>,
    /// The port there; `None`: ssh's default.
    pub port: Option<u16>,
    /// The private key; `None`: ssh's default ones.
    pub identity: Option<PathBuf>,
    /// The only file of host keys to use; `None`: the user's and the system's.
    pub known_hosts: Option<PathBuf>,
}

/// Whether a name is safe in command lines of ssh and, by its `%h` and `%r`, in shells that its
/// configuration starts (CVE-2023-51385).
fn is_tame(name: &str, more: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !name.starts_with('-')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

impl Destination {
    /// Refuses invalid names, and missing files.
    pub(crate) fn validate(&self) -> Result<(), SshError> {
        let refuse = |message: String| Err(SshError::new(ErrorPlace::Request, message));
        if !is_tame(&self.host, "._:-%") {
            return refuse(format!(
                "{:?} is not a valid host: it may contain letters, digits and . _ : - and must \
                 not begin with -",
                self.host
            ));
        }
        if let Some(user) = self.user.as_ref().filter(|user| !is_tame(user, "._@+-")) {
            return refuse(format!(
                "{user:?} is not a valid user: it may contain letters, digits and . _ @ + - and \
                 must not begin with -"
            ));
        }
        for (what, path) in
            [("the private key", &self.identity), ("the file of host keys", &self.known_hosts)]
        {
            if let Some(path) = path.as_ref().filter(|path| !path.exists() || path.is_dir()) {
                return refuse(format!("{what}, {}, does not exist", path.display()));
            }
        }
        Ok(())
    }

    /// The destination as a word of a command line, with everything needed to find it again:
    /// `user@host:port,identity=…`.
    pub(crate) fn to_word(&self) -> String {
        let files = [("identity", &self.identity), ("known_hosts", &self.known_hosts)];
        let files = files
            .into_iter()
            .filter_map(|(key, path)| Some(format!(",{key}={}", path.as_ref()?.display())));
        shell_words::quote(&format!("{self}{}", files.collect::<String>())).into_owned()
    }

    /// The command to connect by hand.
    pub(crate) fn by_hand(&self) -> String {
        let mut words = vec!["ssh".to_owned()];
        words.extend(self.port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
        words.extend(
            self.identity.iter().flat_map(|path| ["-i".to_owned(), path.display().to_string()]),
        );
        let option =
            |path: &PathBuf| ["-o".to_owned(), format!("UserKnownHostsFile={}", path.display())];
        words.extend(self.known_hosts.iter().flat_map(option));
        words.push(format!(
            "{}{}",
            self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default(),
            self.host
        ));
        shell_words::join(words)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "{user}[{}]:{port}", self.host),
            Some(port) => write!(f, "{user}{}:{port}", self.host),
            None => write!(f, "{user}{}", self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(host: &str, user: Option<&str>) -> Destination {
        Destination { host: host.into(), user: user.map(str::to_owned), ..Destination::default() }
    }

    #[test]
    fn only_valid_host_and_user_names_are_accepted() {
        for host in ["board", "192.168.0.7", "fe80::1%eth0", "a.b-c_d"] {
            assert!(to(host, None).validate().is_ok(), "{host}");
        }
        for host in [
            "",
            "-oProxyCommand=x",
            "a b",
            "a;b",
            "$(x)",
            "`x`",
            "a\nb",
            "a'b",
            "\u{430}",
            &"a".repeat(256),
        ] {
            assert!(to(host, None).validate().is_err(), "{host}");
        }
        assert!(to("board", Some("root")).validate().is_ok());
        for user in ["-l", "a b", "$USER", ""] {
            assert!(to("board", Some(user)).validate().is_err(), "{user}");
        }
    }

    #[test]
    fn a_destination_is_printed_as_it_is_parsed() {
        let all = Destination { port: Some(2222), ..to("fe80::1", Some("root")) };
        assert_eq!(
            (all.to_word(), to("board", None).to_word()),
            ("'root@[fe80::1]:2222'".into(), "board".into())
        );
        let keyed = Destination { identity: Some("my key".into()), ..to("board", None) };
        assert_eq!(keyed.to_word(), "'board,identity=my key'");
    }
}
