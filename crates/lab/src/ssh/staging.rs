//! The remote directory: created, found, listed and removed by one-line scripts for any POSIX
//! shell.

use super::agent::ARGUMENT;
use super::binary::Binary;
use super::client::Connection;
use super::files;
use super::{ErrorPlace, SshError};
use punctual_core::encode_hex;
use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

/// The prefix of the directories' names; the rest is the run's id.
const PREFIX: &str = "punctual-ssh-";
const ANSWER_MAX: usize = 1 << 20;
/// The exit code of a shell in a directory that is not the one created.
pub(crate) const NOT_OURS: i32 = 71;

/// The common beginning of every script. Owner and mode are those of `.`, which cannot be exchanged
/// once the shell is in it. `own`: this user's, closed to all others. `private`: only this user and
/// root can add files, or replace the directory; sets `$b` to its path. `nonce`: reads the mark of
/// the directory's creator, `-` if none.
const JUDGES: &str = "u=$(id -u); own() { set -- $(ls -ldn .); case $3:$1 in \
     $u:drwx--[-S]---*) return 0; esac; \
     return 1; }; held() { t=$1; set -- $(ls -ldn .); case $3:$1 in \
     $u:d????-??-*|0:d????-??-*|$t) return 0; esac; return 1; }; private() { b=$PWD; held x || \
     return 1; until test \"$PWD\" = /; do cd -P .. && held \"0:d????????[tT]*\" || return 1; \
     done; cd -P \"$b\"; }; nonce() { n=; { read n <nonce; } 2>/dev/null; n=${n:--}; }; ";

/// A remote directory with punctual in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteDirectory {
    path: String,
    /// The creator's mark in it: another directory of that name has a different one.
    nonce: String,
}

impl RemoteDirectory {
    /// Parses a directory named by the remote system, in two words; only characters without meaning
    /// to any shell are accepted.
    fn from_words(words: &str) -> Option<RemoteDirectory> {
        let (path, nonce) = words.trim().split_once(' ')?;
        let (base, name) = path.rsplit_once('/')?;
        let tame = is_tame_path(base) && name.strip_prefix(PREFIX).is_some_and(is_id);
        let (path, nonce) = (path.to_owned(), nonce.to_owned());
        (tame && (nonce == "-" || is_id(&nonce))).then_some(RemoteDirectory { path, nonce })
    }

    /// The id of the run for users.
    pub(crate) fn run_id(&self) -> &str {
        self.path.rsplit_once(PREFIX).map_or("", |(_, id)| id)
    }

    /// The command that calls punctual on the remote system.
    pub(crate) fn agent_command(&self, word: &str, more: impl fmt::Display) -> String {
        self.script_inside(&format!("./punctual {ARGUMENT} {word} {} {more}", self.path))
    }

    /// A script that continues in the directory, if it is still the one created. A replacement by
    /// others is not entered, and nothing in it runs. The program is not started by `exec`: bash
    /// would make an absolute path of its relative one.
    pub(crate) fn script_inside(&self, script: &str) -> String {
        let RemoteDirectory { path, nonce } = self;
        format!(
            "sh -c '{JUDGES}cd -P {path} || exit 127; nonce; test \"$PWD:$n\" = {path}:{nonce} && \
             own || {{ echo {path} is not the directory that punctual made, nothing in it was run: \
             $(ls -ldn .) >&2; exit {NOT_OURS}; }}; {script}'"
        )
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

/// The parent directories to try, in this order: no other user may be able to write there. That of
/// the login, /run/user/UID, is last: it is removed with the user's last session.
fn base_directories(connection: &Connection) -> Result<Vec<String>, SshError> {
    let system = &connection.system;
    if let Some(path) = &system.temporary {
        return match is_tame_path(path) {
            true => Ok(vec![path.clone()]),
            false => Err(SshError::new(
                ErrorPlace::Remote,
                format!(
                    "$TMPDIR on {} is {path:?}: set it to an absolute path of letters, digits and \
                     / . _ + = @ -",
                    connection.destination()
                ),
            )),
        };
    }
    let home = Some(&system.home).filter(|home| is_tame_path(home) && *home != "/");
    let home = home.map(|home| format!("{}{CACHE}", home.trim_end_matches('/')));
    let run = system.is_root.then(|| "/run".to_owned());
    let login = format!("/run/user/{}", system.uid);
    Ok(home.into_iter().chain(run).chain(Some(login).filter(|path| is_tame_path(path))).collect())
}

/// The one of the bases that is created if missing.
const CACHE: &str = "/.cache";

/// A unique mark for a new directory.
fn new_nonce() -> Result<String, SshError> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; 16];
    let read = File::open(source).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(SshError::local("read", source))?;
    Ok(encode_hex(&bytes))
}

/// Sends the program into a new directory, has it verified there and starts its supervisor. After a
/// failure everything is removed there.
pub(crate) fn stage_program(
    connection: &Connection,
    binary: &Binary,
) -> Result<RemoteDirectory, SshError> {
    let digest =
        files::digest_of(binary.bytes.as_slice()).map_err(SshError::local("read", &binary.path))?;
    let nonce = new_nonce()?;
    let mut refused = Vec::new();
    for base in base_directories(connection)? {
        let output =
            run_command(connection, &staging_script(&base, &nonce, &digest), &binary.bytes)?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let placed = answer
            .lines()
            .find_map(|line| RemoteDirectory::from_words(line.strip_prefix("punctual-placed ")?));
        if let Some(directory) = placed.filter(|_| output.status.success()) {
            return Ok(directory);
        }
        let stderr = last_lines(&output.stderr);
        let refusal = match output.status.code() {
            Some(0) => format!("{base} is a directory of another name, with unusual signs"),
            Some(60) => format!(
                "{base}, or a directory above it, can be changed by other users ({stderr}): `chmod \
                 go-w` it, or take another"
            ),
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
        refused.push(refusal);
    }
    let message = format!(
        "cannot install punctual on {}: {}. Fix that, or set $TMPDIR there to another directory \
         (`SetEnv` in ~/.ssh/config, or ~/.ssh/environment there)",
        connection.destination(),
        refused.join("; ")
    );
    Err(SshError::new(ErrorPlace::Remote, message))
}

pub(crate) fn remote_version(
    connection: &Connection,
    directory: &RemoteDirectory,
) -> Result<String, SshError> {
    let output = run_command(connection, &directory.script_inside("./punctual --version"), &[])?;
    if let Some(why) = gone_error(connection, output.status.code(), &output.stderr) {
        return Err(why);
    }
    let answer = String::from_utf8_lossy(&output.stdout);
    let line = answer.lines().rev().find(|line| line.starts_with("punctual "));
    Ok(line.map_or_else(
        || "a punctual of unknown version".to_owned(),
        |line| line.chars().take(100).collect(),
    ))
}

/// Interprets the exit code of a command in a run's directory: whether the directory is gone.
pub(crate) fn gone_error(
    connection: &Connection,
    code: Option<i32>,
    stderr: &[u8],
) -> Option<SshError> {
    let reason = match code {
        Some(126 | 127) => "the system was restarted, or the run was removed".to_owned(),
        Some(NOT_OURS) => last_lines(stderr),
        _ => return None,
    };
    let message = format!("the run is no longer on {}: {reason}", connection.destination());
    Some(SshError::new(ErrorPlace::Gone, message))
}

/// The trap removes the directory after any failure; in the end the supervisor does.
fn staging_script(base: &str, nonce: &str, digest: &str) -> String {
    let make = if base.ends_with(CACHE) { format!("mkdir -p {base}; ") } else { String::new() };
    format!(
        "sh -c 'umask 077; {JUDGES}{make}cd -P {base} || exit 61; private || {{ echo $PWD is $(ls \
         -ldn .) >&2; exit 60; }}; d=$(mktemp -d ./{PREFIX}XXXXXXXXXX) || exit 61; cd -P $d || \
         exit 61; own || exit 61; trap \"cd -P .. && rm -rf $d\" EXIT; trap \"exit 68\" HUP INT \
         TERM; echo {nonce} >nonce || exit 62; cat >punctual || exit 62; s=$(sha256sum <punctual) \
         || exit 63; test \"${{s%% *}}\" = {digest} || exit 64; chmod 700 punctual || exit 65; \
         ./punctual --version || exit 66; ./punctual {ARGUMENT} begin \"$PWD\" || exit 67; trap - \
         EXIT; echo punctual-placed \"$PWD\" {nonce}'"
    )
}

pub(crate) fn run_command(
    connection: &Connection,
    command: &str,
    input: &[u8],
) -> Result<Output, SshError> {
    let mut command = connection.remote_command(command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |why| SshError::new(ErrorPlace::NoClient, format!("cannot start ssh: {why}"));
    let mut child = command.spawn().map_err(failed)?;
    let stdin = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // The remote end may end before it has read all: its exit code and messages give the
        // reason.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        child.wait_with_output()
    });
    let output = output.map_err(failed)?;
    // 255 is ssh's own.
    match output.status.code() {
        Some(255) | None => Err(connection.lost_error()),
        _ if output.stdout.len() > ANSWER_MAX => Err(SshError::new(
            ErrorPlace::Remote,
            format!("the answer of {} is too long", connection.destination()),
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

/// A run left on the remote system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub id: String,
    /// The owner's name of its experiment file.
    pub experiment: String,
    /// The state of the run, in words.
    pub state: String,
    /// The time since a client was connected; `None` if unknown.
    pub disconnected_for: Option<Duration>,
    pub(crate) directory: RemoteDirectory,
}

/// The runs of this user on the remote system.
pub fn list_leftovers(connection: &Connection) -> Result<Vec<Leftover>, SshError> {
    let mut found = Vec::new();
    for base in base_directories(connection)? {
        let output = run_command(connection, &listing_script(&base), &[])?;
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = answer.lines();
        while let Some(line) = lines.next() {
            let Some(directory) =
                line.strip_prefix("punctual-found ").and_then(RemoteDirectory::from_words)
            else {
                continue;
            };
            found.push(parse_leftover(directory, lines.next().unwrap_or_default()));
        }
    }
    Ok(found)
}

/// Lists directories of this user, and runs nothing else. A base that others can change has none.
fn listing_script(base: &str) -> String {
    format!(
        "sh -c '{JUDGES}cd -P {base} 2>/dev/null && private || exit 0; for d in {PREFIX}*; do cd \
         -P \
         \"$b/$d\" 2>/dev/null && test \"$PWD\" = \"$b/$d\" && own || continue; nonce; echo \
         \"punctual-found $PWD $n\"; ./punctual {ARGUMENT} status \"$PWD\" 2>/dev/null || echo; \
         done; exit 0'"
    )
}

fn parse_leftover(directory: RemoteDirectory, status: &str) -> Leftover {
    let mut parts = status.split('\t').map(str::to_owned);
    let experiment = parts.next().filter(|text| !text.is_empty()).unwrap_or_else(|| "?".to_owned());
    let state = parts
        .next()
        .unwrap_or_else(|| "incomplete: the program was not sent completely".to_owned());
    let disconnected_for =
        parts.next().and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    Leftover { id: directory.run_id().to_owned(), experiment, state, disconnected_for, directory }
}

/// The run of that id.
pub(crate) fn find_run(connection: &Connection, id: &str) -> Result<RemoteDirectory, SshError> {
    let all_runs = list_leftovers(connection)?;
    let ids: Vec<String> = all_runs.iter().map(|run| run.id.clone()).collect();
    all_runs.into_iter().find(|run| run.id == id).map(|run| run.directory).ok_or_else(|| {
        let others_text = if ids.is_empty() {
            "there is none".to_owned()
        } else {
            format!("there are {}", ids.join(", "))
        };
        SshError::new(
            ErrorPlace::Request,
            format!("{} has no run {id:?} of this user: {others_text}", connection.destination()),
        )
    })
}

/// Ends the run if it still runs, as Ctrl-C does, and removes all its files.
pub fn remove_run(connection: &Connection, run: &Leftover) -> Result<(), SshError> {
    let output = run_command(connection, &removal_script(&run.directory), &[])?;
    match output.status.success() {
        true => Ok(()),
        false => Err(SshError::new(
            ErrorPlace::Remote,
            format!(
                "the run {} on {} cannot be removed: {}",
                run.id,
                connection.destination(),
                last_lines(&output.stderr)
            ),
        )),
    }
}

fn removal_script(directory: &RemoteDirectory) -> String {
    let path = &directory.path;
    directory.script_inside(&format!(
        "./punctual {ARGUMENT} remove {path} && exit 0; test -x punctual && exit 70; cd -P .. && \
         rm -rf ./{PREFIX}{}",
        directory.run_id()
    ))
}

#[cfg(test)]
mod tests;
