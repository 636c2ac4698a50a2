//! A real sshd on the loopback interface, with its own keys, configuration and temporary directory.

use crate::common::{Place, eventually, has_program, is_root, processes_with, punctual, text};
use punctual_testing as testing;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Requirements are invalid if another measurement uses the CPU: their tests take it exclusively.
static CPU: RwLock<()> = RwLock::new(());

/// A test's turn: beside others that measure, or alone.
enum Turn {
    #[expect(dead_code, reason = "held, not read")]
    Shared(RwLockReadGuard<'static, ()>),
    #[expect(dead_code, reason = "held, not read")]
    Alone(RwLockWriteGuard<'static, ()>),
}

/// Ends with the test.
pub struct Sshd {
    place: Place,
    port: u16,
    listener: Child,
    _turn: Turn,
}

impl Sshd {
    /// Starts one for this user; `None`, with the missing prerequisite printed, if impossible.
    pub fn start(test: &str) -> Option<Sshd> {
        Sshd::start_in(test, Turn::Shared(CPU.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Like [`Sshd::start`], while no other test here measures.
    pub fn start_alone(test: &str) -> Option<Sshd> {
        Sshd::start_in(test, Turn::Alone(CPU.write().unwrap_or_else(PoisonError::into_inner)))
    }

    fn start_in(test: &str, turn: Turn) -> Option<Sshd> {
        if !is_root(test)
            || !has_program("ssh", "openssh-client")
            || !Path::new("/usr/sbin/sshd").exists()
        {
            if !Path::new("/usr/sbin/sshd").exists() {
                println!("SKIPPED: {test} lacks the program sshd (Debian package openssh-server)");
            }
            return None;
        }
        let place = Place::with("");
        for key in ["host", "user"] {
            let mut make = Command::new("ssh-keygen");
            make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(place.path().join(key));
            assert!(make.status().expect("ssh-keygen").success());
        }
        fs::create_dir(place.path().join("tmp")).unwrap();
        // sshd's directory for privilege separation; the package's service creates it at start.
        fs::create_dir_all("/run/sshd").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = place.path().display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile \
             {at}/user.pub\nStrictModes no\nUsePAM no\nPidFile none\nMaxStartups 100\nSetEnv \
             TMPDIR={at}/tmp\n"
        );
        place.write("sshd_config", config.as_bytes());
        let log = fs::File::create(place.path().join("sshd.log")).unwrap();
        let mut command = Command::new("/usr/sbin/sshd");
        command
            .args(["-D", "-e", "-f"])
            .arg(place.path().join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(log);
        let sshd = Sshd { port, listener: command.spawn().expect("sshd"), place, _turn: turn };
        sshd.know(&sshd.key("host"));
        sshd.lets_in(test).then_some(sshd)
    }

    /// Locked accounts, or a missing loopback interface, are due to the machine.
    fn lets_in(&self, test: &str) -> bool {
        let log = || fs::read_to_string(self.place.path().join("sshd.log")).unwrap_or_default();
        eventually("sshd listens", || {
            log().contains("Server listening") || log().contains("fatal")
        });
        let file = |name: &str| self.place.path().join(name).display().to_string();
        let mut ssh = Command::new("ssh");
        ssh.args([
            "-F",
            "none",
            "-o",
            "BatchMode=yes",
            "-o",
            &format!("UserKnownHostsFile={}", file("known")),
        ]);
        ssh.args(["-i", &file("user"), "-p", &self.port.to_string(), "root@127.0.0.1", "true"]);
        let tried = ssh.stdin(Stdio::null()).output().expect("ssh");
        if !tried.status.success() {
            println!(
                "SKIPPED: {test} lacks an sshd that lets root in: {} {}",
                text(&tried).trim(),
                log().trim()
            );
        }
        tried.status.success()
    }

    /// The public key of that name.
    pub fn key(&self, name: &str) -> String {
        fs::read_to_string(self.place.path().join(format!("{name}.pub"))).unwrap()
    }

    /// Makes this the only known key of the host.
    pub fn know(&self, key: &str) {
        self.place.write("known", format!("[127.0.0.1]:{} {key}", self.port).as_bytes());
    }

    /// The address after `ssh:`, with all keys, the same everywhere.
    pub fn address(&self) -> String {
        let file = |name| self.place.path().join(name).display().to_string();
        let (identity, known) = (file("user"), file("known"));
        format!("root@127.0.0.1:{},identity={identity},known_hosts={known}", self.port)
    }

    /// The value of `--target`.
    pub fn target(&self) -> String {
        format!(
            "ssh:{},binary={}",
            self.address(),
            testing::stripped(Path::new(env!("CARGO_BIN_EXE_punctual"))).display()
        )
    }

    /// The directory used as /tmp on the remote side.
    pub fn tmp(&self) -> PathBuf {
        self.place.path().join("tmp")
    }

    pub fn bundle(&self) -> PathBuf {
        self.place.bundle()
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    fn command(&self, experiment: &str, more: &[&str]) -> Command {
        self.place.write("experiment.toml", experiment.as_bytes());
        let mut command = punctual();
        command
            .args(["run", "experiment.toml", "--output", "bundle", "--target", &self.target()])
            .args(more);
        // A killed punctual leaves the directory of its connection.
        command.env("TMPDIR", self.place.path());
        command.current_dir(self.place.path()).stdin(Stdio::null());
        command
    }

    /// Runs `punctual run` there, to its end.
    pub fn run(&self, experiment: &str, more: &[&str]) -> Output {
        self.command(experiment, more).output().expect("punctual starts")
    }

    /// Starts `punctual run` in the background, with its messages in the file `said`.
    pub fn spawn(&self, experiment: &str, more: &[&str]) -> Child {
        let said = fs::File::create(self.place.path().join("said")).unwrap();
        self.command(experiment, more)
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .expect("punctual starts")
    }

    /// The messages of a spawned client so far.
    pub fn said(&self) -> String {
        fs::read_to_string(self.place.path().join("said")).unwrap_or_default()
    }

    /// Waits until live lines arrive.
    pub fn measures(&self) {
        eventually("live lines", || self.said().contains("timer/cpu0"));
    }

    /// The id of the run in `said`.
    pub fn id(&self) -> String {
        let said = self.said();
        let rest = said.split("the run is ").nth(1).unwrap_or_else(|| panic!("no id: {said}"));
        rest.split(';').next().unwrap().to_owned()
    }

    /// Kills sshd's connections at once.
    pub fn cut(&self) {
        let children =
            fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.listener.id())).unwrap();
        let sessions: Vec<&str> = children.split_whitespace().collect();
        assert!(!sessions.is_empty(), "there are connections");
        sessions.iter().for_each(|pid| crate::common::kill(pid.parse().unwrap(), "KILL"));
    }

    /// The host goes down, with everything that runs on it.
    pub fn die(&mut self) {
        let children =
            fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.listener.id())).unwrap();
        self.listener.kill().unwrap();
        self.listener.wait().unwrap();
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).for_each(kill_at_once);
        self.end_runs();
    }

    /// Kills everything on the remote side at once.
    pub fn end_runs(&self) {
        processes_with(&self.tmp().display().to_string()).into_iter().for_each(kill_at_once);
    }

    /// Whether all files and processes are gone.
    pub fn is_clean(&self) -> bool {
        fs::read_dir(self.tmp()).unwrap().next().is_none()
            && processes_with(&self.tmp().display().to_string()).is_empty()
    }

    #[track_caller]
    pub fn assert_clean(&self) {
        // A process that was asked to end takes a moment.
        eventually("nothing is left over there", || self.is_clean());
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.listener.kill();
        let _ = self.listener.wait();
        // Left by a failed test.
        self.end_runs();
    }
}

fn kill_at_once(pid: i32) {
    let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
}
