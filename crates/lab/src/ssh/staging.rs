//! The remote directory: created, found, listed and removed by one-line scripts for any POSIX
//! shell.

use super::agent::ARGUMENT;
use super::binary::Binary;
use super::client::Connection;
use super::error::{SshError, Trouble};
use super::files;
use std::fmt;
use std::io::Write;
use std::process::{Output, Stdio};
use std::time::Duration;

/// How the names of the directories begin; the rest is the run's id.
const PREFIX: &str = "punctual-ssh-";
/// Tried in this order where the other system's `$TMPDIR` says nothing.
const BASES: [&str; 2] = ["/tmp", "/var/tmp"];
/// Answers are short.
const ANSWER_MAX: usize = 1 << 20;

/// A directory over there with punctual in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteDirectory {
    path: String,
}

impl RemoteDirectory {
    /// One that the other system names; only what no shell takes for anything but a path.
    fn named(path: &str) -> Option<RemoteDirectory> {
        let (base, name) = path.rsplit_once('/')?;
        let tame = is_tame_path(base) && name.strip_prefix(PREFIX).is_some_and(is_id);
        tame.then(|| RemoteDirectory { path: path.to_owned() })
    }

    /// What a person calls the run.
    pub(crate) fn id(&self) -> &str {
        self.path.rsplit_once(PREFIX).map_or("", |(_, id)| id)
    }

    /// The command that asks punctual over there for something.
    pub(crate) fn command(&self, word: &str, more: impl fmt::Display) -> String {
        format!("{0}/punctual {ARGUMENT} {word} {0} {more}", self.path)
    }
}

fn is_tame_path(path: &str) -> bool {
    path.starts_with('/')
        && path.len() < 256
        && path.chars().all(|c| c.is_ascii_alphanumeric() || "/._+=@-".contains(c))
}

fn is_id(id: &str) -> bool {
    (1..=32).contains(&id.len()) && id.chars().all(|c| c.is_ascii_alphanumeric())
}

fn bases(connection: &Connection) -> Result<Vec<String>, SshError> {
    match &connection.system.temporary {
        None => Ok(BASES.map(str::to_owned).to_vec()),
        Some(path) if is_tame_path(path) => Ok(vec![path.clone()]),
        Some(path) => Err(SshError::new(
            Trouble::Remote,
            format!(
                "$TMPDIR on {} is {path:?}: set it to an absolute path of letters, digits and / . \
                 _ + = @ -",
                connection.to()
            ),
        )),
    }
}

/// Sends the program into a new directory, has it verified there and its supervisor started. What
/// fails half-way is removed there.
pub(crate) fn make(connection: &Connection, binary: &Binary) -> Result<RemoteDirectory, SshError> {
    let digest =
        files::digest_of(binary.bytes.as_slice()).map_err(SshError::local("read", &binary.path))?;
    let mut refused = Vec::new();
    for base in bases(connection)? {
        let output = run_command(connection, &script(&base, &digest), &binary.bytes)?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let placed = answer
            .lines()
            .find_map(|line| RemoteDirectory::named(line.trim().strip_prefix("punctual-placed ")?));
        if let Some(directory) = placed.filter(|_| output.status.success()) {
            return Ok(directory);
        }
        let stderr = last_lines(&output.stderr);
        let why = match output.status.code() {
            Some(61) => format!("cannot create a directory in {base}: {stderr}"),
            Some(62) => {
                format!(
                    "punctual ({} MiB) cannot be written to {base}: {stderr}",
                    binary.bytes.len().div_ceil(1 << 20)
                )
            }
            Some(63) => format!("there is no sha256sum to verify it with: {stderr}"),
            Some(64) => "punctual did not arrive completely: the disk is full, or the connection \
                         was lost"
                .to_owned(),
            Some(66) => format!("{} does not run in {base}: {stderr}", binary.path.display()),
            Some(67) => format!("punctual does not start in {base}: {stderr}"),
            _ => format!("its shell ended with {} in {base}: {stderr}", output.status),
        };
        refused.push(why);
    }
    let why = format!(
        "cannot install punctual on {}: {}. Fix that, or set $TMPDIR there to another directory \
         (`SetEnv` in ~/.ssh/config, or ~/.ssh/environment there)",
        connection.to(),
        refused.join("; ")
    );
    Err(SshError::new(Trouble::Remote, why))
}

/// Which punctual lies there.
pub(crate) fn version(
    connection: &Connection,
    directory: &RemoteDirectory,
) -> Result<String, SshError> {
    let output = run_command(connection, &format!("{}/punctual --version", directory.path), &[])?;
    let answer = String::from_utf8_lossy(&output.stdout);
    let line = answer.lines().rev().find(|line| line.starts_with("punctual "));
    Ok(line.map_or_else(
        || "a punctual of unknown version".to_owned(),
        |line| line.chars().take(100).collect(),
    ))
}

/// Whatever of it fails, the trap removes the directory; in the end the supervisor answers for it.
fn script(base: &str, digest: &str) -> String {
    format!(
        "sh -c 'umask 077; d=$(mktemp -d {base}/{PREFIX}XXXXXXXXXX) || exit 61; trap \"rm -rf \
         $d\" EXIT; trap \"exit 68\" HUP INT TERM; cat >$d/punctual || exit 62; s=$(sha256sum \
         <$d/punctual) || exit 63; test \"${{s%% *}}\" = {digest} || exit 64; chmod 700 \
         $d/punctual || exit 65; $d/punctual --version || exit 66; $d/punctual {ARGUMENT} begin \
         $d || exit 67; trap - EXIT; echo punctual-placed $d'"
    )
}

/// Runs a command over there with this as its input.
fn run_command(connection: &Connection, command: &str, input: &[u8]) -> Result<Output, SshError> {
    let mut command = connection.command(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |why| SshError::new(Trouble::NoClient, format!("cannot start ssh: {why}"));
    let mut child = command.spawn().map_err(failed)?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // The other end may end before it has read all: its exit code and its words say why.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        child.wait_with_output()
    });
    let output = output.map_err(failed)?;
    // 255 is ssh's own.
    match output.status.code() {
        Some(255) | None => Err(connection.lost()),
        _ if output.stdout.len() > ANSWER_MAX => Err(SshError::new(
            Trouble::Remote,
            format!("the answer of {} is too long", connection.to()),
        )),
        _ => Ok(output),
    }
}

pub(crate) fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let words = lines[lines.len().saturating_sub(2)..].join("; ");
    if words.is_empty() { "no reason given".to_owned() } else { words.chars().take(400).collect() }
}

/// A run that was left over there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// What it is called.
    pub id: String,
    /// Its experiment, as its owner called the file.
    pub experiment: String,
    /// How it stands, in words.
    pub state: String,
    /// How long ago a client was connected; `None` if unknown.
    pub disconnected_for: Option<Duration>,
    pub(crate) directory: RemoteDirectory,
}

/// The runs of this user over there.
pub fn leftovers(connection: &Connection) -> Result<Vec<Leftover>, SshError> {
    let mut found = Vec::new();
    for base in bases(connection)? {
        // Anybody can make a directory of that name in /tmp: only one's own is looked into, and
        // nothing else is run.
        let script = format!(
            "sh -c 'for d in {base}/{PREFIX}*; do test -L \"$d\" && continue; test -d \"$d\" || \
             continue; test -O \"$d\" || continue; echo \"punctual-found $d\"; \"$d/punctual\" \
             {ARGUMENT} status \"$d\" 2>/dev/null || echo; done; exit 0'"
        );
        let output = run_command(connection, &script, &[])?;
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = answer.lines();
        while let Some(line) = lines.next() {
            let Some(directory) =
                line.strip_prefix("punctual-found ").and_then(RemoteDirectory::named)
            else {
                continue;
            };
            found.push(leftover(directory, lines.next().unwrap_or_default()));
        }
    }
    Ok(found)
}

fn leftover(directory: RemoteDirectory, status: &str) -> Leftover {
    let mut parts = status.split('\t').map(str::to_owned);
    let experiment = parts.next().filter(|text| !text.is_empty()).unwrap_or_else(|| "?".to_owned());
    let state = parts
        .next()
        .unwrap_or_else(|| "incomplete: the program was not sent completely".to_owned());
    let disconnected_for =
        parts.next().and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    Leftover { id: directory.id().to_owned(), experiment, state, disconnected_for, directory }
}

/// The run of that id.
pub(crate) fn find(connection: &Connection, id: &str) -> Result<RemoteDirectory, SshError> {
    let all = leftovers(connection)?;
    let ids: Vec<String> = all.iter().map(|run| run.id.clone()).collect();
    all.into_iter().find(|run| run.id == id).map(|run| run.directory).ok_or_else(|| {
        let others = if ids.is_empty() {
            "there is none".to_owned()
        } else {
            format!("there are {}", ids.join(", "))
        };
        SshError::new(
            Trouble::Request,
            format!("{} has no run {id:?} of this user: {others}", connection.to()),
        )
    })
}

/// Ends the run if it still runs, as Ctrl-C does, and removes everything of it.
pub fn clean(connection: &Connection, run: &Leftover) -> Result<(), SshError> {
    let path = &run.directory.path;
    let script = format!(
        "sh -c '{} || test -x {path}/punctual && exit 70; rm -rf {path}'",
        run.directory.command("remove", "&& exit 0")
    );
    let output = run_command(connection, &script, &[])?;
    match output.status.success() {
        true => Ok(()),
        false => Err(SshError::new(
            Trouble::Remote,
            format!(
                "the run {} on {} cannot be removed: {}",
                run.id,
                connection.to(),
                last_lines(&output.stderr)
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tame_paths_are_taken() {
        let directory = RemoteDirectory::named("/tmp/punctual-ssh-aB3").unwrap();
        assert_eq!(
            (directory.id(), directory.command("attach", 7).as_str()),
            ("aB3", "/tmp/punctual-ssh-aB3/punctual __remote attach /tmp/punctual-ssh-aB3 7")
        );
        for path in [
            "punctual-ssh-a",
            "/tmp/other",
            "/tmp/punctual-ssh-",
            "/tmp/punctual-ssh-a;b",
            "/t mp/punctual-ssh-a",
            "/tmp/$(x)/punctual-ssh-a",
            "/tmp/punctual-ssh-a/..",
        ] {
            assert_eq!(RemoteDirectory::named(path), None, "{path}");
        }
    }

    #[test]
    fn scripts_are_one_line_in_single_quotes() {
        let script = script("/tmp", &"0".repeat(64));
        assert!(
            !script.contains(['\n', '\\', '!']) && script.matches('\'').count() == 2,
            "{script}"
        );
    }
}
